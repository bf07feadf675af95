//! What a view is: a question, what it needs, its options, its answer, and the answer's forms.
//!
//! A view is a folder of this crate with a type that implements [`View`], and one line in the
//! `views!` of the crate's root. The command line, the manual pages, the schemas and the tests of
//! all views go through [`crate::registry::VIEWS`], so that a new view needs nothing else.

mod options;
#[cfg(test)]
pub mod trial;

use std::fmt::Debug;
use std::path::Path;

use precise_model::{Capture, Dimension, Preset};

use crate::ViewError;
use crate::code::Code;
use crate::document::{self, Document};
use crate::gates::GateResult;
use crate::heatmap::HeatmapError;
use crate::render::TextOptions;
use crate::render::plot::PlotError;

pub use options::{Heading, Opt, OptionKind, Values};

/// A question to a capture.
pub trait View: Debug + Sync + 'static {
    /// Name of the command, and of the view everywhere else.
    const NAME: &'static str;
    /// What it shows: one line, imperative.
    const ABOUT: &'static str;
    /// Command lines, each with what it is good for.
    const EXAMPLES: &'static [Example];
    /// More for the end of the help.
    const MORE: &'static str = "";
    /// What a capture must have for an answer.
    const NEEDS: Need = Need::NOTHING;
    /// Who shows it.
    const COMMAND: Command = Command::Own;
    /// Which captures it takes.
    const CAPTURES: Captures = Captures::One;
    /// Whether it looks at code on this machine.
    const CODE: bool = false;
    /// Whether it has lines of separated values.
    const CSV: bool = true;
    /// Whether it can be drawn into a file.
    const PICTURE: Option<Picture> = None;
    /// Its options.
    const OPTIONS: &'static [Opt] = &[];

    /// The options, typed.
    type Options;
    /// The answer, which is a JSON document.
    type Answer: Document + 'static;

    /// The options, from their values.
    ///
    /// # Errors
    ///
    /// When a value makes no sense.
    fn options(values: &Values) -> Result<Self::Options, NoAnswer>;

    /// The answer.
    ///
    /// # Errors
    ///
    /// When the capture has none: the sentence names what is missing.
    fn answer(input: &mut Input<'_>, options: &Self::Options) -> Result<Self::Answer, NoAnswer>;

    /// The answer as text.
    fn text(answer: &Self::Answer, options: &Self::Options, text: &TextOptions) -> String;

    /// The answer as lines of separated values; empty for views that have none.
    fn csv(answer: &Self::Answer, options: &Self::Options, separator: &str) -> String;

    /// Draws the answer.
    ///
    /// # Errors
    ///
    /// When there is nothing to draw, or the file cannot be written.
    fn draw(_answer: &Self::Answer, _format: Format, _width: u32, path: &Path) -> Result<(), NoAnswer> {
        Err(NoAnswer::usage(format!("{} has no picture for {}", Self::NAME, path.display())))
    }

    /// What the answer says of the capture, where the view is a test of it.
    fn judgement(_answer: &Self::Answer) -> Judgement {
        Judgement::None
    }

    /// Loads that the view must say the same of however often they were sampled.
    #[cfg(test)]
    fn trials() -> trial::Trials;
}

/// A command line, and what it is good for.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// The command line, as a shell takes it.
    pub command: &'static str,
    /// What it shows, and when that helps: a sentence.
    pub says: &'static str,
}

/// What a view needs of every capture. Some need more of some captures: their answer says so.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// What must have been recorded.
    pub dimensions: &'static [Dimension],
    /// The preset whose samples have it.
    pub preset: Preset,
}

impl Need {
    /// Any capture will do.
    pub const NOTHING: Self = Self { dimensions: &[], preset: Preset::Cycles };
}

/// Who shows a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// A command of the view's name, made from its description.
    Own,
    /// Another command, with these flags for the JSON document: `report --by`.
    Of(&'static str),
}

/// Which captures a view takes, and how a command names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captures {
    /// One, by `-i`.
    One,
    /// One, as an argument.
    Argument,
    /// Two, as arguments: BASE and NEW.
    Pair,
    /// One that is judged by another: `-b BASE NEW`.
    Baseline,
}

impl Captures {
    /// Whether there are two.
    pub const fn two(self) -> bool {
        matches!(self, Self::Pair | Self::Baseline)
    }
}

/// The picture of a view; its width is the option [`Opt::width`].
#[derive(Clone, Copy, Debug)]
pub struct Picture {
    /// Help of `--output`.
    pub help: &'static str,
}

/// A format of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Pixels.
    Png,
    /// Vectors.
    Svg,
}

impl Format {
    /// The format that a file's name asks for.
    ///
    /// # Errors
    ///
    /// When it asks for none that is known.
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

/// What a view looks at.
pub struct Input<'a> {
    /// The capture; of two, the later one.
    pub capture: &'a Capture,
    /// The earlier one of two.
    pub base: Option<&'a Capture>,
    /// The capture's file as a command would name it; empty where it need not.
    pub file: String,
    /// The code on this machine.
    pub code: &'a mut dyn Code,
    /// Columns, where the answer is to be shown as text: views that fill the width choose their
    /// resolution by it.
    pub columns: Option<usize>,
}

