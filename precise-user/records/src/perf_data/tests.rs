//! Tests of the container with synthetic files.

use std::io::Cursor;

use bytes::{BufMut as _, Bytes, BytesMut};

use super::*;
use crate::record::sample_bits as bit;

/// Returns a record.
fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    out.put_u32_le(kind);
    out.put_u16_le(0);
    out.put_u16_le(8 + body.len() as u16);
    out.put_slice(body);
    out.to_vec()
}

/// Returns `PERF_RECORD_HEADER_ATTR` with one id.
fn attr(sample_type: u64, id: u64) -> Vec<u8> {
    let mut body = vec![0; 64];
    body[4..8].copy_from_slice(&64u32.to_le_bytes());
    body[24..32].copy_from_slice(&sample_type.to_le_bytes());
    body.extend(id.to_le_bytes());
    record(64, &body)
}

fn piped(records: &[Vec<u8>]) -> RecordingReader {
    let mut file = b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec();
    records.iter().for_each(|record| file.extend(record));
    RecordingReader::pipe(Cursor::new(file)).expect("a head")
}

/// Returns the bodies of all records, and how the recording ended.
fn all(reader: &mut RecordingReader) -> (Vec<(Option<usize>, Bytes)>, Option<ReadLoss>) {
    let mut records = Vec::new();
    loop {
        match reader.next_event() {
            RecordingItem::Record { event, body, .. } => records.push((event, body)),
            RecordingItem::Round => records.push((None, Bytes::from_static(b"round"))),
            RecordingItem::End(loss) => return (records, loss),
        }
    }
}

#[test]
fn records_find_their_event_by_its_id() {
    let sample_type = bit::IDENTIFIER | bit::IP;
    let sample = |id: u64| record(9, &[id.to_le_bytes(), 7u64.to_le_bytes()].concat());
    let (records, loss) = all(&mut piped(&[
        attr(sample_type, 11),
        attr(sample_type, 22),
        sample(22),
        sample(11),
        record(68, &[]),
        sample(33),
        sample(0),
    ]));
    let events: Vec<_> = records.iter().map(|(event, _)| *event).collect();
    assert_eq!((events, loss), (vec![Some(1), Some(0), None, None, Some(0)], None));
    assert_eq!(&records[2].1[..], b"round");
}

#[test]
fn an_id_without_identifier_lies_where_the_sample_type_says() {
    let attr = |sample_type| Attr {
        sample: crate::record::sample::SampleLayout::from(sample_type),
        ..Attr::default()
    };
    let mem = attr(bit::IP | bit::TID | bit::TIME | bit::ADDR | bit::ID | bit::PERIOD);
    assert_eq!(mem.id_places(), (Some(4), Some(1)));
    assert_eq!(attr(bit::IP | bit::ID | bit::CPU | bit::STREAM_ID).id_places(), (Some(1), Some(3)));
    assert_eq!(attr(bit::IP | bit::TID).id_places(), (None, None));
}

#[test]
fn compressed_records_may_be_cut_anywhere() {
    let inner: Vec<u8> = (0u64..5000).flat_map(|n| record(9, &n.to_le_bytes())).collect();
    let stream = zstd::encode_all(&inner[..], 1).expect("compressed");
    for chunk in [1, 7, 100, 60_000] {
        let mut records = vec![attr(bit::IP, 1)];
        records.extend(stream.chunks(chunk).map(|part| record(81, part)));
        let mut reader = piped(&records);
        let (found, loss) = all(&mut reader);
        assert_eq!((found.len(), loss), (5000, None), "by {chunk}");
        assert_eq!(found[4999].1, 4999u64.to_le_bytes()[..]);
        assert_eq!(reader.compressed_records(), stream.chunks(chunk).len() as u64);
    }
}

#[test]
fn what_expands_without_end_is_read_piece_by_piece() {
    // A few kilobytes decompress to 64 MiB of empty records of perf's own.
    let one = record(200, &[0; 1016]);
    let inner: Vec<u8> = one.iter().copied().cycle().take(64 << 20).collect();
    let stream = zstd::encode_all(&inner[..], 1).expect("compressed");
    let mut records = vec![attr(bit::IP, 1)];
    records.extend(stream.chunks(60_000).map(|part| record(81, part)));
    assert_eq!(all(&mut piped(&records)), (vec![], None));
}

#[test]
fn damage_inside_of_compressed_records_is_said() {
    let mut reader = piped(&[attr(bit::IP, 1), record(81, b"this is no zstd at all")]);
    assert!(matches!(all(&mut reader), (records, Some(ReadLoss::Compressed { .. })) if records.is_empty()));
    let half = zstd::encode_all(&record(9, &[1; 8])[..12], 1).expect("compressed");
    let mut reader = piped(&[attr(bit::IP, 1), record(81, &half)]);
    assert!(matches!(all(&mut reader), (records, Some(ReadLoss::Truncated { .. })) if records.is_empty()));
}

#[test]
fn what_follows_a_trace_record_is_stepped_over() {
    let mut aux = record(71, &[&5000u64.to_le_bytes()[..], &[0; 32]].concat());
    aux.extend([0xee; 5000]);
    let mut reader = piped(&[attr(bit::IP, 1), aux, record(9, &[1; 8])]);
    let (records, loss) = all(&mut reader);
    assert_eq!((records.len(), loss, reader.trace_bytes()), (1, None, 5000));
}

#[test]
fn the_end_is_told_from_a_cut() {
    let mut cut = record(9, &[1; 8]);
    cut.truncate(12);
    let (records, loss) = all(&mut piped(&[attr(bit::IP, 1), record(9, &[1; 8]), cut]));
    assert_eq!((records.len(), loss), (1, Some(ReadLoss::Truncated { at: 16 + 80 + 16 })));
}
