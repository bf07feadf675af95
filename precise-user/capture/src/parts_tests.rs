//! Reading parts of rows: what is read is what the whole capture has, and no more than that.

use std::collections::BTreeMap;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use proptest::prelude::*;

use super::bomb_tests::file_of;
use super::file_tests::bytes_of;
use super::strategies::capture_strategy;
use super::{CaptureFile as _, Column, ColumnValues, ReadError, ReadLimits, batches};
use precise_model::testing::{CaptureBuilder, project, spelled_out};
use precise_model::{Capture, Projection, RowPart};

const PARTS: [RowPart; 16] = [
    RowPart::Epoch,
    RowPart::Cpu,
    RowPart::Cgroup,
    RowPart::Process,
    RowPart::Thread,
    RowPart::Function,
    RowPart::Instruction,
    RowPart::Line,
    RowPart::Inlined,
    RowPart::Stack,
    RowPart::Data,
    RowPart::Source,
    RowPart::Outcome,
    RowPart::Latency,
    RowPart::Width,
    RowPart::PageSize,
];

fn read(bytes: Vec<u8>, limits: &ReadLimits, parts: Projection) -> Result<Capture, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    std::fs::write(&path, bytes).unwrap();
    Capture::read_parts(&path, limits, &|_| parts)
}

fn projected(mut capture: Capture, parts: Projection) -> Capture {
    project(&mut capture, parts);
    capture
}

/// Returns the sums of the rows that differ in no column but those of measures.
fn sums(capture: &Capture) -> BTreeMap<Vec<String>, [u64; 4]> {
    const MEASURES: [Column; 4] = [Column::Count, Column::PeriodSum, Column::LatencySum, Column::LatencyMax];
    let mut sums: BTreeMap<Vec<String>, [u64; 4]> = BTreeMap::new();
    for batch in batches(capture) {
        let batch = batch.unwrap();
        for row in 0..batch.rows {
            let value = |column: Column| match &batch.columns[column as usize] {
                ColumnValues::Flags(values) => format!("{:?}", values[row]),
                ColumnValues::Small(values) => format!("{:?}", values[row]),
                ColumnValues::Large(values) => format!("{:?}", values[row]),
                ColumnValues::Texts(texts) => format!("{:?}", texts.get(row)),
                ColumnValues::Times(values) => format!("{:?}", values[row]),
            };
            let number = |column: Column| match &batch.columns[column as usize] {
                ColumnValues::Small(values) => values[row].map_or(0, u64::from),
                ColumnValues::Large(values) => values[row].unwrap_or(0),
                _ => 0,
            };
            let dimensions = Column::ALL.into_iter().filter(|column| !MEASURES.contains(column));
            let sum = sums.entry(dimensions.map(value).collect()).or_default();
            let [count, period, latency, most] = MEASURES.map(number);
            *sum = [sum[0] + count, sum[1] + period, sum[2] + latency, sum[3].max(most)];
        }
    }
    sums
}

/// Returns samples of a few functions, each with a data address of its own.
fn many_addresses(rows: u64) -> Capture {
    let mut made = CaptureBuilder::new();
    for row in 0..rows {
        let function = ["parse", "send", ""][row as usize % 3];
        made.cell()
            .samples(1)
            .latency(10 + row as u32 % 5)
            .process(row as u32 % 7, "app")
            .cgroup(row % 2, ["/a.service", "/b.service"][row as usize % 2])
            .code(0x1000 + row % 30, "/bin/app", function, "src/app.c", row as u32 % 30)
            .data(0x7000_0000 + row * 64, "[heap]", "");
    }
    made.build()
}

#[test]
fn rows_that_become_equal_are_joined() {
    let capture = many_addresses(5000);
    let bytes = bytes_of(&capture);
    for part in PARTS {
        let parts = Projection::of(&[part]);
        let found = read(bytes.clone(), &ReadLimits::default(), parts).unwrap();
        let rows = found.rows.len();
        assert!(part == RowPart::Data || rows <= 5 * 30, "{part:?}: {rows} rows");
        assert_eq!(sums(&found), sums(&projected(capture.clone(), parts)), "{part:?}");
    }
    let found = read(bytes, &ReadLimits::default(), Projection::EVERYTHING).unwrap();
    assert_eq!(spelled_out(&found), spelled_out(&capture), "what is read whole is as it was written");
}

