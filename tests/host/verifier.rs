//! Features that are not used cost nothing: the verifier removes them, as the size of the loaded
//! program shows.

use std::time::Instant;

use anyhow::{Context as _, Result};
use precise::error::{ErrorClass, Remedy};
use precise::kernel::program::{Prepared, Program, ProgramOptions, ProgramStats, ReadPath};
use precise::kernel::unwind::UnwindSizes;
use precise_common::config::{Config, FilterSlot, MAX_SLOTS, compare, field, key, operand, promote, source};
use precise_tests::say;

/// The size of an instruction in bytes.
const INSTRUCTION: u32 = 8;

const PLAIN: Config = Config { key: key::IP | key::PID, address_mask: !0x3f, ..Config::EMPTY };

/// Returns the number of instructions that are left of a program with these constants.
fn instructions(config: Config, read_path: ReadPath) -> Result<u32> {
    Ok(stats(config, read_path)?.translated_bytes / INSTRUCTION)
}

/// Returns the kernel's numbers about a program with these constants.
fn stats(config: Config, read_path: ReadPath) -> Result<ProgramStats> {
    let options = ProgramOptions {
        config,
        slots: 8192,
        stacks: if config.key & key::STACK == 0 { 0 } else { 1024 },
        prepared: Prepared::default(),
        read_path: Some(read_path),
        unwind: (config.source & source::UNWIND != 0).then(|| UnwindSizes::within(1 << 20)),
        other: None,
    };
    Ok(Program::load(&options)?.stats()?)
}

/// Returns a configuration with `slots` clauses of one test each.
fn with_slots(config: Config, slots: usize, operand: u32) -> Config {
    let mut config = config;
    for (clause, slot) in config.slots.iter_mut().take(slots).enumerate() {
        *slot = FilterSlot {
            operand,
            compare: compare::RANGE,
            low: 1,
            high: 1 << 40,
            clause: clause as u32,
            ends_clause: 1,
        };
    }
    config
}

#[test]
fn a_filter_costs_what_it_uses() -> Result<()> {
    for path in [ReadPath::Direct, ReadPath::Probe, ReadPath::Fault] {
        let sizes =
            [0, 1, 2, MAX_SLOTS].map(|slots| instructions(with_slots(PLAIN, slots, operand::IP), path));
        let [none, one, two, all] = sizes;
        let (none, one, two, all) = (none?, one?, two?, all?);
        say(&format!(
            "{path:?}: {none} instructions without a filter, {one} with one term, {two} with two, {all} with 16"
        ));
        assert!(none < one && one < two && two < all, "{none} {one} {two} {all}");
        // Measured: see the line above. The code for the 15 other slots is not included. With a
        // filter, the steps after it are a function of their own.
        assert!(one - none <= 40, "one term takes {} instructions", one - none);
        assert!(one <= 212, "a program with one term takes {one} instructions");
        assert!(two - one <= 22, "the second term takes {} instructions", two - one);
        // Four of them tell the vsyscall page from the kernel.
        assert!(none <= 175, "a program without a filter takes {none} instructions");
        assert!(all - none <= 16 * (one - none), "16 terms take {}", all - none);
    }
    Ok(())
}

/// Where guests may run, each sample is asked whether one does: a task, its flags, and a mask over
/// the addresses. The verifier must not follow the program to its end for both answers: that took
/// it twice as long, and each run 15 to 20 ms more. Which states it remembers depends on how many
/// jumps and instructions are between them (`is_state_visited()`), so a few instructions may make
/// it look at an eighth more or less.
#[test]
fn guests_cost_where_they_may_run() -> Result<()> {
    let timer = Config { source: source::PERIOD_FROM_EVENT, ..PLAIN };
    for (path, config) in [
        (ReadPath::Direct, PLAIN),
        (ReadPath::Direct, timer),
        (ReadPath::Probe, PLAIN),
        (ReadPath::Probe, timer),
        (ReadPath::Fault, PLAIN),
    ] {
        let most = match path {
            ReadPath::Direct => [23, 27],
            // Two helper calls for the flags of the task.
            ReadPath::Probe => [31, 58],
            // At the tracepoints of page faults, no guest runs.
            ReadPath::Fault => [0, 0],
        };
        for (slots, most) in [0, 1].into_iter().zip(most) {
            let config = with_slots(config, slots, operand::IP);
            let without = stats(config, path)?;
            let with = stats(Config { source: config.source | source::GUESTS, ..config }, path)?;
            let more = (with.translated_bytes - without.translated_bytes) / INSTRUCTION;
            let verified = [without, with].map(|stats| stats.verified_instructions);
            say(&format!("{path:?}, {slots} terms: {more} instructions for guests, {verified:?} verified"));
            assert!(more <= most && verified[1] <= verified[0] * 5 / 4, "{path:?}: {more} {verified:?}");
        }
    }
    Ok(())
}

