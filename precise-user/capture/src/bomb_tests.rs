//! Small files that claim much memory. Each is refused before it gets it.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::allocated::most_allocated;
use super::batch::{Batch, ColumnValues, DistinctTexts};
use super::file::{META_KEY, SCHEMA_KEY, schema};
use super::group_file::GroupFile;
use super::row_group::RowGroup;
use super::{CaptureFile as _, Column, ReadError, ReadLimits, batches, claims};
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Row, SCHEMA_VERSION};

/// The limit of the tests.
const LIMIT: u64 = 32 << 20;

/// Returns the file of a capture with one row per process, whose columns `change` changes.
fn file(rows: u32, dictionary: bool, change: impl FnOnce(&mut Capture, &mut Batch)) -> Vec<u8> {
    let mut made = CaptureBuilder::new();
    made.cell().process(1, "worker").samples(10);
    let mut capture = made.build();
    let row = capture.rows[0];
    capture.rows = (0..rows).map(|pid| Row { pid, ..row }).collect();
    let mut batch = batches(&capture).next().unwrap().unwrap();
    change(&mut capture, &mut batch);

    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap()))
        .set_dictionary_enabled(dictionary);
    file_of(properties.build(), &capture, &[batch])
}

/// Returns a file with a row group for each of these batches.
pub(super) fn file_of(properties: WriterProperties, capture: &Capture, batches: &[Batch]) -> Vec<u8> {
    let mut file = GroupFile::start(Vec::new(), schema().unwrap(), Arc::new(properties)).unwrap();
    for batch in batches.iter().filter(|batch| batch.rows > 0) {
        let mut group = RowGroup::start();
        group.add(batch).unwrap();
        file.add(&mut group).unwrap();
    }
    let meta = serde_json::to_string(&capture.meta).unwrap();
    let pairs = [(SCHEMA_KEY, SCHEMA_VERSION.to_string()), (META_KEY, meta)];
    file.finish(pairs.map(|(key, value)| KeyValue::new(key.to_owned(), value)).to_vec()).unwrap()
}

/// Reads a file of at most 200 KB, and checks that this takes less than the limit. Returns the
/// error.
fn refused(bytes: Vec<u8>) -> ReadError {
    assert!(bytes.len() < 200_000, "{} bytes", bytes.len());
    let limits = ReadLimits { rows: 100_000, bytes: LIMIT };
    let (read, most) = most_allocated(|| Capture::read_bytes(Bytes::from(bytes), "x.parquet", &limits));
    let rows = 50_000 * size_of::<Row>();
    assert!(most <= LIMIT as usize + rows, "{most} bytes");
    read.unwrap_err()
}

fn set(batch: &mut Batch, column: Column, values: ColumnValues) {
    let place = Column::ALL.iter().position(|one| *one == column).unwrap();
    batch.columns[place] = values;
}

/// One text for all rows.
fn text(batch: &mut Batch, column: Column, text: String) {
    let keys = vec![Some(0); batch.rows];
    set(batch, column, ColumnValues::Texts(DistinctTexts { keys, distinct: vec![text] }));
}

#[test]
fn an_honest_file_is_read() {
    let limits = ReadLimits { rows: 100_000, bytes: LIMIT };
    let read = |bytes| Capture::read_bytes(Bytes::from(bytes), "x.parquet", &limits).unwrap();
    for dictionary in [true, false] {
        assert_eq!(read(file(30_000, dictionary, |_, _| {})).rows.len(), 30_000);
    }
}

/// The writer ends row groups early, so that whatever it writes can be read.
#[test]
fn long_names_make_small_row_groups() {
    let mut made = CaptureBuilder::new();
    for number in 0..9000 {
        let name = format!("{number}{}", "f".repeat(12_000));
        made.cell().code(number, "/bin/x", &name, "", 0).samples(1);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    made.build().write(&path).unwrap();
    let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let groups: Vec<_> = file.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [4096, 4096, 808]);
    assert_eq!(Capture::read(&path).unwrap().rows.len(), 9000);
}

