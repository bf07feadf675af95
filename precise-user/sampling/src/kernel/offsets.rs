//! Resolves the running kernel's types to the constants of the eBPF program.

use precise_common::config::{ABSENT, Offsets};

use super::btf::Btf;
use crate::error::{ErrorClass, Remedy, SamplingError};

/// Returns the offsets of the fields that the program reads.
///
/// # Errors
///
/// Returns an error if a field is missing that every kernel since 5.10 has.
pub fn resolve(btf: &Btf) -> Result<Offsets, SamplingError> {
    let required = |structure: &str, member: &str| {
        btf.offset(structure, member).ok_or_else(|| {
            SamplingError::new(
                ErrorClass::Unsupported,
                format!(
                    "the kernel's type information has no {structure}.{member}, so this kernel is \
                    too old or too new"
                ),
            )
            .remedy(Remedy::ReportKernel)
        })
    };
    let optional = |member: &str| btf.offset("perf_sample_data", member).unwrap_or(ABSENT);
    Ok(Offsets {
        ctx_regs: required("bpf_perf_event_data_kern", "regs")?,
        ctx_data: required("bpf_perf_event_data_kern", "data")?,
        ctx_event: required("bpf_perf_event_data_kern", "event")?,
        event_period: required("perf_event", "hw")? + required("hw_perf_event", "sample_period")?,
        regs_ip: required("pt_regs", "ip")?,
        regs_flags: required("pt_regs", "flags")?,
        sample_flags: optional("sample_flags"),
        raw: required("perf_sample_data", "raw")?,
        raw_data: required("perf_raw_record", "frag")? + required("perf_raw_frag", "data")?,
        ip: required("perf_sample_data", "ip")?,
        tid_entry: required("perf_sample_data", "tid_entry")?,
        cgroup: optional("cgroup"),
        addr: required("perf_sample_data", "addr")?,
        phys_addr: optional("phys_addr"),
        weight: required("perf_sample_data", "weight")?,
        data_src: required("perf_sample_data", "data_src")?,
        data_page_size: optional("data_page_size"),
        callchain: required("perf_sample_data", "callchain")?,
        time: required("perf_sample_data", "time")?,
    })
}