/// The sample's data is loaded only where [`Config::reads_data`] says that a run needs it. The
/// verifier refuses a program that reads data which it has not loaded.
#[test]
fn a_program_has_the_data_that_it_reads() -> Result<()> {
    let terms = (1..=operand::CGROUP_WATCHED).map(|operand| with_slots(PLAIN, 1, operand));
    let keys = (0..=key::PAGE_SIZE.trailing_zeros()).map(|bit| 1 << bit);
    let grouped = keys.map(|key| Config { key: PLAIN.key | key, ..PLAIN });
    let fields = [field::ADDRESS, field::LATENCY, field::DATA_SRC, field::EXACT];
    let with_fields = fields.map(|fields| Config { fields, ..PLAIN });
    let promoting = Config { promote: promote::ON, ..PLAIN };
    let mut without = 0;
    for config in terms.chain(grouped).chain(with_fields).chain([PLAIN, promoting]) {
        for source in [0, source::PERIOD_FROM_EVENT, source::IBS_FETCH] {
            let config = Config { source, ..config };
            instructions(config, ReadPath::Direct)
                .with_context(|| format!("{:?} {config:?}", config.slots[0].operand))?;
            without += usize::from(!config.reads_data());
        }
    }
    assert!(without > 20, "{without} programs have no data");
    Ok(())
}

/// Many virtual machines could have more CPUs than they have, and the table has no room for these.
#[test]
fn a_table_has_room_for_the_cpus_that_are_sampled() -> Result<()> {
    let options = |slots| ProgramOptions {
        config: PLAIN,
        slots,
        stacks: 0,
        prepared: Prepared::default(),
        read_path: Some(ReadPath::Direct),
        unwind: None,
        other: None,
    };
    let one = Program::load_on(&options(8192), &[1], None)?.table.memory();
    let two = Program::load_on(&options(8192), &[1, 0, 1], None)?.table.memory();
    assert_eq!(two - one, 8192 * 128);
    // 128 GiB of cells.
    let refused = Program::load_on(&options(1 << 29), &[0, 1], None).map(|_| ()).unwrap_err();
    assert_eq!((refused.class(), refused.way_out()), (ErrorClass::Invalid, Some(Remedy::FewerCells)));
    let said = "a table of 2,147,483,648 cells is too large; it has room for at most 8,388,608";
    assert_eq!(refused.to_string(), said);
    // 2 TiB of call chains.
    let chains = ProgramOptions { stacks: 1 << 18, ..options(16) };
    let cpus: Vec<u32> = (0..4096).collect();
    let refused = Program::load_on(&chains, &cpus, None).map(|_| ()).unwrap_err();
    assert_eq!((refused.class(), refused.way_out()), (ErrorClass::Failed, Some(Remedy::FewerCells)));
    assert!(refused.to_string().contains("no memory for the tables: 2,267,751,120,896 bytes"), "{refused}");
    Ok(())
}

/// Slots that the filter does not use may have any content: they are never read.
#[test]
fn unused_slots_vanish() -> Result<()> {
    let mut full = with_slots(PLAIN, MAX_SLOTS, operand::COMM);
    full.slots[0].operand = operand::NONE;
    let path = ReadPath::Direct;
    assert_eq!(
        instructions(full, path)?,
        instructions(PLAIN, path)?,
        "a slot behind the last one left something behind"
    );
    Ok(())
}

#[test]
fn fields_that_the_event_does_not_have_vanish() -> Result<()> {
    for path in [ReadPath::Direct, ReadPath::Probe] {
        let plain = instructions(PLAIN, path)?;
        let mut last = plain;
        let mut config = PLAIN;
        for (name, field, key) in [
            ("address", field::ADDRESS, key::ADDRESS),
            ("latency", field::LATENCY, key::LATENCY),
            ("data source", field::DATA_SRC, key::DATA_SRC),
            ("exact", field::EXACT, 0),
        ] {
            config.fields |= field;
            config.key |= key;
            let with = instructions(config, path)?;
            assert!(with > last, "{path:?} {name}: {with} instructions, {last} without");
            last = with;
        }
        say(&format!("{path:?}: {plain} instructions without fields, {last} with all"));
        let nothing = instructions(Config { key: 0, ..PLAIN }, path)?;
        assert!(nothing < plain, "{path:?}: a key takes {plain}, none {nothing}");
    }
    Ok(())
}

