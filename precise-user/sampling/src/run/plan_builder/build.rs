//! Every check that is made before an event is opened, and the defaults that depend on the machine.

use precise_filter::FilterFlags;
use precise_model::digits::thousands;
use precise_model::{Dimension, Fields, Preset};

use super::{PlanBuilder, Purpose};
use crate::kernel::event::Rate;
use crate::kernel::unwind::UnwindSizes;
use crate::machine::MachineInfo;
use crate::pmu::{self, EventRequest, Pmus};
use crate::run::cell_slot::CellSlot;
use crate::run::kill_switch::KillSwitch;
use crate::run::plan::{
    BUDGET, DURATION, EPOCH, GRANULE, LINES, MAX_CELLS, MAX_DEPTH, MAX_LINES, MAX_RING_PAGES, MAX_STACK_COPY,
    MAX_STACKS, MAX_UNWIND_BYTES, MIN_EPOCH, Plan, Streaming, TABLE_BYTES, TABLE_CELLS, Target, UNWIND_BYTES,
    default_cells, default_epoch, default_stacks,
};
use crate::run::plan_error::PlanError;
use crate::run::{event_filter, opening};

impl PlanBuilder {
    /// Builds the plan.
    ///
    /// # Errors
    ///
    /// Returns the first error that it finds; nothing is started. Only if no event was set, events
    /// are opened to find one that works, and closed again.
    pub fn build(self) -> Result<Plan, PlanError> {
        let kill_switch = KillSwitch::and(self.stop_file.clone());
        // First of all, because even a plan that is refused may open events to find one that works.
        kill_switch.allow().map_err(PlanError::Stopped)?;
        if let Purpose::Stream(streaming) = self.purpose {
            self.streams(streaming)?;
        }
        let machine = MachineInfo::read(&self.root);
        let (requests, c2c) = self.wanted_requests()?;
        let (cpus, later) = self.chosen_cpus(&machine)?;
        let target = self.target.clone().unwrap_or(Target::All);
        let alone = matches!(target, Target::Command(_));
        let until = if alone { Vec::new() } else { self.until.clone() };
        let duration = match (&target, self.purpose) {
            (Target::Command(_), _) | (_, Purpose::Series | Purpose::Live) => self.duration,
            _ if !self.until.is_empty() => self.duration,
            _ => Some(self.duration.unwrap_or(DURATION)),
        };
        let cgroups = event_filter::wanted_cgroups(&self.cgroups)?;
        let expression = FilterFlags { cgroups: cgroups.names(), ..self.filter.clone() }.expr();
        let mut events = Vec::new();
        for request in requests {
            let rate = self.rate.unwrap_or(Rate::Period(request.default_period));
            if matches!(rate, Rate::Period(0) | Rate::Frequency(0)) {
                return Err(PlanError::Rate);
            }
            events.push(event_filter::plan(expression.as_ref(), request, rate, &machine, &cgroups.watch)?);
        }
        let plan = Plan {
            events,
            target,
            until,
            output_apart: self.output_apart,
            cpus,
            later,
            precision: self.precision,
            dimensions: Vec::new(),
            address_granule: 1,
            promoted_lines: None,
            filter_text: expression.as_ref().map(ToString::to_string).unwrap_or_default(),
            watch: cgroups.watch,
            epoch: EPOCH,
            duration,
            table_cells: 0,
            fewer_cells: None,
            stacks: 0,
            call_graph: self.call_graph,
            unwind_bytes: UNWIND_BYTES,
            depth: MAX_DEPTH,
            include_self: self.include_self,
            command_line: self.command_line.clone(),
            read_path: self.read_path,
            stream: None,
            budget: None,
            kill_switch,
            gives_up_rights: self.gives_up_rights,
        };
        match self.purpose {
            Purpose::Stream(streaming) => Ok(Plan { stream: Some(streaming), ..plan }),
            Purpose::Capture | Purpose::Live | Purpose::Series => self.with_table(plan, c2c),
        }
    }

