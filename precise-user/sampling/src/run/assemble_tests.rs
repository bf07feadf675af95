//! Tests of turning cells into rows, with synthetic cells and processes.

use super::*;
use crate::run::made_tests::{CODE, FILE, assembler, cell, cgroup_made, exec, exec_of, exit, processes};
use crate::symbols::made_tests::{comm, map};
use precise_common::cell::{CellKey, Class};
use precise_common::stack::{CONTEXT_KERNEL, CONTEXT_USER, id_of};
use precise_model::Outcome;

const WINDOW: Range<u64> = 100..200;

fn rows(assembler: &mut Assembler, processes: &Processes, cells: &[(usize, Cell)]) -> Vec<Row> {
    with_chains(assembler, processes, cells, &Chains::default())
}

fn with_chains(
    assembler: &mut Assembler,
    processes: &Processes,
    cells: &[(usize, Cell)],
    chains: &Chains,
) -> Vec<Row> {
    let (window, unwound_since) = (&WINDOW, WINDOW.start);
    let cells = EpochCells { epoch: 3, event: 1, cells, window, unwound_since, chains, stacks: None };
    assembler.rows(cells, processes)
}

/// Checks that no samples or periods are lost or added when cells become rows.
fn assert_sums(rows: &[Row], cells: &[(usize, Cell)]) {
    let samples: u64 = cells.iter().map(|(_, cell)| u64::from(cell.count)).sum();
    assert_eq!(rows.iter().map(|row| row.measures.count).sum::<u64>(), samples);
    assert_eq!(rows.iter().map(|row| row.measures.period_sum).sum::<u64>(), samples * 10);
}

fn text(assembler: &mut Assembler, name: Name) -> Result<String, Reason> {
    match name {
        Name::Known(id) => Ok(assembler.named().names.get(id).to_owned()),
        Name::Unknown(reason) => Err(reason),
    }
}

#[test]
fn cells_of_all_cpus_are_one_row_unless_the_run_groups_by_cpu() {
    let cells = [(0, cell(0, 0, 5)), (1, cell(0, 0, 7)), (7, cell(0, 0, 11))];
    let cells =
        cells.map(|(cpu, cell)| (cpu, Cell { key: CellKey::default(), latency_max: cpu as u32, ..cell }));
    let nobody = processes(&[]);
    let together = rows(&mut assembler(&[]), &nobody, &cells);
    let [row] = &together[..] else { panic!("{together:?}") };
    assert_eq!((row.epoch, row.event, row.cpu, row.measures.count), (3, 1, None, 23));
    assert_eq!(row.measures.latency_max, 7);
    assert_eq!((row.code, row.data, row.process), (None, None, Name::Unknown(Reason::NotRecorded)));
    let apart = rows(&mut assembler(&[Dimension::Cpu]), &nobody, &cells);
    assert_eq!(apart.iter().map(|row| row.cpu).collect::<Vec<_>>(), [Some(0), Some(1), Some(7)]);
    assert_sums(&apart, &cells);
}