/// The most expensive terms: the ancestor of a cgroup and a process name are helper calls.
#[test]
fn every_operand_is_accepted() -> Result<()> {
    let fields = field::ADDRESS | field::LATENCY | field::DATA_SRC;
    for path in [ReadPath::Direct, ReadPath::Probe, ReadPath::Fault] {
        for operand in operand::IP..=operand::OUTCOME {
            for slots in [1, MAX_SLOTS] {
                let size = instructions(with_slots(Config { fields, ..PLAIN }, slots, operand), path);
                assert!(size.is_ok(), "{path:?} operand {operand} {slots} times: {size:?}");
            }
        }
    }
    Ok(())
}

/// The registers of IBS are behind a pointer of the sample; a program that does not use them has no
/// code for them.
#[test]
fn registers_of_ibs_are_accepted_and_vanish() -> Result<()> {
    let tagged = |source| Config {
        key: PLAIN.key | key::OUTCOME | key::ADDRESS | key::LATENCY,
        fields: field::ADDRESS | field::LATENCY | field::EXACT,
        source,
        ..PLAIN
    };
    for path in [ReadPath::Direct, ReadPath::Probe] {
        let plain = instructions(PLAIN, path)?;
        for (name, source) in
            [("branch", source::OF_BRANCH), ("fetch", source::IBS_FETCH | source::ZEN3_ERRATA)]
        {
            for slots in [0, 1, MAX_SLOTS] {
                let size = instructions(with_slots(tagged(source), slots, operand::OUTCOME), path)?;
                // With terms, being accepted is enough: tests that no outcome can pass leave little
                // code after the filter.
                assert!(slots > 0 || size > plain, "{path:?} {name}: {size} instructions, {plain} without");
                if slots < 2 {
                    say(&format!("{path:?} {name}, {slots} terms: {size} instructions"));
                }
            }
        }
    }
    Ok(())
}

/// Promotion of cache lines is accepted on both paths, with every source of a line's name, and
/// leaves no code if it is not used.
#[test]
fn promotion_is_accepted_and_vanishes() -> Result<()> {
    let fields = field::ADDRESS | field::LATENCY | field::DATA_SRC | field::EXACT;
    let key = PLAIN.key | key::ADDRESS | key::TID | key::CGROUP | key::DATA_SRC;
    let detailed = Config { key, fields, address_mask: !0, ..PLAIN };
    for path in [ReadPath::Direct, ReadPath::Probe] {
        let plain = instructions(detailed, path)?;
        // A feature that is not used leaves no code, whatever else is in the block.
        assert_eq!(instructions(Config { line_mask: 4095, ..detailed }, path)?, plain);
        for promote in [promote::ON, promote::ON | promote::BY_PHYSICAL] {
            for key in [key, key | key::WIDTH] {
                let config = Config { promote, key, line_mask: 4095, ..detailed };
                let with = instructions(with_slots(config, 2, operand::DATA_SRC), path)?;
                say(&format!("{path:?}: {with} instructions with promotion {promote}, {plain} without"));
                assert!(with > plain);
            }
        }
    }
    Ok(())
}

/// Call chains are off by default, and then leave no code.
#[test]
fn call_chains_are_accepted_and_vanish() -> Result<()> {
    for path in [ReadPath::Direct, ReadPath::Probe] {
        let plain = instructions(PLAIN, path)?;
        let with = instructions(Config { key: PLAIN.key | key::STACK, ..PLAIN }, path)?;
        // As on the kernels that take a chain only for a program that requests it.
        let calling = Config { key: PLAIN.key | key::STACK, source: source::CALLS_FOR_CHAIN, ..PLAIN };
        let calling = instructions(calling, path)?;
        say(&format!("{path:?}: {plain} instructions, {with} with call chains, {calling} on 6.1"));
        assert!(plain <= 356 && plain < with && with < calling, "{path:?}: {plain} {with} {calling}");
    }
    Ok(())
}

/// The verifier follows each path of a program, so a loop over tables could take it long. A step of
/// unwinding is verified once, however many frames a chain has.
#[test]
fn unwinding_is_accepted_and_cheap_to_verify() -> Result<()> {
    for path in [ReadPath::Direct, ReadPath::Probe] {
        for source in [source::UNWIND, source::UNWIND | source::CALLS_FOR_CHAIN] {
            let begun = Instant::now();
            let stats = stats(Config { key: PLAIN.key | key::STACK, source, ..PLAIN }, path)?;
            let (left, verified) = (stats.translated_bytes / INSTRUCTION, stats.verified_instructions);
            say(&format!(
                "{path:?}, source {source:#x}: {left} instructions, {verified} verified, loaded in {} ms",
                begun.elapsed().as_millis()
            ));
            assert!(left <= 1295 && verified <= 60_000, "{path:?} {source:#x}: {left} {verified}");
        }
    }
    Ok(())
}
