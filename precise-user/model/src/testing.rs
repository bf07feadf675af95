//! Synthetic captures for tests of views and pictures. Not part of the public interface.

use precise_common::ledger::Counter;

use super::*;

/// Data source words of loads, as Intel's driver writes them: a hit in L1; in the L3 cache
/// (modified in another core's cache); in memory; in memory of the other node, with a page walk.
pub const L1: u64 = 0x2_6810_0142;
pub const L3_HITM: u64 = 0x6_6880_0842;
pub const RAM: u64 = 0x1a_6820_1042;
pub const RAM_WALK: u64 = 0x1a_5220_1042;
pub const REMOTE_RAM: u64 = 0x3a_6820_1042;

/// Returns a raw event of an Intel core.
pub fn intel(event: u16, umask: u8) -> PmuKind {
    let select = Some(EventSelect { event, umask });
    PmuKind::Core(CoreEvent { vendor: Vendor::Intel, select, ..CoreEvent::default() })
}

/// Makes an event one of loads of at least `cycles` on an Intel core, such as
/// `cpu/mem-loads,ldlat=30/pp`.
pub fn slow_loads(event: &mut EventInfo, cycles: u32) {
    event.encoding = format!("cpu/event=0xcd,umask=0x1,ldlat={cycles}/pp");
    event.pmu = intel(0xcd, 0x01);
    event.hardware_filter.min_latency = Some(cycles);
}

/// Makes an event one of IBS that counts ops.
pub fn ibs_op(event: &mut EventInfo) {
    (event.encoding, event.pmu) = ("ibs_op/cnt_ctl=1/".into(), PmuKind::IbsOp);
}

/// Removes the parts of all rows that are not in `parts`, as a reader leaves them out.
pub fn project(capture: &mut Capture, parts: Projection) {
    let nothing = Name::Unknown(Reason::NotRecorded);
    let code: Vec<CodeLocation> = capture.code.iter().map(|code| project_code(code, parts)).collect();
    let (mut interner, mut table) = (Interner::default(), Vec::new());
    let mut rows = std::mem::take(&mut capture.rows);
    for row in &mut rows {
        let has = |part| parts.has(part);
        if !has(RowPart::Epoch) {
            row.epoch = 0;
        }
        row.cpu = row.cpu.filter(|_| has(RowPart::Cpu));
        if !has(RowPart::Cgroup) {
            (row.cgroup_id, row.cgroup) = (0, nothing);
        }
        if !has(RowPart::Process) {
            (row.pid, row.process) = (0, nothing);
        }
        if !has(RowPart::Thread) {
            (row.tid, row.thread) = (0, nothing);
        }
        row.code = row
            .code
            .filter(|_| parts.has_any(Projection::CODE))
            .map(|id| interner.intern(&mut table, code[id as usize].clone()));
        row.data = row.data.filter(|_| has(RowPart::Data));
        if !has(RowPart::Stack) {
            row.stack = Chain::NONE;
        }
        if !has(RowPart::Source) {
            row.data_src = 0;
        }
        row.outcome = row.outcome.filter(|_| has(RowPart::Outcome));
        row.latency_bucket = row.latency_bucket.filter(|_| has(RowPart::Latency));
        row.width = row.width.filter(|_| has(RowPart::Width));
        row.page_size = row.page_size.filter(|_| has(RowPart::PageSize));
    }
    capture.rows = rows;
    for stack in &mut capture.stacks {
        // Call sites are read whole.
        for caller in &mut stack.callers {
            *caller = interner.intern(&mut table, capture.code[*caller as usize].clone());
        }
    }
    capture.code = table;
    if !parts.has(RowPart::Cgroup) {
        capture.meta.owners.clear();
    }
}

fn project_code(code: &CodeLocation, parts: Projection) -> CodeLocation {
    let mut code = code.clone();
    if !parts.has(RowPart::Instruction) {
        let nameless = matches!(code.function, Name::Unknown(_));
        if !(nameless && code.kernel) {
            code.runtime_address = 0;
        }
        if !nameless {
            code.file_offset = 0;
        }
        (code.function_offset, code.build_id) = (0, NameId::default());
    }
    if !parts.has(RowPart::Line) {
        (code.source, code.line) = (Name::Unknown(Reason::NotRecorded), 0);
    }
    if !parts.has(RowPart::Inlined) {
        code.inlined_into.clear();
    }
    code
}

