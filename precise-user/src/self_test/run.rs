//! Samples the workers, one after the other.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Stdio},
    time::Duration,
};

use super::{
    PROBES, Probe, ProbeResult, Report, evidence::Evidence, judge, places::Places, probe::Step, task::Task,
    topology::Topology, worker,
};
use crate::error::{Class, ErrorClass, Failure};
use precise_filter::Flags;
use precise_model::{Capture, Dimension};
use precise_sampling::doctor::{Check, State, Status, examine};
use precise_sampling::machine::Root;
use precise_sampling::pmu::preset::events_for;
use precise_sampling::pmu::{EventRequest, Exactness};
use precise_sampling::run::kill_switch::KillSwitch;
use precise_sampling::run::plan::{Plan, PlanBuilder, PlanError, Target};
use precise_sampling::run::{governor, kill_switch, live};
use precise_views::stats::MIN_SAMPLES;

/// How long each worker is sampled.
const DURATION: Duration = Duration::from_secs(2);
/// The longest that a worker is sampled where that was too short to tell.
const LONGEST: Duration = Duration::from_secs(40);
/// How many times as often as usual a run samples that would have too few samples.
const MOST_OFTEN: f64 = 10.0;
/// Cells for each CPU and half: more than a run here has samples.
const CELLS: u64 = 1 << 14;

/// Tests this machine. `progress` is told what runs next.
///
/// # Errors
///
/// When a permission is missing, a worker cannot be started, or somebody interrupts. That something
/// does not work is no error: the report says it.
pub async fn run(mut progress: impl FnMut(&Probe)) -> Result<Report, Failure> {
    KillSwitch::default().allow()?;
    let root = Root::default();
    let state = State::read(&root);
    let machine = Topology::read(&root, &state.machine.online);
    let diagnosis = examine(&state);
    let mut results = Vec::new();
    for probe in &PROBES {
        let mut result = ProbeResult {
            preset: probe.preset.name(),
            work: probe.work,
            hardware: probe.hardware,
            events: Vec::new(),
            checks: Vec::new(),
            findings: Vec::new(),
        };
        match prepare(probe, &state, &machine) {
            Ok((requests, steps)) => {
                progress(probe);
                result.events = requests.iter().map(|request| request.encoding.clone()).collect();
                sample(probe, &requests, &steps, &mut result).await?;
            }
            Err(check) => result.checks.push(check),
        }
        results.push(result);
    }
    Ok(Report::new(diagnosis, state, results))
}

/// The events and the runs of a probe, or why there are none.
fn prepare(
    probe: &Probe,
    state: &State,
    machine: &Topology,
) -> Result<(Vec<EventRequest>, Vec<Step>), Check> {
    let vendor = state.machine.cpu.vendor;
    let opens = |status, reason: String| Check::new("opens", status, "", reason);
    let requests = events_for(probe.preset, &state.pmus, &probe.options(vendor))
        .map_err(|unsupported| opens(Status::NotOffered, unsupported.reason))?;
    if probe.hardware
        && let Some(Exactness::Never(why)) = requests.first().map(|request| &request.exactness)
    {
        return Err(opens(Status::NotOffered, why.clone()));
    }
    let steps = probe.steps(machine, vendor).map_err(|why| opens(Status::NotDecided, why))?;
    // Of a hybrid CPU, the kind of core that the worker runs on.
    let cpus = steps.first().map_or(&[][..], |step| &step.task.cpus);
    let here = |request: &EventRequest| {
        request.cpus.as_ref().is_none_or(|known| cpus.iter().any(|cpu| known.contains(cpu)))
    };
    Ok((requests.into_iter().filter(here).collect(), steps))
}

async fn sample(
    probe: &Probe,
    requests: &[EventRequest],
    steps: &[Step],
    result: &mut ProbeResult,
) -> Result<(), Failure> {
    let mut evidence = Vec::new();
    for step in steps {
        let mut effort = Effort { duration: DURATION, often: 1.0 };
        let found = loop {
            let found = one(requests, step, effort).await.map(|(capture, places)| {
                let shown = Evidence::of(step.name, &capture, &places);
                (capture, shown)
            });
            match found.as_ref().ok().and_then(|(_, shown)| effort.more(shown.samples)) {
                Some(more) => effort = more,
                None => break found,
            }
        };
        match found {
            Ok((capture, shown)) => {
                let findings = capture.meta.events.iter().flat_map(|event| &event.verdict.findings);
                for finding in findings.chain(&capture.meta.notes) {
                    if !result.findings.contains(finding) {
                        result.findings.push(finding.clone());
                    }
                }
                evidence.push(shown);
            }
            Err(failure) if matches!(failure.class, Class::Unsupported | Class::Unmet) => {
                result.checks.push(Check::new("opens", Status::Failed, "", failure.what));
                return Ok(());
            }
            Err(failure) => return Err(failure),
        }
    }
    result.checks = judge::checks(probe.preset, &evidence);
    Ok(())
}

