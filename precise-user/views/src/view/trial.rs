//! What each view is tried on: loads that it must say the same of, however often they were sampled.

use precise_code::{FunctionId, Instruction};
use precise_model::{Capture, RateChange, Reason};

use super::{AnyView, Input, Values};
use crate::code::Code;

/// How many times as often a governor sampled, one row after the other.
const TIMES: [u64; 3] = [1, 10, 3];

/// What a view is tried on.
pub enum Trials {
    /// It says the same of each of these loads.
    Weighs(Vec<Trial>),
    /// It cannot, for this reason; the folder has a test of what holds instead.
    Cannot(&'static str),
}

/// A load.
pub struct Trial {
    /// Sampled evenly: all captures that the view takes.
    pub captures: Vec<Capture>,
    /// Options beside the defaults.
    pub options: Vec<(&'static str, &'static str)>,
    /// Its code.
    pub code: Box<dyn Code>,
    /// Numbers that must be compared at least.
    pub least: usize,
}

impl Trial {
    /// A load without code, and default options.
    pub fn of(capture: Capture, least: usize) -> Self {
        Self { captures: vec![capture], options: Vec::new(), code: Box::new(NoCode), least }
    }

    /// Two captures.
    pub fn pair(base: Capture, new: Capture, least: usize) -> Self {
        Self { captures: vec![base, new], ..Self::of(Capture::default(), least) }
    }

    /// The same with an option.
    pub fn with(mut self, option: &'static str, value: &'static str) -> Self {
        self.options.push((option, value));
        self
    }

    /// The same with code.
    pub fn code(mut self, code: impl Code + 'static) -> Self {
        self.code = Box::new(code);
        self
    }

    /// The answers of a view, as JSON: sampled evenly, and not.
    pub fn answers(mut self, view: &dyn AnyView) -> [serde_json::Value; 2] {
        let even: Vec<_> = self.captures.into_iter().map(even).collect();
        let uneven: Vec<_> = even.iter().map(governed).collect();
        let description = view.description();
        let values = Values::defaults(description.options);
        let values = self.options.iter().fold(values, |values, (name, value)| values.with(name, value));
        [even, uneven].map(|captures| {
            let mut input = match &captures[..] {
                [base, new] => Input::pair(base, new, &mut *self.code),
                [one] => Input::of(one, &mut *self.code),
                _ => panic!("{}: {} captures", description.name, captures.len()),
            };
            let answer = view.answer(&mut input, &values);
            let answer = answer.unwrap_or_else(|why| panic!("{}: {why}", description.name));
            serde_json::from_str(&answer.json(None).unwrap()).unwrap()
        })
    }
}

/// A load as a governor would have sampled it that was not even.
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

/// A load with one period for all samples.
pub(crate) fn even(mut capture: Capture) -> Capture {
    for row in &mut capture.rows {
        row.measures.period_sum = row.measures.count * 1000;
    }
    capture
}

/// A machine without the code.
pub(crate) struct NoCode;

impl Code for NoCode {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}