#[test]
fn instructions_are_looked_up_where_the_process_had_mapped_them() {
    let mut assembler = assembler(&[Dimension::Ip, Dimension::Process]);
    let both = processes(&[exec(1, 10, "first"), exec(2, 20, "second")].concat());
    let kernel = 0xffff_ffff_8000_1000;
    let cells = [
        (0, cell(10, CODE + 8, 1)),
        (0, cell(20, CODE + 8, 2)),
        (0, cell(10, 0x10, 3)),
        (0, cell(99, CODE + 8, 4)),
        (0, cell(10, kernel, 5)),
    ];
    let made = rows(&mut assembler, &both, &cells);
    assert_sums(&made, &cells);
    let of = |count: u64| made.iter().find(|row| row.measures.count == count).unwrap();
    // An instruction of a file is one location in all processes.
    assert_eq!(of(1).code, of(2).code);
    assert_eq!(text(&mut assembler, of(1).process), Ok("first".into()));
    assert_eq!(text(&mut assembler, of(2).process), Ok("second".into()));
    assert!(of(4).process == Name::Unknown(Reason::ProcessGone), "{:?}", of(4));
    assert!(of(5).kernel && !of(1).kernel);
    let location =
        |row: &Row, assembler: &mut Assembler| assembler.named().code[row.code.unwrap() as usize].clone();
    let mapped = location(of(1), &mut assembler);
    assert_eq!((text(&mut assembler, mapped.module), mapped.file_offset), (Ok(FILE.into()), 8));
    assert!(matches!(mapped.function, Name::Unknown(_)), "{mapped:?}");
    assert_eq!(location(of(3), &mut assembler).module, Name::Unknown(Reason::Unmapped));
    assert_eq!(location(of(4), &mut assembler).module, Name::Unknown(Reason::ProcessGone));
    assert!(location(of(5), &mut assembler).kernel);
    assert_eq!(assembler.named().code.len(), 4);
    // A later epoch reuses the locations; after they are discarded, ids start again from 0.
    let again = rows(&mut assembler, &both, &cells);
    assert_eq!((again, assembler.named().code.len()), (made, 4));
    assembler.forget();
    assert!(assembler.named().code.is_empty() && assembler.named().names.is_empty());
    let anew = rows(&mut assembler, &both, &cells[..1]);
    assert_eq!((anew[0].code, assembler.named().code.len()), (Some(0), 1));
}

#[test]
fn names_that_are_waited_for_later_are_the_same() {
    let dimensions = [Dimension::Ip, Dimension::Address, Dimension::Process, Dimension::Thread];
    let both = processes(&[exec(1, 10, "first"), exec(2, 20, "second")].concat());
    let of = |address, cell: Cell| (0, Cell { key: CellKey { address, ..cell.key }, ..cell });
    let epochs = [
        vec![of(0x7000, cell(10, CODE + 8, 1)), of(0x7040, cell(10, CODE + 16, 2))],
        vec![of(0x7000, cell(20, CODE + 8, 3)), of(0x7080, cell(20, CODE + 24, 4))],
        vec![of(0x7080, cell(10, CODE + 24, 5)), of(0, cell(99, CODE + 32, 6))],
    ];
    let mut one_by_one = assembler(&dimensions);
    let expected: Vec<_> = epochs.iter().map(|cells| rows(&mut one_by_one, &both, cells)).collect();

    let (window, unwound_since, chains) = (&WINDOW, WINDOW.start, &Chains::default());
    let of = EpochCells { epoch: 3, event: 1, cells: &[], window, unwound_since, chains, stacks: None };
    let begin = |assembler: &mut Assembler, from: usize, before: usize| -> Vec<_> {
        epochs[from..before].iter().map(|cells| assembler.begin_rows(cells.clone(), of, &both)).collect()
    };
    let mut ahead = assembler(&dimensions);
    let begun = begin(&mut ahead, 0, 3);
    assert!(ahead.named().code.is_empty() && ahead.remembered_bytes() > 0);
    // The processes are not asked again, and the names of earlier cells come first.
    let last = ahead.finish_rows(&begun[2]);
    assert_eq!(ahead.named().code, one_by_one.named().code);
    let first: Vec<_> = begun[..2].iter().map(|begun| ahead.finish_rows(begun)).collect();
    assert_eq!([&first[..], &[last]].concat().iter().map(Vec::len).sum::<usize>(), 6);

    // In their order, also if one is waited for at once.
    let mut mixed = assembler(&dimensions);
    let begun = begin(&mut mixed, 0, 2);
    let second = begun.iter().map(|begun| mixed.finish_rows(begun)).collect::<Vec<_>>();
    let third = rows(&mut mixed, &both, &epochs[2]);
    assert_eq!([&second[..], &[third]].concat(), expected);
    assert_eq!(mixed.named(), one_by_one.named());
}

