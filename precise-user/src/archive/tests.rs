use super::*;
use precise_capture::CaptureWriter;
use precise_model::testing::CaptureBuilder;

/// The second of a capture whose time is not known.
const UNKNOWN: u64 = u64::MAX;

/// Writes a capture to a file. The length of its name is part of its number of samples. `precise`
/// says for each event whether it is precise.
fn capture(folder: &Path, name: &str, host: &str, second: u64, precise: &[bool]) -> std::path::PathBuf {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.machine.host = host.to_owned();
    meta.start_unix_ns =
        if second == UNKNOWN { 0 } else { 1_700_000_000_000_000_000 + second * 1_000_000_000 };
    let event = meta.events[0].clone();
    meta.events = precise
        .iter()
        .map(|precise| {
            let mut event = event.clone();
            event.verdict.precise = *precise;
            event
        })
        .collect();
    builder.cell().samples(100 + second % UNKNOWN + name.len() as u64 - 1);
    let capture = builder.build();
    let path = folder.join(name);
    let mut writer = CaptureWriter::create(&path).unwrap();
    writer.append_epoch(&capture, &capture.rows).unwrap();
    writer.finish(&capture.meta).unwrap();
    path
}

fn samples(reference: &Path) -> u64 {
    read(reference).unwrap().rows.iter().map(|row| row.measures.count).sum()
}

#[test]
fn a_pair_is_kept_and_its_label_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (label, place) =
        (Label::parse("deploy-41").unwrap(), ArchivePlace::Folder(folder.path().join("archive")));
    let a = capture(folder.path(), "a", "node-1.example", 0, &[true]);
    let b = capture(folder.path(), "b", "node-1.example", 5, &[false]);
    let kept = keep(&place, &label, &[b, a.clone()]).unwrap();
    let names: Vec<_> = kept.captures.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(
        names,
        ["20231114T221325Z-node-1.example-plain.parquet", "20231114T221320Z-node-1.example-precise.parquet"]
    );
    let at = folder.path().join("archive/deploy-41");
    // The precise capture of the pair is read although the plain one is newer; then the newest
    // precise one.
    assert_eq!((samples(&at), samples(&at.join(names[0]))), (100, 105));
    let later = capture(folder.path(), "c", "node-1.example", 7, &[true]);
    keep(&place, &label, &[later]).unwrap();
    assert_eq!(samples(&at), 107);
    let list = std::fs::read_to_string(at.join("20231114T221325Z-node-1.example.json")).unwrap();
    crate::text::schema::check(&list);
    // Existing captures are not replaced, and other users may not read them.
    let again = keep(&place, &label, &[a]).unwrap_err();
    assert!(again.to_string().contains("exists already and is never replaced"), "{again}");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&at), mode(&at.join(names[0]))), (0o700, 0o600));
}

#[test]
fn a_label_of_several_hosts_is_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let place = ArchivePlace::Folder(folder.path().to_owned());
    let label = Label::parse("x").unwrap();
    for (name, host) in [("a", "one"), ("b", "two")] {
        keep(&place, &label, &[capture(folder.path(), name, host, 0, &[true, false])]).unwrap();
    }
    let error = read(&folder.path().join("x")).unwrap_err();
    assert_eq!(error.class, ExitClass::Usage);
    assert!(error.to_string().contains("x/20231114T221320Z-two-both.parquet"), "{error}");
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("has no archived captures"), "{error}");
}

#[test]
fn hosts_and_labels_are_harmless_names() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = capture(folder.path(), "a", "../../etc/x\n", 0, &[true]);
    let place = ArchivePlace::Folder(folder.path().join("p"));
    let kept = keep(&place, &Label::parse("l").unwrap(), std::slice::from_ref(&hostile)).unwrap();
    assert_eq!(kept.captures[0].name, "20231114T221320Z-_.._etc_x_-precise.parquet");
    for wrong in ["", "..", ".x", "a/b", "a b", "größe"] {
        assert!(Label::parse(wrong).is_err(), "{wrong}");
    }
    let twice = keep(&place, &Label::parse("m").unwrap(), &[hostile.clone(), hostile]).unwrap_err();
    assert!(twice.to_string().contains("as another of these captures"), "{twice}");
    assert!(!folder.path().join("p/m").exists());
}

#[cfg(not(feature = "s3"))]
#[test]
fn a_build_without_object_stores_says_so() {
    let error = read(Path::new("s3://bucket/deploy-41")).unwrap_err();
    assert_eq!(error.class, Class::Unsupported);
    assert!(error.to_string().contains("was built without the feature `s3`"), "{error}");
}

#[test]
fn places_are_read() {
    let parse = |text: &str| ArchivePlace::parse(Path::new(text));
    let place = parse("s3://bucket/a/b/").unwrap();
    assert_eq!(place.to_string(), "s3://bucket/a/b");
    assert_eq!(place.below("c").to_string(), "s3://bucket/a/b/c");
    assert_eq!(parse("s3://bucket").unwrap().below("c").to_string(), "s3://bucket/c");
    let (folder, name) = parse("s3://bucket/a/x.parquet").unwrap().object().unwrap();
    assert_eq!((folder.to_string(), name), ("s3://bucket/a".to_owned(), "x.parquet".to_owned()));
    assert!(parse("s3:///x").unwrap_err().to_string().contains("does not name a bucket"));
    assert!(parse("s3://a b/x").unwrap_err().to_string().contains("is not a bucket name"));
    assert!(parse("gs://b/x").unwrap_err().to_string().contains("not a place for captures"));
    assert_eq!(parse("a/b").unwrap(), ArchivePlace::Folder("a/b".into()));
}

#[test]
fn captures_of_an_unknown_time_differ_by_their_contents_and_are_older_than_others() {
    let folder = tempfile::tempdir().unwrap();
    let (label, place) =
        (Label::parse("imports").unwrap(), ArchivePlace::Folder(folder.path().join("archive")));
    let a = capture(folder.path(), "a", "node-1", UNKNOWN, &[true]);
    let b = capture(folder.path(), "bb", "node-1", UNKNOWN, &[true]);
    let first = keep(&place, &label, std::slice::from_ref(&a)).unwrap();
    let second = keep(&place, &label, &[b]).unwrap();
    let names = [&first, &second].map(|kept| kept.captures[0].name.clone());
    assert!(
        names.iter().all(|name| name.starts_with("0_unknown_") && name.ends_with("-node-1-precise.parquet")),
        "{names:?}"
    );
    assert_ne!(names[0], names[1]);
    // The same capture again is the same.
    let again = keep(&place, &label, &[a]).unwrap_err();
    assert!(again.to_string().contains("exists already and is never replaced"), "{again}");
    let known = capture(folder.path(), "c", "node-1", 0, &[true]);
    keep(&place, &label, &[known]).unwrap();
    assert_eq!(samples(&folder.path().join("archive/imports")), 100);
}
