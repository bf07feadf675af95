//! The start and the end of an import: the dimensions, the symbolizer, and what the capture stores
//! in addition to its rows.

use std::path::Path;

use super::{ImportAccount, ImportRun, ImportedEvent, Of, parts, unwritten};
use crate::error::SamplingError;
use crate::import::branches;
use crate::import::events::cpu;
use crate::import::sample::ImportGrouping;
use crate::import::{Imported, bad_file, words};
use crate::machine::{MachineInfo, Root};
use crate::reader::Reader;
use crate::run::assemble::{Assembler, AssemblerOptions};
use crate::symbols::cgroup::{Cgroups, Hierarchy};
use crate::symbols::container::Owners;
use crate::symbols::{Recorded, SymbolOptions, Symbolizer, table_cache};
use crate::unwind::UnwindReport;
use precise_model::{
    CompactSort as _, Dimension, EventInfo, Machine, Meta, Node, Origin, SCHEMA_VERSION, parse_cpu_list,
};
use precise_records::perf_data::{Features, ReadLoss};
use precise_records::record::sample_bits as bit;

impl ImportRun<'_> {
    /// Chooses the dimensions and starts the symbolizer, at the first sample.
    pub(super) fn start_naming(&mut self) -> Result<(), SamplingError> {
        if self.naming.is_some() {
            return Ok(());
        }
        self.meet_events()?;
        let dimensions = match &self.options.dimensions {
            Some(dimensions) => dimensions.clone(),
            None => self.default_dimensions(),
        };
        let this_host = MachineInfo::read(&Root::default()).machine.host == self.reader.features().host;
        let kallsyms = self.options.kallsyms.clone();
        let own_kallsyms = words::own_kallsyms(&self.images, this_host);
        let this_boot = own_kallsyms.is_some();
        let kallsyms = kallsyms.or(own_kallsyms);
        let recorded = Recorded { symfs: self.options.symfs.clone(), this_host, this_boot, kallsyms };
        let mut options = SymbolOptions {
            recorded: Some(recorded),
            caches: table_cache::folder(),
            ..SymbolOptions::default()
        };
        options.debug_dirs.splice(0..0, self.options.debug_dirs.iter().cloned());
        if let Some(home) = std::env::var_os("HOME") {
            // The directory in which `perf record` and `perf buildid-cache` store files.
            options.debug_dirs.push(Path::new(&home).join(".debug"));
        }
        let reader = self.files.take().unwrap_or_else(Reader::start)?;
        let symbolizer = Symbolizer::spawn(options, reader)
            .map_err(|error| SamplingError::failed("cannot start the symbolizer", error))?;
        self.callers.open_with(symbolizer.code_files());
        let address_granule = self.options.address_granule;
        let assembler_options = AssemblerOptions {
            dimensions: dimensions.clone(),
            address_granule,
            hierarchy: Hierarchy::PerfEvent,
            host: self.reader.features().host.clone(),
            slots: Vec::new(),
        };
        let assembler =
            Assembler::new(assembler_options, symbolizer, Cgroups::recorded(), Owners::recorded());
        self.naming = Some((assembler, ImportGrouping::new(dimensions, address_granule)));
        Ok(())
    }

    /// Returns the dimensions by which an import groups without `--by`, chosen as in `record`: all
    /// but the outcomes of ops, which would take the place of their data sources.
    fn default_dimensions(&self) -> Vec<Dimension> {
        let of_ops = |known: &ImportedEvent| known.registers.is_some_and(|registers| !registers.fetch);
        self.dimensions(|known, d| has(known, d) && !(d == Dimension::Outcome && of_ops(known)))
    }

    /// Returns the dimensions by which an import of the file can group.
    fn available(&self) -> Vec<Dimension> {
        self.dimensions(has)
    }

    /// Returns the dimensions for which `wanted` holds for an event that is imported.
    fn dimensions(&self, wanted: impl Fn(&ImportedEvent, Dimension) -> bool) -> Vec<Dimension> {
        let any = |d: &Dimension| self.chosen_events().any(|known| wanted(known, *d));
        Dimension::ALL.into_iter().filter(any).collect()
    }

    /// Returns the events that are imported.
    fn chosen_events(&self) -> impl Iterator<Item = &ImportedEvent> {
        self.events.iter().filter_map(|(of, _)| match of {
            Of::Chosen { known, .. } => Some(&**known),
            Of::Skipped { .. } => None,
        })
    }

    /// Names and writes the remaining cells, and adds the notes.
    pub(super) fn finish(mut self, loss: Option<ReadLoss>) -> Result<Imported, SamplingError> {
        self.meet_events()?;
        if self.chosen == 0 {
            return Err(words::nothing_chosen(self.options, &self.names(), loss));
        }
        self.start_naming()?;
        let ready = self.queue.finish();
        self.take_all(ready)?;
        self.count_overdue(true)?;
        self.end_epoch(self.clock.latest.saturating_add(1))?;
        self.write_all()?;

        self.odd.left_out = self.events.iter().fold(0, |sum, (of, account)| match of {
            Of::Skipped { .. } => sum + account.samples,
            Of::Chosen { .. } => sum,
        });
        self.odd.late = self.queue.late;
        self.odd.members_left_out = self.groups.left_out;
        self.odd.kernel_parts = self.images.left_out();
        let mut notes = words::notes(&self.reader, &self.odd, loss.as_ref());
        notes.extend(self.processes.counts().notes());
        let (mut events, start_unix_ns) = (self.infos(), self.start_unix_ns());
        let dimensions = self.available();
        let features = self.reader.features();
        let Some((assembler, by)) = self.naming else {
            return Err(bad_file(self.options, "the file has no events"));
        };
        for (info, (known, _)) in events.iter_mut().zip(parts(&self.events)) {
            info.tagged = known.info.tagged.or(by.outcomes_of(known));
        }
        if assembler.ambiguous() > 0 {
            notes.push(words::ambiguous(assembler.ambiguous()));
        }
        let chained = |(of, _): &(Of, ImportAccount)| match of {
            Of::Chosen { known, .. } => known.has_chains(),
            Of::Skipped { .. } => false,
        };
        if !by.dimensions().contains(&Dimension::Stack) && self.events.iter().any(chained) {
            notes.push(words::CHAINS_LEFT_OUT.to_owned());
        }
        // Before the symbolizer ends, which opens the files of code.
        if let Some(UnwindReport { usage, notes: more }) = self.callers.report() {
            if usage.tables > 0 {
                notes.push(format!("copies of stacks were unwound: {usage}"));
            }
            notes.extend(more);
        }
        // The reader takes a while to give its memory back.
        let (named, more, ending) = assembler.finish();
        notes.extend(more);
        let meta = Meta {
            schema: SCHEMA_VERSION,
            producer: format!("precise {}", env!("CARGO_PKG_VERSION")),
            command: self.options.command_line.clone(),
            machine: Machine {
                host: features.host.clone(),
                kernel: features.kernel.clone(),
                cpu: features.cpu.clone(),
                cpus: features.cpus,
                arch: features.arch.clone(),
                nodes: nodes(features),
                cpu_id: (!features.cpuid.is_empty()).then(|| cpu(&features.cpuid)),
            },
            start_unix_ns,
            epochs: self.epochs,
            events,
            dimensions: by.dimensions().to_vec(),
            address_granule: self.options.address_granule,
            promoted_lines: None,
            filter: String::new(),
            target: words::target(features),
            owners: named.meta.owners,
            notes,
            overhead: None,
            selection: None,
            origin: Some(Origin {
                format: "perf.data".to_owned(),
                recorder: format!("perf {}", features.version).trim_end().to_owned(),
                command: features.command.clone(),
                cpuid: features.cpuid.clone(),
                file: self.options.input.display().to_string(),
                dimensions,
            }),
        };
        let kept = parts(&self.events).map(|(_, account)| account.kept()).collect();
        let old = self.writer.finish(&meta).map_err(unwritten)?;
        drop(ending);
        Ok(Imported { meta, kept, rows: self.written, bytes: self.reader.position(), old })
    }

    /// Returns the Unix time of the first sample in nanoseconds. If the recording does not describe
    /// its clock, it ended when the file was last written; 0 if neither is known.
    pub(super) fn start_unix_ns(&self) -> u64 {
        let features = self.reader.features();
        match (features.clock, self.clock.start, self.reader.modified_ns()) {
            (Some(clock), Some(start), _) => {
                clock.wall_ns.saturating_add(start).saturating_sub(clock.record_ns)
            }
            (None, _, Some(modified)) => {
                let length = features.sample_times.map_or(0, |(first, last)| last.saturating_sub(first));
                modified.saturating_sub(length)
            }
            _ => 0,
        }
    }

    fn names(&self) -> Vec<String> {
        let name = |(of, _): &(Of, ImportAccount)| match of {
            Of::Skipped { name } => name.clone(),
            Of::Chosen { known, .. } => known.info.name.clone(),
        };
        self.events.iter().map(name).collect()
    }
}

