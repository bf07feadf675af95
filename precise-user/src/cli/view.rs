//! The commands of views. Their flags are made from the descriptions in the registry, and all of
//! them run in the same way.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches as _, value_parser};
use precise::capture::WantedParts;
use precise::error::{ExitClass, Failure};
use precise::model::keys::Key;
use precise::model::{Capture, Meta, Projection};
use precise::views::typing;
use precise::views::view::{
    AnyAnswer, AnyView, Captures, Description, Example, Format, Input, Judgement, NoAnswer, Opt, OptionKind,
    OptionValues, Why,
};

use super::{
    CommandResult, Output,
    code::{CodeArguments, LocalFiles},
    form::{CsvArguments, Form, JsonArguments, by_help, say_few},
    idle::say_left_out,
    narrow::{NarrowArguments, say_selection},
    output::{say, write_file},
    require::{self, RequireArguments},
};

/// The default capture of all commands.
pub const USUAL: &str = "precise.parquet";

/// Help of `-i` where there is no argument FILE.
const ONLY: &str = "Capture to read; `-` is the standard input [default: precise.parquet]";

/// The capture that a command reads, as an argument or by `-i`.
#[derive(Debug, Args)]
pub struct CaptureArguments {
    /// Capture to read; `-` is the standard input [default: precise.parquet]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    file: Option<PathBuf>,
    /// Alternative to FILE, as in perf's commands
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    input: Option<PathBuf>,
}

impl CaptureArguments {
    /// Returns whether a capture is named.
    pub fn is_named(&self) -> bool {
        self.input.is_some() || self.file.is_some()
    }

    /// Returns the capture that is named, or else the default.
    pub fn path(&self) -> PathBuf {
        self.input.clone().or_else(|| self.file.clone()).unwrap_or_else(|| PathBuf::from(USUAL))
    }
}

/// Returns the command of a view.
pub fn command(view: &dyn AnyView) -> Command {
    let about = view.description();
    let mut command = Command::new(about.name).args(captures(&about));
    command = NarrowArguments::augment_args(command);
    command = about.options.iter().fold(command, |command, option| command.arg(flag(option)));
    if about.code {
        command = CodeArguments::augment_args(command);
    }
    if let Some(picture) = about.picture {
        command = command.arg(file("output", picture.help).short('o').long("output").help_heading("Output"));
    }
    command = JsonArguments::augment_args(command);
    if about.csv {
        command = CsvArguments::augment_args(command);
    }
    if about.picture.is_some() {
        command = command.mut_arg("json", |json| json.conflicts_with("output"));
    }
    with_help(RequireArguments::augment_args(command), &about)
}

/// Adds a view's help texts to a command.
pub fn with_help(command: Command, about: &Description) -> Command {
    let commands = about.examples.iter().map(|example| format!("\n  {}", example.command));
    let short = format!("Examples:{}", commands.collect::<String>());
    command.about(about.about).after_help(short).after_long_help(after_long_help(about))
}

/// Returns the end of the long help: the view's examples with what they show, and its further
/// description. The manual page is made from it too.
fn after_long_help(about: &Description) -> String {
    let mut text = "Examples:".to_owned();
    for Example { command, says } in about.examples {
        text += &format!("\n  {command}\n      {says}");
    }
    if !about.more.is_empty() {
        text += &format!("\n\n{}", about.more);
    }
    text
}

/// Returns an argument that names a file.
fn file(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
}

