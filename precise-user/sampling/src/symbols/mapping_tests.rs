use super::*;

const ALWAYS: Range<u64> = 0..u64::MAX;

fn file(path: &str, range: Range<u64>, page_offset: u64, since: u64) -> Mapping {
    let image = Arc::new(Image { path: path.into(), deleted: false, id: FileId::None });
    Mapping {
        start: range.start,
        end: range.end,
        page_offset,
        executable: true,
        writable: false,
        kind: MapKind::File,
        image: Some(image),
        since,
    }
}

fn anon(range: Range<u64>) -> Mapping {
    Mapping {
        start: range.start,
        end: range.end,
        page_offset: 0,
        executable: false,
        writable: true,
        kind: MapKind::Anon,
        image: None,
        since: 0,
    }
}

fn path(found: Option<(Mapping, bool)>) -> (String, u64, bool) {
    let (mapping, ambiguous) = found.expect("mapped");
    (mapping.image.map(|i| i.path.clone()).unwrap_or_default(), mapping.page_offset, ambiguous)
}

#[test]
fn a_mapping_over_the_middle_leaves_both_ends() {
    let mut space = AddressSpace::default();
    assert!(space.insert(file("/lib", 0x1000..0x9000, 0, 1)));
    assert!(space.insert(file("/other", 0x3000..0x5000, 0x7000, 2)));
    assert_eq!(path(space.find(0x2fff, &ALWAYS)), ("/lib".into(), 0, false));
    assert_eq!(path(space.find(0x3000, &(3..9))), ("/other".into(), 0x7000, false));
    assert_eq!(path(space.find(0x5000, &ALWAYS)), ("/lib".into(), 0x4000, false));
    assert_eq!(space.find(0x9000, &ALWAYS), None);
    assert_eq!(space.len(), 3);
}

#[test]
fn the_window_chooses_between_old_and_new() {
    let mut space = AddressSpace::default();
    space.insert(file("/old", 0x1000..0x2000, 0, 10));
    space.insert(file("/new", 0x1000..0x2000, 0, 20));
    assert_eq!(path(space.find(0x1800, &(11..19))).0, "/old");
    assert_eq!(path(space.find(0x1800, &(25..30))), ("/new".into(), 0, false));
    assert_eq!(path(space.find(0x1800, &(15..30))), ("/new".into(), 0, true));
    assert_eq!(space.find(0x1800, &(1..9)), None);
}

#[test]
fn a_changed_protection_is_no_replacement() {
    let mut space = AddressSpace::default();
    space.insert(file("/lib", 0x1000..0x9000, 0, 1));
    space.insert(Mapping { executable: false, ..file("/lib", 0x3000..0x4000, 0x2000, 5) });
    assert_eq!(path(space.find(0x3000, &(0..9))), ("/lib".into(), 0x2000, false));
    assert_eq!(path(space.find(0x3000, &(2..3))), ("/lib".into(), 0x2000, false));
}

#[test]
fn anonymous_neighbours_merge() {
    let mut space = AddressSpace::default();
    for page in 0..1000u64 {
        space.insert(anon(page * 0x1000..(page + 1) * 0x1000));
    }
    assert_eq!(space.len(), 1);
    assert!(!space.is_empty());
}

#[test]
fn bss_belongs_to_the_file_below_it() {
    let mut space = AddressSpace::default();
    space.insert(file("/bin/a", 0x1000..0x2000, 0, 0));
    space.insert(file("/bin/a", 0x2000..0x3000, 0x1000, 0));
    space.insert(anon(0x3000..0x4000));
    space.insert(anon(0x8000..0x9000));
    let (bss, _) = space.find(0x3010, &ALWAYS).expect("mapped");
    assert_eq!(bss.kind, MapKind::Bss);
    assert_eq!(space.image_base(&bss), Some(0x1000));
    let (other, _) = space.find(0x8000, &ALWAYS).expect("mapped");
    assert_eq!((other.kind, space.image_base(&other)), (MapKind::Anon, None));
}

#[test]
fn the_first_memory_above_the_program_is_the_heap() {
    let mut space = AddressSpace::default();
    space.insert(file("/bin/a", 0x1000..0x2000, 0, 1));
    let seen = |range| Mapping { since: 2, ..anon(range) };
    space.insert(seen(0x2000..0x3000));
    space.insert(seen(0x10_0000..0x20_0000));
    space.insert(seen(0x30_0000..0x40_0000));
    space.insert(file("/lib/b", 0x50_0000..0x60_0000, 0, 3));
    space.insert(seen(0x61_0000..0x62_0000));
    let kind = |address| space.find(address, &ALWAYS).expect("mapped").0.kind;
    assert_eq!(kind(0x2000), MapKind::Bss);
    assert_eq!(kind(0x10_0000), MapKind::Heap);
    assert_eq!(kind(0x30_0000), MapKind::Anon);
    assert_eq!(kind(0x61_0000), MapKind::Anon);
}

#[test]
fn the_stack_grows_without_a_record() {
    let mut space = AddressSpace::default();
    let stack = Mapping { kind: MapKind::Stack, ..anon(0x7fff_0000_0000..0x7fff_0002_0000) };
    space.insert(stack);
    assert_eq!(space.find(0x7ffe_ffff_0000, &ALWAYS).expect("grown").0.kind, MapKind::Stack);
    assert_eq!(space.find(0x7ffe_0000_0000, &ALWAYS), None);
}

#[test]
fn paths_say_what_backs_them() {
    for (path, kind, clean, deleted) in [
        ("", MapKind::Anon, "", false),
        ("//anon", MapKind::Anon, "//anon", false),
        ("[anon:stack_and_tls:12]", MapKind::Anon, "[anon:stack_and_tls:12]", false),
        ("[heap]", MapKind::Heap, "[heap]", false),
        ("[stack]", MapKind::Stack, "[stack]", false),
        ("[vdso]", MapKind::Vdso, "[vdso]", false),
        ("[vvar]", MapKind::Special, "[vvar]", false),
        ("/memfd:doublemapper (deleted)", MapKind::Memfd, "/memfd:doublemapper", true),
        ("/dev/zero (deleted)", MapKind::Anon, "/dev/zero", true),
        ("/SYSV00000000 (deleted)", MapKind::Anon, "/SYSV00000000", true),
        ("/usr/bin/x (deleted)", MapKind::File, "/usr/bin/x", true),
        ("/usr/bin/x y", MapKind::File, "/usr/bin/x y", false),
        ("anon_inode:[perf_event]", MapKind::Special, "anon_inode:[perf_event]", false),
    ] {
        assert_eq!(classify(path), (kind, clean, deleted), "{path}");
    }
}

#[test]
fn memory_is_bounded() {
    let mut space = AddressSpace::default();
    for page in 0..MAX_MAPPINGS as u64 {
        assert!(space.insert(anon(page * 0x2000..page * 0x2000 + 0x1000)));
    }
    assert!(!space.insert(anon(u64::MAX - 0x1000..u64::MAX)));
    for n in 0..1000 {
        space.insert(file(&format!("/{n}"), 0..0x1000, 0, n));
    }
    assert_eq!(space.replaced.len(), MAX_REPLACED);
}
