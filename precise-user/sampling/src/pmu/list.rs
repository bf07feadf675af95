//! The content of `precise list`: presets and events, grouped by the question they answer, with the
//! reason for each one that this machine does not support.

use schemars::JsonSchema;
use serde::Serialize;

use super::encode;
use super::error::EncodeError;
use super::names;
use super::preset::{PresetOptions, events_for};
use super::request::{EventRequest, Exactness, PreciseLevel};
use super::sysfs::Pmus;
use super::tables;
use precise_model::Fields;
use precise_model::Preset;
use precise_model::digits::thousands;

/// All presets and events on this machine.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct EventList {
    /// The CPU's model name.
    pub cpu: String,
    /// Groups of presets by question, then groups of events by origin.
    pub groups: Vec<EventGroup>,
    /// What in sysfs could not be read or parsed, one sentence per problem.
    pub problems: Vec<String>,
}

/// A group of presets or events.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventGroup {
    /// The question that the presets answer, or the origin of the events.
    pub title: String,
    /// The presets or events of the group.
    pub entries: Vec<ListedName>,
}

/// A preset or an event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedName {
    /// The name, as typed on the command line.
    pub name: String,
    /// What the preset shows; empty for a plain event.
    pub summary: String,
    /// The events that are opened for it.
    pub events: Vec<Encoded>,
    /// Why this machine does not support it; `None` if it does.
    pub missing: Option<String>,
    /// What a reader must know about its samples, one sentence each.
    pub notes: Vec<String>,
}

/// One event of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Encoded {
    /// The encoding in perf's syntax.
    pub encoding: String,
    /// What makes its IPs exact, if anything does.
    pub exactness: Exactness,
    /// Whether the event is imprecise on purpose: the imprecise half of `skid`.
    pub imprecise: bool,
    /// The fields that its samples have in addition to the IP.
    pub fields: Fields,
    /// The default period, in units per sample.
    pub default_period: u64,
    /// The unit of the period, in the plural.
    pub unit: String,
    /// The encoding of the event that leads its group; `None` if it needs no leader.
    pub leader: Option<String>,
    /// The filter that is added to it; `None` if there is none.
    pub filter: Option<String>,
}

impl Encoded {
    fn of(request: &EventRequest) -> Self {
        let imprecise = request.precise == PreciseLevel::Given(0);
        Self {
            encoding: request.encoding.clone(),
            exactness: request.exactness.clone(),
            imprecise,
            fields: if imprecise { request.fields_at(0) } else { request.fields },
            default_period: request.default_period,
            unit: request.unit.clone(),
            leader: request.leader.as_ref().map(|leader| leader.encoding.clone()),
            filter: request.filter.clone(),
        }
    }

    /// Returns the encoding with its leader, in perf's braces.
    pub(super) fn full(&self) -> String {
        match &self.leader {
            Some(leader) => format!("{{{leader},{}}}", self.encoding),
            None => self.encoding.clone(),
        }
    }

    /// Formats the event as one line: `cpu/event=0xcd,…/P  exact IP where granted; address,
    /// latency, source; a sample per 10007 loads`.
    pub(super) fn text(&self, encoding: &str) -> String {
        let exact = match self.exactness {
            Exactness::Nature | Exactness::Ibs => "exact IP",
            Exactness::PreciseIp { .. } if self.imprecise => "IP skids",
            Exactness::PreciseIp { .. } => "exact IP if the kernel grants it",
            Exactness::Never(_) => "IP skids",
        };
        let mut has = vec![exact];
        has.extend(self.fields.address.then_some("address"));
        has.extend(self.fields.latency.then_some("latency"));
        has.extend(self.fields.data_source.then_some("data source"));
        let filter = self.filter.as_ref().map(|filter| format!("; filter {filter}")).unwrap_or_default();
        let every = match self.default_period {
            1 => format!("all {}", self.unit),
            period => format!("1 sample per {} {}", thousands(period), self.unit),
        };
        format!("{encoding}: {}; {every}{filter}", has.join(", "))
    }
}