/// Builds a capture cell by cell.
///
/// Each [`CaptureBuilder::cell`] adds one row with one sample in epoch 0 of event 0, and returns a
/// [`CellBuilder`] that changes the row.
#[derive(Debug, Default)]
pub struct CaptureBuilder {
    capture: Capture,
}

impl CaptureBuilder {
    /// Starts with one event `cycles` at a fixed period of 1,000, one epoch of one second, all
    /// dimensions, precise, no samples.
    pub fn new() -> Self {
        let event = EventInfo {
            name: "cycles".into(),
            encoding: "cpu/event=0x3c/pp".into(),
            pmu: intel(0x3c, 0),
            unit: "cycles".into(),
            period: Some(1000),
            fields: Fields { address: true, latency: true, data_source: true, outcome: true },
            marks_exact: true,
            verdict: Verdict { granted: 2, precise: true, ..Verdict::default() },
            ..EventInfo::default()
        };
        let meta = Meta {
            schema: SCHEMA_VERSION,
            producer: "precise 0.1.0".into(),
            command: vec!["precise".into(), "record".into()],
            machine: Machine {
                host: "testhost".into(),
                kernel: "6.12.0".into(),
                cpu: "Test CPU".into(),
                cpus: 2,
                arch: "x86_64".into(),
                ..Machine::default()
            },
            start_unix_ns: 1_700_000_000_000_000_000,
            epochs: vec![Epoch { start_ns: 0, end_ns: 1_000_000_000 }],
            events: vec![event],
            dimensions: Dimension::ALL.to_vec(),
            address_granule: 1,
            target: "all processes".into(),
            ..Meta::default()
        };
        Self { capture: Capture { meta, ..Capture::default() } }
    }

    /// Returns the metadata: everything that is not a row.
    pub fn meta(&mut self) -> &mut Meta {
        &mut self.capture.meta
    }

    /// Adds a row.
    pub fn cell(&mut self) -> CellBuilder<'_> {
        let nothing = Name::Unknown(Reason::NotRecorded);
        self.capture.rows.push(Row {
            epoch: 0,
            event: 0,
            cpu: None,
            cgroup_id: 0,
            cgroup: nothing,
            pid: 0,
            tid: 0,
            process: nothing,
            thread: nothing,
            kernel: false,
            code: None,
            data: None,
            stack: Chain::NONE,
            data_src: 0,
            outcome: None,
            latency_bucket: None,
            exact: true,
            width: None,
            page_size: None,
            measures: Measures { count: 1, period_sum: 1000, latency_sum: 0, latency_max: 0 },
        });
        CellBuilder { builder: self }
    }

    /// Returns the capture. Each event whose ledger has no counters gets one that closes over the
    /// rows.
    pub fn build(mut self) -> Capture {
        for (index, event) in self.capture.meta.events.iter_mut().enumerate() {
            if !event.ledger.counters.is_empty() {
                continue;
            }
            let rows = self.capture.rows.iter().filter(|r| usize::from(r.event) == index);
            let mut sum = Measures::default();
            let mut exact = 0;
            for row in rows {
                sum.add(&row.measures);
                exact += if row.exact { row.measures.count } else { 0 };
            }
            event.ledger.counters = [
                (Counter::Seen, sum.count),
                (Counter::Aggregated, sum.count),
                (Counter::Exact, exact),
                (Counter::PeriodSeen, sum.period_sum),
                (Counter::PeriodAggregated, sum.period_sum),
            ]
            .into();
            event.ledger.event_count = sum.period_sum;
            event.ledger.enabled_ns = 1_000_000_000;
            event.ledger.running_ns = 1_000_000_000;
        }
        self.capture
    }
}

/// The row that [`CaptureBuilder::cell`] added.
pub struct CellBuilder<'a> {
    builder: &'a mut CaptureBuilder,
}

