//! Chains as precise and perf have taken them: the frames of user space, with their names.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::{Capture, Chain, CodeLocation, Name};

/// The first address of the kernel.
const KERNEL: u64 = 1 << 63;

/// A frame of user space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserFrame {
    /// The sampled instruction, or a byte of the call instruction: its offset in the file, as `perf
    /// script` prints it, or its address if it has no file.
    pub address: u64,
    /// The function, without the names of those inlined into it; empty if it has no name.
    pub function: String,
    /// The last part of the path of its file.
    pub file: String,
}

/// Samples with one chain.
#[derive(Clone, Debug, Default)]
pub struct ChainGroup {
    /// The frames, the innermost first.
    pub frames: Vec<UserFrame>,
    /// Their number.
    pub samples: u64,
    /// Why the chain ends, by precise; empty if not known.
    pub end: String,
}

/// All samples, by the addresses of their frames.
pub type ChainsTaken = BTreeMap<Vec<u64>, ChainGroup>;

/// Adds samples with a chain.
fn add(taken: &mut ChainsTaken, frames: Vec<UserFrame>, samples: u64, end: &str) {
    let addresses = frames.iter().map(|frame| frame.address).collect();
    let group =
        taken.entry(addresses).or_insert_with(|| ChainGroup { frames, samples: 0, end: end.to_owned() });
    group.samples += samples;
}

/// Returns the chains of a capture.
pub fn of_precise(file: &Path) -> Result<ChainsTaken> {
    let capture = Capture::read(file)?;
    let frame = |code: &CodeLocation| UserFrame {
        address: if code.file_offset == 0 { code.runtime_address } else { code.file_offset },
        function: match code.inlined_into.last() {
            Some(outermost) => capture.names.get(outermost.function).to_owned(),
            None => text(&capture, code.function),
        },
        file: last(&text(&capture, code.module)).to_owned(),
    };
    let mut taken = ChainsTaken::new();
    for row in &capture.rows {
        let (mut ids, mut end) = (Vec::from_iter(row.code), "");
        if let Chain::Known(id) = row.stack {
            let stack = capture.stacks.get(id as usize).context("a stack")?;
            ids.extend(&stack.callers);
            end = stack.end.map_or("", precise::model::ChainEnd::as_str);
        }
        let code = ids.iter().filter_map(|id| capture.code.get(*id as usize));
        let frames = code.filter(|code| !code.kernel).map(frame).collect();
        add(&mut taken, frames, row.measures.count, end);
    }
    Ok(taken)
}

fn text(capture: &Capture, name: Name) -> String {
    match name {
        Name::Known(id) => capture.names.get(id).to_owned(),
        Name::Unknown(_) => String::new(),
    }
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the chains of a recording, as `perf script` prints them.
pub fn of_perf(file: &Path) -> Result<ChainsTaken> {
    let mut taken = ChainsTaken::new();
    let (mut frames, mut inside) = (Vec::new(), false);
    let code = each_line(file, |line| {
        if line.trim().is_empty() {
            if std::mem::take(&mut inside) {
                add(&mut taken, std::mem::take(&mut frames), 1, "");
            }
        } else if !line.starts_with(char::is_whitespace) {
            inside = true;
        } else if let Some(frame) = frame_of(line).filter(|frame| frame.address < KERNEL) {
            frames.push(frame);
        }
    })?;
    ensure!(code, "perf script of {} failed; what it said is above", file.display());
    if inside {
        add(&mut taken, frames, 1, "");
    }
    Ok(taken)
}

/// Calls `each` with each line of `perf script`. Returns whether it succeeded.
fn each_line(file: &Path, mut each: impl FnMut(&str)) -> Result<bool> {
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-F", "comm,tid,ip,sym,dso", "-i"]).arg(file);
    let mut child = script.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stdout.take().context("piped")?);
    for line in lines.split(b'\n') {
        each(&String::from_utf8_lossy(&line?));
    }
    Ok(child.wait()?.success())
}

/// Reads `  7f00c3 function (file)`.
fn frame_of(line: &str) -> Option<UserFrame> {
    let (address, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
    let address = u64::from_str_radix(address, 16).ok()?;
    let (function, file) = rest.trim().rsplit_once('(').unwrap_or((rest, ""));
    let function = function.trim();
    let function = if function == "[unknown]" { "" } else { function };
    let file = last(file.trim_end_matches(')').trim_end_matches(" (deleted"));
    // Memory without a file, where perf looks for a map of the functions of a JIT compiler.
    let file = if file.starts_with("perf-") && file.ends_with(".map") { "[anon]" } else { file };
    Some(UserFrame { address, function: function.to_owned(), file: file.to_owned() })
}
