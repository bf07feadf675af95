//! The tool `record`: what an agent may ask a recording for, and its bounds.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use serde_json::{Map, Value, json};

use crate::error::{ExitClass, Failure};

/// Longest recording, in seconds.
pub const LONGEST: u64 = 60;
/// Length of a recording that names none, in seconds.
const USUAL: u64 = 10;
/// Seconds that all recordings of a server may take together.
pub const LONGEST_TOGETHER: u64 = 1800;

/// A recording, within its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRequest {
    /// Presets or events; empty for the default.
    pub events: String,
    /// Group keys; empty for the default ones of the events.
    pub by: String,
    /// Filter of the samples; empty for all.
    pub filter: String,
    /// Processes to sample; empty for all.
    pub pids: Vec<u32>,
    /// Cgroups to sample; empty for all.
    pub cgroups: Vec<String>,
    /// Length of the recording.
    pub duration: Duration,
    /// The capture that is written.
    pub output: PathBuf,
}

/// Returns the definitions of the arguments, as properties of a JSON Schema.
pub(super) fn properties() -> Value {
    json!({
        "events": { "type": "string", "description": "Events or presets to sample: loads, mem, c2c, cycles, \
            fetch, branches, faults, cpu-clock, … [default: precise cycles, or cpu-clock]" },
        "by": { "type": "string", "description": "Group samples in the kernel by these keys [default: by event]" },
        "filter": { "type": "string", "description": "Keep only samples that match, as in 'latency >= 128'" },
        "pids": { "type": "array", "items": { "type": "integer", "minimum": 1 }, "maxItems": 64,
            "description": "Sample these processes [default: all]" },
        "cgroups": { "type": "array", "items": { "type": "string" }, "maxItems": 16,
            "description": "Sample these cgroups and their descendants [default: all]" },
        "seconds": { "type": "integer", "minimum": 1, "maximum": LONGEST, "default": USUAL,
            "description": "Length of the recording; the answer comes after it" },
    })
}

/// Converts the flags of a command `precise record` into arguments; `None` if the tool has none for
/// one of them.
pub(super) fn arguments_of(words: &[String]) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    let mut words = words.iter();
    while let Some(flag) = words.next() {
        let name = match flag.as_str() {
            "-e" | "--event" => "events",
            "--by" => "by",
            "--filter" => "filter",
            _ => return None,
        };
        arguments.insert(name.to_owned(), json!(words.next()?));
    }
    Some(arguments)
}

/// Makes a request of the arguments. `spent` is the time that earlier recordings took, in seconds.
pub(super) fn request(
    arguments: &Map<String, Value>,
    folder: &Path,
    spent: u64,
) -> Result<RecordRequest, Failure> {
    let wrong = |what: String| Failure::new(ExitClass::Usage, what);
    let known = properties();
    if let Some(other) = arguments.keys().find(|key| known.get(key.as_str()).is_none()) {
        let names: Vec<&str> =
            known.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        return Err(wrong(format!("record takes {}, not {other:?}", names.join(", "))));
    }
    let text = |key: &str| match arguments.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => text_of(key, text),
        Some(_) => Err(wrong(format!("{key} is a text"))),
    };
    let several = |key: &str| match arguments.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= 64 => Ok(items.clone()),
        Some(_) => Err(wrong(format!("{key} is a list of at most 64 entries"))),
    };
    let seconds = match arguments.get("seconds") {
        None | Some(Value::Null) => USUAL,
        Some(value) => value.as_u64().filter(|seconds| (1..=LONGEST).contains(seconds)).ok_or_else(|| {
            wrong(format!("seconds is a number from 1 to {LONGEST}, which is the longest recording"))
        })?,
    };
    if spent + seconds > LONGEST_TOGETHER {
        return Err(Failure::new(
            ExitClass::Stopped,
            format!(
                "this server has recorded for {spent} s; all its recordings may take {LONGEST_TOGETHER} s"
            ),
        )
        .advise("Ask about the captures that exist, or ask the user to start the server again."));
    }
    let pids = several("pids")?.into_iter().map(|pid| {
        let pid = pid.as_u64().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        pid.ok_or_else(|| wrong("pids are numbers of processes".to_owned()))
    });
    let cgroups = several("cgroups")?.into_iter().map(|cgroup| match cgroup.as_str() {
        Some(cgroup) => text_of("cgroups", cgroup),
        None => Err(wrong("cgroups are texts".to_owned())),
    });
    Ok(RecordRequest {
        events: text("events")?,
        by: text("by")?,
        filter: text("filter")?,
        pids: pids.collect::<Result<_, _>>()?,
        cgroups: cgroups.collect::<Result<_, _>>()?,
        duration: Duration::from_secs(seconds),
        output: free_name(folder)?,
    })
}

fn text_of(key: &str, text: &str) -> Result<String, Failure> {
    if text.len() > 1024 || text.contains('\0') {
        return Err(Failure::new(ExitClass::Usage, format!("{key} is a text of at most 1,024 bytes")));
    }
    Ok(text.to_owned())
}

/// Returns a name in the folder that does not exist yet.
fn free_name(folder: &Path) -> Result<PathBuf, Failure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since.as_nanos()).map(DateTime::from_timestamp_nanos).unwrap_or_default();
    let name = now.format("recorded-%Y%m%dT%H%M%SZ").to_string();
    let names = (1..100).map(|number| match number {
        1 => folder.join(format!("{name}.parquet")),
        _ => folder.join(format!("{name}-{number}.parquet")),
    });
    let mut free = names.filter(|path| path.symlink_metadata().is_err());
    free.next().ok_or_else(|| {
        Failure::new(ExitClass::Failed, format!("{} has a hundred captures of this second", folder.display()))
    })
}
