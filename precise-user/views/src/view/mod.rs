//! The interface of a view: its question, needs and options, its answer, the forms of the answer,
//! and its section of the HTML page.
//!
//! A view is a folder of this crate with a type that implements [`View`], and one line in the
//! `views!` of the crate's root. The command line, the manual pages, the schemas, the HTML page and
//! the tests of all views go through [`crate::registry::VIEWS`], so that a new view needs nothing
//! else.

mod options;
mod section;
#[cfg(test)]
pub mod trial;

use std::fmt::Debug;
use std::path::Path;

use precise_model::keys::Key;
use precise_model::{Capture, Dimension, Meta, Preset, Projection, Selection};

use crate::ViewError;
use crate::code::Code;
use crate::crowd;
use crate::document::{self, Document};
use crate::gates::GateResult;
use crate::render::TextOptions;
use crate::render::plot::PlotError;

pub use options::{Heading, Opt, OptionKind, OptionValues};
pub use section::{Section, SectionNumbers, SectionPlace};

/// A question about a capture.
pub trait View: Debug + Sync + 'static {
    /// The name of the view, and of its command.
    const NAME: &'static str;
    /// The summary in the help: one line, imperative.
    const ABOUT: &'static str;
    /// Example command lines, each with its purpose.
    const EXAMPLES: &'static [Example];
    /// Additional text for the end of the help.
    const MORE: &'static str = "";
    /// The data that a capture must have for an answer.
    const NEEDS: Need = Need::NOTHING;
    /// The command that shows the view.
    const COMMAND: Command = Command::Own;
    /// The captures that the view takes.
    const CAPTURES: Captures = Captures::One;
    /// Whether the view reads code on this machine.
    const CODE: bool = false;
    /// Whether the view has a CSV form.
    const CSV: bool = true;
    /// The picture of the view; `None` if it has none.
    const PICTURE: Option<Picture> = None;
    /// The options of the view.
    const OPTIONS: &'static [Opt] = &[];

    /// The typed options.
    type Options;
    /// The answer, which is a JSON document.
    type Answer: Document + 'static;

    /// Makes the typed options from their values.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is not valid.
    fn options(values: &OptionValues) -> Result<Self::Options, NoAnswer>;

    /// Returns the keys by which the answer groups. If a key needs the types of accesses, they are
    /// looked up before the question is asked.
    fn keys(_options: &Self::Options) -> Vec<Key> {
        Vec::new()
    }

    /// Returns the parts of rows that the answer is made of, beside those of its [`View::keys`].
    /// `meta` tells what the run recorded. A command reads only these parts of a capture.
    fn reads(options: &Self::Options, meta: &Meta) -> Projection;

    /// Answers the question.
    ///
    /// # Errors
    ///
    /// Returns an error that names the missing data if the capture has no answer.
    fn answer(input: &mut Input<'_>, options: &Self::Options) -> Result<Self::Answer, NoAnswer>;

    /// Returns the answer as text.
    fn text(answer: &Self::Answer, options: &Self::Options, text: &TextOptions) -> String;

    /// Returns the answer as separated values; empty for views without a CSV form.
    fn csv(answer: &Self::Answer, options: &Self::Options, separator: &str) -> String;

    /// Returns the answer as a picture: the bytes of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if there is nothing to draw.
    fn draw(_answer: &Self::Answer, _format: Format, _width: u32) -> Result<Vec<u8>, NoAnswer> {
        Err(NoAnswer::usage(format!("{} has no picture", Self::NAME)))
    }

    /// Returns the outcome of the test if the view tests the capture.
    fn judgement(_answer: &Self::Answer) -> Judgement {
        Judgement::None
    }

    /// Returns the section of the HTML page about a capture; `None` if the view has none for this
    /// capture.
    ///
    /// # Errors
    ///
    /// Returns an error if the section cannot be made. The page is then not made either.
    fn page(_input: &mut Input<'_>) -> Result<Option<Section>, NoAnswer> {
        Ok(None)
    }

    /// Returns workloads for which the answer must not depend on how often they were sampled.
    #[cfg(test)]
    fn trials() -> trial::Trials;
}