/// Returns the arguments that name captures.
fn captures(about: &Description) -> Vec<Arg> {
    let named = |id, help, name| file(id, help).value_name(name).required(true);
    let (before, after) =
        ("Capture to compare with: before the change", "Capture to compare: after the change");
    match about.captures {
        Captures::One => {
            // A view with arguments of its own takes its capture by `-i` only.
            let taken = about.options.iter().any(|option| option.positional);
            let both = CaptureArguments::augment_args(Command::new("capture"));
            let arguments = both.get_arguments().filter(|argument| !(taken && argument.is_positional()));
            arguments.cloned().map(|argument| if taken { argument.help(ONLY) } else { argument }).collect()
        }
        Captures::Pair => vec![named("base", before, "BASE"), named("new", after, "NEW")],
        Captures::Baseline => vec![
            named("baseline", before, "BASE").short('b').long("baseline").help_heading("Input"),
            named("new", "Capture to judge: after the change", "NEW"),
        ],
    }
}

/// Converts an option of a view into a clap argument.
fn flag(option: &Opt) -> Arg {
    let mut arg = Arg::new(option.name).help(option.help);
    if !option.positional {
        arg = arg.long(option.name).help_heading(option.heading.title());
    }
    if let Some(short) = option.short {
        arg = arg.short(short);
    }
    if let Some(short) = option.short_alias {
        arg = arg.short_alias(short);
    }
    if let Some(alias) = option.alias {
        arg = arg.visible_alias(alias);
    }
    if let Some(default) = option.default {
        arg = arg.default_value(default);
    }
    if let OptionKind::Keys = option.kind {
        arg = arg.long_help(by_help(option.help, ""));
    }
    arg = arg.required(option.required.is_some()).conflicts_with_all(option.conflicts);
    if let OptionKind::Flag = option.kind {
        return arg.action(ArgAction::SetTrue);
    }
    arg = arg.value_name(option.value_name);
    arg = arg.action(if option.several { ArgAction::Append } else { ArgAction::Set });
    if option.several && option.positional {
        arg = arg.num_args(0..);
    }
    match option.kind {
        OptionKind::Number(least, most) => arg.value_parser(move |text: &str| number(text, least, most)),
        OptionKind::Choice(words) => {
            let word = |(word, means): &(&'static str, &'static str)| {
                let value = PossibleValue::new(*word);
                if means.is_empty() { value } else { value.help(*means) }
            };
            arg.value_parser(words.iter().map(word).collect::<Vec<_>>())
        }
        OptionKind::Checked(check) => {
            arg.value_parser(move |text: &str| check(text).map(|()| text.to_owned()))
        }
        OptionKind::Flag | OptionKind::Text | OptionKind::Keys | OptionKind::Sort => arg,
    }
}

/// Checks that a number is within the limits, and returns it as text.
fn number(text: &str, least: u64, most: u64) -> Result<String, String> {
    let number: u64 = text.parse().map_err(|error: std::num::ParseIntError| error.to_string())?;
    if !(least..=most).contains(&number) {
        return Err(format!("{number} is not in {least}..={most}"));
    }
    Ok(number.to_string())
}

/// Returns the values of a view's options.
fn values(about: &Description, matches: &ArgMatches) -> OptionValues {
    let mut values = OptionValues::default();
    for option in about.options {
        if let OptionKind::Flag = option.kind {
            if matches.get_flag(option.name) {
                values.set(option.name, Vec::new());
            }
        } else if let Some(given) = matches.get_many::<String>(option.name) {
            values.set(option.name, given.cloned().collect());
        }
    }
    values
}

/// The captures of a command: the one to show, with its name, and the one to compare it with.
struct Read {
    capture: Capture,
    file: PathBuf,
    base: Option<Capture>,
}

impl Read {
    /// Reads the captures; of their rows the parts that `wanted` returns.
    fn from(
        captures: Captures,
        matches: &ArgMatches,
        wanted: &WantedParts<'_>,
        keys: &[Key],
    ) -> Result<Self, Failure> {
        let given = |id: &str| matches.try_get_one::<PathBuf>(id).ok().flatten().cloned();
        let (base, file) = match captures {
            Captures::One => (None, given("input").or_else(|| given("file"))),
            Captures::Pair => (given("base"), given("new")),
            Captures::Baseline => (given("baseline"), given("new")),
        };
        let file = file.unwrap_or_else(|| PathBuf::from(USUAL));
        let narrow = NarrowArguments::of(matches)?;
        let base = base.map(|base| narrow.read_keys(&base, wanted, keys)).transpose()?;
        Ok(Self { capture: narrow.read_keys(&file, wanted, keys)?, file, base })
    }
}

