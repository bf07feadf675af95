//! Tests: each pass on small programs, and all of them on random ones and on the embedded one.

use aya_obj::{Object, btf::BtfFeatures};
use precise_common::config::{
    ABSENT, CAST_SENTINEL, Config, FilterSlot, MAX_SLOTS, Offsets, TYPED_SENTINEL, field, key, source,
};
use proptest::prelude::*;

use super::{
    super::{object, patch, program::prebuilt},
    machine,
    operation::{Callee, FRAME, Operand, Place, comparison, operator},
    *,
};

const NOTHING: bpf_insn = bpf_insn { code: 0x05, _bitfield_align_1: [], _bitfield_1: ZERO, off: 0, imm: 0 };
const ZERO: aya_obj::generated::__BindgenBitfieldUnit<[u8; 1]> =
    aya_obj::generated::__BindgenBitfieldUnit::new([0; 1]);

/// Returns an instruction of this code, destination, source, offset and number.
fn raw(code: u8, to: u8, from: u8, off: i16, imm: i32) -> bpf_insn {
    let mut instruction = bpf_insn { code, off, imm, ..NOTHING };
    instruction.set_dst_reg(to);
    instruction.set_src_reg(from);
    instruction
}

/// Encodes operations. The passes themselves never write some of them.
fn code(operations: &[Operation]) -> Vec<bpf_insn> {
    let mut code = Vec::new();
    for operation in operations {
        let at = code.len();
        match *operation {
            Operation::Number { to, number } => {
                code.extend([raw(0x18, to, 0, 0, number as i32), raw(0, 0, 0, 0, (number >> 32) as i32)]);
            }
            Operation::Address { to, function: Some(distance) } => {
                code.extend([raw(0x18, to, 4, 0, distance), raw(0, 0, 0, 0, 0)]);
            }
            Operation::Address { to, function: None } => {
                code.extend([raw(0x18, to, 1, 0, 7), raw(0, 0, 0, 0, 0)]);
            }
            Operation::Call(Callee::Helper(number)) => code.push(raw(0x85, 0, 0, 0, number)),
            Operation::Call(Callee::Function(distance)) => code.push(raw(0x85, 0, 1, 0, distance)),
            Operation::Call(Callee::Kernel(id)) => code.push(raw(0x85, 0, 2, 0, id)),
            Operation::Exit => code.push(raw(0x95, 0, 0, 0, 0)),
            Operation::Convert { to, from: None } => code.push(raw(0xdc, to, 0, 0, 64)),
            Operation::Convert { to, from: Some(from) } => code.push(raw(0xbf, to, from, 8, 0)),
            Operation::Atomic { to, bytes: 8, operand } => {
                code.push(raw(0xdb, to.base, operand, to.offset, 0))
            }
            operation => {
                code.push(NOTHING);
                operation.write(&mut code[at]);
            }
        }
        assert_eq!(Operation::of(&code[at], code.get(at + 1)), Some(*operation));
    }
    code
}

/// Returns the operations that remain of a program.
fn shortened(operations: &[Operation]) -> Vec<Operation> {
    decoded(&short(code(operations)).unwrap())
}

fn short(mut instructions: Vec<bpf_insn>) -> Result<Vec<bpf_insn>, CodeError> {
    let (functions, lines) = (&mut Vec::new(), &mut Vec::new());
    Program { instructions: &mut instructions, functions, lines }.shorten()?;
    Ok(instructions)
}

fn decoded(instructions: &[bpf_insn]) -> Vec<Operation> {
    let mut at = 0;
    let mut operations = Vec::new();
    while at < instructions.len() {
        let operation = Code(instructions).operation(at).unwrap();
        operations.push(operation);
        at += operation.slots();
    }
    operations
}

fn set(to: u8, number: i32) -> Operation {
    compute(operator::MOVE, to, Operand::Number(number))
}

fn copy(to: u8, from: u8) -> Operation {
    compute(operator::MOVE, to, Operand::Register(from))
}