/// An example command line with its purpose.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The command line, as a shell takes it.
    pub command: &'static str,
    /// A sentence: what the command shows, and when that helps.
    pub says: &'static str,
}

/// The data that a view needs from every capture. If a view needs more from some captures, its
/// answer reports it.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// The dimensions that must have been recorded.
    pub dimensions: &'static [Dimension],
    /// The preset that records these dimensions.
    pub preset: Preset,
}

impl Need {
    /// No needs: any capture will do.
    pub const NOTHING: Self = Self { dimensions: &[], preset: Preset::Cycles };
}

/// The command that shows a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A command with the name of the view, made from its description.
    Own,
    /// Another command, which prints the JSON document with these flags: `report --by`.
    Of(&'static str),
}

/// The captures that a view takes, and how a command names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captures {
    /// One capture, as an argument or by `-i`.
    One,
    /// Two captures, as arguments: BASE and NEW.
    Pair,
    /// One capture that is judged against another: `-b BASE NEW`.
    Baseline,
}

impl Captures {
    /// Returns whether there are two captures.
    pub const fn two(self) -> bool {
        matches!(self, Self::Pair | Self::Baseline)
    }
}

/// The picture of a view. Its width is the option [`Opt::width`].
#[derive(Clone, Copy, Debug)]
pub struct Picture {
    /// The help of `--output`.
    pub help: &'static str,
}

/// A picture format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// PNG, made of pixels.
    Png,
    /// SVG, made of vectors.
    Svg,
}

impl Format {
    /// Returns the format that belongs to the extension of a file name.
    ///
    /// # Errors
    ///
    /// Returns an error if the extension is not known.
    pub fn of(path: &Path) -> Result<Self, NoAnswer> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("png") => Ok(Self::Png),
            Some("svg") => Ok(Self::Svg),
            _ => Err(NoAnswer::usage(format!(
                "the name {} does not say which picture format to write",
                path.display()
            ))
            .advise("Use a name that ends in .png or .svg.")),
        }
    }
}

/// The input of a view.
pub struct Input<'a> {
    /// The capture; the later one if there are two.
    pub capture: &'a Capture,
    /// The earlier capture if there are two.
    pub base: Option<&'a Capture>,
    /// The file of the capture as a command names it; empty if it need not be named.
    pub file: String,
    /// The code on this machine.
    pub code: &'a mut dyn Code,
    /// The width in columns if the answer is to be shown as text. Views that fill the width choose
    /// their resolution by it.
    pub columns: Option<usize>,
}

impl Debug for Input<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Input").field("file", &self.file).field("columns", &self.columns).finish()
    }
}

impl<'a> Input<'a> {
    /// Makes the input of one capture.
    pub fn of(capture: &'a Capture, code: &'a mut dyn Code) -> Self {
        Self { capture, base: None, file: String::new(), code, columns: None }
    }

    /// Makes the input of two captures, `base` and the later `capture`.
    pub fn pair(base: &'a Capture, capture: &'a Capture, code: &'a mut dyn Code) -> Self {
        Self { base: Some(base), ..Self::of(capture, code) }
    }

    /// Checks that the values of a key were looked up, if they must be.
    fn has_values(&self, key: Key) -> Result<(), NoAnswer> {
        let is_there = |capture: &Capture| match key {
            key if key.needs_types() => capture.types.is_some(),
            key if key.needs_touches() => capture.touches.is_some(),
            _ => true,
        };
        if self.base.into_iter().chain([self.capture]).all(is_there) {
            return Ok(());
        }
        let from = match key {
            key if key.needs_touches() => {
                "found with the page faults of a whole capture, which this command does not keep"
            }
            _ => "read from the debug information of binaries, which this command does not read",
        };
        let advice = format!("Write a capture, and group it with `precise report --by {key}`.");
        Err(NoAnswer::usage(format!("{key} is {from}")).advise(&advice))
    }

