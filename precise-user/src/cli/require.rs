//! `--require`: the requirements on a capture.

use clap::Args;
use precise::error::{ExitClass, Failure};
use precise::model::{Capture, Projection};
use precise::views::gates;
use precise::views::gates::{Gate, GateResult};

#[derive(Debug, Default, Args)]
pub struct RequireArguments {
    /// Exit with 68 unless the capture meets these requirements
    ///
    /// For example precise, coverage>=99%, samples>=1000, lost<=0.1%, symbols>=90%, exact>=99%;
    /// several are separated by commas.
    #[arg(long, value_name = "GATES", value_parser = parse, help_heading = "Gates", hide_short_help = true)]
    require: Vec<Gates>,
}

/// The gates of one `--require` flag.
#[derive(Clone, Debug)]
struct Gates(Vec<Gate>);

fn parse(text: &str) -> Result<Gates, String> {
    gates::parse(text).map(Gates).map_err(|error| error.to_string())
}

impl RequireArguments {
    /// Returns whether there are no gates.
    pub fn is_empty(&self) -> bool {
        self.require.iter().all(|gates| gates.0.is_empty())
    }

    fn gates(&self) -> Vec<Gate> {
        self.require.iter().flat_map(|gates| gates.0.iter().copied()).collect()
    }

    /// Returns the parts of rows that decide the gates.
    pub fn reads(&self) -> Projection {
        gates::reads(&self.gates())
    }

    /// Evaluates each gate; `None` if nothing is required.
    pub fn evaluate(&self, capture: &Capture) -> Option<Vec<GateResult>> {
        let gates = self.gates();
        (!gates.is_empty()).then(|| gates::evaluate(capture, &gates))
    }
}

/// Returns a failure with one sentence for each gate that does not hold.
pub fn check(results: Option<&[GateResult]>) -> Result<(), Failure> {
    let failing = results.unwrap_or_default().iter().filter(|result| !result.met);
    let sentences: Vec<&str> = failing.map(|result| result.sentence.as_str()).collect();
    if sentences.is_empty() { Ok(()) } else { Err(Failure::new(ExitClass::Unmet, sentences.join("\n"))) }
}

/// Returns the line of a report whose gates all hold.
pub fn all_hold(results: &[GateResult]) -> Option<String> {
    let names: Vec<&str> = results.iter().map(|result| result.gate.as_str()).collect();
    results.iter().all(|result| result.met).then(|| format!("Requirements met: {}.", names.join(", ")))
}