/// How long a run is, and how many times as often it samples as usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effort {
    pub duration: Duration,
    pub often: f64,
}

impl Effort {
    /// What the next run must be, where this one had a few samples of the worker and they were too
    /// few to tell: with twice what would do if nothing changed, as on a busy machine the worker
    /// does not get the same share of its CPU again. Shorter periods first: they cost no time.
    pub fn more(self, samples: u64) -> Option<Self> {
        if !(1..MIN_SAMPLES).contains(&samples) || self.duration >= LONGEST {
            return None;
        }
        let more = 2.0 * MIN_SAMPLES as f64 / samples as f64;
        let often = (self.often * more).min(MOST_OFTEN);
        let longer = more * self.often / often;
        Some(Self { duration: self.duration.mul_f64(longer).min(LONGEST), often })
    }

    /// A prime, or of IBS, whose usual period is a multiple of 16 as well, 16 times a prime.
    fn period(self, usual: u64) -> u64 {
        match self.often > 1.0 {
            true => governor::scaled(1, usual as f64 / self.often, usual.is_multiple_of(16)),
            false => usual,
        }
    }
}

/// One run: a worker, sampled for a while.
async fn one(requests: &[EventRequest], step: &Step, effort: Effort) -> Result<(Capture, Places), Failure> {
    let duration = effort.duration;
    let mut worker = WorkerProcess::start(&step.task)?;
    let often = |request: &EventRequest| EventRequest {
        default_period: effort.period(step.period.unwrap_or(request.default_period)),
        ..request.clone()
    };
    let mut dimensions = vec![Dimension::Ip];
    let has = |what: fn(&EventRequest) -> bool| requests.iter().any(what);
    for (has, dimension) in [
        (has(|request| request.fields.address), Dimension::Address),
        (has(|request| request.fields.data_source), Dimension::Source),
        (has(|request| request.fields.latency), Dimension::Latency),
        (has(|request| request.fields.outcome), Dimension::Outcome),
    ] {
        if has {
            dimensions.push(dimension);
        }
    }
    // The next preset is sampled by the same process: it keeps its rights.
    let builder = Plan::builder()
        .requests(requests.iter().map(often).collect())
        .cpus(step.task.cpus.clone())
        .dimensions(dimensions)
        // A word: what the two threads of a shared line are told apart by.
        .granule(8)
        .duration(duration)
        .table_cells(CELLS)
        .budget(None);
    let pid = worker.child.id();
    let plan = planned(builder.clone().target(Target::Processes(vec![pid])))?;
    worker.begin()?;
    let finished = match live::run(&plan, None, |_| {}).await {
        // Before Linux 6.2 IBS samples whole CPUs only: then the worker's samples are told by its
        // id.
        Err(error) if error.class() == ErrorClass::Unsupported => {
            live::run(&planned(builder.filter(Flags { pids: vec![pid], ..Flags::default() }))?, None, |_| {})
                .await
                .map_err(|_| error)?
        }
        other => other?,
    };
    if let Some(why) = finished.stopped {
        return Err(kill_switch::ended(&why).into());
    }
    let length = finished.meta.epochs.last().map_or(0, |epoch| epoch.end_ns);
    if worker.child.try_wait().ok().flatten().is_some() || u128::from(length) * 10 < duration.as_nanos() * 9 {
        return Err(Failure::new(Class::Failed, "the self-test was interrupted"));
    }
    Ok((finished.kept.read()?, worker.places.clone()))
}

fn planned(builder: PlanBuilder) -> Result<Plan, Failure> {
    builder.build().map_err(|error| match error {
        PlanError::Stopped { why } => kill_switch::refused(&why).into(),
        error => Failure::new(Class::Failed, format!("the self-test's run cannot be planned: {error}")),
    })
}

/// A worker. It ends when this is dropped.
struct WorkerProcess {
    child: Child,
    input: Option<ChildStdin>,
    places: Places,
}

impl WorkerProcess {
    fn start(task: &Task) -> Result<Self, Failure> {
        let failed = |what: String| Failure::new(Class::Failed, format!("the self-test's worker {what}"));
        let mut child = worker::command(task)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut worker = Self { child, input, places: Places::default() };
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output)
                .read_line(&mut line)
                .map_err(|error| failed(format!("wrote no output: {error}")))?;
        }
        worker.places = serde_json::from_str(&line)
            .map_err(|error| failed(format!("did not report the addresses of its samples: {error}")))?;
        Ok(worker)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let input = self.input.as_mut();
        input.map_or(Ok(()), |input| input.write_all(&[1]).and_then(|()| input.flush())).map_err(|error| {
            Failure::new(Class::Failed, format!("cannot start the work of the self-test: {error}"))
        })
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // Its input ends, and so does it; what is left of it is nobody's but ours.
        drop(self.input.take());
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
