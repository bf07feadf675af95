//! Tests of the capture file: round trips, hostile bytes, full disks.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::checkpoint::Schedule;
use super::strategies::capture_strategy;
use super::*;
use precise_model::testing::{CaptureBuilder, spelled_out};
use precise_model::*;

fn small() -> Capture {
    let mut builder = CaptureBuilder::new();
    builder
        .cell()
        .samples(7)
        .latency(300)
        .process(42, "nginx")
        .cgroup(9, "/system.slice/nginx.service")
        .code(0x401000, "/usr/sbin/nginx", "ngx_http_parse", "src/http/ngx_http_parse.c", 120)
        .data(0x7000_0000, "[heap]", "")
        .data_src(0x11c68200042)
        .callers(&["ngx_http_wait", "main", ""]);
    builder.cell().samples(3).epoch(2).code(0xffff_8000_0000_1000, "[kernel]", "page_fault", "", 0);
    builder.build()
}

pub(super) fn bytes_of(capture: &Capture) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.parquet");
    capture.write(&path).unwrap();
    fs::read(path).unwrap()
}

fn read(bytes: Vec<u8>) -> Result<Capture, ReadError> {
    Capture::read_bytes(Bytes::from(bytes), "test.parquet", &ReadLimits::default())
}

#[test]
fn what_is_written_is_read_and_nobody_else_may_read_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.parquet");
    let capture = small();
    capture.write(&path).unwrap();
    let back = Capture::read(&path).unwrap();
    assert_eq!(back.meta, capture.meta);
    assert_eq!(spelled_out(&back), spelled_out(&capture));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file stays");
}

#[test]
fn a_capture_without_rows_is_a_capture() {
    let capture = CaptureBuilder::new().build();
    assert_eq!(read(bytes_of(&capture)).unwrap().meta, capture.meta);
}

#[test]
fn epochs_can_be_appended_and_a_dropped_writer_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.parquet");
    fs::write(&path, "old").unwrap();
    let capture = small();
    let mut writer = CaptureWriter::create(&path).unwrap();
    writer.append_epoch(&capture, &capture.rows[..1]).unwrap();
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    let mut writer = CaptureWriter::create(&path).unwrap();
    for row in &capture.rows {
        writer.append_epoch(&capture, std::slice::from_ref(row)).unwrap();
    }
    writer.finish(&capture.meta).unwrap();
    assert_eq!(spelled_out(&Capture::read(&path).unwrap()), spelled_out(&capture));
}

/// Writes epochs with a checkpoint after each, and drops the writer as a crash would. Returns the
/// bytes of the partial file and the capture of what was written.
fn cut_off(folder: &Path, epochs: u32) -> (Vec<u8>, Capture) {
    let path = folder.join("c.parquet");
    let mut capture = small();
    let row = capture.rows[0];
    capture.meta.epochs = Vec::new();
    capture.rows = Vec::new();
    let mut writer = CaptureWriter::create(&path).unwrap();
    let draft = Meta { start_unix_ns: 0, ..capture.meta.clone() };
    writer.survive(draft, Schedule::every(std::time::Duration::ZERO));
    for epoch in 0..epochs {
        let start_ns = u64::from(epoch) * 1_000_000_000;
        capture.meta.epochs.push(Epoch { start_ns, end_ns: start_ns + 1_000_000_000 });
        // An epoch without samples makes no row group.
        let rows: Vec<Row> = (0..epoch % 3).map(|pid| Row { epoch, pid, ..row }).collect();
        writer.append_epoch(&capture, &rows).unwrap();
        capture.rows.extend(rows);
    }
    let partial = writer.partial().map(Path::to_owned);
    drop(writer);
    assert!(!path.exists());
    let bytes = partial.map_or_else(Vec::new, |partial| fs::read(partial).unwrap());
    (bytes, capture)
}

#[test]
fn what_a_crash_leaves_is_read_up_to_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, written) = cut_off(folder.path(), 6);
    let back = read(bytes.clone()).unwrap();
    assert_eq!(spelled_out(&back), spelled_out(&written));
    assert_eq!(back.meta.epochs, written.meta.epochs);
    let note = back.meta.notes.last().unwrap();
    assert!(note.contains("cut off") && note.contains("6.0 s after the start"), "{note}");

    // Wherever the file ends: everything up to the last whole checkpoint, or the file is refused.
    let mut rows = Vec::new();
    for end in (0..=bytes.len()).step_by(211).chain([bytes.len() - 1, bytes.len()]) {
        match read(bytes[..end].to_vec()) {
            Ok(back) => {
                let epochs = back.meta.epochs.len();
                assert_eq!(back.meta.epochs, written.meta.epochs[..epochs]);
                let expected = written.rows.iter().filter(|row| (row.epoch as usize) < epochs).count();
                assert_eq!(back.rows.len(), expected, "{end} of {} bytes", bytes.len());
                rows.push(back.rows.len());
            }
            Err(ReadError::Truncated { .. }) => assert!(rows.is_empty(), "{end} of {} bytes", bytes.len()),
            Err(error) => panic!("{end} of {} bytes: {error}", bytes.len()),
        }
    }
    assert!(
        rows.is_sorted() && rows.first() == Some(&1) && rows.last() == Some(&written.rows.len()),
        "{rows:?}"
    );
    // Rows and half a checkpoint that came later do not matter.
    let garbage = [&bytes[..], &bytes[100..3000], b"\0precise:so-far\n"].concat();
    assert_eq!(read(garbage).unwrap().rows.len(), written.rows.len());
}