    /// Returns the earlier of two captures.
    ///
    /// # Errors
    ///
    /// Returns an error if there is only one.
    pub fn base(&self) -> Result<&'a Capture, NoAnswer> {
        self.base.ok_or_else(|| NoAnswer::usage("this view compares two captures, and there is one".into()))
    }
}

/// The kind of reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The question cannot be asked of this capture, or the options are not valid.
    Usage,
    /// The capture is damaged.
    Damaged,
    /// The capture has no samples.
    NoSamples,
    /// Another failure.
    Failed,
}

/// The reason why there is no answer, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NoAnswer {
    /// The kind of reason.
    pub why: Why,
    /// What is wrong.
    pub text: String,
    /// What to do; `None` if `text` already says it.
    pub advice: Option<String>,
}

impl NoAnswer {
    /// Makes the reason for a question that cannot be asked.
    pub fn usage(text: String) -> Self {
        Self { why: Why::Usage, text, advice: None }
    }

    /// Adds the advice.
    #[must_use]
    pub fn advise(mut self, advice: &str) -> Self {
        self.advice = Some(advice.to_owned());
        self
    }
}

impl From<ViewError> for NoAnswer {
    fn from(error: ViewError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<PlotError> for NoAnswer {
    fn from(error: PlotError) -> Self {
        Self { why: Why::Failed, text: error.to_string(), advice: None }
    }
}

/// The outcome of a view that tests a capture. It decides the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The view tests nothing.
    None,
    /// The capture passed.
    Pass,
    /// The capture is worse than allowed.
    Worse(String),
    /// There are too few samples to decide.
    CannotTell {
        /// What could not be decided.
        text: String,
        /// What to do.
        advice: &'static str,
    },
}

/// The description of a view, which does not depend on a capture.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// [`View::NAME`].
    pub name: &'static str,
    /// [`View::ABOUT`].
    pub about: &'static str,
    /// [`View::EXAMPLES`].
    pub examples: &'static [Example],
    /// [`View::MORE`].
    pub more: &'static str,
    /// [`View::NEEDS`].
    pub needs: Need,
    /// [`View::COMMAND`].
    pub command: Command,
    /// [`View::CAPTURES`].
    pub captures: Captures,
    /// [`View::CODE`].
    pub code: bool,
    /// [`View::CSV`].
    pub csv: bool,
    /// [`View::PICTURE`].
    pub picture: Option<Picture>,
    /// [`View::OPTIONS`].
    pub options: &'static [Opt],
}

/// A view in the registry, whatever its types.
pub trait AnyView: Debug + Sync {
    /// Returns the description of the view.
    fn description(&self) -> Description;

    /// Returns the JSON document of the view.
    fn document(&self) -> document::DocumentKind;

    /// Checks the values of the options, before a capture is read.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is not valid.
    fn check(&self, values: &OptionValues) -> Result<(), NoAnswer>;

    /// Returns the keys by which the answer groups; see [`View::keys`].
    ///
    /// # Errors
    ///
    /// Returns an error if a value is not valid.
    fn keys(&self, values: &OptionValues) -> Result<Vec<Key>, NoAnswer>;

    /// Returns the parts of rows that the answer is made of: those of [`View::reads`], of the keys,
    /// and of what every answer says about its capture.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is not valid.
    fn reads(&self, values: &OptionValues, meta: &Meta) -> Result<Projection, NoAnswer>;

