//! What is not used costs nothing: the verifier removes it, which the size of the loaded program shows.

use anyhow::Result;
use precise::kernel::program::{Program, ProgramOptions, ReadPath};
use precise_common::config::{Config, MAX_SLOTS, Slot, compare, field, key, operand};
use precise_tests::say;

/// Bytes of an instruction.
const INSTRUCTION: u32 = 8;

const PLAIN: Config = Config { key: key::IP | key::PID, address_mask: !0x3f, ..Config::EMPTY };

/// Instructions left of a program with these constants.
fn instructions(config: Config, read_path: ReadPath) -> Result<u32> {
    let options = ProgramOptions {
        config,
        slots: 8192,
        cgroup_from_sample: false,
        read_path: Some(read_path),
        other: None,
    };
    Ok(Program::load(&options)?.stats()?.translated_bytes / INSTRUCTION)
}

/// With so many clauses of one test each.
fn with_slots(config: Config, slots: usize, operand: u32) -> Config {
    let mut config = Config { slots_used: slots as u32, ..config };
    for (clause, slot) in config.slots.iter_mut().take(slots).enumerate() {
        *slot = Slot {
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
    for path in [ReadPath::Direct, ReadPath::Probe] {
        let sizes =
            [0, 1, 2, MAX_SLOTS].map(|slots| instructions(with_slots(PLAIN, slots, operand::IP), path));
        let [none, one, two, all] = sizes;
        let (none, one, two, all) = (none?, one?, two?, all?);
        say(&format!(
            "{path:?}: {none} instructions without a filter, {one} with one term, {two} with two, {all} with 16"
        ));
        assert!(none < one && one < two && two < all, "{none} {one} {two} {all}");
        // Measured: see the line above. What the 15 other slots could do is not among them.
        assert!(one - none <= 80, "one term takes {} instructions", one - none);
        assert!(two - one <= 40, "the second term takes {} instructions", two - one);
        assert!(all - none <= 16 * (one - none), "16 terms take {}", all - none);
    }
    Ok(())
}

/// Slots that the filter does not use may hold anything: they are not even looked at.
#[test]
fn unused_slots_vanish() -> Result<()> {
    let full = with_slots(PLAIN, MAX_SLOTS, operand::COMM);
    let path = ReadPath::Direct;
    assert_eq!(
        instructions(Config { slots_used: 0, ..full }, path)?,
        instructions(PLAIN, path)?,
        "a slot beyond slots_used left something behind"
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

/// The most expensive terms: a cgroup's ancestor and a name are helper calls.
#[test]
fn every_operand_is_accepted() -> Result<()> {
    let fields = field::ADDRESS | field::LATENCY | field::DATA_SRC;
    for path in [ReadPath::Direct, ReadPath::Probe] {
        for operand in operand::IP..=operand::CGROUP {
            for slots in [1, MAX_SLOTS] {
                let size = instructions(with_slots(Config { fields, ..PLAIN }, slots, operand), path);
                assert!(size.is_ok(), "{path:?} operand {operand} {slots} times: {size:?}");
            }
        }
    }
    Ok(())
}