#[test]
fn two_programs_of_one_process_in_an_epoch_are_counted_as_ambiguous() {
    let mut assembler = assembler(&[Dimension::Ip, Dimension::Process]);
    let ran = processes(&[exec(1, 10, "before"), exec_of(150, 10, "after", "/no/other")].concat());
    let cells = [(0, cell(10, CODE + 8, 6))];
    let made = rows(&mut assembler, &ran, &cells);
    assert_sums(&made, &cells);
    assert_eq!(assembler.ambiguous(), 6);
    assert_eq!(text(&mut assembler, made[0].process), Ok("after".into()));
}

#[test]
fn code_of_two_libraries_at_one_address_has_no_name() {
    let mut assembler = assembler(&[Dimension::Ip, Dimension::Process]);
    let other = crate::symbols::made_tests::map(150, 10, CODE, "/no/other");
    let loads = processes(&[&exec(1, 10, "loads")[..], &[other]].concat());
    let cells = [(0, cell(10, CODE + 8, 6))];
    let made = rows(&mut assembler, &loads, &cells);
    assert_sums(&made, &cells);
    assert_eq!(assembler.ambiguous(), 0);
    let code = assembler.named().code[made[0].code.unwrap() as usize].clone();
    assert_eq!(code.module, Name::Unknown(Reason::MappingReplaced));
    assert_eq!(text(&mut assembler, made[0].process), Ok("loads".into()));
}

#[test]
fn a_process_that_has_ended_keeps_its_name_for_its_samples() {
    let mut assembler = assembler(&[Dimension::Process]);
    let ended = processes(&[&exec(1, 10, "short")[..], &[exit(150, 10)]].concat());
    let made = rows(&mut assembler, &ended, &[(0, cell(10, 0, 1))]);
    assert_eq!(text(&mut assembler, made[0].process), Ok("short".into()));
}

#[test]
fn data_addresses_are_of_one_address_space() {
    let mut assembler = assembler(&[Dimension::Address]);
    let both = processes(&[exec(1, 10, "first"), exec(2, 20, "second")].concat());
    let with_address = |pid, address, count| {
        let made = cell(pid, 0, count);
        (0, Cell { key: CellKey { address, ..made.key }, ..made })
    };
    let cells = [
        with_address(10, CODE, 1),
        with_address(20, CODE, 2),
        with_address(10, CODE, 4),
        // The hardware delivered no address.
        with_address(10, 0, 8),
    ];
    let made = rows(&mut assembler, &both, &cells);
    assert_sums(&made, &cells);
    let data = |count: u64| made.iter().find(|row| row.measures.count == count).unwrap().data;
    assert!(data(5).is_some() && data(2).is_some() && data(5) != data(2), "{made:?}");
    assert_eq!(data(8), None);
    assert_eq!(assembler.named().data.len(), 2);
}

#[test]
fn cgroups_have_names_where_they_were_seen() {
    let mut assembler = assembler(&[Dimension::Cgroup]);
    assembler.cgroup_made(u64::MAX - 1, "/made/just/now");
    let in_cgroup = |cgroup, count| {
        let made = cell(0, 0, count);
        (0, Cell { key: CellKey { cgroup, ..CellKey::default() }, ..made })
    };
    let made =
        rows(&mut assembler, &processes(&[]), &[in_cgroup(u64::MAX - 1, 1), in_cgroup(u64::MAX - 2, 2)]);
    let of = |count: u64| made.iter().find(|row| row.measures.count == count).unwrap().cgroup;
    // Records of new cgroups concern the perf_event controller's hierarchy. If that is not v2, they
    // say nothing about v2.
    let named = text(&mut assembler, of(1));
    assert!(named == Ok("/made/just/now".into()) || named == Err(Reason::CgroupGone), "{named:?}");
    assert_eq!(text(&mut assembler, of(2)), Err(Reason::CgroupGone));
    // The same cgroup as a sideband record.
    let entry = cgroup_made(1, 5, "/x");
    assert!(matches!(entry.record, precise_records::record::Record::Cgroup { id: 5, .. }));
}

