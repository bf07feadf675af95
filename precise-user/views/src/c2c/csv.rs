//! Contended cache lines as CSV.

use precise_common::hitm::Hitm;

use crate::c2c::C2c;
use crate::csv::{CsvLines, average};

/// Formats contended cache lines as CSV: one line per access, which repeats the data of its cache
/// line.
pub fn c2c_csv(view: &C2c, separator: &str) -> String {
    let mut table = CsvLines::new(separator, &["line", "address", "region", "verdict"], &[]);
    table.header(&["line_hitm", "line_loads", "line_stores", "line_threads", "line_hitm_latency_avg"], &[]);
    let classes = Hitm::ALL.map(|class| format!("hitm_{}", class.name().to_lowercase().replace(' ', "_")));
    table.header(&classes.each_ref().map(String::as_str), &[]);
    table.header(&["offset", "bytes", "bytes_from", "op", "writes", "samples", "hitm", "variable"], &[]);
    table.header(&["function", "source_line", "process", "pid", "cgroup", "threads", "cpus"], &[]);
    for (index, line) in view.lines.iter().enumerate() {
        for access in &line.accesses {
            let mut fields = vec![
                (index + 1).to_string(),
                format!("{:#x}", line.address),
                line.region.clone(),
                line.verdict.words().to_owned(),
                line.hitm.total.to_string(),
                line.loads.to_string(),
                line.stores.to_string(),
                line.threads.len().to_string(),
                average(line.hitm_average),
            ];
            fields.extend(Hitm::ALL.map(|class| line.hitm.of(class).to_string()));
            let joined = |ids: Vec<String>| ids.join(" ");
            fields.extend([
                access.offset.to_string(),
                access.width.map_or_else(String::new, |width| width.to_string()),
                access.width_from.name().to_owned(),
                access.op.to_owned(),
                access.writes.to_string(),
                access.samples.to_string(),
                access.hitm.to_string(),
                access
                    .variable
                    .as_ref()
                    .map_or_else(String::new, |(name, offset)| format!("{name}+{offset}")),
                access.function.clone(),
                access.line.clone(),
                access.process.clone(),
                access.pid.to_string(),
                access.cgroup.clone(),
                joined(access.threads.iter().map(u32::to_string).collect()),
                joined(access.cpus.iter().map(u16::to_string).collect()),
            ]);
            table.line(fields);
        }
    }
    table.done()
}