fn add(to: u8, number: i32) -> Operation {
    compute(operator::ADD, to, Operand::Number(number))
}

fn compute(operator: u8, to: u8, operand: Operand) -> Operation {
    Operation::Compute { wide: true, operator, to, operand }
}

fn load(to: u8, base: u8, offset: i16) -> Operation {
    Operation::Load { to, from: Place { base, offset }, bytes: 8, signed: false }
}

fn store(base: u8, offset: i16, from: u8) -> Operation {
    Operation::Store { to: Place { base, offset }, bytes: 8, operand: Operand::Register(from) }
}

fn if_zero(left: u8, distance: i16) -> Operation {
    let right = Operand::Number(0);
    Operation::Branch { wide: true, comparison: comparison::EQUAL, left, right, distance }
}

const CLOCK: Operation = Operation::Call(Callee::Helper(5));
const LOOKUP: Operation = Operation::Call(Callee::Helper(1));
const EXIT: Operation = Operation::Exit;

#[test]
fn what_runs_together_is_put_together() {
    let scattered = [
        CLOCK,
        Operation::Jump(2),
        // Nothing leads here.
        set(0, 7),
        EXIT,
        if_zero(0, 2),
        Operation::NOTHING,
        Operation::Jump(2),
        set(0, 1),
        EXIT,
        CLOCK,
        Operation::Jump(-4),
    ];
    assert_eq!(shortened(&scattered), [CLOCK, if_zero(0, 1), CLOCK, set(0, 1), EXIT]);
}

#[test]
fn a_branch_whose_ways_are_the_same_is_left_out() {
    assert_eq!(shortened(&[CLOCK, if_zero(0, 1), Operation::NOTHING, EXIT]), [CLOCK, EXIT]);
    // Where both ways lead to the same place in a roundabout way.
    let twice = [CLOCK, if_zero(0, 2), CLOCK, EXIT, if_zero(0, 0), Operation::Jump(-4)];
    assert_eq!(shortened(&twice), [CLOCK, CLOCK, EXIT]);
}

#[test]
fn an_endless_loop_stays_one() {
    for jumps in [vec![Operation::Jump(-1)], vec![Operation::Jump(0), Operation::Jump(-2)]] {
        assert_eq!(shortened(&jumps), [Operation::Jump(-1)]);
        let behind = [&[CLOCK, if_zero(0, 1), EXIT], &jumps[..]].concat();
        assert_eq!(shortened(&behind), [CLOCK, if_zero(0, 1), EXIT, Operation::Jump(-1)]);
    }
}

#[test]
fn functions_follow_their_callers_and_unused_ones_go() {
    let call = |distance| Operation::Call(Callee::Function(distance));
    let mut instructions = code(&[
        Operation::Jump(2),
        // A function that nobody calls.
        CLOCK,
        EXIT,
        Operation::Address { to: 2, function: Some(3) },
        call(1),
        EXIT,
        // A function that begins with a jump.
        Operation::NOTHING,
        CLOCK,
        EXIT,
    ]);
    let at = |insn_off| bpf_func_info { insn_off, type_id: insn_off + 100 };
    let mut functions = vec![at(0), at(1), at(7)];
    let line = |insn_off| bpf_line_info { insn_off, file_name_off: 0, line_off: 0, line_col: insn_off };
    let mut lines = vec![line(0), line(3), line(6), line(7), line(9)];
    let mut program =
        Program { instructions: &mut instructions, functions: &mut functions, lines: &mut lines };
    program.shorten().unwrap();
    let left = [Operation::Address { to: 2, function: Some(3) }, call(1), EXIT, CLOCK, EXIT];
    assert_eq!(decoded(&instructions), left);
    let starts: Vec<_> = functions.iter().map(|info| (info.insn_off, info.type_id)).collect();
    assert_eq!(starts, [(0, 100), (4, 107)]);
    let places: Vec<_> = lines.iter().map(|line| (line.insn_off, line.line_col)).collect();
    assert_eq!(places, [(0, 3), (3, 6), (4, 7), (5, 9)]);
}