#[test]
fn a_damaged_checkpoint_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, _) = cut_off(folder.path(), 4);
    for at in (0..bytes.len()).step_by(53) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0xff;
        // What it is read as does not matter here.
        let _result = read(damaged);
    }
}

#[test]
fn a_capture_with_checkpoints_is_complete_in_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.parquet");
    fs::write(&path, "old").unwrap();
    let capture = small();
    let mut writer = CaptureWriter::create(&path).unwrap();
    writer.survive(capture.meta.clone(), Schedule::every(std::time::Duration::ZERO));
    for row in &capture.rows {
        writer.append_epoch(&capture, std::slice::from_ref(row)).unwrap();
    }
    assert!(writer.partial().is_some_and(Path::exists));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    writer.finish(&capture.meta).unwrap();
    let back = Capture::read(&path).unwrap();
    assert_eq!(back.meta, capture.meta);
    assert_eq!(spelled_out(&back), spelled_out(&capture));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file stays");
}

#[test]
fn more_rows_than_a_row_group() {
    let mut capture = small();
    let row = capture.rows[0];
    capture.rows = (0..150_000).map(|i| Row { pid: i, ..row }).collect();
    let back = read(bytes_of(&capture)).unwrap();
    assert_eq!(back.rows.len(), 150_000);
    assert!(back.rows.iter().enumerate().all(|(i, row)| row.pid as usize == i));
    let limits = ReadLimits { rows: 1000, ..ReadLimits::default() };
    let error = Capture::read_bytes(Bytes::from(bytes_of(&capture)), "x", &limits).unwrap_err();
    assert!(matches!(error, ReadError::TooLarge { rows: 150_000, limit: 1000, .. }), "{error}");
}

#[test]
fn a_capture_with_more_rows_is_read_with_less_exact_times() {
    let mut capture = small();
    let (row, epochs) = (capture.rows[0], 40_000);
    capture.meta.epochs = (0..epochs).map(|i| Epoch { start_ns: i, end_ns: i + 1 }).collect();
    capture.rows = (0..2 * epochs as u32).map(|i| Row { epoch: i / 2, pid: i % 2, ..row }).collect();
    let back = Capture::read_bytes(
        Bytes::from(bytes_of(&capture)),
        "x",
        &ReadLimits { rows: 1000, ..ReadLimits::default() },
    )
    .unwrap();
    let total = |capture: &Capture| capture.rows.iter().map(|row| row.measures.count).sum::<u64>();
    assert_eq!(total(&back), total(&capture));
    assert!((300..=1000).contains(&back.rows.len()), "{} rows", back.rows.len());
    assert_eq!(back.meta.epochs.last().unwrap().end_ns, epochs);
    assert!(back.rows.iter().all(|row| (row.epoch as usize) < back.meta.epochs.len()));
    assert!(back.meta.notes.last().unwrap().starts_with("the time axis is "), "{:?}", back.meta.notes);
}

#[test]
fn devices_are_written_to_and_not_replaced() {
    small().write(Path::new("/dev/null")).unwrap();
    use std::os::unix::fs::FileTypeExt;
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let error = small().write(Path::new("/dev/full")).unwrap_err().to_string();
    assert!(error.starts_with("cannot write the capture /dev/full: No space left on device"), "{error}");
    let error = small().write(Path::new("/tmp")).unwrap_err().to_string();
    assert!(error.contains("it is a directory"), "{error}");
}

