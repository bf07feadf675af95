//! Streamed samples with call chains, as `perf script` prints them.

use precise_model::text::sanitize;
use precise_model::{CodeLocation, Name};
use precise_sampling::stream::NamedSample;

/// The frame of a chain that is not whole, outermost. Programs that read `perf script` take it for
/// a function of this name.
const ENDS: &str = "[chain ends: ";

/// Returns the line before the chain of a sample: name, thread, CPU, time, period and event.
pub fn perf_line(named: &NamedSample<'_>) -> String {
    let sample = named.sample;
    let comm = named.thread.as_ref().or(named.comm.as_ref()).map_or("[unknown]", |comm| comm);
    let time = format!("{}.{:06}", sample.time / 1_000_000_000, sample.time % 1_000_000_000 / 1000);
    format!(
        "{} {:7} [{:03}] {time:>12}: {:10} {}: \n",
        sanitize(comm),
        sample.tid,
        sample.cpu,
        sample.period,
        sanitize(named.event)
    )
}

/// Returns the lines of a sample's chain, from the sampled instruction to the outermost function,
/// and an empty line; nothing if the run takes no chains.
pub fn chain_text(named: &NamedSample<'_>) -> String {
    let (Some(chain), Some(leaf)) = (&named.chain, named.code) else { return String::new() };
    let mut out = frame(named, named.sample.ip, leaf);
    for (address, code) in &chain.callers {
        out += &frame(named, *address, code);
    }
    if let Some(end) = chain.end.filter(|end| !end.is_whole()) {
        out += &format!("\t{:16x} {ENDS}{}] ([unknown])\n", 0, end.words());
    }
    out.push('\n');
    out
}

fn frame(named: &NamedSample<'_>, address: u64, code: &CodeLocation) -> String {
    let address = named.shown(address);
    let text = |name: Name| match name {
        Name::Known(id) => Some(sanitize(named.names.get(id))),
        Name::Unknown(_) => None,
    };
    let module = text(code.module).unwrap_or_else(|| "[unknown]".into());
    let line = |function: &str, more: &str| format!("\t{address:16x} {function}{more} ({module})\n");
    let Some(function) = text(code.function) else { return line("[unknown]", "") };
    // The functions that are inlined at the address, from the innermost on, as perf prints them.
    let outer = code.inlined_into.iter().map(|frame| sanitize(named.names.get(frame.function)));
    let mut functions: Vec<_> = std::iter::once(function).chain(outer).collect();
    let real = functions.pop().unwrap_or_default();
    let inlined = functions.iter().map(|name| format!("\t{address:16x} {name} (inlined)\n"));
    inlined.collect::<String>() + &line(&real, &format!("+{:#x}", code.function_offset))
}