#[test]
fn what_is_known_is_computed_before() {
    let known = [
        Operation::Number { to: 1, number: 0x1_0000_0000 },
        set(2, 3),
        compute(operator::MULTIPLY, 2, Operand::Register(1)),
        compute(operator::SHIFT_RIGHT, 2, Operand::Number(32)),
        store(FRAME, -8, 2),
        load(0, FRAME, -8),
        EXIT,
    ];
    assert_eq!(shortened(&known), [set(0, 3), EXIT]);
    // What is known on one of two ways is not.
    let joined = [CLOCK, set(1, 1), if_zero(0, 1), set(1, 2), copy(0, 1), EXIT];
    assert_eq!(shortened(&joined), joined);
    // A call changes its arguments.
    let called = [set(1, 1), set(2, 2), Operation::Call(Callee::Kernel(9)), copy(0, 1), EXIT];
    assert_eq!(shortened(&called), called);
}

#[test]
fn known_branches_are_decided() {
    let branch =
        |comparison, left, right| Operation::Branch { wide: true, comparison, left, right, distance: 1 };
    let decided = |first: Operation, comparison, right| {
        let left = shortened(&[CLOCK, copy(6, 0), first, branch(comparison, 1, right), CLOCK, EXIT]);
        left.iter().filter(|operation| **operation == CLOCK).count() == 1
    };
    assert!(decided(set(1, -1), comparison::ABOVE, Operand::Number(7)));
    assert!(!decided(set(1, -1), comparison::GREATER, Operand::Number(7)));
    assert!(decided(set(1, 6), comparison::ANY_BIT, Operand::Number(4)));
    // Nothing is below 0.
    assert!(decided(set(1, 0), comparison::NOT_ABOVE, Operand::Register(6)));
    assert!(!decided(set(1, 0), comparison::ABOVE, Operand::Register(6)));
    let open = [CLOCK, set(1, 1), branch(comparison::NOT_ABOVE, 1, Operand::Register(0)), CLOCK, EXIT];
    assert_eq!(shortened(&open), open);
}

#[test]
fn an_address_becomes_a_register_and_an_offset() {
    let addressed = [CLOCK, copy(6, 0), copy(1, 6), add(1, 40), load(0, 1, 8), EXIT];
    assert_eq!(shortened(&addressed), [CLOCK, load(0, 0, 48), EXIT]);
    let in_place = [CLOCK, add(0, 40), load(0, 0, 8), EXIT];
    assert_eq!(shortened(&in_place), [CLOCK, load(0, 0, 48), EXIT]);
    // The address is read again, or another way leads between the two.
    let again = [CLOCK, add(0, 40), load(1, 0, 8), store(1, 0, 0), EXIT];
    assert_eq!(shortened(&again), again);
    let between = [CLOCK, if_zero(0, 1), add(0, 40), load(0, 0, 8), EXIT];
    assert_eq!(shortened(&between), between);
    let too_far = [CLOCK, add(0, 40_000), load(0, 0, 8), EXIT];
    assert_eq!(shortened(&too_far), too_far);
}

#[test]
fn what_nobody_reads_is_removed() {
    let unread = [CLOCK, set(1, 5), store(FRAME, -8, 1), load(3, 0, 0), CLOCK, EXIT];
    assert_eq!(shortened(&unread), [CLOCK, CLOCK, EXIT]);
    // What was loaded from there.
    let same = [CLOCK, load(1, 0, 16), store(0, 16, 1), EXIT];
    assert_eq!(shortened(&same), [CLOCK, EXIT]);
    // Half of a word's neighbour is read.
    let half = Operation::Load { to: 0, from: Place { base: FRAME, offset: -4 }, bytes: 4, signed: false };
    let halves = [CLOCK, store(FRAME, -8, 0), half, EXIT];
    assert_eq!(shortened(&halves), halves);
}