impl Debug for Input<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Input").field("file", &self.file).field("columns", &self.columns).finish()
    }
}

impl<'a> Input<'a> {
    /// One capture.
    pub fn of(capture: &'a Capture, code: &'a mut dyn Code) -> Self {
        Self { capture, base: None, file: String::new(), code, columns: None }
    }

    /// Two captures: `base`, then `capture`.
    pub fn pair(base: &'a Capture, capture: &'a Capture, code: &'a mut dyn Code) -> Self {
        Self { base: Some(base), ..Self::of(capture, code) }
    }

    /// The earlier one of two.
    ///
    /// # Errors
    ///
    /// When there is one only.
    pub fn base(&self) -> Result<&'a Capture, NoAnswer> {
        self.base.ok_or_else(|| NoAnswer::usage("this view compares two captures, and there is one".into()))
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The question cannot be asked of this capture, or makes no sense.
    Usage,
    /// The capture is damaged.
    Damaged,
    /// No sample is there.
    NoSamples,
    /// Something else went wrong.
    Failed,
}

/// A sentence in place of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct NoAnswer {
    /// Whose fault it is.
    pub why: Why,
    /// What is wrong.
    pub text: String,
    /// What to do, where `text` does not say it.
    pub advice: Option<String>,
}

impl NoAnswer {
    /// A question that cannot be asked.
    pub fn usage(text: String) -> Self {
        Self { why: Why::Usage, text, advice: None }
    }

    /// The same with what to do.
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

impl From<HeatmapError> for NoAnswer {
    fn from(error: HeatmapError) -> Self {
        let why = match error {
            HeatmapError::Damaged { .. } => Why::Damaged,
            HeatmapError::Empty { .. } => Why::NoSamples,
            _ => Why::Usage,
        };
        Self { why, text: error.to_string(), advice: None }
    }
}

impl From<PlotError> for NoAnswer {
    fn from(error: PlotError) -> Self {
        Self { why: Why::Failed, text: error.to_string(), advice: None }
    }
}

/// What a view that tests a capture found. It decides the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The view shows, and judges nothing.
    None,
    /// All is well.
    Pass,
    /// The capture is worse than allowed.
    Worse(String),
    /// The samples do not tell.
    CannotTell {
        /// What is not known.
        text: String,
        /// What to do.
        advice: &'static str,
    },
}

/// All that is known of a view without a capture.
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
    /// What it is.
    fn description(&self) -> Description;

    /// Its JSON document.
    fn document(&self) -> document::DocumentKind;

    /// Whether values make sense, before a capture is read.
    ///
    /// # Errors
    ///
    /// When they do not.
    fn check(&self, values: &Values) -> Result<(), NoAnswer>;

    /// The answer.
    ///
    /// # Errors
    ///
    /// When the values make no sense, or the capture has no answer.
    fn answer(&self, input: &mut Input<'_>, values: &Values) -> Result<Box<dyn AnyAnswer>, NoAnswer>;

    /// [`View::trials`].
    #[cfg(test)]
    fn trials(&self) -> trial::Trials;
}

/// An answer, whatever its type.
pub trait AnyAnswer {
    /// As text.
    fn text(&self, options: &TextOptions) -> String;

    /// As a JSON document.
    ///
    /// # Errors
    ///
    /// Never, as [`document::document`].
    fn json(&self, gates: Option<&[GateResult]>) -> Result<String, serde_json::Error>;

    /// As lines of separated values.
    fn csv(&self, separator: &str) -> String;

    /// Draws it.
    ///
    /// # Errors
    ///
    /// As [`View::draw`].
    fn draw(&self, format: Format, width: u32, path: &Path) -> Result<(), NoAnswer>;

    /// What it says of the capture.
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

    fn json(&self, gates: Option<&[GateResult]>) -> Result<String, serde_json::Error> {
        document::document(&self.answer, gates)
    }

    fn csv(&self, separator: &str) -> String {
        V::csv(&self.answer, &self.options, separator)
    }

    fn draw(&self, format: Format, width: u32, path: &Path) -> Result<(), NoAnswer> {
        V::draw(&self.answer, format, width, path)
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
            schema: document::schema_of::<V::Answer>,
        }
    }

    fn check(&self, values: &Values) -> Result<(), NoAnswer> {
        V::options(values).map(drop)
    }

    fn answer(&self, input: &mut Input<'_>, values: &Values) -> Result<Box<dyn AnyAnswer>, NoAnswer> {
        let options = V::options(values)?;
        let answer = V::answer(input, &options)?;
        Ok(Box::new(Answered::<V> { answer, options }))
    }

    #[cfg(test)]
    fn trials(&self) -> trial::Trials {
        V::trials()
    }
}
