//! The parts of tables that have the hours of a span.

use std::sync::Arc;

use crate::bucket::{FleetBucket, FleetError};
use crate::hour::FleetHour;
use crate::manifest::{FleetManifest, FleetPeriod, ManifestPart};
use crate::span::FleetSpan;
use crate::tables::{FleetTable, THINNER, TIERS};

/// The manifests of a span.
pub(crate) struct SpanSources {
    pub span: FleetSpan,
    /// The hours that have tables.
    pub hours: Vec<(FleetHour, FleetManifest)>,
    /// The whole days whose tables have the same captures as those of their hours.
    days: Vec<FleetManifest>,
    /// The first hours of these days.
    of_days: Vec<FleetHour>,
}

/// A part that is read for a question.
pub(crate) struct SourcePart<'a> {
    pub hour: FleetHour,
    pub part: &'a ManifestPart,
    /// Each sample of the part stands for this many.
    pub scale: u64,
}

/// Which parts are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartChoice {
    /// The table of hours. Instead of 24 of its parts, those of a day are read.
    pub table: FleetTable,
    /// The tier of days.
    pub tier: u8,
    /// Only parts of hours.
    pub hourly: bool,
    /// Whether the nodes of samples are needed, and not only their groups.
    pub nodes: bool,
}

impl PartChoice {
    /// Returns the parts of a table.
    pub const fn of_table(table: FleetTable) -> Self {
        Self { table, tier: 0, hourly: false, nodes: false }
    }

    /// Returns the table and the tier of a day that is read instead of its hours; `None` if the day
    /// has none.
    fn of_day(self, day: &FleetManifest) -> Option<(FleetTable, Option<u8>)> {
        // An older precise made days without these tables.
        let grouped = || day.of_table(FleetTable::DayGroup).next().is_some();
        let of = match self.table {
            FleetTable::Hour if self.tier == 0 && !self.nodes && grouped() => (FleetTable::DayGroup, None),
            FleetTable::Hour => (FleetTable::Day, Some(self.tier)),
            FleetTable::Latency => (FleetTable::DayLatency, None),
            FleetTable::Ledger if day.of_table(FleetTable::DayLedger).next().is_some() => {
                (FleetTable::DayLedger, None)
            }
            FleetTable::Instruction if day.instructions => (FleetTable::DayInstruction, None),
            _ => return None,
        };
        Some(of).filter(|_| !self.hourly)
    }
}

impl SpanSources {
    /// Finds the tables of a span: one listing a day.
    pub fn find(bucket: &Arc<dyn FleetBucket>, span: FleetSpan) -> Result<Self, FleetError> {
        let mut found = Self { span, hours: Vec::new(), days: Vec::new(), of_days: Vec::new() };
        for day in span.days() {
            let (hours, whole) = FleetManifest::of_day(bucket, day)?;
            let name = |(hour, of): &(FleetHour, FleetManifest)| FleetPeriod::Hour(*hour).name(of.generation);
            if let Some(whole) = whole.filter(|_| span.has_day(day))
                && whole.of.iter().eq(hours.iter().map(name).collect::<Vec<_>>().iter())
            {
                found.days.push(whole);
                found.of_days.push(day.first());
            }
            found.hours.extend(hours.into_iter().filter(|(hour, _)| span.has(*hour)));
        }
        Ok(found)
    }

    /// Returns the hours without tables.
    pub fn missing(&self) -> Vec<FleetHour> {
        let has = |hour: &FleetHour| self.hours.binary_search_by_key(hour, |(hour, _)| *hour).is_ok();
        (self.span.first.0..self.span.end.0).map(FleetHour).filter(|hour| !has(hour)).collect()
    }

    /// Returns the highest tier that there is.
    pub fn highest_tier(&self) -> u8 {
        if self.days.is_empty() { 0 } else { TIERS - 1 }
    }

    /// Returns the number of days whose own tables are read if they may be.
    pub fn whole_days(&self) -> u64 {
        self.days.len() as u64
    }

    /// Returns the parts that are wanted.
    pub fn parts(&self, wanted: PartChoice) -> Vec<SourcePart<'_>> {
        let mut parts = Vec::new();
        let mut read = Vec::new();
        for (hour, day) in self.of_days.iter().zip(&self.days) {
            let Some((table, tier)) = wanted.of_day(day) else { continue };
            read.push(*hour);
            let own = day.of_table(table).filter(|part| part.tier == tier);
            let scale = THINNER.pow(u32::from(tier.unwrap_or(0)));
            parts.extend(own.map(|part| SourcePart { hour: *hour, part, scale }));
        }
        for (hour, of) in self.hours.iter().filter(|(hour, _)| !read.contains(&hour.day().first())) {
            parts.extend(of.of_table(wanted.table).map(|part| SourcePart { hour: *hour, part, scale: 1 }));
        }
        parts
    }

    /// Returns the hours whose tables have no instructions: an older precise made them.
    pub fn without_instructions(&self) -> Vec<FleetHour> {
        self.hours.iter().filter(|(_, of)| !of.instructions).map(|(hour, _)| *hour).collect()
    }

    /// Returns the parts with the names of functions: of days where there are some.
    pub fn symbols(&self) -> Vec<&ManifestPart> {
        let day = |hour: FleetHour| self.of_days.contains(&hour.day().first());
        let hours = self.hours.iter().filter(|(hour, _)| !day(*hour)).map(|(_, of)| of);
        self.days.iter().chain(hours).flat_map(|of| of.of_table(FleetTable::Symbols)).collect()
    }
}
