//! Registry entry of the call graph of `precise report -g`.

use precise_model::{Meta, Projection, RowPart};

use super::csv::call_graph_csv;
use super::text::call_graph_text;
use super::{CallGraphOptions, CallGraphReport, call_graph};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Command, Example, Input, NoAnswer, Opt, OptionKind, OptionValues, View};

/// The view `precise report -g`.
#[derive(Debug)]
pub struct CallGraphView;

document_type!(CallGraphReport: "call-graph" 1);

impl View for CallGraphView {
    const NAME: &'static str = "call-graph";
    const ABOUT: &'static str = "Show the callers and the callees of the sampled functions";
    const COMMAND: Command = Command::Of("report --call-graph --json");
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -g -- ./program && precise report -g",
            says: "Record call chains, then show functions with what they called.",
        },
        Example { command: "precise report -g parse", says: "Show who calls `parse`, and what it calls." },
    ];
    const OPTIONS: &'static [Opt] = &[
        Opt::new("function", OptionKind::Text, "FUNCTION", "Show the callers and callees of FUNCTION"),
        Opt::limit("20", "Show N functions of each event"),
    ];
    type Options = CallGraphOptions;
    type Answer = CallGraphReport;

    fn options(values: &OptionValues) -> Result<CallGraphOptions, NoAnswer> {
        let function = values.text("function").filter(|name| !name.is_empty()).map(str::to_owned);
        let limit = Some(values.number("limit")?);
        Ok(CallGraphOptions { function, limit, ..CallGraphOptions::default() })
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Function, RowPart::Inlined, RowPart::Stack, RowPart::Latency])
    }

    fn answer(input: &mut Input<'_>, options: &CallGraphOptions) -> Result<CallGraphReport, NoAnswer> {
        Ok(call_graph(input.capture, options)?)
    }

    fn text(answer: &CallGraphReport, _: &CallGraphOptions, text: &TextOptions) -> String {
        call_graph_text(answer, text)
    }

    fn csv(answer: &CallGraphReport, _: &CallGraphOptions, separator: &str) -> String {
        call_graph_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(super::tests::capture(), 10)])
    }
}
