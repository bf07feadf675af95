//! Who touched a page first: the page faults of a capture say who made the memory that a slow
//! access hits.
//!
//! No allocator is asked, so it works for every language and every way to get memory. The kernel
//! gives a process a page when it is touched, and the sample of this page fault has the
//! instruction, the chain of its callers, and the address.

use rustc_hash::FxHashMap;

use crate::keys::Key;
use crate::touches::{FirstTouch, FirstTouches, Touches};
use crate::values::{callers, functions_at, name_or_reason};
use crate::{Capture, Chain, Dimension, LocationId, Name, NameId, PmuKind, Reason, Row, StackId};

/// The bits of an address within a page, and within a huge page.
const PAGE: u32 = 12;
const HUGE_PAGE: u32 = 21;
/// The most functions that the name of an object has: the one that touched it, and callers.
const MOST_FUNCTIONS: usize = 5;

/// How old memory is, each with the seconds that older memory has at least. An age is the time from
/// the begin of one epoch to that of another.
pub(crate) const AGES: [(u64, &str); 6] = [
    (1, "under 1 s"),
    (10, "1 to 10 s"),
    (60, "10 to 60 s"),
    (600, "1 to 10 min"),
    (3600, "10 to 60 min"),
    (u64::MAX, "over 1 h"),
];

/// Finds the page faults of a capture if one of the keys needs them. Do so before samples are left
/// out: faults may be among these.
pub fn look_up(capture: &mut Capture, keys: &[Key]) {
    if capture.touches.is_none() && keys.iter().any(|key| key.needs_touches()) {
        capture.touches = Some(FirstTouches::of(capture));
    }
}

impl FirstTouches {
    fn of(capture: &mut Capture) -> Self {
        let is_fault = |event: &crate::EventInfo| {
            event.pmu == PmuKind::Software && event.unit == "page faults" && event.fields.address
        };
        let faults: Vec<bool> = capture.meta.events.iter().map(is_fault).collect();
        let mut touches = Self::default();
        let has = |dimension| capture.meta.dimensions.contains(&dimension);
        if !has(Dimension::Address) || !has(Dimension::Process) || capture.meta.address_granule > 1 << PAGE {
            touches.missing = Some(Reason::NotRecorded);
            return touches;
        }
        if !faults.contains(&true) {
            touches.missing = Some(Reason::NoFaults);
            return touches;
        }
        let mut known: FxHashMap<(Option<LocationId>, Chain), NameId> = FxHashMap::default();
        let rows = std::mem::take(&mut capture.rows);
        let mut of_faults: Vec<&Row> =
            rows.iter().filter(|row| faults.get(usize::from(row.event)) == Some(&true)).collect();
        of_faults.sort_by_key(|row| row.epoch);
        for row in of_faults {
            let Some(data) = row.data.and_then(|id| capture.data.get(id as usize)) else { continue };
            let address = data.runtime_address;
            let functions = match known.get(&(row.code, row.stack)) {
                Some(functions) => *functions,
                None => {
                    let text = functions(capture, row);
                    let functions = capture.names.intern(&text);
                    known.insert((row.code, row.stack), functions);
                    functions
                }
            };
            for (of, bits) in [(&mut touches.pages, PAGE), (&mut touches.huge_pages, HUGE_PAGE)] {
                let before = of.entry((row.pid, address >> bits)).or_default();
                // In an epoch nobody knows which fault was first.
                if before.last().is_none_or(|(epoch, _)| *epoch < row.epoch) {
                    before.push((row.epoch, functions));
                }
            }
        }
        capture.rows = rows;
        touches.ages = AGES.iter().map(|(_, text)| capture.names.intern(text)).collect();
        touches
    }

    /// Returns the page fault that gave the process the page that a sample is about: the last one
    /// there in the epoch of the sample or before it.
    ///
    /// # Errors
    ///
    /// Returns why it is not known. `None`: the sample has no data address.
    pub fn of_row(&self, capture: &Capture, row: &Row) -> Result<FirstTouch, Option<Reason>> {
        if let Some(reason) = self.missing {
            return Err(Some(reason));
        }
        let data = row.data.and_then(|id| capture.data.get(id as usize)).ok_or(None)?;
        let last = |of: &Touches, bits: u32| {
            let touches = of.get(&(row.pid, data.runtime_address >> bits))?;
            let later = touches.partition_point(|(epoch, _)| *epoch <= row.epoch);
            touches.get(later.checked_sub(1)?).copied()
        };
        // A huge page has one fault, at any of its bytes.
        let is_huge = row.page_size.is_some_and(|bytes| bytes >= 1 << HUGE_PAGE);
        let found = last(&self.pages, PAGE);
        let found = found.or_else(|| last(&self.huge_pages, HUGE_PAGE).filter(|_| is_huge));
        let (epoch, functions) = found.ok_or(Some(Reason::NoTouch))?;
        let start = |epoch: u32| Some(capture.meta.epochs.get(epoch as usize)?.start_ns);
        let age = start(row.epoch).zip(start(epoch)).and_then(|(now, then)| {
            let seconds = now.saturating_sub(then) / 1_000_000_000;
            let place = AGES.iter().position(|(below, _)| seconds < *below)?;
            self.ages.get(place).copied()
        });
        Ok(FirstTouch { functions, age })
    }
}