#[test]
fn what_others_may_read_of_the_frame_stays() {
    let key = [CLOCK, store(FRAME, -16, 0), store(FRAME, -8, 0), copy(2, FRAME), add(2, -8), LOOKUP, EXIT];
    let kept = [CLOCK, store(FRAME, -8, 0), copy(2, FRAME), add(2, -8), LOOKUP, EXIT];
    assert_eq!(shortened(&key), kept);
    // A number is not known after others could write it.
    let changed =
        [set(0, 1), store(FRAME, -8, 0), copy(2, FRAME), add(2, -8), LOOKUP, load(0, FRAME, -8), EXIT];
    assert_eq!(shortened(&changed), changed);
    // Where a pointer is handled in another way, nothing of the frame is removed.
    for odd in [
        vec![add(2, -8), copy(3, 2), add(3, -8)],
        vec![load(1, 0, 0), add(2, -8)],
        vec![add(2, -8), store(0, 0, 2)],
        vec![add(2, -8), compute(operator::ADD, 2, Operand::Register(0))],
    ] {
        let start = [CLOCK, store(FRAME, -16, 0), copy(2, FRAME)];
        let program = [&start[..], &odd[..], &[Operation::Call(Callee::Helper(77)), EXIT]].concat();
        assert!(shortened(&program).contains(&store(FRAME, -16, 0)), "{odd:?}");
    }
}

#[test]
fn what_a_register_has_is_not_loaded() {
    let other = Operation::Call(Callee::Helper(77));
    // The registers are all in use, so the word stays.
    let fill: Vec<_> = (1..6).map(|to| load(to, 0, 8 * i16::from(to))).collect();
    let start = [&[CLOCK, store(FRAME, -8, 0)][..], &fill].concat();
    let again = [&start[..], &[load(0, FRAME, -8), other, load(0, FRAME, -8), EXIT]].concat();
    let left = [&start[..], &[other, load(0, FRAME, -8), EXIT]].concat();
    assert_eq!(shortened(&again), left);
    // Another value is in the word, or in half of it.
    let half =
        Operation::Store { to: Place { base: FRAME, offset: -4 }, bytes: 4, operand: Operand::Register(1) };
    for changed in [store(FRAME, -8, 1), half] {
        let long = code(&[&start[..], &[changed, load(0, FRAME, -8), EXIT]].concat());
        assert_the_same(&long, &short(long.clone()).unwrap(), 0..4);
    }
}

#[test]
fn values_are_kept_in_free_registers() {
    let twice = compute(operator::ADD, 0, Operand::Register(0));
    let sum = compute(operator::ADD, 0, Operand::Register(1));
    let kept = [CLOCK, store(FRAME, -8, 0), twice, load(1, FRAME, -8), sum, EXIT];
    assert_eq!(shortened(&kept), [CLOCK, copy(1, 0), twice, sum, EXIT]);
    // Only a register that the function saves anyway outlives a call.
    let called = [CLOCK, store(FRAME, -8, 0), CLOCK, load(1, FRAME, -8), sum, EXIT];
    assert_eq!(shortened(&called), called);
    let saved = [set(6, 7), store(0, 0, 6)];
    let left = shortened(&[&saved[..], &called].concat());
    assert_eq!(
        left,
        [&saved[..], &[CLOCK, copy(6, 0), CLOCK, compute(operator::ADD, 0, Operand::Register(6)), EXIT]]
            .concat()
    );
    // Of two ways that meet, each sets the value.
    let either = [if_zero(0, 2), store(FRAME, -8, 0), Operation::Jump(2), set(1, 5), store(FRAME, -8, 1)];
    let left = shortened(&[&saved[..], &[CLOCK], &either, &[CLOCK, load(0, FRAME, -8), EXIT]].concat());
    assert!(left.contains(&copy(0, 6)) && left.contains(&set(6, 5)), "{left:?}");
}

