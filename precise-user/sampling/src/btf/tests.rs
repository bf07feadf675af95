use super::*;

/// A blob with one struct `s { int a; union { int b; int c; }; }` and one function `f`.
fn blob() -> Vec<u8> {
    let strings = b"\0s\0a\0b\0c\0f\0";
    let mut types = Vec::new();
    let mut word = |words: &[u32]| words.iter().for_each(|w| types.extend_from_slice(&w.to_le_bytes()));
    word(&[0, KIND_INT << 24, 4, 32]);
    word(&[0, KIND_UNION << 24 | 2, 4, 5, 1, 0, 7, 1, 0]);
    word(&[1, KIND_STRUCT << 24 | 2, 8, 3, 1, 0, 0, 2, 32]);
    word(&[9, KIND_FUNC << 24, 0]);
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&[1, 0]);
    for w in [24u32, 0, types.len() as u32, types.len() as u32, strings.len() as u32] {
        out.extend_from_slice(&w.to_le_bytes());
    }
    out.extend_from_slice(&types);
    out.extend_from_slice(strings);
    out
}

#[test]
fn finds_members_also_of_anonymous_unions() {
    let btf = Btf::parse(blob()).unwrap();
    assert_eq!(btf.offset("s", "a"), Some(0));
    assert_eq!(btf.offset("s", "c"), Some(4));
    assert_eq!(btf.offset("s", "d"), None);
    assert_eq!(btf.offset("t", "a"), None);
    assert_eq!(btf.function_ids(["f", "g"]), [Some(4), None]);
}

#[test]
fn types_are_made_of_types() {
    let btf = Btf::parse(blob()).unwrap();
    assert_eq!(
        btf.ids().map(|id| btf.kind(id)).collect::<Vec<_>>(),
        [BtfKind::Number(4), BtfKind::Union(4), BtfKind::Struct(8), BtfKind::Function(0),]
    );
    let members: Vec<_> = btf.members(3).map(|m| (m.name, m.ty, m.bit_offset, m.bits)).collect();
    assert_eq!(members, [("a", 1, 0, None), ("", 2, 32, None)]);
    assert_eq!((btf.name(3), btf.name(2), btf.name(9)), ("s", "", ""));
    assert_eq!(btf.kind(9), BtfKind::Void);
}

#[test]
fn every_truncation_is_an_error_or_a_result() {
    let whole = blob();
    for len in 0..whole.len() {
        let Ok(btf) = Btf::parse(whole[..len].to_vec()) else { continue };
        for id in btf.ids() {
            let _seen = (btf.kind(id), btf.name(id), btf.members(id).count(), btf.strip(id));
        }
    }
}

#[test]
fn the_running_kernel_has_what_the_program_needs() {
    let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
    let btf = Btf::parse(bytes).unwrap();
    assert!(btf.offset("perf_sample_data", "period").is_some());
    assert!(btf.offset("pt_regs", "ip").is_some());
}
