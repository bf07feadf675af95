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
    let code = each_line(Command::new("perf"), file, "comm,tid,ip,sym,dso", |line| {
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
    ensure!(code, "{}", failed(file));
    if inside {
        add(&mut taken, frames, 1, "");
    }
    Ok(taken)
}

/// Returns the chains of a recording that the kernel took by frame pointers, as a perf of version 7
/// prints them. It prints return addresses; here, as in captures, a caller is a byte of its call.
/// The samples whose deferred callers it does not join have the cookie as their only frame, and
/// [`COOKIE`] as the file.
pub fn of_frame_pointers(perf: &Path, file: &Path) -> Result<ChainsTaken> {
    let mut taken = ChainsTaken::new();
    let mut frames: Option<Vec<UserFrame>> = None;
    let mut take = |frames: Option<Vec<UserFrame>>| frames.map(|frames| add(&mut taken, frames, 1, ""));
    let code = each_line(Command::new(perf), file, "comm,tid,ip,sym,dso,dsoff", |line| {
        if !line.starts_with(char::is_whitespace) {
            take(std::mem::take(&mut frames));
            frames = (!line.is_empty()).then(Vec::new);
        } else if let Some(frames) = &mut frames
            // Code without frame pointers makes up callers, also above all of user space.
            && let Some(mut frame) = frame_of(line)
            && (frame.address < KERNEL || !frames.is_empty())
        {
            if frame.function == "(cookie)" || frames.is_empty() && is_cookie(&frame) {
                frame.file = COOKIE.to_owned();
            }
            if let Some((file, offset)) = frame.file.rsplit_once("+0x") {
                frame.address = u64::from_str_radix(offset, 16).unwrap_or(frame.address);
                frame.file = file.to_owned();
            }
            frame.address = frame.address.saturating_sub(u64::from(!frames.is_empty()));
            frames.push(frame);
        }
    })?;
    take(frames);
    ensure!(code, "{}", failed(file));
    Ok(taken)
}

/// The file of a frame that is not code but the cookie of a deferred chain.
pub const COOKIE: &str = "[cookie]";

/// Returns whether an address without a file is a cookie: a CPU, from 1 on, below a number.
fn is_cookie(frame: &UserFrame) -> bool {
    let (number, cpu) = (frame.address >> 32, frame.address & 0xffff_ffff);
    frame.file == "[unknown]" && number > 0 && (1..=1024).contains(&cpu)
}

fn failed(file: &Path) -> String {
    format!("perf script of {} failed; what it said is above", file.display())
}

/// Calls `each` with each line of `perf script`. Returns whether it succeeded.
fn each_line(mut script: Command, file: &Path, fields: &str, mut each: impl FnMut(&str)) -> Result<bool> {
    script.args(["script", "--no-inline", "-F", fields, "-i"]).arg(file);
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