/// A column that is not needed may be damaged: it is not read.
#[test]
fn other_columns_are_not_read() {
    let capture = many_addresses(5000);
    let bytes = bytes_of(&capture);
    let file = SerializedFileReader::new(Bytes::from(bytes.clone())).unwrap();
    let damaged = |columns: &[Column]| {
        let mut bytes = bytes.clone();
        for group in file.metadata().row_groups() {
            for column in columns {
                let (start, length) = group.column(*column as usize).byte_range();
                bytes[start as usize..][..length as usize].fill(0xff);
            }
        }
        bytes
    };
    let read = |bytes, parts| read(bytes, &ReadLimits::default(), parts);
    for part in PARTS {
        let parts = Projection::EVERYTHING.without(&[part]);
        // Of the columns of the function some are read for every part of the code.
        let (parts, columns): (_, &[Column]) = match part {
            RowPart::Epoch => (parts, &[Column::Epoch]),
            RowPart::Cpu => (parts, &[Column::Cpu]),
            RowPart::Cgroup => (parts, &[Column::CgroupId, Column::Cgroup, Column::Owner, Column::Pod]),
            RowPart::Process => (parts, &[Column::Pid, Column::Process, Column::ProcessReason]),
            RowPart::Thread => (parts, &[Column::Tid, Column::Thread, Column::ThreadReason]),
            RowPart::Function => (
                Projection::EVERYTHING.without(&[
                    RowPart::Function,
                    RowPart::Instruction,
                    RowPart::Line,
                    RowPart::Inlined,
                ]),
                &[Column::Ip, Column::Module, Column::Function, Column::FileOffset, Column::FunctionReason],
            ),
            RowPart::Instruction => (parts, &[Column::BuildId, Column::FunctionOffset]),
            RowPart::Line => (parts, &[Column::SourceFile, Column::SourceReason, Column::Line]),
            RowPart::Inlined => (parts, &[Column::Inlined]),
            RowPart::Stack => (parts, &[Column::Stack, Column::StackReason, Column::StackEnd]),
            RowPart::Data => (parts, &[Column::Address, Column::Region, Column::Variable]),
            RowPart::Source => (parts, &[Column::DataSrc]),
            RowPart::Outcome => (parts, &[Column::OpOutcome, Column::FetchOutcome]),
            RowPart::Latency => (parts, &[Column::LatencyBucket]),
            RowPart::Width => (parts, &[Column::AccessBytes]),
            RowPart::PageSize => (parts, &[Column::PageSize]),
        };
        let bytes = damaged(columns);
        assert!(read(bytes.clone(), Projection::EVERYTHING).is_err(), "{part:?} is read with everything");
        let found = read(bytes, parts).unwrap_or_else(|error| panic!("{part:?}: {error}"));
        assert_eq!(sums(&found), sums(&projected(capture.clone(), parts)), "{part:?}");
    }
}

/// What is not read takes no memory: a capture of more addresses than fit answers other questions.
#[test]
fn addresses_that_are_not_needed_take_no_memory() {
    let bytes = bytes_of(&many_addresses(30_000));
    let limits = ReadLimits { bytes: 8 << 20, ..ReadLimits::default() };
    let refused = read(bytes.clone(), &limits, Projection::EVERYTHING).err().map(|error| error.to_string());
    let why = "rows name takes 5 MiB, and the limit is 4 MiB";
    assert!(refused.as_ref().is_some_and(|refused| refused.contains(why)), "{refused:?}");
    let found = read(bytes, &limits, Projection::EVERYTHING.without(&[RowPart::Data])).unwrap();
    assert_eq!(found.rows.iter().map(|row| row.measures.count).sum::<u64>(), 30_000);
    assert!(found.data.is_empty());
}

/// A writer goes on with the texts themselves once a dictionary is full.
#[test]
fn columns_whose_dictionary_is_full() {
    let mut made = CaptureBuilder::new();
    for number in (0..4000_u32).map(|row| row * row % 977) {
        let function = format!("f{number}");
        let cell = made.cell().samples(1).code(0x1000 + u64::from(number), "/bin/x", &function, "", 0);
        // Some are null.
        if number % 3 > 0 {
            cell.callers(&[&function, "main"]);
        }
    }
    let capture = made.build();
    let batch = batches(&capture).next().unwrap().unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(2000)
        .set_data_page_row_count_limit(300)
        .set_write_batch_size(100)
        .build();
    let bytes = Bytes::from(file_of(properties, &capture, &[batch]));
    let file = SerializedFileReader::new(bytes.clone()).unwrap();
    for column in [Column::Function, Column::Stack] {
        let place = Column::ALL.iter().position(|one| *one == column).unwrap();
        let group = file.get_row_group(0).unwrap();
        let pages = group.get_column_page_reader(place).unwrap().map(|page| page.unwrap());
        let encodings: Vec<_> = pages.filter(Page::is_data_page).map(|page| page.encoding()).collect();
        assert!(encodings.contains(&Encoding::PLAIN) && encodings.contains(&Encoding::RLE_DICTIONARY));
    }
    let found = read(bytes.to_vec(), &ReadLimits::default(), Projection::EVERYTHING).unwrap();
    assert_eq!(spelled_out(&found), spelled_out(&capture));
    assert_eq!(found.stacks.len(), capture.stacks.len());
}

fn parts_strategy() -> impl Strategy<Value = Projection> {
    proptest::sample::subsequence(PARTS.to_vec(), 0..=PARTS.len()).prop_map(|parts| Projection::of(&parts))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_parts_of_any_capture(capture in capture_strategy(), parts in parts_strategy()) {
        let found = read(bytes_of(&capture), &ReadLimits::default(), parts).unwrap();
        prop_assert_eq!(spelled_out(&found), spelled_out(&projected(capture, parts)));
    }
}