    /// Adds the options of a run that aggregates its samples.
    fn with_table(&self, plan: Plan, c2c: bool) -> Result<Plan, PlanError> {
        let c2c = c2c && matches!(self.purpose, Purpose::Capture | Purpose::Live);
        let requests: Vec<&EventRequest> = plan.events.iter().map(|event| &event.request).collect();
        let dimensions = self.grouped_by(&requests, c2c)?;
        let address_granule = self.granule.unwrap_or(match self.purpose {
            Purpose::Capture | Purpose::Live if !c2c => GRANULE,
            _ => 1,
        });
        if !address_granule.is_power_of_two() {
            return Err(PlanError::Granule(address_granule));
        }
        let lines = self.lines.unwrap_or(LINES);
        let lines = u32::try_from(lines)
            .ok()
            .filter(|lines| (1..=MAX_LINES).contains(lines))
            .ok_or(PlanError::Lines(lines))?;
        let within = |wanted: u64, most: usize| {
            usize::try_from(wanted).ok().filter(|number| (1..=most).contains(number))
        };
        let stacks = match self.stacks {
            None => default_stacks(plan.cpus.len() + plan.later.len()),
            Some(stacks) => within(stacks, MAX_STACKS).ok_or(PlanError::Stacks(stacks))?,
        };
        let unwind_bytes = self.unwind_bytes.unwrap_or(UNWIND_BYTES);
        if !(UnwindSizes::LEAST as u64..=MAX_UNWIND_BYTES).contains(&unwind_bytes) {
            return Err(PlanError::UnwindMemory(unwind_bytes));
        }
        let depth = self.depth.unwrap_or(MAX_DEPTH);
        if !(1..=MAX_DEPTH).contains(&depth) {
            return Err(PlanError::Depth(depth));
        }
        let (cpus, events) = (plan.cpus.len() + plan.later.len(), plan.events.len());
        let cells = self.cells.unwrap_or_else(|| default_cells(cpus, events));
        let fewer_cells = (self.cells.is_none() && cells < TABLE_CELLS).then(|| {
            format!(
                "the table has {} cells for each CPU instead of {}, so that the tables of {events} events on \
                 {cpus} CPUs take at most {} MiB",
                thousands(cells),
                thousands(TABLE_CELLS),
                TABLE_BYTES >> 20
            )
        });
        let table_cells = within(cells, MAX_CELLS).ok_or(PlanError::Cells(cells))?;
        let epoch = self.epoch.unwrap_or_else(|| match self.purpose {
            Purpose::Series | Purpose::Live => EPOCH,
            Purpose::Capture | Purpose::Stream(_) => default_epoch(plan.duration),
        });
        if epoch < MIN_EPOCH {
            return Err(PlanError::Epoch(epoch));
        }
        let budget = match (self.budget, self.rate) {
            (Some(chosen), _) => chosen,
            (None, Some(Rate::Period(_))) => None,
            (None, _) => Some(BUDGET),
        };
        if let Some(share) = budget
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(PlanError::Budget(share));
        }
        Ok(Plan {
            // Cache lines are identified by their addresses.
            promoted_lines: (c2c && dimensions.contains(&Dimension::Address))
                .then_some(lines.next_power_of_two()),
            dimensions,
            address_granule,
            stacks,
            unwind_bytes,
            depth,
            table_cells,
            fewer_cells,
            epoch,
            budget,
            ..plan
        })
    }

    /// Refuses options that a streaming run cannot have.
    fn streams(&self, streaming: Streaming) -> Result<(), PlanError> {
        for (set, what) in [
            (self.dimensions.is_some() || self.call_chains, "dimensions to group by"),
            (self.granule.is_some(), "granule of addresses"),
            (self.lines.is_some(), "cache lines of c2c"),
            (self.stacks.is_some() || self.cells.is_some(), "size of the table"),
            (self.unwind_bytes.is_some() || self.depth.is_some(), "unwinding of call chains"),
            (self.epoch.is_some(), "epochs"),
            (self.budget.is_some(), "budget"),
        ] {
            if set {
                return Err(PlanError::NotStreamed(what));
            }
        }
        let copy = streaming.stack_copy;
        if copy == 0 || !copy.is_multiple_of(8) || copy > MAX_STACK_COPY {
            return Err(PlanError::StackCopy(copy));
        }
        let pages = streaming.ring_pages;
        if pages.is_power_of_two() && pages <= MAX_RING_PAGES {
            Ok(())
        } else {
            Err(PlanError::RingPages(pages))
        }
    }

    /// Returns the requested events, or this machine's best event for cycles; and whether they
    /// include the preset c2c.
    fn wanted_requests(&self) -> Result<(Vec<EventRequest>, bool), PlanError> {
        if let Some(requests) = &self.requests {
            return if requests.is_empty() {
                Err(PlanError::NoEvents)
            } else {
                Ok((requests.clone(), false))
            };
        }
        let pmus = Pmus::read(&self.root);
        let options_need_a_preset = |event: &str| match self.options == pmu::PresetOptions::default() {
            true => Ok(()),
            false => Err(PlanError::NoPreset { event: event.to_owned() }),
        };
        if self.names.is_empty() {
            options_need_a_preset("cycles")?;
            let candidates = pmu::preset::default_candidates(&pmus, self.precision)?;
            let chosen = opening::choose(candidates, 0, self.precision);
            return chosen.map(|requests| (requests, false)).map_err(PlanError::NothingOpens);
        }
        let mut requests = Vec::new();
        let mut c2c = false;
        for text in self.names.iter().flat_map(|list| pmu::split_list(list)) {
            // `cycles` is the event: users know it from perf, and it means the same there. Other
            // names of both an event and a preset, such as branches, mean the preset, as shown by
            // `precise list`.
            match Preset::parse(text) {
                Some(preset) if preset != Preset::Cycles => {
                    c2c |= preset == Preset::C2c;
                    requests.extend(pmu::preset::events_for(preset, &pmus, &self.options)?);
                }
                _ if let Some((preset, modifiers)) = pmu::modified::parse(text) => {
                    c2c |= preset == Preset::C2c;
                    requests.extend(pmu::modified::events(preset, modifiers, &pmus, &self.options)?);
                }
                _ => {
                    options_need_a_preset(text)?;
                    requests.extend(pmu::parse(text, &pmus)?);
                }
            }
        }
        if requests.is_empty() { Err(PlanError::NoEvents) } else { Ok((requests, c2c)) }
    }

    /// Returns the chosen CPUs that are online, and those that may come online.
    fn chosen_cpus(&self, machine: &MachineInfo) -> Result<(Vec<u32>, Vec<u32>), PlanError> {
        let MachineInfo { online, present, .. } = machine;
        let wanted = self.cpus.as_ref().map_or_else(
            || online.iter().chain(present.iter().filter(|cpu| !online.contains(cpu))).copied().collect(),
            Clone::clone,
        );
        let (cpus, offline): (Vec<u32>, Vec<u32>) = wanted.into_iter().partition(|cpu| online.contains(cpu));
        let (later, missing): (Vec<u32>, Vec<u32>) =
            offline.into_iter().partition(|cpu| present.contains(cpu));
        // An event is tried on a CPU before the run.
        if !missing.is_empty() || (cpus.is_empty() && self.cpus.is_some()) {
            return Err(PlanError::Cpus { missing, online: online.clone() });
        }
        Ok((cpus, later))
    }

    /// Returns the requested dimensions, or by default all that are cheap and that the events have;
    /// plus those that call chains need.
    fn grouped_by(&self, requests: &[&EventRequest], c2c: bool) -> Result<Vec<Dimension>, PlanError> {
        let has = |what: fn(&Fields) -> bool| requests.iter().any(|request| what(&request.fields));
        let mut dimensions = Vec::new();
        for dimension in self.dimensions.iter().flatten() {
            if !dimensions.contains(dimension) {
                dimensions.push(*dimension);
            }
        }
        are_there(&dimensions, requests)?;
        let by_default = match (&self.dimensions, self.purpose) {
            (_, Purpose::Series) if !self.captures => {
                has(|fields| fields.latency).then_some(Dimension::Latency).into_iter().collect()
            }
            (Some(_), Purpose::Capture | Purpose::Live | Purpose::Stream(_)) => Vec::new(),
            _ if c2c => Preset::C2c.dimensions().into_iter().flatten().copied().collect(),
            _ => cheap(has),
        };
        let missing = |dimension: &Dimension| !dimensions.contains(dimension);
        let more: Vec<Dimension> = by_default.into_iter().filter(missing).collect();
        dimensions.extend(more);
        if self.call_chains && !dimensions.contains(&Dimension::Stack) {
            dimensions.push(Dimension::Stack);
        }
        with_chains(dimensions, requests, c2c)
    }
}