/// Runs the command of a view.
pub fn run(view: &dyn AnyView, matches: &ArgMatches, out: &mut Output) -> CommandResult {
    let about = view.description();
    let values = values(&about, matches);
    view.check(&values).map_err(no_answer)?;
    let picture = if about.picture.is_some() { matches.get_one::<PathBuf>("output") } else { None };
    let format = picture.map(|path| Format::of(path)).transpose().map_err(no_answer)?;
    let form = Form::of(matches);
    let require = RequireArguments::from_arg_matches(matches).map_err(|error| usage(&error))?;
    let gates = require.reads();
    let wanted = |meta: &Meta| view.reads(&values, meta).map_or(Projection::EVERYTHING, |all| all.and(gates));
    let keys = view.keys(&values).map_err(no_answer)?;
    let Read { mut capture, file, mut base } = Read::from(about.captures, matches, &wanted, &keys)?;
    let mut code = match about.code {
        true => CodeArguments::from_arg_matches(matches).map_err(|error| usage(&error))?.files()?,
        false => LocalFiles::here(),
    };
    base.iter_mut().chain([&mut capture]).for_each(|capture| typing::look_up(capture, &keys, &mut code));
    let mut input = Input {
        capture: &capture,
        base: base.as_ref(),
        file: named(&file),
        code: &mut code,
        columns: (picture.is_none() && form.is_text()).then_some(out.text.width),
    };
    let answer = view.answer(&mut input, &values).map_err(no_answer)?;
    // If there are two captures, both must meet the requirements.
    let gates: Vec<_> =
        base.iter().chain([&capture]).filter_map(|capture| require.evaluate(capture)).collect();
    let gates = (!gates.is_empty()).then(|| gates.concat());
    if let Some((path, format)) = picture.zip(format) {
        let width = values.number("width").map_err(no_answer)?;
        write_file(path, &answer.draw(format, width).map_err(no_answer)?)?;
        say_selection(&capture);
        say(&format!("drew {}", path.display()));
    } else {
        form.print_answer(gates.as_deref(), out, &*answer, capture.meta.selection.as_ref())?;
        if form.is_text() {
            say_left_out(&capture);
        } else if form.is_csv() {
            say_few(&capture);
        }
    }
    code.say_unread();
    require::check(gates.as_deref())?;
    judge(&*answer)
}

fn judge(answer: &dyn AnyAnswer) -> CommandResult {
    match answer.judgement() {
        Judgement::None | Judgement::Pass => Ok(ExitCode::SUCCESS),
        Judgement::Worse(text) => Err(Failure::new(ExitClass::Worse, text)),
        Judgement::CannotTell { text, advice } => {
            Err(Failure::new(ExitClass::CannotTell, text).advise(advice))
        }
    }
}

/// Returns the file as an argument for a command line; empty if it is the default.
pub fn named(file: &Path) -> String {
    if file == Path::new(USUAL) { String::new() } else { file.display().to_string() }
}

/// Converts a view's error into a failure of the command.
pub fn no_answer(error: NoAnswer) -> Failure {
    let class = match error.why {
        Why::Usage => ExitClass::Usage,
        Why::Damaged => ExitClass::BadFile,
        Why::NoSamples => ExitClass::NoSamples,
        Why::Failed => ExitClass::Failed,
    };
    let failure = Failure::new(class, error.text);
    match error.advice {
        Some(advice) => failure.advise(advice),
        None => failure,
    }
}

/// Converts a clap error about parsed arguments into a failure.
pub fn usage(error: &clap::Error) -> Failure {
    Failure::new(ExitClass::Usage, error.to_string())
}
