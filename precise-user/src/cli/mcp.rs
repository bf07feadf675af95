//! `precise mcp`.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{Command as Process, ExitCode, Stdio};

use clap::{Args, Command, FromArgMatches as _};
use precise::error::{ExitClass, Failure};
use precise::mcp::protocol::ToolSession;
use precise::mcp::{RecordRequest, ToolArgument, ToolHost, ToolServer};
use precise::model::Capture;
use precise::model::text::sanitize;
use precise::serve::Token;
use precise::text::schema;
use precise::views::code::Code;
use serde_json::Value;

use super::{CommandResult, Output, code::CodeArguments, narrow::NarrowArguments, output::say, view::usage};

const AFTER_HELP: &str = "\
Examples:
  precise mcp /var/lib/precise               answer about the captures of a folder
  precise mcp s3://bucket/profiles           … of an archive in a bucket, and its fleet
  precise mcp http://127.0.0.1:7732          … of the last minutes of a running serve
  precise mcp --allow-record ./captures      also record, for up to 60 s at a time

A client for agents starts this command and speaks the Model Context Protocol on
standard input and output. docs/mcp.md says how to configure one.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct McpArguments {
    /// Folder of captures, a capture, s3://BUCKET/PREFIX, or the address of a running serve
    #[arg(value_name = "PLACE")]
    place: PathBuf,
    /// Send the token in this file (mode 600) to the running serve
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Offer the tool `record`, which samples this machine and writes to the folder
    ///
    /// A recording takes at most 60 s, and all recordings together at most 30 minutes. The overhead
    /// is limited as for `precise record`. Commands cannot be started.
    #[arg(long)]
    allow_record: bool,
    #[command(flatten)]
    code: CodeArguments,
}

/// Answers the lines of a client until they end.
pub fn run(arguments: &McpArguments, _: &mut Output) -> CommandResult {
    let host = CommandHost { code: &arguments.code };
    let token = arguments.token_file.as_deref().map(Token::read).transpose()?;
    let server = ToolServer::open(&arguments.place, token.as_ref(), arguments.allow_record, host)?;
    // For the log of the client, which shows the standard error.
    say("answering the Model Context Protocol on standard input; end the input to stop");
    ToolSession::new(server).run(io::stdin().lock(), io::stdout().lock()).map_err(|error| {
        Failure::new(ExitClass::Failed, format!("the connection to the client failed: {error}"))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What the tools use of the command line.
struct CommandHost<'a> {
    code: &'a CodeArguments,
}

/// Returns a command with the flags that narrow captures.
fn narrowing() -> Command {
    NarrowArguments::augment_args(Command::new("mcp")).no_binary_name(true)
}

impl ToolHost for CommandHost<'_> {
    fn schema(&self, kind: &str) -> Option<Value> {
        serde_json::from_str(&schema::text(&schema::find(kind)?)?).ok()
    }

    fn narrowing(&self) -> Vec<ToolArgument> {
        let command = narrowing();
        let flags = command.get_arguments().filter(|flag| flag.get_action().takes_values());
        let argument = |flag: &clap::Arg| ToolArgument {
            name: flag.get_id().to_string(),
            help: flag.get_help().map(ToString::to_string).unwrap_or_default(),
            several: matches!(flag.get_action(), clap::ArgAction::Append),
        };
        flags.map(argument).collect()
    }

    fn narrow(&self, capture: Capture, values: &BTreeMap<String, Vec<String>>) -> Result<Capture, Failure> {
        let words = values
            .iter()
            .flat_map(|(flag, values)| values.iter().map(move |value| format!("--{flag}={value}")));
        let matches = narrowing().try_get_matches_from(words).map_err(|error| {
            let first = error.to_string();
            let first = first.lines().next().unwrap_or_default().trim_start_matches("error: ");
            Failure::new(ExitClass::Usage, sanitize(first))
        })?;
        NarrowArguments::from_arg_matches(&matches).map_err(|error| usage(&error))?.apply(capture)
    }

    fn code(&self) -> Result<Box<dyn Code>, Failure> {
        Ok(Box::new(self.code.files_here()?))
    }

    /// Runs `precise record` as a process of its own: this one reads what others wrote, and has no
    /// rights to sample.
    fn record(&self, request: &RecordRequest) -> Result<(), Failure> {
        let failed = |what: String| Failure::new(ExitClass::Failed, what);
        let program =
            std::env::current_exe().map_err(|error| failed(format!("cannot find precise: {error}")))?;
        let mut process = Process::new(program);
        process.args(["record", "--quiet"]);
        process.arg(format!("--duration={}s", request.duration.as_secs()));
        process.arg(format!("--output={}", request.output.display()));
        for (flag, value) in [("event", &request.events), ("by", &request.by), ("filter", &request.filter)] {
            if !value.is_empty() {
                process.arg(format!("--{flag}={value}"));
            }
        }
        process.args(request.pids.iter().map(|pid| format!("--pid={pid}")));
        process.args(request.cgroups.iter().map(|cgroup| format!("--cgroup={cgroup}")));
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let ended =
            process.output().map_err(|error| failed(format!("cannot start precise record: {error}")))?;
        if ended.status.success() || request.output.exists() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Err(failed(format!("precise record failed: {}", sanitize(&said.join(" ")))))
    }
}