/// Every row has an address of its own and the same long list of inlined functions.
#[test]
fn one_list_in_every_row() {
    let bytes = file(20_000, true, |_, batch| {
        let frame = r#"{"function":"f","source":"s","line":1}"#;
        text(batch, Column::Inlined, format!("[{}]", vec![frame; 1000].join(",")));
        let addresses = (0..batch.rows as u64).map(Some).collect();
        set(batch, Column::Ip, ColumnValues::Large(addresses));
        for column in [Column::FileOffset, Column::FunctionOffset] {
            set(batch, column, ColumnValues::Large(vec![Some(0); batch.rows]));
        }
        set(batch, Column::Line, ColumnValues::Small(vec![Some(0); batch.rows]));
    });
    let error = refused(bytes).to_string();
    assert!(error.starts_with("x.parquet does not fit in memory: what its first "), "{error}");
    assert!(error.contains(" rows name takes 17 MiB, and the limit is 16 MiB. If precise wrote"), "{error}");
}

/// Three row groups with 50,000 callers each, of which some are remembered.
#[test]
fn chains_of_many_callers() {
    let mut made = CaptureBuilder::new();
    made.cell().samples(1);
    let mut capture = made.build();
    capture.rows = vec![capture.rows[0]; 500];
    let chains = |first: usize| {
        let caller = |ip: usize| {
            format!(r#"{{"file_offset":0,"function_offset":0,"line":0,"kernel":true,"ip":{ip}}}"#)
        };
        let callers = |row: usize| (0..100).map(move |at| caller(first + row * 100 + at));
        let chain = |row: usize| format!("[{}]", callers(row).collect::<Vec<_>>().join(","));
        let mut batch = batches(&capture).next().unwrap().unwrap();
        let keys = (0..batch.rows as u32).map(Some).collect();
        let distinct = (0..batch.rows).map(chain).collect();
        set(&mut batch, Column::Stack, ColumnValues::Texts(DistinctTexts { keys, distinct }));
        batch
    };
    let read = |new: usize| {
        let batches = [0, 1, 2].map(|group| chains(group * new));
        let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 << 20);
        let bytes = Bytes::from(file_of(properties.build(), &capture, &batches));
        let limits = ReadLimits { rows: 100_000, bytes: LIMIT };
        let (read, most) = most_allocated(|| Capture::read_bytes(bytes, "x.parquet", &limits));
        assert!(most <= LIMIT as usize, "{most} bytes");
        read
    };
    assert_eq!(read(0).unwrap().code.len(), 50_000);
    // Other callers in each row group.
    let error = read(50_000).unwrap_err().to_string();
    assert!(error.contains(" rows name takes 17 MiB, and the limit is 16 MiB"), "{error}");
}

/// Without a dictionary, each row has its own copy of the text.
#[test]
fn pages_of_equal_texts() {
    let bytes = file(5000, false, |_, batch| text(batch, Column::Function, "f".repeat(10_000)));
    let error = refused(bytes).to_string();
    let claim = "row group 0 with the column function claims 48 MiB, and the limit is 4 MiB";
    assert!(error.contains(claim), "{error}");
}

#[test]
fn one_long_text() {
    let bytes = file(2, true, |_, batch| {
        text(batch, Column::Inlined, format!("[{}]", " ".repeat(200_000)));
    });
    let error = refused(bytes).to_string();
    assert!(error.contains("the column inlined has a text of 200002 bytes; 131072 are possible"), "{error}");
    let bytes = file(2, true, |_, batch| text(batch, Column::Process, "f".repeat(3_000_000)));
    let error = refused(bytes).to_string();
    assert!(error.contains("with the column process claims 6 MiB, and the limit is 4 MiB"), "{error}");
}