/// Mounts a tmpfs of 64 KiB; `None` if the test may not mount.
fn tiny_disk(at: &Path) -> Option<impl Drop> {
    struct Mounted(std::ffi::CString);
    impl Drop for Mounted {
        fn drop(&mut self) {
            // SAFETY: the path is a C string that lives during the call.
            unsafe { libc::umount2(self.0.as_ptr(), libc::MNT_DETACH) };
        }
    }
    let target = std::ffi::CString::new(at.to_str()?).ok()?;
    // SAFETY: all pointers are C strings that live during the call.
    let result = unsafe {
        libc::mount(c"tmpfs".as_ptr(), target.as_ptr(), c"tmpfs".as_ptr(), 0, c"size=64k".as_ptr().cast())
    };
    (result == 0).then_some(Mounted(target))
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_disk) = tiny_disk(directory.path()) else {
        eprintln!("skipped: may not mount a tmpfs");
        return;
    };
    let path = directory.path().join("c.parquet");
    let old = small();
    old.write(&path).unwrap();
    let mut big = small();
    let row = big.rows[0];
    let mixed = |i: u32| i.wrapping_mul(2_654_435_761);
    big.rows = (0..100_000).map(|i| Row { pid: mixed(i), tid: mixed(i ^ 77), ..row }).collect();
    let error = big.write(&path).unwrap_err().to_string();
    assert!(error.contains("No space left on device") && error.contains("Free some space"), "{error}");
    assert_eq!(spelled_out(&Capture::read(&path).unwrap()), spelled_out(&old));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "the half-written file is gone");
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (victim, link) = (directory.path().join("victim"), directory.path().join("link"));
    fs::write(&victim, "mine").unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    small().write(&link).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert!(Capture::read(&link).is_ok());
}

#[test]
fn rows_that_refer_to_nothing_are_refused() {
    for break_it in [
        |row: &mut Row| row.epoch = 9,
        |row: &mut Row| row.event = 9,
        |row: &mut Row| row.code = Some(9),
        |row: &mut Row| row.data = Some(9),
        |row: &mut Row| row.latency_bucket = Some(255),
    ] {
        let mut capture = small();
        break_it(&mut capture.rows[0]);
        let error = capture.write(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, WriteError::Model(_)), "{error}");
    }
}

/// Returns a file as the writer makes it, with other metadata.
fn with_metadata(pairs: &[(&str, &str)]) -> Vec<u8> {
    use parquet::file::metadata::KeyValue;
    let mut bytes = Vec::new();
    let (schema, properties) = (file::schema().unwrap(), Arc::default());
    let mut writer =
        parquet::file::writer::SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    for (key, value) in pairs {
        writer.append_key_value_metadata(KeyValue::new((*key).to_owned(), (*value).to_owned()));
    }
    writer.close().unwrap();
    bytes
}

#[test]
fn each_kind_of_wrong_file_has_its_own_error() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("none");
    assert!(matches!(Capture::read(&missing), Err(ReadError::Unreadable { .. })));
    assert!(matches!(Capture::read(directory.path()), Err(ReadError::Unreadable { .. })));
    assert!(matches!(read(b"PERFILE2 and so on".to_vec()), Err(ReadError::NotParquet { .. })));
    assert!(matches!(read(b"P".to_vec()), Err(ReadError::Truncated { .. })));
    assert!(matches!(read(Vec::new()), Err(ReadError::Truncated { .. })));
    assert!(matches!(read(with_metadata(&[])), Err(ReadError::Foreign { .. })));
    assert!(matches!(read(with_metadata(&[(SCHEMA_KEY, "x")])), Err(ReadError::Corrupt { .. })));
    assert!(matches!(read(with_metadata(&[(SCHEMA_KEY, "1")])), Err(ReadError::Corrupt { .. })));
    assert!(matches!(
        read(with_metadata(&[(SCHEMA_KEY, "1"), (META_KEY, "{")])),
        Err(ReadError::Corrupt { .. })
    ));
    let error = read(with_metadata(&[(SCHEMA_KEY, "2")])).unwrap_err();
    assert!(matches!(error, ReadError::Newer { found: 2, known: 1, .. }));
    assert_eq!(
        error.to_string(),
        "test.parquet has schema version 2, and this precise reads versions up to 1. Use a newer precise."
    );
}

#[test]
fn a_column_of_another_type_is_refused() {
    use parquet::basic::Type as Physical;
    use parquet::data_type::{Int32Type, Int64Type};
    use parquet::file::metadata::KeyValue;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;

    let meta = serde_json::to_string(&small().meta).unwrap();
    // `epoch` is an unsigned number of 32 bits.
    for physical in [Physical::INT32, Physical::INT64] {
        let epoch = Type::primitive_type_builder("epoch", physical);
        let epoch = epoch.with_repetition(parquet::basic::Repetition::REQUIRED).build().unwrap();
        let schema = Type::group_type_builder("precise").with_fields(vec![Arc::new(epoch)]).build().unwrap();
        let mut bytes = Vec::new();
        let mut file = SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::default()).unwrap();
        let mut group = file.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        match physical {
            Physical::INT32 => column.typed::<Int32Type>().write_batch(&[0], None, None).unwrap(),
            _ => column.typed::<Int64Type>().write_batch(&[0], None, None).unwrap(),
        };
        column.close().unwrap();
        group.close().unwrap();
        for (key, value) in [(SCHEMA_KEY, "1"), (META_KEY, &meta)] {
            file.append_key_value_metadata(KeyValue::new(key.to_owned(), value.to_owned()));
        }
        file.close().unwrap();
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(&format!("the column epoch has the wrong type {physical}")), "{error}");
    }
}

