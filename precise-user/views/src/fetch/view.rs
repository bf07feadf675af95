//! Registry entry of `precise fetch`.

use precise_model::keys::Key;
use precise_model::{Meta, Preset, Projection, RowPart};

use super::csv::fetch_csv;
use super::text::fetch_text;
use super::{FetchOptions, FetchView as Fetch, fetch};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{Example, Input, Need, NoAnswer, Opt, OptionValues, View};

/// The view `precise fetch`.
#[derive(Debug)]
pub struct Fetches;

document_type!(Fetch: "fetch" 1);

impl View for Fetches {
    const NAME: &'static str = "fetch";
    const ABOUT: &'static str = "Show code that makes the front end wait";
    // Intel's front-end events report the outcome of a fetch by themselves; only IBS needs the
    // recorded outcome.
    const NEEDS: Need = Need { dimensions: &[], preset: Preset::Fetch };
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise record -e fetch -a && precise fetch",
            says: "Record the whole machine, then show the functions that wait for their instructions.",
        },
        Example {
            command: "precise fetch --by module",
            says: "Compare files: a large library whose code does not fit the caches stands out.",
        },
    ];
    const OPTIONS: &'static [Opt] = &[
        Opt::by("Group by these keys: function, line, module, process, cgroup, …"),
        Opt::limit("20", "Show N groups"),
    ];
    type Options = FetchOptions;
    type Answer = Fetch;

    fn options(values: &OptionValues) -> Result<FetchOptions, NoAnswer> {
        let (by, limit) = (values.keys("by")?, values.number("limit")?);
        Ok(FetchOptions { by, limit, ..FetchOptions::default() })
    }

    fn keys(options: &Self::Options) -> Vec<Key> {
        options.by.clone().unwrap_or_default()
    }

    fn reads(options: &Self::Options, _: &Meta) -> Projection {
        let usual = match options.by {
            None => Projection::of(&[RowPart::Function]),
            Some(_) => Projection::NOTHING,
        };
        Projection::of(&[RowPart::Outcome, RowPart::Latency]).and(usual)
    }

    fn answer(input: &mut Input<'_>, options: &FetchOptions) -> Result<Fetch, NoAnswer> {
        Ok(fetch(input.capture, options)?)
    }

    fn text(answer: &Fetch, _: &FetchOptions, text: &TextOptions) -> String {
        fetch_text(answer, text)
    }

    fn csv(answer: &Fetch, _: &FetchOptions, separator: &str) -> String {
        fetch_csv(answer, separator)
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use super::tests::{retired, starved};
        use crate::view::trial::{Trial, Trials};
        Trials::Weighs(vec![Trial::of(starved(), 10), Trial::of(retired(), 5)])
    }
}