#[test]
fn long_metadata() {
    let limits = ReadLimits { rows: 1000, bytes: LIMIT };
    let read = |notes: usize| {
        let bytes = file(1, true, |capture, _| capture.meta.notes = vec![String::new(); notes]);
        most_allocated(|| Capture::read_bytes(Bytes::from(bytes), "x", &limits))
    };
    let (read_well, most) = read(250_000);
    assert!(read_well.is_ok() && most < LIMIT as usize, "{most} bytes, {read_well:?}");
    let (refused, most) = read(1_000_000);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("its metadata claims 52 MiB, and the limit is 16 MiB"), "{error}");
    assert!(most < LIMIT as usize, "{most}");
}

/// Wraps a footer in a file.
fn with_footer(footer: &[u8]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", footer, &length, b"PAR1"].concat()
}

#[test]
fn footers_of_many_small_structs() {
    // Field 4, a list of 100,000 empty structs.
    let footer = [&[0x49, 0xfc, 0xa0, 0x8d, 0x06][..], &vec![0; 100_000], &[0]].concat();
    let error = refused(with_footer(&footer)).to_string();
    assert!(error.contains("its footer claims 27 MiB, and the limit is 16 MiB"), "{error}");
    // A list that claims more than there is, and structs in structs.
    let endless = [0x49, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    let deep = [0x1c; 10_000];
    for footer in [&endless[..], &deep] {
        let error = refused(with_footer(footer)).to_string();
        assert!(error.starts_with("x.parquet is a damaged capture: its footer cannot be read"), "{error}");
    }
}

/// The header of a page: its type, its sizes, and the field of this type with its numbers.
fn page(kind: u8, uncompressed: u32, compressed: u32, field: u8, numbers: &[u32]) -> Vec<u8> {
    let varint = |number: u32| {
        let mut rest = u64::from(number) << 1;
        let mut bytes = Vec::new();
        while rest > 127 {
            bytes.push(rest as u8 | 128);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    };
    let mut header = vec![0x15, kind << 1];
    for number in [uncompressed, compressed] {
        header.push(0x15);
        header.extend(varint(number));
    }
    header.push((field - 3) << 4 | 12);
    for number in numbers {
        header.push(0x15);
        header.extend(varint(*number));
    }
    header.extend([0, 0]);
    header.extend(vec![0; compressed as usize]);
    header
}

#[test]
fn claims_of_pages() {
    let column = SchemaDescriptor::new(schema().unwrap()).column(0);
    let claim = |pages: Vec<Vec<u8>>| {
        let bytes = Bytes::from(pages.concat());
        let chunk = ColumnChunkMetaData::builder(column.clone())
            .set_data_page_offset(0)
            .set_total_compressed_size(bytes.len() as i64)
            .build()
            .unwrap();
        claims::of_chunk(&bytes, &chunk, true).map(|claim| claim.bytes)
    };
    // A page of data with a thousand values in PLAIN, and a dictionary of 5 texts.
    assert_eq!(claim(vec![page(0, 4000, 100, 5, &[1000, 0])]), Ok(4000));
    assert_eq!(claim(vec![page(2, 60, 30, 7, &[5, 0]), page(3, 10, 4, 8, &[5, 0, 5, 8])]), Ok(390));
    assert_eq!(claim(vec![page(0, i32::MAX as u32, 10, 5, &[1, 0])]), Ok(i32::MAX as u64));
    let error = claim(vec![page(2, 60, 30, 7, &[2_000_000_000, 0])]).unwrap_err();
    assert_eq!(error, "a dictionary of 60 bytes claims 2000000000 values");
    // DELTA_BYTE_ARRAY.
    let error = claim(vec![page(0, 60, 30, 5, &[1, 7])]).unwrap_err();
    assert_eq!(error, "a page has an encoding that no capture has");
    let cut = page(0, 4000, 100, 5, &[1000, 0]);
    let error = claim(vec![cut[..6].to_vec()]).unwrap_err();
    assert!(error.starts_with("the header of a page is damaged: "), "{error}");
}

proptest::proptest! {
    #[test]
    fn any_footer_is_walked(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = claims::of_footer(&bytes);
    }
}