#[test]
fn the_words_that_remain_are_close_together() {
    let use_of = |offset| {
        [
            CLOCK,
            store(FRAME, offset, 0),
            CLOCK,
            load(1, FRAME, offset),
            compute(operator::ADD, 0, Operand::Register(1)),
            store(0, 0, 0),
        ]
    };
    let one_after_another = [&use_of(-40)[..], &use_of(-64), &[EXIT]].concat();
    assert_eq!(shortened(&one_after_another), [&use_of(-8)[..], &use_of(-8), &[EXIT]].concat());
    let at_once = |one, other| {
        [
            CLOCK,
            store(FRAME, one, 0),
            CLOCK,
            store(FRAME, other, 0),
            CLOCK,
            load(1, FRAME, one),
            load(2, FRAME, other),
            store(1, 0, 2),
            EXIT,
        ]
    };
    assert_eq!(shortened(&at_once(-40, -24)), at_once(-16, -8));
    // Others may access what a pointer is made for, and all above.
    let key = [CLOCK, store(FRAME, -8, 0), copy(2, FRAME), add(2, -8), LOOKUP, store(0, 0, 0)];
    assert_eq!(
        shortened(&[&key[..], &use_of(-40), &[EXIT]].concat()),
        [&key[..], &use_of(-16), &[EXIT]].concat()
    );
    // A word that is read before it is set, or in part, stays where it is.
    for odd in [
        vec![load(0, FRAME, -40), EXIT],
        [
            &use_of(-40)[..],
            &[
                Operation::Load { to: 0, from: Place { base: FRAME, offset: -40 }, bytes: 4, signed: false },
                EXIT,
            ],
        ]
        .concat(),
    ] {
        let left = shortened(&odd);
        assert!(
            left.iter().any(|operation| matches!(
                operation,
                Operation::Load { from: Place { base: FRAME, offset: -40 }, .. }
            )),
            "{left:?}"
        );
    }
}

#[test]
fn what_is_not_a_program_is_refused() {
    assert_eq!(short(code(&[Operation::Jump(1), EXIT])).unwrap_err(), CodeError::Outside(2));
    assert_eq!(short(code(&[Operation::Jump(-2), EXIT])).unwrap_err(), CodeError::Outside(-1));
    assert_eq!(short(code(&[CLOCK])).unwrap_err(), CodeError::Outside(1));
    assert_eq!(short(Vec::new()).unwrap_err(), CodeError::Outside(0));
    let call = Operation::Call(Callee::Function(i32::MAX));
    assert_eq!(short(code(&[call, EXIT])).unwrap_err(), CodeError::Outside(1 << 31));
    // `gotol`, `may_goto`, `gotox`, and half of a wide load.
    for unknown in [0x06, 0xe5, 0x0d, 0x18] {
        let instructions = vec![raw(unknown, 0, 0, 0, 0)];
        assert_eq!(short(instructions).unwrap_err(), CodeError::Unknown(0), "{unknown:#x}");
    }
    let mut long = vec![CLOCK, if_zero(0, 1), Operation::Jump(2), set(0, 1), EXIT];
    long.extend([store(0, 0, 0); 40_000]);
    long.push(EXIT);
    assert_eq!(short(code(&long)).unwrap_err(), CodeError::TooLong);
}