impl CellBuilder<'_> {
    /// Returns the row itself, for fields that have no method here.
    pub fn row(&mut self) -> &mut Row {
        let rows = &mut self.builder.capture.rows;
        let last = rows.len() - 1;
        &mut rows[last]
    }

    /// Returns the id of `text` in the capture's names.
    pub fn name(&mut self, text: &str) -> NameId {
        self.builder.capture.names.intern(text)
    }

    /// Sets the number of samples, each with the event's period (1,000 in frequency mode).
    pub fn samples(mut self, count: u64) -> Self {
        let event = usize::from(self.row().event);
        let period = self.builder.capture.meta.events.get(event).and_then(|e| e.period).unwrap_or(1000);
        self.row().measures.count = count;
        self.row().measures.period_sum = count * period;
        self
    }

    /// Sets the latency of each sample in core cycles: bucket, sum and maximum. Call it after
    /// [`CellBuilder::samples`].
    pub fn latency(mut self, cycles: u32) -> Self {
        let count = self.row().measures.count;
        self.row().latency_bucket = Some(precise_common::latency::bucket(cycles) as u8);
        self.row().measures.latency_sum = count * u64::from(cycles);
        self.row().measures.latency_max = cycles;
        self
    }

    /// Sets the epoch. Missing epochs of one second each are added.
    pub fn epoch(mut self, epoch: u32) -> Self {
        let epochs = &mut self.builder.capture.meta.epochs;
        while epochs.len() <= epoch as usize {
            let start_ns = epochs.last().map_or(0, |e| e.end_ns);
            epochs.push(Epoch { start_ns, end_ns: start_ns + 1_000_000_000 });
        }
        self.row().epoch = epoch;
        self
    }

    /// Sets the event, which must be in the metadata. Call it before [`CellBuilder::samples`].
    pub fn event(mut self, event: u16) -> Self {
        self.row().event = event;
        self
    }

    /// Sets the CPU.
    pub fn cpu(mut self, cpu: u16) -> Self {
        self.row().cpu = Some(cpu);
        self
    }

    /// Sets the process id, a thread id of the same number, and the name.
    pub fn process(mut self, pid: u32, comm: &str) -> Self {
        let name = self.name(comm);
        let row = self.row();
        (row.pid, row.tid, row.process) = (pid, pid, Name::Known(name));
        row.thread = row.process;
        self
    }

    /// Sets the thread id and the thread's name. Call it after [`CellBuilder::process`].
    pub fn thread(mut self, tid: u32, comm: &str) -> Self {
        let name = self.name(comm);
        let row = self.row();
        (row.tid, row.thread) = (tid, Name::Known(name));
        self
    }

    /// Sets the cgroup.
    pub fn cgroup(mut self, id: u64, path: &str) -> Self {
        let name = self.name(path);
        let row = self.row();
        (row.cgroup_id, row.cgroup) = (id, Name::Known(name));
        self
    }

    /// Sets the data source word.
    pub fn data_src(mut self, word: u64) -> Self {
        self.row().data_src = word;
        self
    }

    /// Sets the code location: address, module, function (empty: no symbol), source (empty: no line
    /// information) and line.
    pub fn code(mut self, ip: u64, module: &str, function: &str, source: &str, line: u32) -> Self {
        let mut known = |text: &str, reason| match text {
            "" => Name::Unknown(reason),
            text => Name::Known(self.name(text)),
        };
        let location = CodeLocation {
            kernel: module == "[kernel]",
            runtime_address: ip,
            module: known(module, Reason::Unmapped),
            build_id: NameId::default(),
            file_offset: ip & 0xfff,
            function: known(function, Reason::NoSymbol),
            function_offset: ip & 0xf,
            source: known(source, Reason::NoLine),
            line,
            inlined_into: Vec::new(),
        };
        self.row().kernel = location.kernel;
        let all = &mut self.builder.capture.code;
        let index = all.iter().position(|l| *l == location).unwrap_or_else(|| {
            all.push(location);
            all.len() - 1
        });
        self.row().code = Some(index as LocationId);
        self
    }

    /// Sets the size of the data's page, in bytes.
    pub fn page_size(mut self, bytes: u64) -> Self {
        self.row().page_size = Some(bytes);
        self
    }

    /// Sets the callers, from the caller of the sampled function to the outermost. Call it after
    /// [`CellBuilder::code`].
    pub fn callers(mut self, functions: &[&str]) -> Self {
        let code = self.row().code;
        let mut callers = Vec::new();
        for (at, function) in functions.iter().enumerate() {
            let module = if self.row().kernel { "[kernel]" } else { "/usr/bin/app" };
            self = self.code(0x70_0000 + 16 * at as u64, module, function, "", 0);
            callers.extend(self.row().code);
        }
        self.row().code = code;
        let stack = Stack { callers, ..Stack::default() };
        let all = &mut self.builder.capture.stacks;
        let index = all.iter().position(|s| *s == stack).unwrap_or_else(|| {
            all.push(stack);
            all.len() - 1
        });
        self.row().stack = Chain::Known(index as StackId);
        self
    }

    /// Sets the data location: address, region and variable (empty: no symbol).
    pub fn data(mut self, address: u64, region: &str, variable: &str) -> Self {
        let region = Name::Known(self.name(region));
        let variable = match variable {
            "" => Name::Unknown(Reason::NoSymbol),
            text => Name::Known(self.name(text)),
        };
        let location =
            DataLocation { runtime_address: address, region, file_offset: 0, variable, variable_offset: 0 };
        let all = &mut self.builder.capture.data;
        let index = all.iter().position(|l| *l == location).unwrap_or_else(|| {
            all.push(location);
            all.len() - 1
        });
        self.row().data = Some(index as LocationId);
        self
    }
}

