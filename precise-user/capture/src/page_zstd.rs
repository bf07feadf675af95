//! Decompresses pages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use zstd::bulk::Decompressor;

/// The smallest buffer that is used again, in bytes. Smaller ones come from the heap and go back to
/// it; memory for larger ones comes from the kernel, which clears it first.
const SMALLEST_KEPT: usize = 1 << 20;

/// What decompresses the pages of a file. Clones share it.
#[derive(Clone)]
pub(super) struct PageZstd(Arc<PageRoom>);

struct PageRoom {
    decompressor: Mutex<Option<Decompressor<'static>>>,
    /// A buffer for the next page; empty if there is none.
    spare: Mutex<Vec<u8>>,
    /// The largest buffer that is kept, in bytes.
    most_kept: AtomicU64,
}

impl PageZstd {
    /// Returns a decompressor that keeps a buffer of at most this many bytes for the next page.
    pub fn new(most_kept: u64) -> Self {
        let (decompressor, spare) = (Mutex::default(), Mutex::default());
        Self(Arc::new(PageRoom { decompressor, spare, most_kept: most_kept.into() }))
    }

    /// Keeps no more buffers, because the pages that follow are the last ones.
    pub fn keep_no_more(&self) {
        self.0.most_kept.store(0, Ordering::Relaxed);
    }

    /// Returns the contents of a page, which must have this number of bytes.
    pub fn decompress(&self, page: &[u8], bytes: usize) -> Result<Bytes, String> {
        let mut into = self.0.buffer(bytes);
        let mut shared = self.0.decompressor.lock().unwrap_or_else(PoisonError::into_inner);
        let decompressor = match &mut *shared {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().map_err(|error| error.to_string())?),
        };
        let found = decompressor.decompress_to_buffer(page, &mut into);
        let found = found.map_err(|error| format!("a page cannot be decompressed: {error}"))?;
        if found != bytes {
            return Err(format!("a page has {found} bytes instead of {bytes}"));
        }
        if into.capacity() < SMALLEST_KEPT {
            return Ok(into.into());
        }
        Ok(Bytes::from_owner(LentBuffer { bytes: into, room: Arc::clone(&self.0) }))
    }
}

impl PageRoom {
    /// Returns an empty buffer for this many bytes.
    fn buffer(&self, bytes: usize) -> Vec<u8> {
        if bytes < SMALLEST_KEPT {
            return Vec::with_capacity(bytes);
        }
        let mut spare = self.spare();
        // A page of another kind does not take the buffer of the largest ones.
        if spare.capacity() / 2 > bytes {
            return Vec::with_capacity(bytes);
        }
        let found = std::mem::take(&mut *spare);
        if found.capacity() >= bytes {
            return found;
        }
        drop(found);
        // The largest pages of row groups have nearly the same size.
        Vec::with_capacity(bytes + bytes / 16)
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The buffer of a page. It is used again once nothing refers to the page any more.
struct LentBuffer {
    bytes: Vec<u8>,
    room: Arc<PageRoom>,
}

impl AsRef<[u8]> for LentBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for LentBuffer {
    fn drop(&mut self) {
        let mut spare = self.room.spare();
        let capacity = self.bytes.capacity();
        let most = self.room.most_kept.load(Ordering::Relaxed);
        if capacity > spare.capacity() && capacity as u64 <= most {
            self.bytes.clear();
            std::mem::swap(&mut *spare, &mut self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn page(bytes: usize, byte: u8) -> Vec<u8> {
        zstd::bulk::compress(&vec![byte; bytes], 3).unwrap()
    }

    #[test]
    fn the_buffer_of_a_page_is_used_again_once_nothing_refers_to_it() {
        let zstd = PageZstd::new(8 << 20);
        let decompress = |bytes: usize, byte| {
            let found = zstd.decompress(&page(bytes, byte), bytes).unwrap();
            assert!(found.len() == bytes && found.iter().all(|found| *found == byte));
            found
        };
        let kept = || zstd.0.spare().capacity();
        let first = decompress(4 * MIB, 1);
        let (place, part) = (first.as_ptr(), first.slice(5..8));
        drop(first);
        assert_eq!(kept(), 0);
        assert_ne!(decompress(3 * MIB, 2).as_ptr(), place);
        assert_eq!(*part, [1; 3]);
        drop(part);
        assert_eq!(kept(), 4 * MIB + MIB / 4);
        // Neither a small page nor one of a quarter takes it.
        decompress(100, 3);
        decompress(MIB, 4);
        assert_eq!(kept(), 4 * MIB + MIB / 4);
        let again = decompress(4 * MIB + 5, 5);
        assert_eq!((kept(), again.as_ptr()), (0, place));
        drop(again);
        // A larger page gets a larger buffer, and the other one is freed. One that is too large is
        // not kept.
        drop(decompress(7 * MIB, 6));
        assert!((7 * MIB..8 * MIB).contains(&kept()));
        let large = decompress(9 * MIB, 7);
        assert_eq!(kept(), 0);
        drop(large);
        assert_eq!(kept(), 0);
        // The last page takes what is kept, and leaves nothing.
        drop(decompress(4 * MIB, 8));
        zstd.keep_no_more();
        assert_eq!(kept(), 4 * MIB + MIB / 4);
        drop(decompress(4 * MIB, 9));
        assert_eq!(kept(), 0);
    }

    #[test]
    fn a_page_of_another_size_than_it_says_is_an_error() {
        let zstd = PageZstd::new(8 << 20);
        for (bytes, claimed) in [(100, 99), (100, 101), (2 * MIB, 2 * MIB - 1), (2 * MIB, 100), (5, 2 * MIB)]
        {
            let error = zstd.decompress(&page(bytes, 1), claimed).unwrap_err();
            let [cut, other] =
                ["a page cannot be decompressed", &format!("a page has {bytes} bytes instead")];
            assert!(error.starts_with(cut) || error.starts_with(other), "{error}");
        }
        assert!(zstd.decompress(b"no page", 100).is_err());
    }
}
