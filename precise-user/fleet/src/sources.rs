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

    /// Returns the parts of a table of hours, or instead of 24 of them those of a day, of a tier.
    /// `hourly`: only those of hours.
    pub fn parts(&self, table: FleetTable, tier: u8, hourly: bool) -> Vec<SourcePart<'_>> {
        let of_day = match table {
            FleetTable::Hour => Some((FleetTable::Day, Some(tier))),
            FleetTable::Latency => Some((FleetTable::DayLatency, None)),
            _ => None,
        };
        let of_day = of_day.filter(|_| !hourly);
        let mut parts = Vec::new();
        if let Some((table, tier)) = of_day {
            for (hour, day) in self.of_days.iter().zip(&self.days) {
                let own = day.of_table(table).filter(|part| part.tier == tier);
                let scale = THINNER.pow(u32::from(tier.unwrap_or(0)));
                parts.extend(own.map(|part| SourcePart { hour: *hour, part, scale }));
            }
        }
        let day = |hour: FleetHour| self.of_days.contains(&hour.day().first());
        for (hour, of) in self.hours.iter().filter(|(hour, _)| of_day.is_none() || !day(*hour)) {
            parts.extend(of.of_table(table).map(|part| SourcePart { hour: *hour, part, scale: 1 }));
        }
        parts
    }

    /// Returns the parts with the names of functions: of days where there are some.
    pub fn symbols(&self) -> Vec<&ManifestPart> {
        let day = |hour: FleetHour| self.of_days.contains(&hour.day().first());
        let hours = self.hours.iter().filter(|(hour, _)| !day(*hour)).map(|(_, of)| of);
        self.days.iter().chain(hours).flat_map(|of| of.of_table(FleetTable::Symbols)).collect()
    }
}