/// Returns every row with its names spelled out. Two captures with equal lines have the same
/// content, even if their ids differ.
pub fn spelled_out(capture: &Capture) -> Vec<String> {
    let name = |n: Name| match n {
        Name::Known(id) => format!("{:?}", capture.names.get(id)),
        Name::Unknown(reason) => reason.as_str().to_owned(),
    };
    let code = |id: LocationId| {
        let c = &capture.code[id as usize];
        let inlined = c.inlined_into.iter().map(|f| {
            format!("{:?} {:?} {}", capture.names.get(f.function), capture.names.get(f.source), f.line)
        });
        format!(
            "{} {:x} {} {:?} {:x} {}+{:x} {}:{} {:?}",
            c.kernel,
            c.runtime_address,
            name(c.module),
            capture.names.get(c.build_id),
            c.file_offset,
            name(c.function),
            c.function_offset,
            name(c.source),
            c.line,
            inlined.collect::<Vec<_>>()
        )
    };
    let data = |id: LocationId| {
        let d = &capture.data[id as usize];
        let (region, variable) = (name(d.region), name(d.variable));
        format!("{:x} {region}+{:x} {variable}+{:x}", d.runtime_address, d.file_offset, d.variable_offset)
    };
    let stack = |chain: Chain| match chain {
        Chain::Known(id) => {
            let Stack { callers, elsewhere, cut, end } = &capture.stacks[id as usize];
            let callers: Vec<_> = callers.iter().map(|id| code(*id)).collect();
            format!("{callers:?} {elsewhere} {cut} {end:?}")
        }
        Chain::Unknown(reason) => reason.as_str().to_owned(),
    };
    let row = |r: &Row| {
        let bare = match r.stack {
            Chain::Known(_) => Row { stack: Chain::Known(0), ..*r },
            Chain::Unknown(_) => *r,
        };
        let bare = Row { cgroup: UNNAMED, process: UNNAMED, thread: UNNAMED, code: None, data: None, ..bare };
        format!(
            "{bare:?} {} {} {} {:?} {:?} {:?}",
            name(r.cgroup),
            name(r.process),
            name(r.thread),
            r.code.map(code),
            r.data.map(data),
            stack(r.stack)
        )
    };
    capture.rows.iter().map(row).collect()
}

const UNNAMED: Name = Name::Unknown(Reason::NotRecorded);
