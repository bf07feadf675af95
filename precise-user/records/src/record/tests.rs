use bytes::{BufMut, BytesMut};
use proptest::prelude::*;

use super::*;

const ALL: RecordLayout = RecordLayout {
    sample_type: sample_bits::TID | sample_bits::TIME | sample_bits::ID | sample_bits::CPU,
    sample_id_all: true,
};

/// Returns a record: header, body, and the sample id pid 7, tid 8, time 9, id 10, CPU 11.
fn record(kind: u32, misc: u16, body: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u32_ne(kind);
    out.put_u16_ne(misc);
    out.put_u16_ne((HEADER + body.len() + 32) as u16);
    out.put_slice(body);
    out.put_u32_ne(7);
    out.put_u32_ne(8);
    out.put_u64_ne(9);
    out.put_u64_ne(10);
    out.put_u64_ne(11);
    out.freeze()
}

fn body(fill: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut out = BytesMut::new();
    fill(&mut out);
    out
}

fn one(bytes: Bytes) -> IdentifiedRecord {
    let mut all = records(bytes, ALL);
    let entry = all.next().expect("a record").expect("well-formed");
    assert!(all.next().is_none());
    entry
}

fn mmap2_body(identity: &[u8; 24]) -> BytesMut {
    body(|b| {
        b.put_u32_ne(1);
        b.put_u32_ne(2);
        b.put_u64_ne(0x1000);
        b.put_u64_ne(0x2000);
        b.put_u64_ne(0x3000);
        b.put_slice(identity);
        b.put_u32_ne(5);
        b.put_u32_ne(2);
        b.put_slice(b"/bin/cat\0\0\0\0\0\0\0\0");
    })
}

/// Returns the identity of inode 42, generation 3, on a device.
fn inode_42(major: u32) -> [u8; 24] {
    let identity = body(|b| {
        b.put_u32_ne(major);
        b.put_u32_ne(1);
        b.put_u64_ne(42);
        b.put_u64_ne(3);
    });
    identity.as_ref().try_into().expect("24 bytes")
}

#[test]
fn mmap2_with_an_inode() {
    let entry = one(record(MMAP2, 2, &mmap2_body(&inode_42(8))));
    assert_eq!(entry.id, SampleId { pid: 7, tid: 8, time: 9, id: 10, cpu: 11 });
    let Record::Mmap2(mmap) = entry.record else { panic!("{entry:?}") };
    assert_eq!(mmap.path, "/bin/cat");
    assert_eq!((mmap.pid, mmap.tid, mmap.start, mmap.len, mmap.page_offset), (1, 2, 0x1000, 0x2000, 0x3000));
    assert!(mmap.executable && !mmap.writable);
    assert_eq!(mmap.file, MappedFileId::Inode { major: 8, minor: 1, inode: 42, generation: 3 });
}

#[test]
fn mmap2_with_a_build_id() {
    let mut identity = [0; 24];
    identity[0] = 4;
    identity[4..8].fill(0xab);
    let entry = one(record(MMAP2, 2 | MISC_MMAP_BUILD_ID, &mmap2_body(&identity)));
    let Record::Mmap2(mmap) = entry.record else { panic!("{entry:?}") };
    assert_eq!(mmap.file, MappedFileId::BuildId(BuildId::new(&[0xab; 4]).expect("not zero")));
}

#[test]
fn a_build_id_longer_than_its_field_is_no_build_id() {
    assert_eq!(BuildId::new(&[1; 21]), None);
    assert_eq!(BuildId::new(&[0; 20]), None);
}

/// The kernel leaves the flag of another event's record in this event's record.
#[test]
fn the_flag_of_another_event_makes_no_build_id_of_an_inode() {
    // A disk with major number 8 looks like a build id of 8 bytes; one of a virtual machine (254)
    // does not look like any.
    for major in [8, 254, 259] {
        let entry = one(record(MMAP2, 2 | MISC_MMAP_BUILD_ID, &mmap2_body(&inode_42(major))));
        let Record::Mmap2(mmap) = entry.record else { panic!("{entry:?}") };
        assert_eq!(mmap.file, MappedFileId::Inode { major, minor: 1, inode: 42, generation: 3 });
    }
}

#[test]
fn mmap_says_data_by_its_flag() {
    let bytes = body(|b| {
        b.put_u64_ne(1);
        b.put_slice(&[0; 24]);
        b.put_slice(b"//anon\0\0");
    });
    for (misc, executable) in [(0, true), (MISC_MMAP_DATA_OR_COMM_EXEC, false)] {
        let Record::Mmap(mmap) = one(record(MMAP, misc, &bytes)).record else { panic!() };
        assert_eq!((mmap.executable, mmap.path.as_str()), (executable, "//anon"));
    }
}

