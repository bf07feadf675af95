//! Tests of requests that are sent ahead, with real processes.

use super::*;
use crate::reader::protocol::FoundSymbol;
use crate::reader::tests::{kill_nursery, own};

fn symbols(
    reader: &mut Reader,
    file: (FileId, &File),
    addresses: &[u64],
    sent: Option<SentAhead>,
) -> (Vec<FoundSymbol>, Vec<String>) {
    let mut notes = Vec::new();
    let found = reader.symbols(file, None, addresses, sent, |what, why| notes.push(format!("{what}: {why}")));
    (found, notes)
}

fn kill_worker(reader: &Reader) {
    let worker = reader.processes().1.expect("running").cast_signed();
    // SAFETY: the process is the reader's worker, which runs until the reader ends it.
    assert_eq!(unsafe { libc::kill(worker, libc::SIGKILL) }, 0);
}

#[test]
fn answers_come_in_the_order_of_requests() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let file = (reader.new_id(), &file);
    let asked: Vec<[u64; 1]> = (0..MAX_AHEAD as u64).map(|byte| [address + byte]).collect();
    let sent: Vec<_> = asked.iter().map(|at| reader.ask_ahead(file, None, at).expect("sent")).collect();
    // What waits is bounded.
    assert_eq!(reader.ask_ahead(file, None, &[address]), None);
    // Another request is answered meanwhile.
    assert!(reader.headers(file.1).expect("read").is_some());
    for (at, sent) in asked.iter().zip(sent) {
        let (found, notes) = symbols(&mut reader, file, at, Some(sent));
        let [FoundSymbol::Symbol(symbol)] = &found[..] else { panic!("{found:?} {notes:?}") };
        assert_eq!((symbol.address, symbol.offset), (address, at[0] - address));
    }
    assert_eq!((reader.ahead.len(), reader.lost_workers()), (0, 0));
}

#[test]
fn what_nobody_needs_makes_room() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let file = (reader.new_id(), &file);
    for _ in 0..2 * MAX_AHEAD {
        let sent = reader.ask_ahead(file, None, &[address]).expect("sent");
        reader.forget_ahead(&sent);
    }
    assert_eq!(reader.ask_ahead(file, None, &[]), None);
    assert_eq!(reader.ask_ahead(file, None, &vec![address; MAX_ADDRESSES_AHEAD + 1]), None);
}

#[test]
fn a_worker_that_ends_before_its_answer_is_replaced() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let file = (reader.new_id(), &file);
    // The worker is not fresh, so another file may have been the cause.
    let (before, _) = symbols(&mut reader, file, &[address], None);
    kill_worker(&reader);
    let sent: Vec<_> = (0..2).filter_map(|_| reader.ask_ahead(file, None, &[address])).collect();
    for index in 0..2 {
        let (after, notes) = symbols(&mut reader, file, &[address], sent.get(index).map(|s| SentAhead(s.0)));
        assert_eq!((after, notes), (before.clone(), Vec::new()));
    }
    assert_eq!((reader.ahead.len(), reader.lost_workers()), (0, 1));
}

#[test]
fn a_fresh_worker_that_ends_is_the_fault_of_the_first_file() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let (first, second) = ((reader.new_id(), &file), (reader.new_id(), &file));
    reader.confinement().expect("a worker");
    let worker = reader.processes().1.expect("running").cast_signed();
    // SAFETY: as in `kill_worker`. The worker cannot answer before it is killed.
    assert_eq!(unsafe { libc::kill(worker, libc::SIGSTOP) }, 0);
    let sent = [first, second].map(|file| reader.ask_ahead(file, None, &[address]).expect("sent"));
    kill_worker(&reader);
    let [of_first, of_second] = sent;
    let (found, notes) = symbols(&mut reader, first, &[address], Some(of_first));
    let [FoundSymbol::Symbol(symbol)] = &found[..] else { panic!("{found:?} {notes:?}") };
    assert!(symbol.line.is_none() && notes[0].starts_with("line information: "), "{symbol:?} {notes:?}");
    let (found, notes) = symbols(&mut reader, second, &[address], Some(of_second));
    let [FoundSymbol::Symbol(symbol)] = &found[..] else { panic!("{found:?} {notes:?}") };
    assert!(symbol.line.is_some() && notes.is_empty(), "{symbol:?} {notes:?}");
    assert_eq!(reader.lost_workers(), 1);
}

#[test]
fn no_file_is_blamed_for_the_end_of_the_nursery() {
    let mut reader = Reader::start().expect("a reader");
    let (file, address) = own();
    let file = (reader.new_id(), &file);
    reader.confinement().expect("a worker");
    let worker = reader.processes().1.expect("running").cast_signed();
    // SAFETY: as in `kill_worker`.
    assert_eq!(unsafe { libc::kill(worker, libc::SIGSTOP) }, 0);
    let sent = reader.ask_ahead(file, None, &[address]);
    kill_nursery(&reader);
    let (found, notes) = symbols(&mut reader, file, &[address], sent);
    assert!(
        matches!(&found[..], [FoundSymbol::Symbol(symbol)] if symbol.line.is_some()),
        "{found:?} {notes:?}"
    );
}
