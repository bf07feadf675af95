//! Tests of the memory that a capture takes while it is written.

use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use super::allocated::{allocated, most_allocated};
use super::file::schema;
use super::group_file::GroupFile;
use super::row_group::RowGroup;
use super::write::properties;
use super::write_rows::batch;
use precise_model::Capture;
use precise_model::testing::CaptureBuilder;

/// The rows of an epoch in which processes and containers come and go.
fn epoch(number: u32) -> Capture {
    let mut builder = CaptureBuilder::new();
    for row in number * 200..(number + 1) * 200 {
        let process = row / 7;
        let address = 0x7f00_0000_0000 + u64::from(process % 256) * 0x10_0000 + u64::from(row % 900) * 64;
        let cell = builder.cell().samples(1).process(process, ["true", "sh"][process as usize % 2]);
        let container = process / 4;
        let cell = cell.cgroup(container.into(), &format!("/churn-{container:064x}.scope"));
        let _ = cell.code(address, "/usr/lib/libc.so.6", &format!("function_{}", row % 300), "", 0);
    }
    builder.build()
}

/// Rows wait for the end of their row group in little memory, so it hardly matters how many there
/// are. An encoder for each column took 5 MB for the first row, and 6.5 MB for those of this test.
#[test]
fn rows_that_wait_take_few_bytes() {
    let before = allocated();
    let mut group = RowGroup::start();
    for number in 0..40 {
        let capture = epoch(number);
        group.add(&batch(&capture, &capture.rows).unwrap()).unwrap();
    }
    let waiting = allocated() - before;
    assert_eq!(group.rows, 8000);
    assert!((100 << 10..400 << 10).contains(&waiting), "{waiting} bytes");

    let mut file = GroupFile::start(Vec::new(), schema().unwrap(), properties().unwrap()).unwrap();
    let ((), most) = most_allocated(|| file.add(&mut group).unwrap());
    assert!(most < 800 << 10, "{most} bytes to encode");
}

/// A row group leaves its description behind: about 1 KB, and 11 KB the first one.
#[test]
fn memory_hardly_depends_on_the_row_groups_before() {
    let mut file = GroupFile::start(std::io::sink(), schema().unwrap(), properties().unwrap()).unwrap();
    let mut most_of = |groups: std::ops::Range<u32>| {
        let before = allocated();
        let mut most = 0;
        for number in groups {
            let capture = epoch(number);
            let batch = batch(&capture, &capture.rows).unwrap();
            let held = allocated() - before;
            let ((), beyond) = most_allocated(|| {
                let mut group = RowGroup::start();
                group.add(&batch).unwrap();
                file.add(&mut group).unwrap();
            });
            most = most.max(held.unsigned_abs() + beyond);
        }
        (most, allocated() - before)
    };
    let (_, of_ten) = most_of(0..10);
    let (most, of_more) = most_of(10..110);
    assert!(of_ten < 10 * 4096, "{of_ten} bytes stay of 10 row groups");
    assert!(of_more < 100 * 4096, "{of_more} bytes stay of 100 more");
    assert!(most < 1 << 20, "{most} bytes at most");
}

/// Texts that do not fit into a dictionary end a row group before it is larger than what a reader
/// decodes at one time, so their size must be known before they are encoded.
#[test]
fn the_size_of_texts_is_known_before_they_are_encoded() {
    let mut group = RowGroup::start();
    for number in 0..4 {
        let mut builder = CaptureBuilder::new();
        for row in number * 1024..(number + 1) * 1024 {
            let _ = builder.cell().samples(1).process(1, &format!("{row:02000x}"));
        }
        let capture = builder.build();
        group.add(&batch(&capture, &capture.rows).unwrap()).unwrap();
    }
    let known = group.bytes();
    let mut file = GroupFile::start(Vec::new(), schema().unwrap(), properties().unwrap()).unwrap();
    file.add(&mut group).unwrap();
    let file = SerializedFileReader::new(Bytes::from(file.finish(Vec::new()).unwrap())).unwrap();
    let truth = file.metadata().row_group(0).total_byte_size() as usize;
    assert!((known..known + known / 10).contains(&truth), "{known} bytes, and {truth} in the file");
}