/// Returns all presets and events, with the reason for each one that this machine does not support.
pub fn list(pmus: &Pmus) -> EventList {
    let mut groups: Vec<EventGroup> = Vec::new();
    let mut put = |title: &str, entry: ListedName| match groups.iter_mut().find(|group| group.title == title)
    {
        Some(group) => group.entries.push(entry),
        None => groups.push(EventGroup { title: title.to_owned(), entries: vec![entry] }),
    };
    for preset in Preset::ALL {
        let entry = match events_for(preset, pmus, &PresetOptions::default()) {
            Ok(events) => entry(preset.name(), preset.summary(), &events),
            Err(unsupported) => missing(preset.name(), preset.summary(), unsupported.reason),
        };
        put(preset.question(), entry);
    }
    let mut event = |title: &str, name: &str| match encode::parse(name, pmus) {
        Ok(events) => put(title, entry(name, "", &events)),
        Err(EncodeError::Unsupported { why, .. }) => put(title, missing(name, "", why)),
        Err(error) => put(title, missing(name, "", error.to_string())),
    };
    for event_names in
        names::HARDWARE.iter().map(|event| event.names).chain(names::SOFTWARE.iter().map(|event| event.names))
    {
        if let Some(name) = event_names.first() {
            let software = names::software(name).is_some();
            event(if software { "Software events (-e)" } else { "Hardware events (-e)" }, name);
        }
    }
    for pmu in pmus.pmus.iter().filter(|pmu| !pmu.counts_only()) {
        for name in pmu.events.keys() {
            event(&format!("Events of the PMU {} (-e)", pmu.name), &format!("{}/{name}/", pmu.name));
        }
    }
    for pmu in pmus.cores() {
        for listed in tables::of(pmu, pmus) {
            let name = pmus.event_name(pmu, listed.name, "");
            event(&format!("Precise events of the cores of {} (-e)", pmu.name), &name);
        }
    }
    EventList { cpu: pmus.cpu.name.clone(), groups, problems: pmus.problems.clone() }
}

fn entry(name: &str, summary: &str, events: &[EventRequest]) -> ListedName {
    let mut notes: Vec<String> = Vec::new();
    for event in events {
        let never = match &event.exactness {
            Exactness::Never(why) => Some(why),
            _ => None,
        };
        for note in event.notes.iter().chain(never) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
    }
    let events = events.iter().map(Encoded::of).collect();
    ListedName { name: name.to_owned(), summary: summary.to_owned(), events, missing: None, notes }
}

fn missing(name: &str, summary: &str, why: String) -> ListedName {
    let (name, summary) = (name.to_owned(), summary.to_owned());
    ListedName { name, summary, events: Vec::new(), missing: Some(why), notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn no_line_is_wider_than_asked() {
        for tree in [fixture::spr(), fixture::adl(), fixture::zen5(), fixture::vm()] {
            let text = list(&tree.pmus()).to_text(60);
            for line in text.lines() {
                assert!(line.chars().count() <= 60 || line.trim().split(' ').count() == 1, "{line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }

    #[test]
    fn a_machine_without_a_pmu_says_why_once_and_offers_what_works() {
        let list = list(&fixture::vm().pmus());
        let text = list.to_text(100);
        assert!(text.contains("this VM has no hardware counters"), "{text}");
        assert!(text.contains("not available here: cycles, instructions"), "{text}");
        assert_eq!(text.matches("has no hardware counters").count(), 1, "{text}");
        assert!(text.contains("not available here: cycles, ops, skid [1]\n"), "{text}");
        assert!(text.contains("\n[1] this VM has no hardware counters"), "{text}");
        assert!(!text.contains("msr"), "{text}");
        assert!(text.contains("page-faults: exact IP, address; all page faults"), "{text}");
        let presets = list.groups.iter().flat_map(|group| &group.entries).take(Preset::ALL.len());
        let works: Vec<&str> =
            presets.filter(|entry| entry.missing.is_none()).map(|entry| entry.name.as_str()).collect();
        assert_eq!(works, ["clock", "faults"]);
    }

    #[test]
    fn the_list_shows_leaders_and_filters() {
        let text = list(&fixture::spr().pmus()).to_text(200);
        let group = "{cpu/event=0x3,umask=0x82/,cpu/event=0xcd,umask=0x1,ldlat=0x1e/P}: exact IP if";
        assert!(text.contains(group), "{text}");
        let text = list(&fixture::zen4().pmus()).to_text(200);
        assert!(text.contains("filter mem_op == load"), "{text}");
        assert!(text.contains("ibs_op/cnt_ctl=0x1/: exact IP, address, latency, data source"), "{text}");
    }

    #[test]
    fn the_list_has_the_events_of_the_tables_with_their_encoding() {
        let text = list(&fixture::skl().pmus()).to_text(200);
        let line = "  mem_load_retired.l1_miss\n    cpu/event=0xd1,umask=0x8/: exact IP if the kernel grants it, address; \
                    1 sample per 100,003 L1 misses\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("cpu/event=0xc6,umask=0x1,frontend=0x401006/P: exact IP"), "{text}");
        let text = list(&fixture::adl().pmus()).to_text(200);
        assert!(text.contains("cpu_atom/mem_load_uops_retired.dram_hit/"), "{text}");
        assert!(text.contains("tlb: the cores of cpu_atom have no tlb, so they are not sampled"), "{text}");
    }

    #[test]
    fn the_list_is_data_too() {
        let json = serde_json::to_value(list(&fixture::zen3().pmus())).unwrap();
        assert_eq!(json["groups"][2]["title"], "Who shares cache lines?");
        assert!(json["groups"][2]["entries"][0]["missing"].as_str().unwrap().contains("Zen 3"));
    }
}