/// A random program without loops: it computes with registers 0 to 7 and the frame, calls and
/// branches.
fn random() -> impl Strategy<Value = Vec<Operation>> {
    let operand = || prop_oneof![(-3..4).prop_map(Operand::Number), (0..8_u8).prop_map(Operand::Register)];
    let computed = || {
        let operators: Vec<u8> = (0..=12).map(|operator| operator << 4).collect();
        (any::<bool>(), prop::sample::select(operators), 0..8_u8, operand()).prop_map(
            |(wide, operator, to, operand)| {
                let operand = if operator == operator::NEGATE { Operand::Number(0) } else { operand };
                Operation::Compute { wide, operator, to, operand }
            },
        )
    };
    let place = || {
        prop_oneof![
            (2..12_i16).prop_map(|word| Place { base: FRAME, offset: -4 * word }),
            (8..24_i16).prop_map(|byte| Place { base: FRAME, offset: -byte }),
            (0..8_u8, 0..3_i16).prop_map(|(base, word)| Place { base, offset: 8 * word }),
        ]
    };
    let bytes = || prop::sample::select(vec![1_u8, 2, 4, 8]);
    let one = prop_oneof![
        4 => computed().prop_map(|computed| vec![computed]),
        2 => (0..8_u8, place(), bytes())
            .prop_map(|(to, from, bytes)| vec![Operation::Load { to, from, bytes, signed: false }]),
        2 => (place(), bytes(), operand()).prop_map(|(to, bytes, operand)| vec![Operation::Store { to, bytes, operand }]),
        1 => (0..8_u8, any::<u64>()).prop_map(|(to, number)| vec![Operation::Number { to, number }]),
        1 => (0..8_u8).prop_map(|to| vec![Operation::Convert { to, from: None }]),
        1 => prop::sample::select(vec![CLOCK, LOOKUP, Operation::Call(Callee::Helper(77))])
            .prop_map(|call| vec![call]),
        1 => (-6..0_i32).prop_map(|word| vec![copy(2, FRAME), add(2, 8 * word), LOOKUP]),
        2 => (any::<bool>(), 0..11_usize, 0..8_u8, operand(), 0..9_i16).prop_map(|(wide, index, left, right, distance)| {
            const ALL: [u8; 11] = [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xb0, 0xc0, 0xd0];
            vec![Operation::Branch { wide, comparison: ALL[index], left, right, distance }]
        }),
    ];
    prop::collection::vec(one, 1..40).prop_map(|parts| {
        let mut operations: Vec<_> = parts.into_iter().flatten().collect();
        // Branches lead to the start of an operation, at most to the end.
        let starts: Vec<usize> = operations
            .iter()
            .scan(0, |at, operation| Some(std::mem::replace(at, *at + operation.slots())))
            .collect();
        let end = starts.last().unwrap() + operations.last().unwrap().slots();
        for index in 0..operations.len() {
            if let Operation::Branch { distance, .. } = &mut operations[index] {
                let target = starts.get(index + 1 + *distance as usize).copied().unwrap_or(end);
                *distance = (target - starts[index] - 1) as i16;
            }
        }
        operations.push(EXIT);
        operations
    })
}

/// Programs of the embedded object, as the loader would write them for random runs.
fn of_random_runs() -> impl Strategy<Value = (&'static str, Config)> {
    let slot = (0..18_u32, 0..8_u32, any::<[u64; 2]>(), any::<bool>()).prop_map(
        |(operand, compare, [low, high], ends)| FilterSlot {
            operand,
            compare,
            low,
            high,
            clause: 6,
            ends_clause: u32::from(ends),
        },
    );
    let words = (any::<[u32; 6]>(), prop::collection::vec(0..600_u32, 32), any::<[u64; 2]>());
    let entry = prop::sample::select(vec!["sample", "sample_probe", "fault"]);
    (entry, words, prop::collection::vec(slot, 0..4)).prop_map(|(entry, (bits, offsets, wide), slots)| {
        let mut config = Config::EMPTY;
        let [source, key, fields, mode, promote, size] = bits;
        let mut offsets = offsets.into_iter().map(|offset| if offset < 30 { ABSENT } else { offset * 8 });
        let of = &mut config.offsets;
        for field in [
            &mut of.ctx_data,
            &mut of.ctx_event,
            &mut of.event_period,
            &mut of.regs_ip,
            &mut of.sample_flags,
            &mut of.raw,
            &mut of.raw_data,
            &mut of.tid_entry,
            &mut of.phys_addr,
            &mut of.weight,
            &mut of.data_src,
            &mut of.data_page_size,
            &mut of.callchain,
            &mut of.time,
            &mut of.pagefault_disabled,
            &mut of.task_flags,
            &mut of.task_pid,
            &mut of.task_tgid,
            &mut of.task_cgroups,
        ] {
            *field = offsets.next().unwrap_or(ABSENT);
        }
        config.source = source;
        config.key = key;
        config.fields = fields;
        config.mode = mode % 2;
        config.promote = promote;
        config.slot_mask = 63;
        config.rows = u32::MAX;
        config.halves = 4 + size % 0x4000;
        config.half_shift = 12;
        config.stack_mask = 15;
        config.line_mask = 15;
        config.process_mask = 15;
        [config.address_mask, config.data_src_mask] = wide;
        for (to, slot) in config.slots[..MAX_SLOTS].iter_mut().zip(slots) {
            *to = slot;
        }
        (entry, config)
    })
}

