//! Runs the workers one after the other, and samples them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Stdio},
    time::Duration,
};

use super::{
    PROBES, Probe, ProbeResult, SelfTestReport, evidence::Evidence, judge, places::WorkerPlaces,
    probe::ProbeStep, task::Task, topology::Topology, worker,
};
use crate::error::{ErrorClass, ExitClass, Failure};
use precise_filter::FilterFlags;
use precise_model::{Capture, Dimension};
use precise_sampling::doctor::{Check, CheckStatus, MachineState, examine};
use precise_sampling::machine::Root;
use precise_sampling::pmu::preset::events_for;
use precise_sampling::pmu::{EventRequest, Exactness};
use precise_sampling::run::kill_switch::KillSwitch;
use precise_sampling::run::plan::{Plan, PlanBuilder, PlanError, Target};
use precise_sampling::run::{governor, kill_switch, live};
use precise_views::stats::MIN_SAMPLES;

/// Duration of a run.
const DURATION: Duration = Duration::from_secs(2);
/// Maximum duration of a run that is repeated because it had too few samples.
const LONGEST: Duration = Duration::from_secs(40);
/// Maximum factor by which a repeated run shortens the sample period.
const MOST_OFTEN: f64 = 10.0;
/// Number of cells per CPU and half of the table. A run here has fewer samples.
const CELLS: u64 = 1 << 14;

/// Tests this machine. Calls `progress` before each probe.
///
/// # Errors
///
/// Returns an error if a permission is missing, a worker cannot be started, or the test is
/// interrupted. A check that fails is not an error; the report contains it.
pub async fn run(mut progress: impl FnMut(&Probe)) -> Result<SelfTestReport, Failure> {
    KillSwitch::default().allow()?;
    let root = Root::default();
    let state = MachineState::read(&root);
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
    Ok(SelfTestReport::new(diagnosis, state, results))
}

/// Returns the events and the runs of a probe, or a check that says why there are none.
fn prepare(
    probe: &Probe,
    state: &MachineState,
    machine: &Topology,
) -> Result<(Vec<EventRequest>, Vec<ProbeStep>), Check> {
    let vendor = state.machine.cpu.vendor;
    let opens = |status, reason: String| Check::new("opens", status, "", reason);
    let requests = events_for(probe.preset, &state.pmus, &probe.options(vendor))
        .map_err(|unsupported| opens(CheckStatus::NotOffered, unsupported.reason))?;
    if probe.hardware
        && let Some(Exactness::Never(why)) = requests.first().map(|request| &request.exactness)
    {
        return Err(opens(CheckStatus::NotOffered, why.clone()));
    }
    let steps = probe.steps(machine, vendor).map_err(|why| opens(CheckStatus::NotDecided, why))?;
    // On a hybrid CPU, only the events of the kind of core that the worker runs on.
    let cpus = steps.first().map_or(&[][..], |step| &step.task.cpus);
    let here = |request: &EventRequest| {
        request.cpus.as_ref().is_none_or(|known| cpus.iter().any(|cpu| known.contains(cpu)))
    };
    Ok((requests.into_iter().filter(here).collect(), steps))
}

async fn sample(
    probe: &Probe,
    requests: &[EventRequest],
    steps: &[ProbeStep],
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
            Err(failure) if matches!(failure.class, ExitClass::Unsupported | ExitClass::Unmet) => {
                result.checks.push(Check::new("opens", CheckStatus::Failed, "", failure.what));
                return Ok(());
            }
            Err(failure) => return Err(failure),
        }
    }
    result.checks = judge::checks(probe.preset, &evidence);
    Ok(())
}

/// Duration of a run, and the factor by which it samples more often than usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Effort {
    pub duration: Duration,
    pub often: f64,
}

impl Effort {
    /// Returns the effort of the next run, if this one had some samples of the worker but fewer
    /// than needed; else `None`. The effort is twice what the number of samples suggests, because
    /// on a busy machine the worker may get a smaller share of its CPU next time. The period is
    /// shortened first, because that takes no extra time.
    pub fn more(self, samples: u64) -> Option<Self> {
        if !(1..MIN_SAMPLES).contains(&samples) || self.duration >= LONGEST {
            return None;
        }
        let more = 2.0 * MIN_SAMPLES as f64 / samples as f64;
        let often = (self.often * more).min(MOST_OFTEN);
        let longer = more * self.often / often;
        Some(Self { duration: self.duration.mul_f64(longer).min(LONGEST), often })
    }

    /// Returns the sample period: a prime, or 16 times a prime if the usual period is a multiple of
    /// 16, as on IBS.
    fn period(self, usual: u64) -> u64 {
        match self.often > 1.0 {
            true => governor::scaled(1, usual as f64 / self.often, usual.is_multiple_of(16)),
            false => usual,
        }
    }
}

/// Makes one run: starts a worker, and samples it.
async fn one(
    requests: &[EventRequest],
    step: &ProbeStep,
    effort: Effort,
) -> Result<(Capture, WorkerPlaces), Failure> {
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
    // This process also samples the next preset, so it must keep its rights.
    let builder = Plan::builder()
        .requests(requests.iter().map(often).collect())
        .cpus(step.task.cpus.clone())
        .dimensions(dimensions)
        // Eight bytes, one word: the two threads of a shared line use different words.
        .granule(8)
        .duration(duration)
        .table_cells(CELLS)
        .budget(None);
    let pid = worker.child.id();
    let plan = planned(builder.clone().target(Target::Processes(vec![pid])))?;
    worker.begin()?;
    let finished = match live::run(&plan, None, |_| {}).await {
        // Before Linux 6.2, IBS can only sample whole CPUs. The worker's samples are then selected
        // by its process id.
        Err(error) if error.class() == ErrorClass::Unsupported => live::run(
            &planned(builder.filter(FilterFlags { pids: vec![pid], ..FilterFlags::default() }))?,
            None,
            |_| {},
        )
        .await
        .map_err(|_| error)?,
        other => other?,
    };
    if let Some(why) = finished.stopped {
        return Err(kill_switch::ended(&why).into());
    }
    let length = finished.meta.epochs.last().map_or(0, |epoch| epoch.end_ns);
    if worker.child.try_wait().ok().flatten().is_some() || u128::from(length) * 10 < duration.as_nanos() * 9 {
        return Err(Failure::new(ExitClass::Failed, "the self-test was interrupted"));
    }
    Ok((finished.kept.read()?, worker.places.clone()))
}

fn planned(builder: PlanBuilder) -> Result<Plan, Failure> {
    builder.build().map_err(|error| match error {
        PlanError::Stopped(error) => error.into(),
        error => Failure::new(ExitClass::Failed, format!("the self-test's run cannot be planned: {error}")),
    })
}

/// A worker process. It is ended when this value is dropped.
struct WorkerProcess {
    child: Child,
    input: Option<ChildStdin>,
    places: WorkerPlaces,
}

impl WorkerProcess {
    fn start(task: &Task) -> Result<Self, Failure> {
        let failed = |what: String| Failure::new(ExitClass::Failed, format!("the self-test's worker {what}"));
        let mut child = worker::command(task)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut worker = Self { child, input, places: WorkerPlaces::default() };
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
            Failure::new(ExitClass::Failed, format!("cannot start the work of the self-test: {error}"))
        })
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // The worker ends when its standard input closes; it is killed and reaped in any case.
        drop(self.input.take());
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
