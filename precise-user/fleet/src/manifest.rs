//! Manifests: which parts are the tables of an hour or a day.
//!
//! A manifest is written once, after the parts that it lists, and only if no manifest of its
//! generation exists. The newest one is valid.

use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bucket::{FleetBucket, FleetError, FleetObject};
use crate::hour::{FleetDay, FleetHour};
use crate::tables::{FleetTable, ROOT};
use crate::together::together;

/// The largest manifest that is read, in bytes.
const LARGEST: u64 = 64 << 20;
/// The number of inputs that a manifest names; the table of inputs has all of them.
pub(crate) const MOST_NAMED: usize = 100;

/// The parts of the tables of an hour or of a day.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FleetManifest {
    /// The hour, `2026-11-24T19`, or the day, `2026-11-24`.
    pub period: String,
    /// Number of the manifest, from 0. Captures that came late make the next one.
    pub generation: u32,
    /// The parts, those of older generations first.
    pub parts: Vec<ManifestPart>,
    /// Number of captures that were read, or of the manifests of hours.
    pub inputs: u64,
    /// Number of samples in the rows.
    pub samples: u64,
    /// Number of inputs about which something is said.
    pub named_total: u64,
    /// Inputs about which something is said: the first hundred, by generation and name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedInput>,
    /// Whether the tables have the instructions of all captures. Older compactors did not keep
    /// them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub instructions: bool,
    /// Names of the manifests of hours that a day was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
}

/// A part of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestPart {
    /// The table.
    pub table: FleetTable,
    /// The tier of a day: each sample is kept with 1/5 for each tier above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// Name of the file below the place.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// First and last service, of a table that is sorted by service. A row without a service has
    /// the empty name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub services: Option<(String, String)>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// An input about which something is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedInput {
    /// Name of the file below the place.
    pub name: String,
    /// The reason.
    pub reason: NamedReason,
    /// The reason in a sentence.
    pub what: String,
}

precise_model::catalogue! {
    /// Why something is said about an input.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum NamedReason: (&'static str, bool) {
        /// Its end is missing: an upload or a run that stopped early.
        Cut => ("cut", false),
        /// It is not a capture, or a damaged one.
        Damaged => ("damaged", false),
        /// A newer precise wrote it.
        Newer => ("newer", false),
        /// It has more bytes, rows or names than are read.
        TooLarge => ("too-large", false),
        /// It begins after it was written: the clock of its node is ahead.
        Future => ("future", false),
        /// It does not say when it began.
        NoTime => ("no-time", false),
        /// Another input has the same contents.
        Duplicate => ("duplicate", false),
        /// It was written more than a day after its end: an upload that came late, or a clock that
        /// is behind. Its samples are in the tables.
        Late => ("late", true),
    }
}

impl NamedReason {
    /// Returns the word for the reason.
    pub const fn word(self) -> &'static str {
        self.entry().0
    }

    /// Returns whether the samples of the input are in the tables.
    pub const fn is_kept(self) -> bool {
        self.entry().1
    }

    /// Returns the reason of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }
}

/// The hour or the day of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FleetPeriod {
    /// An hour.
    Hour(FleetHour),
    /// A day.
    Day(FleetDay),
}

impl FleetPeriod {
    fn day(self) -> FleetDay {
        match self {
            Self::Hour(hour) => hour.day(),
            Self::Day(day) => day,
        }
    }

    /// Returns the name of a manifest. Those of a day and of its hours are in one folder, so that
    /// one listing finds all of them.
    pub(crate) fn name(self, generation: u32) -> String {
        format!("{}{generation:04}.json", self.start())
    }

    /// Returns the start of the names of the period's manifests.
    fn start(self) -> String {
        let folder = folder(self.day());
        match self {
            Self::Hour(hour) => format!("{folder}/hour={:02}-", hour.0 % 24),
            Self::Day(_) => format!("{folder}/day-"),
        }
    }

    /// Returns the newest manifest of this period among objects.
    fn newest(self, objects: &[FleetObject]) -> Option<&FleetObject> {
        let start = self.start();
        let own = |object: &&FleetObject| object.name.starts_with(&start) && object.name.ends_with(".json");
        objects.iter().filter(own).max()
    }
}

/// Returns the folder of the manifests of a day.
fn folder(day: FleetDay) -> String {
    format!("{ROOT}/manifest/{}", day.folder())
}

/// The newest manifests of hours, in order.
pub type HourManifests = Vec<(FleetHour, FleetManifest)>;

impl FleetManifest {
    /// Returns the parts of a table.
    pub fn of_table(&self, table: FleetTable) -> impl Iterator<Item = &ManifestPart> {
        self.parts.iter().filter(move |part| part.table == table)
    }

    /// Returns the newest manifest of a period; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if the manifest cannot be read.
    pub fn newest(bucket: &Arc<dyn FleetBucket>, period: FleetPeriod) -> Result<Option<Self>, FleetError> {
        let found = bucket.objects(&folder(period.day()))?;
        period.newest(&found).map(|object| Self::read(bucket, object)).transpose()
    }

    /// Returns the newest day that has tables; `None` if there are none.
    ///
    /// # Errors
    ///
    /// Returns an error if the folders of the days cannot be listed.
    pub fn newest_day(bucket: &Arc<dyn FleetBucket>) -> Result<Option<FleetDay>, FleetError> {
        let folders = bucket.folders(&format!("{ROOT}/manifest"))?;
        Ok(folders.iter().filter_map(|folder| FleetDay::of_folder(folder)).max())
    }

    /// Returns the newest manifests of a day's hours, in order, and of the day itself. Lists once.
    ///
    /// # Errors
    ///
    /// Returns an error if a manifest cannot be read.
    pub fn of_day(
        bucket: &Arc<dyn FleetBucket>,
        day: FleetDay,
    ) -> Result<(HourManifests, Option<Self>), FleetError> {
        let found = bucket.objects(&folder(day))?;
        let periods = day.hours().map(FleetPeriod::Hour).chain([FleetPeriod::Day(day)]);
        let wanted: Vec<_> = periods.filter_map(|period| Some((period, period.newest(&found)?))).collect();
        let read = together(&**bucket, &wanted, |(_, object)| Self::read(bucket, object))?;
        let (mut hours, mut whole) = (Vec::new(), None);
        for ((period, _), manifest) in wanted.into_iter().zip(read) {
            match period {
                FleetPeriod::Hour(hour) => hours.push((hour, manifest)),
                FleetPeriod::Day(_) => whole = Some(manifest),
            }
        }
        Ok((hours, whole))
    }

    fn read(bucket: &Arc<dyn FleetBucket>, object: &FleetObject) -> Result<Self, FleetError> {
        let wrong = |what: String| FleetError::Manifest { name: object.name.clone(), what };
        if object.bytes > LARGEST {
            return Err(wrong(format!("it has {} bytes", object.bytes)));
        }
        let bytes = bucket.range(&object.name, 0, object.bytes as usize)?;
        let bytes = bytes.ok_or_else(|| wrong("it was removed".to_owned()))?;
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))
    }

    /// Writes the manifest unless one of its generation exists. Returns whether it was written.
    pub(crate) fn write(
        &self,
        bucket: &Arc<dyn FleetBucket>,
        period: FleetPeriod,
    ) -> Result<bool, FleetError> {
        let name = period.name(self.generation);
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| FleetError::Encode { name: name.clone(), what: error.to_string() })?;
        bucket.create(&name, Bytes::from(json))
    }
}