#[test]
fn chains_are_joined_with_the_instruction_or_say_why_they_are_missing() {
    let mut assembler = assembler(&[Dimension::Ip, Dimension::Process, Dimension::Stack]);
    let one = processes(&exec(1, 10, "one"));
    let entries = [CONTEXT_USER, CODE + 0x10, CODE + 0x21, CODE + 0x31];
    let chain = id_of(&entries);
    let chains: Chains = [(chain, entries.as_slice().into())].into_iter().collect();
    let with_chain = |address, count| {
        let made = cell(10, CODE + 0x10, count);
        (0, Cell { key: CellKey { address, ..made.key }, ..made })
    };
    let cells = [
        with_chain(chain, 1),
        with_chain(none::NOT_TAKEN, 2),
        with_chain(none::NOT_GIVEN, 4),
        with_chain(none::FULL, 8),
        with_chain(none::UNREADABLE, 16),
        with_chain(chain ^ 1, 32),
    ];
    let made = with_chains(&mut assembler, &one, &cells, &chains);
    assert_sums(&made, &cells);
    let stack = |count: u64| made.iter().find(|row| row.measures.count == count).map(|row| row.stack);
    assert_eq!(stack(2), Some(Chain::NONE));
    assert_eq!(stack(4), Some(Chain::Unknown(Reason::StackNotGiven)));
    assert_eq!(stack(8), Some(Chain::Unknown(Reason::StackFull)));
    // An unreadable chain and one that was not found become one row.
    assert_eq!(stack(48), Some(Chain::Unknown(Reason::StackUnreadable)));
    let Some(Chain::Known(id)) = stack(1) else { panic!("{made:?}") };
    let named = assembler.named();
    let offsets: Vec<u64> = named.stacks[id as usize]
        .callers
        .iter()
        .map(|location| named.code[*location as usize].file_offset)
        .collect();
    // The callers do not include the leaf, which the row contains. Each address is one byte before
    // the return address, so that it is inside the call.
    assert_eq!(offsets, [0x20, 0x30]);
    assert!(!named.stacks[id as usize].cut);
}

#[test]
fn a_sample_in_the_kernel_is_of_the_program_that_called_it() {
    let mut assembler = assembler(&[Dimension::Ip, Dimension::Process, Dimension::Stack]);
    let elsewhere = CODE + 0x10_0000;
    let after = [comm(150, 10, "after", true), map(151, 10, elsewhere, "/no/other")];
    let ran = processes(&[exec(1, 10, "before"), after].concat());
    let kernel = 0xffff_ffff_8000_1000;
    let chain = |caller: u64| [CONTEXT_KERNEL, kernel, CONTEXT_USER, caller, caller + 0x11];
    let both = [chain(CODE + 0x10), chain(elsewhere + 0x10)];
    let chains: Chains = both.iter().map(|entries| (id_of(entries), entries.as_slice().into())).collect();
    let of = |address, count| {
        let made = cell(10, kernel, count);
        (0, Cell { key: CellKey { address, ..made.key }, ..made })
    };
    let cells = [of(id_of(&both[0]), 1), of(id_of(&both[1]), 2), of(none::NOT_GIVEN, 4)];
    let made = with_chains(&mut assembler, &ran, &cells, &chains);
    assert_sums(&made, &cells);
    // Without a caller, the name is that of the end of the epoch.
    for (count, name) in [(1, "before"), (2, "after"), (4, "after")] {
        let row = made.iter().find(|row| row.measures.count == count).unwrap();
        assert_eq!(text(&mut assembler, row.process), Ok(name.into()), "{row:?}");
    }
}

#[test]
fn what_a_cell_says_of_its_class_is_in_the_row() {
    let class = Class::EXACT | Class::HAS_LATENCY | 17 << Class::LATENCY_SHIFT | 0x21;
    let made = Cell { key: CellKey { class, ..CellKey::default() }, ..cell(0, 0, 1) };
    let row = rows(&mut assembler(&[]), &processes(&[]), &[(0, made)]).remove(0);
    assert!(row.exact && !row.kernel);
    assert_eq!((row.latency_bucket, row.data_src, row.outcome), (Some(17), 0x21, Outcome::of(Class(class))));
}
