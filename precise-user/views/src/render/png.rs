//! Encoder for PNG files (ISO/IEC 15948): one image in eight-bit RGB.

use std::io::{self, Write};

use flate2::Compression;
use flate2::Crc;
use flate2::write::ZlibEncoder;

/// The number of bytes of a pixel: red, green, blue.
const PIXEL: usize = 3;
/// The filter "Up": each row is stored as its difference from the row above, which in a chart is
/// mostly zero.
const FILTER_UP: u8 = 2;

/// Encodes `pixels`, `width` of them in each row from the top left, as a PNG file.
///
/// # Errors
///
/// Returns an error if the picture has no pixels, or more than a PNG can hold.
pub(super) fn encode(width: u32, pixels: &[u8]) -> io::Result<Vec<u8>> {
    let row = width as usize * PIXEL;
    if row == 0 || pixels.is_empty() || !pixels.len().is_multiple_of(row) {
        let what = format!("{} bytes are no picture of {width} pixels in each row", pixels.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let height = u32::try_from(pixels.len() / row).map_err(io::Error::other)?;
    let mut image = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut above = vec![0; row];
    let mut difference = Vec::with_capacity(row);
    for current in pixels.chunks_exact(row) {
        difference.clear();
        difference.extend(current.iter().zip(&above).map(|(byte, above)| byte.wrapping_sub(*above)));
        image.write_all(&[FILTER_UP])?;
        image.write_all(&difference)?;
        above.copy_from_slice(current);
    }
    // Eight bits for each of three colours; deflate, the five standard filters, not interlaced.
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, *b"IHDR", &header)?;
    chunk(&mut file, *b"IDAT", &image.finish()?)?;
    chunk(&mut file, *b"IEND", &[])?;
    Ok(file)
}

fn chunk(file: &mut Vec<u8>, name: [u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).ok().filter(|length| i32::try_from(*length).is_ok());
    let length = length.ok_or_else(|| io::Error::other("the picture is too large for a PNG"))?;
    let mut sum = Crc::new();
    sum.update(&name);
    sum.update(data);
    file.extend_from_slice(&length.to_be_bytes());
    file.extend_from_slice(&name);
    file.extend_from_slice(data);
    file.extend_from_slice(&sum.sum().to_be_bytes());
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_pixels_come_back() {
        let (width, height) = (5_u32, 7_u32);
        let pixels: Vec<u8> = (0..width * height * 3).map(|i| (i * i % 251) as u8).collect();
        let file = encode(width, &pixels).unwrap();
        // Signature; length, name, content and checksum of the header; length and name of the data.
        let data = 8 + 8 + 13 + 4 + 8;
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(&file[data..]).read_to_end(&mut rows).unwrap();
        let mut back = vec![0; width as usize * 3];
        let mut decoded = Vec::new();
        for row in rows.chunks_exact(1 + back.len()) {
            assert_eq!(row[0], FILTER_UP);
            back = row[1..]
                .iter()
                .zip(&back)
                .map(|(difference, above)| difference.wrapping_add(*above))
                .collect();
            decoded.extend_from_slice(&back);
        }
        assert_eq!(decoded, pixels);
    }

    #[test]
    fn what_is_no_picture_is_refused() {
        for (width, bytes) in [(0, 3), (1, 0), (2, 9)] {
            let refused = encode(width, &vec![0; bytes]).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{width}, {bytes}");
        }
    }
}
