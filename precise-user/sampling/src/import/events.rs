//! Describes a recorded event: its name and unit, the fields of its samples, and whether their IPs
//! are exact.

use crate::pmu::names::{HARDWARE, PMU_TYPE_SHIFT, SOFTWARE, Software, TYPE_CACHE, TYPE_HARDWARE};
use crate::pmu::{Exactness, identity};
use crate::unwind::UNWIND_REGISTERS;
use precise_model::{CpuId, EventInfo, Fields, PmuKind, Vendor, Verdict};
use precise_records::Registers;
use precise_records::perf_data::{Attr, Described, Features, pmu_type};
use precise_records::record::sample_bits as bit;

/// `PERF_COUNT_SW_DUMMY` and `PERF_COUNT_SW_BPF_OUTPUT`: perf opens these events for records other
/// than samples.
const BESIDE: [u64; 2] = [9, 10];
/// `IBS_OP_CNT_CTL`: the period of IBS op counts ops, not cycles.
const COUNTS_OPS: u64 = 1 << 19;

/// An event of the imported file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ImportedEvent {
    /// The attributes with which its samples are decoded.
    pub attr: Attr,
    /// The registers in its raw data; `None` if they are not known.
    pub registers: Option<Registers>,
    /// Whether callers in user space are unwound here, from copies of stacks.
    pub copies: bool,
    /// Whether this CPU's IBS cannot detect modified lines in other caches.
    pub no_hitm: bool,
    /// The event's description in the capture. Its ledger is still empty.
    pub info: EventInfo,
}

/// Returns whether an event has samples at all.
pub(super) fn samples(attr: &Attr) -> bool {
    !(attr.type_ == pmu_type::SOFTWARE && BESIDE.contains(&attr.config))
}

/// Parses the CPU id of a recording, such as `GenuineIntel,6,85,4`.
pub(super) fn cpu(cpuid: &str) -> CpuId {
    let mut words = cpuid.split(',');
    let vendor = match words.next() {
        Some("GenuineIntel") => Vendor::Intel,
        Some("AuthenticAMD" | "HygonGenuine") => Vendor::Amd,
        _ => Vendor::Other,
    };
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    CpuId { vendor, family: number(), model: number(), stepping: number(), ..CpuId::default() }
}

/// Returns everything that is known of an event.
pub(super) fn known(described: &Described, features: &Features) -> ImportedEvent {
    let attr = described.attr;
    let software = software(&attr);
    let pmu = features.pmu(attr.type_).unwrap_or_default();
    let cpu = cpu(&features.cpuid);
    let kind = kind(&attr, features, cpu.vendor);
    let ibs = kind.is_ibs();
    let (op, fetch) = (kind == PmuKind::IbsOp, kind == PmuKind::IbsFetch);
    let registers =
        (ibs && attr.has(bit::RAW)).then(|| Registers { fetch, zen3_errata: cpu.ibs_zen3_errata() });
    let level = attr.precise_ip();
    let mut findings = Vec::new();
    let precise = match software.map(Software::exactness) {
        Some(Exactness::Never(why)) => {
            findings.push(format!("{} is not precise: {why}", described_name(described, pmu)));
            false
        }
        Some(_) => true,
        None if ibs => true,
        None => {
            findings.extend(match level {
                0 => Some("it was recorded without `:p`, so its instruction addresses skid".to_owned()),
                1 => Some(
                    "it was recorded with precision level 1, so its instruction addresses are late by a \
                     constant"
                        .to_owned(),
                ),
                _ => None,
            });
            level >= 2
        }
    };
    let derived = registers.is_some_and(|registers| !registers.fetch) && !attr.has(bit::DATA_SRC);
    let fields = Fields {
        address: (attr.has(bit::ADDR) && software.is_none_or(|event| event.unit.ends_with("faults")))
            || derived,
        latency: attr.has(bit::WEIGHT | bit::WEIGHT_STRUCT) || registers.is_some(),
        data_source: (attr.has(bit::DATA_SRC) && software.is_none() && !fetch) || derived,
        outcome: registers.is_some(),
    };
    if derived {
        findings.push(
            "address, level and latency are decoded from the IBS registers in the raw part of the samples"
                .to_owned(),
        );
    }
    let copies = attr.has_stack_copies() && unwinds(&attr, &features.arch);
    if copies {
        findings.push(
            "its callers in user space were unwound by this import, from copies of stacks (--call-graph \
             dwarf): chains that are deeper than the copies have no outermost callers"
                .to_owned(),
        );
    } else if attr.has(bit::CALLCHAIN) && !attr.has_call_chains() {
        findings.push(
            "its call chains are copies of stacks (--call-graph dwarf) that precise cannot unwind: it needs \
             the registers ip, sp and bp of x86-64; with `perf record --call-graph fp` the kernel unwinds"
                .to_owned(),
        );
    }
    if attr.has_lbr_chains() {
        findings.push(
            "its callers in user space are branch records (--call-graph lbr): at most the last 32 calls"
                .to_owned(),
        );
    }
    let (period, frequency) = match attr.by_frequency() {
        false => (Some(attr.period_or_frequency).filter(|period| *period != 0), None),
        true => (None, Some(attr.period_or_frequency)),
    };
    let info = EventInfo {
        name: described_name(described, pmu),
        encoding: encoding(&attr, pmu),
        hardware_filter: identity::hardware_filter(&kind, attr.config, attr.config1),
        pmu: kind,
        unit: unit(&attr, op, fetch).to_owned(),
        period,
        frequency,
        fields,
        marks_exact: ibs || (software.is_none() && level > 0),
        verdict: Verdict { granted: level, precise, findings, ..Verdict::default() },
        ..EventInfo::default()
    };
    ImportedEvent { attr, registers, copies, no_hitm: cpu.ibs_without_hitm(), info }
}

