use super::*;

const ALWAYS: Range<u64> = 0..u64::MAX;

fn file(path: &str, range: Range<u64>, page_offset: u64, since: u64) -> Mapping {
    let image = Arc::new(Image { path: path.into(), deleted: false, id: MappedFileId::None });
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
    space.insert(file("/lib", 0x1000..0x9000, 0, 1));
    space.insert(file("/other", 0x3000..0x5000, 0x7000, 2));
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

/// So does lld lay out a small program: its first page is mapped to be read, and again as code.
#[test]
fn a_first_page_that_is_mapped_twice_begins_where_it_is_read() {
    let mut space = AddressSpace::default();
    space.insert(Mapping { executable: false, ..file("/bin/a", 0x1000..0x2000, 0, 0) });
    space.insert(file("/bin/a", 0x2000..0x3000, 0, 0));
    space.insert(Mapping { executable: false, ..file("/bin/a", 0x3000..0x4000, 0x1000, 0) });
    space.insert(anon(0x4000..0x5000));
    // Another image that ends where this one begins is none of it.
    space.insert(file("/bin/b", 0x0..0x1000, 0, 0));
    for address in [0x1000, 0x2000, 0x3000, 0x4000] {
        let (found, _) = space.find(address, &ALWAYS).expect("mapped");
        assert_eq!(space.image_base(&found), Some(0x1000), "{address:#x}");
    }
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
fn a_heap_directly_above_the_program_holds_its_variables_too() {
    let mut space = AddressSpace::default();
    space.insert(file("/bin/a", 0x1000..0x2000, 0, 0));
    space.insert(Mapping { kind: MapKind::Heap, ..anon(0x2000..0x9000) });
    space.insert(file("/lib/b", 0x10_000..0x20_000, 0, 0));
    space.insert(Mapping { kind: MapKind::Heap, ..anon(0x21_000..0x22_000) });
    let (both, _) = space.find(0x2010, &ALWAYS).expect("mapped");
    assert_eq!((both.kind, space.image_base(&both)), (MapKind::BssAndHeap, Some(0x1000)));
    assert_eq!(space.find(0x21_000, &ALWAYS).expect("mapped").0.kind, MapKind::Heap);
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
        let image = Image { path: clean.to_owned(), deleted, id: MappedFileId::None };
        let shown = if kind == MapKind::File { path } else { clean };
        assert!(image.name() == shown || kind == MapKind::Anon, "{path}: {}", image.name());
    }
}

#[test]
fn replaced_mappings_are_bounded() {
    let mut space = AddressSpace::default();
    for n in 0..1000 {
        space.insert(file(&format!("/{n}"), 0..0x1000, 0, n));
    }
    assert_eq!((space.len(), space.replaced.len()), (1, MAX_REPLACED));
    space.forget_replaced(990);
    assert_eq!(space.replaced.len(), 10);
}

#[test]
fn a_child_shares_until_it_changes() {
    let account = ByteAccount::default();
    let mut parent = AddressSpace::new(&account, false);
    for page in 0..10_000u64 {
        parent.insert(anon(page * 0x2000..page * 0x2000 + 0x1000));
    }
    let alone = account.bytes();
    let mut child = parent.fork();
    assert_eq!(account.bytes(), alone);
    child.insert(file("/new", 0x2000..0x3000, 0, 7));
    assert!(account.bytes() - alone < alone / 50, "{} beside {alone}", account.bytes() - alone);
    assert_eq!(parent.find(0x2000, &ALWAYS).map(|(m, _)| m.kind), Some(MapKind::Anon));
    assert_eq!(child.find(0x2000, &ALWAYS).map(|(m, _)| m.kind), Some(MapKind::File));
    assert!(child.own_bytes() < parent.own_bytes() + alone / 50);
    drop(parent);
    child.forget();
    assert!(child.is_empty() && child.is_incomplete());
    assert!(account.bytes() < 1000, "{}", account.bytes());
    drop(child);
    assert_eq!(account.bytes(), 0);
}

proptest::proptest! {
    /// The chunks have the same mappings as a list without them.
    #[test]
    fn chunks_change_nothing(steps in proptest::collection::vec((0u64..400, 1u64..20, 0u8..4), 0..600)) {
        let mut space = AddressSpace::default();
        let mut forked = Vec::new();
        // The mapping of each page.
        let mut pages: Vec<Option<u64>> = vec![None; 500];
        for (number, (page, length, kind)) in steps.into_iter().enumerate() {
            let number = number as u64;
            if kind == 0 {
                forked.push((space.fork(), pages.clone()));
            }
            // Offsets that never continue those of a neighbour, so that no two are alike.
            space.insert(file("/x", page << 12..(page + length) << 12, number << 32, number));
            pages[page as usize..(page + length) as usize].fill(Some(number << 32));
        }
        forked.push((space, pages));
        for (space, pages) in forked {
            for (page, expected) in pages.into_iter().enumerate() {
                let found = space.find((page as u64) << 12, &ALWAYS).map(|(m, _)| m.page_offset >> 32 << 32);
                proptest::prop_assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn the_vsyscall_page_is_in_every_space() {
    let space = AddressSpace::default();
    let (page, ambiguous) = space.find(VSYSCALL + 0x400, &ALWAYS).expect("mapped");
    assert_eq!((page.kind, page.start, ambiguous), (MapKind::Vsyscall, VSYSCALL, false));
    assert_eq!(space.find(VSYSCALL + VSYSCALL_BYTES, &ALWAYS), None);
}

#[test]
fn code_of_several_files_at_one_address_is_noticed() {
    let mut space = AddressSpace::default();
    assert!(!space.code_was_replaced(0x1800, &ALWAYS), "nothing is there");
    space.insert(file("/a", 0x1000..0x2000, 0, 10));
    space.insert(file("/a", 0x1000..0x2000, 0, 15));
    assert!(!space.code_was_replaced(0x1800, &(5..20)), "the same file again");
    space.insert(file("/b", 0x1000..0x2000, 0, 20));
    space.insert(file("/a", 0x1000..0x2000, 0, 30));
    let replaced = |window| space.code_was_replaced(0x1800, &window);
    assert!(replaced(15..25) && replaced(25..35) && replaced(0..40));
    assert!(!replaced(12..18) && !replaced(20..30) && !replaced(30..40), "one of them all the time");
    assert!(!space.code_was_replaced(0x2800, &ALWAYS));
    // Data took the place of code: the code is what was executed.
    space.insert(Mapping { executable: false, ..file("/data", 0x1000..0x2000, 0, 50) });
    let found = |window: Range<u64>| space.find_code(0x1800, &window).map(|m| m.image.unwrap().path.clone());
    assert_eq!((found(45..60), found(51..60)), (Some("/a".into()), Some("/data".into())));
    assert!(!space.code_was_replaced(0x1800, &(45..60)));
}

#[test]
fn replaced_code_is_noticed_however_often_others_take_its_place() {
    let mut space = AddressSpace::default();
    space.insert(file("/old", 0x1000..0x2000, 0, 1));
    space.insert(file("/new", 0x1000..0x2000, 0, 2));
    for time in 3..10_000_u64 {
        let at = 0x10_0000 * (1 + time % 500);
        let range = at..at + 0x1000;
        space.insert(file(if time / 500 % 2 == 0 { "/a" } else { "/b" }, range, 0, time));
    }
    assert!(space.replaced.len() <= MAX_REPLACED && space.worn.len() <= MAX_WORN);
    assert!(space.worn.is_sorted_by_key(|range| range.addresses.start));
    for at in 1..=500 {
        assert!(space.code_was_replaced(0x10_0000 * at, &ALWAYS), "{at}");
        assert!(!space.code_was_replaced(0x10_0000 * at, &(9999..10_001)), "{at}: mapped before");
    }
    assert!(space.code_was_replaced(0x1800, &ALWAYS));
    assert!(!space.code_was_replaced(0x1800, &(2..20_000)));
    space.forget_replaced(20_000);
    assert!(space.replaced.is_empty() && space.worn.is_empty());
}