/// Returns the dimensions that are cheap and that some of the events have.
fn cheap(has: impl Fn(fn(&Fields) -> bool) -> bool) -> Vec<Dimension> {
    let mut dimensions = vec![Dimension::Ip, Dimension::Cgroup, Dimension::Process];
    for (there, dimension) in [
        (has(|fields| fields.data_source), Dimension::Source),
        (has(|fields| fields.latency), Dimension::Latency),
        // Users ask for the data source more often than for the outcome, so it wins if an event has
        // both.
        (has(|fields| fields.outcome && !fields.data_source), Dimension::Outcome),
    ] {
        if there {
            dimensions.push(dimension);
        }
    }
    dimensions
}

/// Adds the dimensions that call chains need, if the dimensions include call chains.
///
/// # Errors
///
/// Returns [`PlanError::ChainsWithAddresses`] if the dimensions also include data addresses, and no
/// event has both in a cell; or if the run keeps only the addresses of some lines (`c2c`).
fn with_chains(
    mut dimensions: Vec<Dimension>,
    requests: &[&EventRequest],
    c2c: bool,
) -> Result<Vec<Dimension>, PlanError> {
    if !dimensions.contains(&Dimension::Stack) {
        return Ok(dimensions);
    }
    let both = |request: &&EventRequest| CellSlot::of(&dimensions, request) == CellSlot::Both;
    if dimensions.contains(&Dimension::Address) && (c2c || !requests.iter().any(both)) {
        return Err(PlanError::ChainsWithAddresses);
    }
    for needed in [Dimension::Ip, Dimension::Process] {
        if !dimensions.contains(&needed) {
            dimensions.push(needed);
        }
    }
    Ok(dimensions)
}

/// Refuses a dimension that no sample of these events has.
fn are_there(dimensions: &[Dimension], requests: &[&EventRequest]) -> Result<(), PlanError> {
    let lacking = |dimension: &&Dimension| {
        !requests.iter().any(|EventRequest { fields, .. }| match dimension {
            Dimension::Address | Dimension::PageSize => fields.address,
            Dimension::Latency => fields.latency,
            Dimension::Source => fields.data_source,
            Dimension::Outcome => fields.outcome,
            _ => true,
        })
    };
    match dimensions.iter().find(lacking) {
        Some(dimension) => Err(PlanError::Lacking {
            dimension: *dimension,
            events: requests.iter().map(|request| request.name.clone()).collect(),
        }),
        None => Ok(()),
    }
}