impl ImportedEvent {
    /// Returns whether samples have call chains.
    pub fn has_chains(&self) -> bool {
        self.copies || self.attr.has_call_chains()
    }
}

/// Returns whether copies of stacks can be unwound: they are of x86-64, as far as the file says,
/// and come with the registers that it takes.
fn unwinds(attr: &Attr, arch: &str) -> bool {
    matches!(arch, "" | "x86_64") && attr.sample.regs_user & UNWIND_REGISTERS == UNWIND_REGISTERS
}

/// Returns the kind of PMU that recorded an event. On a hybrid CPU, `config` of a generic event
/// contains the PMU's number.
fn kind(attr: &Attr, features: &Features, vendor: Vendor) -> PmuKind {
    let number = match (attr.type_, (attr.config >> PMU_TYPE_SHIFT) as u32) {
        (TYPE_HARDWARE | TYPE_CACHE, number @ 1..) => number,
        _ => attr.type_,
    };
    identity::kind(features.pmu(number).unwrap_or_default(), attr.type_, attr.config, vendor)
}

fn software(attr: &Attr) -> Option<&'static Software> {
    SOFTWARE.iter().find(|event| attr.type_ == pmu_type::SOFTWARE && event.config == attr.config)
}

fn unit(attr: &Attr, op: bool, fetch: bool) -> &'static str {
    let hardware =
        HARDWARE.iter().find(|event| attr.type_ == pmu_type::HARDWARE && event.config == attr.config & 0xff);
    match (software(attr), hardware) {
        (Some(event), _) => event.unit,
        (_, Some(event)) => event.unit,
        _ if op && attr.config & COUNTS_OPS != 0 => "ops",
        _ if op => "cycles",
        _ if fetch => "fetches",
        _ => "events",
    }
}

fn described_name(described: &Described, pmu: &str) -> String {
    if described.name.is_empty() { encoding(&described.attr, pmu) } else { described.name.clone() }
}

/// Returns the PMU and the encoding, in perf's syntax.
fn encoding(attr: &Attr, pmu: &str) -> String {
    let precise = "p".repeat(attr.precise_ip().into());
    let (no_user, no_kernel) = attr.excludes();
    let modes = match (no_user, no_kernel) {
        (true, false) => "k",
        (false, true) => "u",
        _ => "",
    };
    let generic = match attr.type_ {
        pmu_type::SOFTWARE => software(attr).and_then(|event| event.names.first()),
        pmu_type::HARDWARE => {
            HARDWARE.iter().find(|event| event.config == attr.config).and_then(|event| event.names.first())
        }
        _ => None,
    };
    let modifiers = format!("{modes}{precise}");
    if let Some(name) = generic {
        let colon = if modifiers.is_empty() { "" } else { ":" };
        return format!("{name}{colon}{modifiers}");
    }
    let mut terms = format!("config={:#x}", attr.config);
    for (name, value) in [("config1", attr.config1), ("config2", attr.config2), ("config3", attr.config3)] {
        if value != 0 {
            terms += &format!(",{name}={value:#x}");
        }
    }
    let pmu = match (pmu, attr.type_) {
        ("", pmu_type::RAW) => "cpu".to_owned(),
        ("", type_) => format!("pmu-{type_}"),
        (name, _) => name.to_owned(),
    };
    format!("{pmu}/{terms}/{modifiers}")
}
