//! The flags of `precise serve` that push profiles.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use precise::error::{ExitClass, Failure};
use precise::model::Capture;
use precise::push::{PushHeaders, PushKind, PushTarget, backend};
use precise::render::number;
use precise::serve::{PushAnswer, PushBackend, PushMessage, PushOptions, PushPlace};

use super::output::say;
use super::{selection::OUTPUT, values};

/// Heading for pushes.
const PUSH: &str = "Push";
/// The least memory, which holds the samples of some seconds.
const LEAST_MEMORY: u64 = 1 << 20;

#[derive(Debug, Args)]
pub struct PushArguments {
    /// Push profiles to otlp=URL or pyroscope=URL
    ///
    /// otlp is a collector of OpenTelemetry (OTLP/HTTP, v1development), pyroscope is Grafana
    /// Pyroscope. A URL without a path gets the usual one: /v1development/profiles, or /ingest. May
    /// be given several times. Names of functions, processes and cgroups leave the machine.
    #[arg(long, value_name = "KIND=URL", value_parser = PushTarget::parse, help_heading = OUTPUT)]
    push: Vec<PushTarget>,
    /// Push the samples of this time together
    #[arg(
        long,
        value_name = "TIME",
        value_parser = interval,
        default_value = "60s",
        help_heading = PUSH,
        hide_short_help = true
    )]
    push_every: Duration,
    /// Add the header fields in a file (mode 600) to requests: otlp=FILE, pyroscope=FILE
    ///
    /// Each line is NAME: VALUE. For otlp, OTEL_EXPORTER_OTLP_HEADERS has further ones.
    #[arg(
        long,
        value_name = "KIND=FILE",
        value_parser = kind_and_file,
        help_heading = PUSH,
        hide_short_help = true
    )]
    push_headers: Vec<(PushKind, PathBuf)>,
    /// Name the service of all samples, instead of one service for each cgroup
    #[arg(long, value_name = "NAME", value_parser = service, help_heading = PUSH, hide_short_help = true)]
    push_service: Option<String>,
    /// Keep at most BYTES of samples that wait for one place
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = values::size,
        default_value = "32M",
        help_heading = PUSH,
        hide_short_help = true
    )]
    push_memory: u64,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = values::duration(text)?;
    if interval < Duration::from_secs(1) {
        Err("an interval must be at least 1s".into())
    } else {
        Ok(interval)
    }
}

fn kind_and_file(text: &str) -> Result<(PushKind, PathBuf), String> {
    PushKind::split(text).map(|(kind, file)| (kind, file.into()))
}

fn service(text: &str) -> Result<String, String> {
    let fits = (1..=200).contains(&text.len()) && text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    if fits { Ok(text.to_owned()) } else { Err("a name has 1 to 200 ASCII letters, digits and signs".into()) }
}

impl PushArguments {
    /// Returns whether anything is pushed.
    pub fn is_asked_for(&self) -> bool {
        !self.push.is_empty()
    }

    /// Returns the places, once everything about them was checked.
    pub fn options(&self) -> Result<Option<PushOptions>, Failure> {
        let usage = |what: String| Failure::new(ExitClass::Usage, what);
        for (kind, _) in &self.push_headers {
            if !self.push.iter().any(|target| target.kind == *kind) {
                let word = kind.word();
                return Err(usage(format!("--push-headers {word}=FILE needs --push {word}=URL")));
            }
            if self.push_headers.iter().filter(|(other, _)| other == kind).count() > 1 {
                return Err(usage(format!("--push-headers can name one file for {}", kind.word())));
            }
        }
        if self.push.is_empty() {
            return Ok(None);
        }
        if self.push_memory < LEAST_MEMORY {
            return Err(usage("--push-memory must be at least 1M".to_owned()));
        }
        let mut places: Vec<PushPlace> = Vec::new();
        for target in &self.push {
            let name = target.to_string();
            if places.iter().any(|place| place.name == name) {
                return Err(usage(format!("--push {name} is given twice")));
            }
            let file = self.push_headers.iter().find(|(kind, _)| *kind == target.kind);
            let file: Option<&Path> = file.map(|(_, file)| file.as_path());
            let headers = PushHeaders::read(target.kind, file, |name| std::env::var(name).ok())?;
            let backend = backend(target, &headers, self.push_service.as_deref())?;
            let backend = Box::new(Spoken { name: name.clone(), backend, works: true, partial: false });
            places.push(PushPlace { name, backend });
        }
        let bytes = usize::try_from(self.push_memory).unwrap_or(usize::MAX);
        Ok(Some(PushOptions { every: self.push_every, bytes, places }))
    }

    /// Returns a sentence for each place.
    pub fn words(options: &PushOptions) -> Vec<String> {
        let (seconds, bytes) = (options.every.as_secs_f64(), number::short(options.bytes as u64));
        let word = |place: &PushPlace| {
            format!("profiles go to {} every {seconds} s; at most {bytes}B wait", place.name)
        };
        options.places.iter().map(word).collect()
    }
}

/// A backend that says when it begins to fail, and when it works again.
struct Spoken {
    name: String,
    backend: Box<dyn PushBackend>,
    works: bool,
    /// Whether a part of a request was refused before.
    partial: bool,
}

impl PushBackend for Spoken {
    fn encode(&mut self, capture: &Capture) -> Vec<PushMessage> {
        self.backend.encode(capture)
    }

    fn send(&mut self, message: &PushMessage) -> PushAnswer {
        let answer = self.backend.send(message);
        let name = &self.name;
        match &answer {
            PushAnswer::Later { why, .. } | PushAnswer::Refused { why } => {
                if std::mem::replace(&mut self.works, false) {
                    say(&format!("{name} does not take profiles: {why}"));
                }
            }
            PushAnswer::Taken { refused, said } => {
                if !std::mem::replace(&mut self.works, true) {
                    say(&format!("{name} takes profiles again"));
                }
                if *refused > 0 && !std::mem::replace(&mut self.partial, true) {
                    let why = if said.is_empty() { "it does not say why" } else { said };
                    say(&format!("{name} refused {refused} of {} profiles: {why}", message.profiles));
                }
            }
        }
        answer
    }
}
