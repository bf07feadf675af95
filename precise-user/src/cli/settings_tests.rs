use clap::{ArgGroup, Args, FromArgMatches as _};

use super::*;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how-often").args(["count", "freq"]))]
struct Flags {
    /// Take one sample every N events
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Aim for N samples per second
    #[arg(long, value_name = "N")]
    freq: Option<u64>,
    /// Sample these events
    #[arg(short, long, value_name = "EVENTS")]
    event: Vec<String>,
    /// Sample these processes
    #[arg(long, value_name = "PIDS", value_delimiter = ',')]
    pid: Vec<u32>,
    /// Keep at most N series
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = "Limits")]
    series: u64,
    /// Print only problems
    #[arg(long, help_heading = "Limits")]
    quiet: bool,
    #[arg(long, hide = true)]
    secret: bool,
    #[arg(trailing_var_arg = true)]
    command: Vec<String>,
}

fn command() -> Command {
    Flags::augment_args(Command::new("serve"))
}

/// Returns the flags of a file, and of words on the command line.
fn flags(text: &str, words: &str) -> Result<Flags, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("serve.toml");
    std::fs::write(&file, text).unwrap();
    let words: Vec<OsString> = words.split_ascii_whitespace().map(Into::into).collect();
    let parsed = parse(&command(), &words, &file);
    let folder = folder.path().display().to_string() + "/";
    let said = |failure: Failure| failure.to_string().replace(&folder, "");
    parsed.map(|matches| Flags::from_arg_matches(&matches).unwrap()).map_err(said)
}

#[test]
fn a_file_sets_what_flags_set() {
    let text = "# A comment.\nevent = [\"loads\", 'cycles:pp']\ncount = 97\npid = [1, 2]\nquiet = true\n\
                series = \"7\"\n";
    let found = flags(text, "-- sleep 1").unwrap();
    assert_eq!((&found.event[..], found.count), (&["loads".to_owned(), "cycles:pp".into()][..], Some(97)));
    assert_eq!((&found.pid[..], found.series, found.quiet), (&[1, 2][..], 7, true));
    assert_eq!(found.command, ["sleep", "1"]);
    assert!(!found.secret && !flags("quiet = false", "").unwrap().quiet);
}

#[test]
fn the_command_line_takes_precedence_over_the_file() {
    let text = "event = \"loads\"\ncount = 97\nseries = 7";
    let found = flags(text, "-e cycles --freq 99").unwrap();
    assert_eq!((&found.event[..], found.series), (&["cycles".to_owned()][..], 7));
    // Either of the two can be given.
    assert_eq!((found.count, found.freq), (None, Some(99)));
}

#[test]
fn a_mistake_has_its_line_and_what_is_allowed() {
    for (text, wanted) in [
        ("series = 7\nevnt = \"loads\"", "serve.toml:2: there is no key `evnt`; did you mean `event`?"),
        ("secret = true", "serve.toml:1: there is no key `secret`"),
        ("command = [\"sleep\"]", "there is no key `command`"),
        ("\n\nseries = \"many\"", "serve.toml:3: invalid value 'many' for '--series <N>'"),
        ("quiet = \"yes\"", "serve.toml:1: `quiet` must be true or false, not string"),
        ("series = true", "`series` must be a text or a number, not boolean"),
        ("series = [1]", "`series` must be a text or a number, not array"),
        ("event = [[1]]", "`event` must be a list of texts and numbers, not array"),
        ("event = 1979-05-27", "`event` must be a text, a number or a list, not datetime"),
        ("[series]\nx = 1", "serve.toml:1: `series` must be a text or a number, not table"),
        ("series = 1\nseries = 2", "serve.toml:2: duplicate key"),
        ("series = ", "serve.toml:1: "),
        ("count = 1\nfreq = 2", "serve.toml: the argument '--count <N>' cannot be used with"),
    ] {
        let said = flags(text, "").unwrap_err();
        assert!(said.contains(wanted), "{text}: {said}");
    }
    let said = flags("evnt = 1", "").unwrap_err();
    assert!(
        said.contains("The keys are the flags of the command: count, freq, event, pid, series, quiet."),
        "{said}"
    );
}

#[test]
fn a_template_names_every_key_and_its_lines_are_settings() {
    let command = command();
    let text = template(&command);
    for arg in keys(&command) {
        assert!(text.contains(&format!("\n# {} = ", key(arg))), "{text}");
    }
    assert!(
        text.contains("\n## Limits\n\n# Keep at most N series [default: 500]\n# series = \"500\"\n"),
        "{text}"
    );
    let lines = text.lines().filter_map(|line| line.strip_prefix("# ")).filter(|line| line.contains(" = "));
    for line in lines
        .filter(|line| !line.starts_with("count") && !line.starts_with("freq") && !line.starts_with("pid"))
    {
        flags(line, "").unwrap();
    }
}