/// Returns whether the samples of an event have what a dimension groups by.
fn has(known: &ImportedEvent, dimension: Dimension) -> bool {
    let ImportedEvent { attr, info: EventInfo { fields, .. }, .. } = known;
    let branches = branches::has_branches(attr);
    match dimension {
        Dimension::Ip | Dimension::Process => true,
        Dimension::Address => fields.address || branches,
        Dimension::Cgroup => attr.has(bit::CGROUP),
        Dimension::Thread => attr.has(bit::TID),
        Dimension::Cpu => attr.has(bit::CPU),
        Dimension::Source => fields.data_source,
        Dimension::Latency => fields.latency || branches,
        Dimension::Outcome => fields.outcome || branches,
        Dimension::Stack => known.has_chains(),
        Dimension::PageSize => fields.address && attr.has(bit::DATA_PAGE_SIZE),
    }
}

/// Returns the NUMA nodes that the recording describes, sorted by number.
fn nodes(features: &Features) -> Vec<Node> {
    let node = |(id, cpus): &(u32, String)| Node {
        id: *id,
        // A node without CPUs has an empty list, which is not an error.
        cpus: parse_cpu_list(cpus.trim()).unwrap_or_default(),
    };
    let mut nodes: Vec<_> = features.nodes.iter().map(node).collect();
    nodes.compact_sort_by_key(|node| node.id);
    nodes
}