#[test]
fn comm_says_exec_by_its_flag() {
    let bytes = body(|b| {
        b.put_u32_ne(5);
        b.put_u32_ne(6);
        b.put_slice(b"a name\0\0");
    });
    for (misc, exec) in [(0, false), (MISC_MMAP_DATA_OR_COMM_EXEC, true)] {
        let entry = one(record(COMM, misc, &bytes));
        assert_eq!(entry.record, Record::Comm { pid: 5, tid: 6, comm: "a name".into(), exec });
    }
}

#[test]
fn tasks_and_counts() {
    let bytes = body(|b| {
        for word in [1, 2, 3, 4] {
            b.put_u32_ne(word);
        }
        b.put_u64_ne(5);
    });
    let task = TaskRecord { pid: 1, ppid: 2, tid: 3, ptid: 4, time: 5 };
    assert_eq!(one(record(FORK, 0, &bytes)).record, Record::Fork(task));
    assert_eq!(one(record(EXIT, 0, &bytes)).record, Record::Exit(task));

    let bytes = body(|b| [21u64, 22, 23].into_iter().for_each(|word| b.put_u64_ne(word)));
    assert_eq!(one(record(THROTTLE, 0, &bytes)).record, Record::Throttle { id: 22 });
    assert_eq!(one(record(UNTHROTTLE, 0, &bytes)).record, Record::Unthrottle { id: 22 });
    assert_eq!(one(record(LOST, 0, &bytes)).record, Record::Lost { id: 21, lost: 22 });
    assert_eq!(one(record(LOST_SAMPLES, 0, &bytes)).record, Record::LostSamples { lost: 21 });
    assert_eq!(one(record(77, 0, &bytes)).record, Record::Other { kind: 77 });
}

#[test]
fn a_sample_keeps_its_body_whole() {
    let bytes = record(SAMPLE, 1, b"12345678");
    let entry = one(bytes.clone());
    assert_eq!(entry.record, Record::Sample(bytes.slice(HEADER..)));
    assert_eq!(entry.id, SampleId::default());
}

#[test]
fn the_identifier_comes_last() {
    let layout =
        RecordLayout { sample_type: sample_bits::IDENTIFIER | sample_bits::TIME, sample_id_all: true };
    let bytes = body(|b| {
        b.put_u32_ne(LOST_SAMPLES);
        b.put_u32_ne(32 << 16);
        b.put_u64_ne(1);
        b.put_u64_ne(2);
        b.put_u64_ne(3);
    });
    let entry = records(bytes.freeze(), layout).next().expect("a record").expect("well-formed");
    assert_eq!((entry.id.time, entry.id.id), (2, 3));
}

#[test]
fn broken_records_are_errors_and_do_not_hide_the_next() {
    let lacking = body(|b| {
        b.put_u32_ne(FORK);
        b.put_u16_ne(0);
        b.put_u16_ne(8);
    });
    let mut bytes = lacking.clone();
    bytes.put_slice(&record(LOST_SAMPLES, 0, &[0; 8]));
    let all: Vec<_> = records(bytes.freeze(), ALL).collect();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0], Err(RecordError::Fields { kind: FORK }));
    assert!(all[1].is_ok());

    let zero = Bytes::from_static(&[0; 16]);
    assert_eq!(records(zero, ALL).collect::<Vec<_>>(), [Err(RecordError::Size(0))]);
    let cut = record(FORK, 0, &[0; 24]).slice(..20);
    assert_eq!(records(cut, ALL).collect::<Vec<_>>(), [Err(RecordError::Short { have: 20, want: 64 })]);
    assert_eq!(records(Bytes::from_static(b"abc"), ALL).count(), 1);
}

#[test]
fn a_deferred_chain_has_its_cookie_and_entries() {
    let chain =
        |claims: u64| body(|b| [0xc00c1e, claims, 1, 2].into_iter().for_each(|word| b.put_u64_ne(word)));
    let entry = one(record(CALLCHAIN_DEFERRED, 2, &chain(2)));
    let entries = Bytes::from([1u64, 2].map(u64::to_ne_bytes).concat());
    assert_eq!(entry.record, Record::DeferredChain { cookie: 0xc00c1e, entries });
    assert_eq!((entry.id.tid, entry.bytes() > size_of::<IdentifiedRecord>()), (8, true));
    for claims in [3, 1 << 61, u64::MAX] {
        let refused = records(record(CALLCHAIN_DEFERRED, 2, &chain(claims)), ALL).next();
        assert_eq!(refused, Some(Err(RecordError::Fields { kind: CALLCHAIN_DEFERRED })), "{claims}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end_without_panic(bytes: Vec<u8>, sample_type: u64, sample_id_all: bool) {
        let length = bytes.len();
        let count = records(bytes.into(), RecordLayout { sample_type, sample_id_all }).count();
        prop_assert!(count <= length / HEADER + 1);
    }

    #[test]
    fn any_body_of_a_known_type_ends_without_panic(
        kind in 0u32..16, misc: u16, body: Vec<u8>, sample_id_all: bool
    ) {
        let bytes = record(kind, misc, &body);
        let layout = RecordLayout { sample_id_all, ..ALL };
        prop_assert_eq!(records(bytes, layout).count(), 1);
    }
}