#[test]
fn every_prefix_is_an_error() {
    let bytes = bytes_of(&small());
    for length in 0..bytes.len() {
        assert!(matches!(read(bytes[..length].to_vec()), Err(ReadError::Truncated { .. })), "{length} bytes");
    }
}

#[test]
fn a_pipe_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: a C string that lives during the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let bytes = bytes_of(&small());
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::OpenOptions::new().write(true).open(fifo).unwrap().write_all(&bytes).unwrap()
    });
    assert_eq!(spelled_out(&Capture::read(&fifo).unwrap()), spelled_out(&small()));
    writer.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_capture_round_trips(capture in capture_strategy()) {
        let back = read(bytes_of(&capture)).unwrap();
        prop_assert_eq!(&back.meta, &capture.meta);
        prop_assert_eq!(spelled_out(&back), spelled_out(&capture));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(mutations()))]

    #[test]
    fn mutated_bytes_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
        near_end in any::<bool>(),
    ) {
        static GOOD: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let good = GOOD.get_or_init(|| bytes_of(&small()));
        let mut bytes = good.clone();
        // The structure is in the footer, so half of the cases change only the last part of the
        // file.
        let first = if near_end { bytes.len() * 3 / 4 } else { 0 };
        for (index, value) in changes {
            let at = first + index.index(bytes.len() - first);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            let at = cut.index(bytes.len());
            bytes.remove(at);
        }
        let _ = read(bytes);
    }
}

/// The number of cases of the mutation test; `PRECISE_MUTATIONS` overrides it.
fn mutations() -> u32 {
    std::env::var("PRECISE_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000)
}

#[test]
fn what_others_put_into_a_shared_folder_is_not_written_to() {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let (link, pipe) = (folder.path().join("link"), folder.path().join("pipe"));
    symlink("/dev/null", &link).unwrap();
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o666) }, 0);
    // A link of this user.
    crate::write_whole(&link, b"x").unwrap();
    if chown(&pipe, Some(65534), None).is_err() {
        return;
    }
    std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
    for path in [&link, &pipe] {
        let error = crate::write_whole(path, b"secret").unwrap_err().to_string();
        assert!(error.contains("another user (uid 65534)"), "{error}");
    }
    // A link to a file is replaced, no matter which user created it. The file itself is unchanged.
    let victim = folder.path().join("victim");
    std::fs::write(&victim, "untouched").unwrap();
    let planted = folder.path().join("planted");
    symlink(&victim, &planted).unwrap();
    std::os::unix::fs::lchown(&planted, Some(65534), None).unwrap();
    crate::write_whole(&planted, b"ours").unwrap();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
    let meta = std::fs::symlink_metadata(&planted).unwrap();
    assert!(meta.is_file() && meta.permissions().mode() & 0o777 == 0o600);
}

#[test]
fn owners_are_in_the_columns() {
    let owner = |path: &str, name: &str| Owner { path: path.into(), name: name.into(), ..Owner::default() };
    let some = |text: &str| Some(text.to_owned());
    let owners = [
        Owner { unit: some("cron.service"), ..owner("/cron.service", "cron.service") },
        Owner {
            runtime: some("docker"),
            container_id: some("3f4e"),
            ..owner("/docker/3f4e", "3f4e (docker)")
        },
        Owner {
            container: some("nginx"),
            container_id: some("77aa"),
            pod: some("web-0"),
            pod_uid: some("0f1e"),
            namespace: some("shop"),
            ..owner("/kubepods/0f1e/77aa", "shop/web-0/nginx")
        },
        Owner { pod_uid: some("5d6c"), ..owner("/kubepods/5d6c", "pod 5d6c") },
    ];
    let mut made = CaptureBuilder::new();
    for (at, path) in owners.iter().map(|owner| owner.path.as_str()).chain(["/nobody's"]).enumerate() {
        made.cell().samples(1 + at as u64).cgroup(at as u64, path);
        made.cell().samples(1).cgroup(at as u64, path);
    }
    made.meta().owners = owners.to_vec();
    let capture = made.build();
    assert_eq!(read(bytes_of(&capture)).unwrap().meta.owners, owners);
}