/// Returns the functions of a page fault, the innermost one first: `Table::grow ← load ← main`.
fn functions(capture: &Capture, row: &Row) -> String {
    let code = row.code.and_then(|id| capture.code.get(id as usize));
    let own = code.into_iter().flat_map(functions_at);
    let stack = match row.stack {
        Chain::Known(stack) => Some(stack),
        Chain::Unknown(_) => None,
    };
    let of_stack = stack.into_iter().flat_map(|stack: StackId| callers(capture, stack));
    let mut all = own.chain(of_stack).map(|name| name_or_reason(capture, name));
    let mut shown: Vec<String> = all.by_ref().take(MOST_FUNCTIONS).collect();
    if all.next().is_some() {
        shown.push("…".to_owned());
    }
    match &shown[..] {
        [] => name_or_reason(capture, Name::Unknown(Reason::NotRecorded)),
        shown => shown.join(" ← "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CaptureBuilder;
    use crate::values::RawValue;

    /// Two processes whose page 0x5000 was made by different functions, and loads of it.
    fn capture() -> Capture {
        let mut made = CaptureBuilder::new();
        let meta = made.meta();
        let mut faults = meta.events[0].clone();
        (faults.name, faults.unit, faults.pmu) =
            ("page-faults".into(), "page faults".into(), PmuKind::Software);
        faults.fields.address = true;
        meta.events.push(faults);
        let fault = |made: &mut CaptureBuilder, pid, epoch, function, address| {
            let cell = made.cell().event(1).process(pid, "app").epoch(epoch);
            cell.code(0x1000, "/bin/app", function, "", 0).data(address, "[heap]", "");
        };
        let load = |made: &mut CaptureBuilder, pid, epoch, address| {
            let cell = made.cell().process(pid, "app").epoch(epoch);
            cell.code(0x2000, "/bin/app", "read", "", 0).data(address, "[heap]", "");
        };
        fault(&mut made, 1, 0, "grow", 0x5010);
        fault(&mut made, 2, 0, "other", 0x5ff0);
        let cell = made.cell().event(1).process(4, "app").code(0x1000, "/bin/app", "set", "", 0);
        cell.callers(&["calloc", "grow", "load", "run", "main"]).data(0x7000, "[heap]", "");
        load(&mut made, 4, 0, 0x7010);
        fault(&mut made, 1, 2, "again", 0x5000);
        for (pid, epoch, address) in
            [(1, 0, 0x5008), (1, 1, 0x5fff), (1, 2, 0x5008), (2, 3, 0x5000), (1, 3, 0x6000), (3, 3, 0x5000)]
        {
            load(&mut made, pid, epoch, address);
        }
        made.build()
    }

    fn objects(capture: &Capture) -> Vec<String> {
        values(capture, Key::Object)
    }

    fn values(capture: &Capture, key: Key) -> Vec<String> {
        let loads = capture.rows.iter().filter(|row| row.event == 0);
        let mut rows: Vec<&Row> = loads.collect();
        rows.sort_by_key(|row| (row.pid, row.epoch));
        let value = |row: &&Row| RawValue::of(capture, row, key).value(capture, key).text();
        rows.iter().map(value).collect()
    }

    #[test]
    fn the_last_fault_before_an_access_made_the_page() {
        let mut capture = capture();
        assert!(objects(&capture).iter().all(|object| object == "[not recorded]"), "not looked up");
        look_up(&mut capture, &[Key::Function]);
        assert_eq!(capture.touches, None);
        look_up(&mut capture, &[Key::Object]);
        let none = "[first touch not seen]";
        let chain = "set ← calloc ← grow ← load ← run ← …";
        assert_eq!(objects(&capture), ["grow", "grow", "again", none, "other", none, chain]);
    }

    #[test]
    fn memory_has_an_age() {
        let mut capture = capture();
        // The last epoch begins two minutes after the others.
        let starts = [0, 5, 20, 140].map(|seconds| seconds * 1_000_000_000);
        capture.meta.epochs = starts.map(|ns| crate::Epoch { start_ns: ns, end_ns: ns + 1 }).to_vec();
        look_up(&mut capture, &[Key::Age]);
        let none = "[first touch not seen]";
        let (new, seconds, old) = ("under 1 s", "1 to 10 s", "1 to 10 min");
        assert_eq!(values(&capture, Key::Age), [new, seconds, new, none, old, none, new]);
        capture.meta.epochs.truncate(3);
        assert_eq!(values(&capture, Key::Age)[4], "[not recorded]");
    }

    #[test]
    fn a_huge_page_has_one_fault() {
        let mut capture = capture();
        for row in &mut capture.rows {
            row.page_size = Some(2 << 20);
        }
        look_up(&mut capture, &[Key::Object]);
        let none = "[first touch not seen]";
        let all = objects(&capture);
        assert_eq!(all.get(..6).unwrap(), ["grow", "grow", "again", "again", "other", none]);
    }

    #[test]
    fn what_cannot_be_known_has_its_reason() {
        let mut without = capture();
        without.meta.events.truncate(1);
        look_up(&mut without, &[Key::Object]);
        assert_eq!(objects(&without)[0], "[no page faults sampled]");
        let mut without = capture();
        without.meta.dimensions.retain(|dimension| *dimension != Dimension::Process);
        look_up(&mut without, &[Key::Object]);
        assert_eq!(objects(&without)[0], "[not recorded]");
    }
}
