//! Test workloads of the views. The answer of a view must not depend on how often they were
//! sampled.

use precise_model::testing::project;
use precise_model::{Capture, RateChange};

use super::{AnyView, Input, OptionValues};
use crate::code::{Code, NoCode};

/// The sampling rates of a simulated governor, relative to even sampling; rows take them in turn.
const TIMES: [u64; 3] = [1, 10, 3];

/// The test workloads of a view.
pub enum Trials {
    /// The view must answer the same for each of these workloads, evenly sampled or not.
    Weighs(Vec<Trial>),
    /// The view cannot be tested so, for this reason; its folder has another test.
    Cannot(&'static str),
}

/// A test workload.
pub struct Trial {
    /// All captures that the view takes, evenly sampled.
    pub captures: Vec<Capture>,
    /// The options that differ from the defaults.
    pub options: Vec<(&'static str, &'static str)>,
    /// The code of the workload.
    pub code: Box<dyn Code>,
    /// The least number of values that the test must compare.
    pub least: usize,
}

impl Trial {
    /// Makes a workload of one capture, without code and with default options.
    pub fn of(capture: Capture, least: usize) -> Self {
        Self { captures: vec![capture], options: Vec::new(), code: Box::new(NoCode), least }
    }

    /// Makes a workload of two captures.
    pub fn pair(base: Capture, new: Capture, least: usize) -> Self {
        Self { captures: vec![base, new], ..Self::of(Capture::default(), least) }
    }

    /// Adds an option.
    pub fn with(mut self, option: &'static str, value: &'static str) -> Self {
        self.options.push((option, value));
        self
    }

    /// Sets the code.
    pub fn code(mut self, code: impl Code + 'static) -> Self {
        self.code = Box::new(code);
        self
    }

    /// Returns the answers of a view, as JSON: for even sampling, and for uneven sampling.
    pub fn answers(mut self, view: &dyn AnyView) -> [serde_json::Value; 2] {
        let even: Vec<_> = std::mem::take(&mut self.captures).into_iter().map(even).collect();
        let uneven: Vec<_> = even.iter().map(governed).collect();
        self.answers_of(view, [even, uneven])
    }

    /// Returns the answers of a view, as JSON: of the whole captures, and of the parts of their
    /// rows that the view says it reads.
    pub fn answers_of_parts(mut self, view: &dyn AnyView) -> [serde_json::Value; 2] {
        let whole = std::mem::take(&mut self.captures);
        let mut parts = whole.clone();
        for capture in &mut parts {
            let reads = view.reads(&self.values(view), &capture.meta);
            project(capture, reads.unwrap_or_else(|why| panic!("{why}")));
        }
        self.answers_of(view, [whole, parts])
    }

    fn values(&self, view: &dyn AnyView) -> OptionValues {
        let values = OptionValues::defaults(view.description().options);
        self.options.iter().fold(values, |values, (name, value)| values.with(name, value))
    }

    fn answers_of(mut self, view: &dyn AnyView, captures: [Vec<Capture>; 2]) -> [serde_json::Value; 2] {
        let description = view.description();
        let values = self.values(view);
        captures.map(|captures| {
            let mut input = match &captures[..] {
                [base, new] => Input::pair(base, new, &mut *self.code),
                [one] => Input::of(one, &mut *self.code),
                _ => panic!("{}: {} captures", description.name, captures.len()),
            };
            let answer = view.answer(&mut input, &values);
            let answer = answer.unwrap_or_else(|why| panic!("{}: {why}", description.name));
            serde_json::from_str(&answer.json(None, None).unwrap()).unwrap()
        })
    }
}

/// Returns an evenly sampled capture as if a governor had changed the period.
pub(crate) fn governed(even: &Capture) -> Capture {
    let mut capture = even.clone();
    for (row, times) in capture.rows.iter_mut().zip(TIMES.into_iter().cycle()) {
        row.measures.count *= times;
        row.measures.latency_sum *= times;
    }
    let at = |times: u64| RateChange { period: Some(1000 / times), ..RateChange::default() };
    for event in &mut capture.meta.events {
        (event.period, event.rates) = (None, TIMES.map(at).to_vec());
    }
    capture
}

/// Returns a capture with one period for all samples.
pub(crate) fn even(mut capture: Capture) -> Capture {
    for row in &mut capture.rows {
        row.measures.period_sum = row.measures.count * 1000;
    }
    capture
}