/// Returns the instructions of a program of the embedded object.
fn embedded(entry: &str, config: &Config) -> Vec<bpf_insn> {
    let mut bytes = prebuilt().unwrap();
    patch::constants(&mut bytes, config).unwrap();
    for sentinel in [CAST_SENTINEL, TYPED_SENTINEL] {
        patch::kfunc(&mut bytes, sentinel, 4711).unwrap();
    }
    let mut object = Object::parse(&bytes).unwrap();
    object.fixup_and_sanitize_btf(&BtfFeatures::new(true, true, true, true, true, true, true, true)).unwrap();
    let maps: Vec<_> = object.maps.drain().collect();
    let fds = maps.iter().zip(100..).map(|((name, map), fd)| (&**name, fd, map));
    object::link(&mut object, entry, fds).unwrap().instructions
}

/// From 64 bytes on, the kernel gives a program a stack that is in no cache.
#[test]
fn the_frame_of_usual_runs_is_small() {
    let mut offsets = Offsets::NONE;
    (offsets.ctx_data, offsets.ctx_event, offsets.event_period) = (8, 16, 24);
    (offsets.task_flags, offsets.task_pid, offsets.task_tgid, offsets.task_cgroups) = (44, 48, 52, 56);
    (offsets.regs_ip, offsets.pagefault_disabled) = (128, 64);
    let key = key::IP | key::CGROUP | key::PID;
    let source = source::REJECT_OWN | source::GUESTS;
    let usual =
        Config { offsets, key, source, rows: 2, halves: 4, half_shift: 12, slot_mask: 63, ..Config::EMPTY };
    let timer = Config { source: source | source::PERIOD_FROM_EVENT, ..usual };
    let with_addresses = Config { fields: field::ADDRESS, ..usual };
    for (entry, config) in [("sample", timer), ("sample", with_addresses), ("fault", with_addresses)] {
        let short = short(embedded(entry, &config)).unwrap();
        let lowest = decoded(&short).into_iter().filter_map(|operation| match operation {
            Operation::Load { from: Place { base: FRAME, offset }, .. }
            | Operation::Store { to: Place { base: FRAME, offset }, .. } => Some(offset),
            _ => None,
        });
        let frame = -lowest.min().unwrap_or(0);
        assert!(frame <= 48, "{entry}: {frame} bytes");
    }
}

fn assert_the_same(long: &[bpf_insn], short: &[bpf_insn], seeds: std::ops::Range<u64>) {
    for seed in seeds {
        // A program may loop for longer than the test has time.
        let Some(done) = machine::run(long, seed) else { continue };
        let now = machine::run(short, seed);
        assert!(
            now.as_ref() == Some(&done),
            "{done:#?}\n{now:#?}\n{:#?}\n{:#?}",
            decoded(long),
            decoded(short)
        );
    }
}

proptest! {
    #[test]
    fn a_random_program_does_the_same_after(operations in random()) {
        let long = code(&operations);
        let short = short(long.clone()).unwrap();
        prop_assert!(short.len() <= long.len());
        assert_the_same(&long, &short, 0..4);
        // Nothing is left to do.
        prop_assert_eq!(decoded(&super::tests::short(short.clone()).unwrap()), decoded(&short));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_embedded_programs_do_the_same_after((entry, config) in of_random_runs()) {
        let long = embedded(entry, &config);
        let short = short(long.clone()).unwrap();
        prop_assert!(short.len() < long.len() / 3, "{} of {}", short.len(), long.len());
        assert_the_same(&long, &short, 0..12);
    }
}