    /// Answers the question.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is not valid or the capture has no answer.
    fn answer(&self, input: &mut Input<'_>, values: &OptionValues) -> Result<Box<dyn AnyAnswer>, NoAnswer>;

    /// Returns the section of the HTML page; see [`View::page`].
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`View::page`].
    fn page(&self, input: &mut Input<'_>) -> Result<Option<Section>, NoAnswer>;

    /// See [`View::trials`].
    #[cfg(test)]
    fn trials(&self) -> trial::Trials;
}

/// An answer, whatever its type.
pub trait AnyAnswer {
    /// Returns the answer as text.
    fn text(&self, options: &TextOptions) -> String;

    /// Returns the answer as a JSON document. `selection` is the part of the run that the answer is
    /// about; `None` for all of it.
    ///
    /// # Errors
    ///
    /// Never returns an error in practice, like [`document::document`].
    fn json(
        &self,
        gates: Option<&[GateResult]>,
        selection: Option<&Selection>,
    ) -> Result<String, serde_json::Error>;

    /// Returns the answer as separated values.
    fn csv(&self, separator: &str) -> String;

    /// Returns the answer as a picture: the bytes of a file.
    ///
    /// # Errors
    ///
    /// Returns an error in the same cases as [`View::draw`].
    fn draw(&self, format: Format, width: u32) -> Result<Vec<u8>, NoAnswer>;

    /// Returns the outcome of the test.
    fn judgement(&self) -> Judgement;
}

struct Answered<V: View> {
    answer: V::Answer,
    options: V::Options,
}

impl<V: View> AnyAnswer for Answered<V> {
    fn text(&self, options: &TextOptions) -> String {
        V::text(&self.answer, &self.options, options)
    }

    fn json(
        &self,
        gates: Option<&[GateResult]>,
        selection: Option<&Selection>,
    ) -> Result<String, serde_json::Error> {
        document::document_about(&self.answer, gates, selection)
    }

    fn csv(&self, separator: &str) -> String {
        V::csv(&self.answer, &self.options, separator)
    }

    fn draw(&self, format: Format, width: u32) -> Result<Vec<u8>, NoAnswer> {
        V::draw(&self.answer, format, width)
    }

    fn judgement(&self) -> Judgement {
        V::judgement(&self.answer)
    }
}

impl<V: View> AnyView for V {
    fn description(&self) -> Description {
        Description {
            name: V::NAME,
            about: V::ABOUT,
            examples: V::EXAMPLES,
            more: V::MORE,
            needs: V::NEEDS,
            command: V::COMMAND,
            captures: V::CAPTURES,
            code: V::CODE,
            csv: V::CSV,
            picture: V::PICTURE,
            options: V::OPTIONS,
        }
    }

    fn document(&self) -> document::DocumentKind {
        document::DocumentKind {
            name: V::Answer::KIND,
            version: V::Answer::VERSION,
            command: match V::COMMAND {
                Command::Own => format!("{} --json", V::NAME).into(),
                Command::Of(command) => command.into(),
            },
        }
    }

    fn check(&self, values: &OptionValues) -> Result<(), NoAnswer> {
        V::options(values).map(drop)
    }

    fn keys(&self, values: &OptionValues) -> Result<Vec<Key>, NoAnswer> {
        Ok(V::keys(&V::options(values)?))
    }

    fn reads(&self, values: &OptionValues, meta: &Meta) -> Result<Projection, NoAnswer> {
        let options = V::options(values)?;
        let keys = Projection::of_keys(&V::keys(&options));
        Ok(V::reads(&options, meta).and(keys).and(crowd::reads(meta)))
    }

    fn answer(&self, input: &mut Input<'_>, values: &OptionValues) -> Result<Box<dyn AnyAnswer>, NoAnswer> {
        let options = V::options(values)?;
        V::keys(&options).into_iter().try_for_each(|key| input.has_values(key))?;
        let answer = V::answer(input, &options)?;
        Ok(Box::new(Answered::<V> { answer, options }))
    }

    fn page(&self, input: &mut Input<'_>) -> Result<Option<Section>, NoAnswer> {
        V::page(input)
    }

    #[cfg(test)]
    fn trials(&self) -> trial::Trials {
        V::trials()
    }
}
