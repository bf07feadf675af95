//! What all answers begin with: what was asked, of which nodes, and what was read.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bucket::FleetBucket;
use crate::census::{CountedNodes, FleetCensus, count};
use crate::gather::Gather;
use crate::manifest::FleetManifest;
use crate::question::{AskError, FleetKey, FleetQuestion};
use crate::sources::SpanSources;
use crate::span::FleetSpan;
use crate::sums::Gathered;
use crate::tables::THINNER;

/// What was asked, of which nodes, and what was read for the answer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetAsked {
    /// The service; `None` for all. The empty name stands for samples without one.
    pub service: Option<String>,
    /// The event; `None` for all.
    pub event: Option<String>,
    /// The first hour, `2026-11-24T19`.
    pub from: String,
    /// The hour after the last.
    pub until: String,
    /// The hours, as they are printed.
    #[serde(skip)]
    pub span: FleetSpan,
    /// The nodes of the fleet.
    pub nodes: FleetCensus,
    /// Nodes with samples of the service; of a thinned tier, at least this many. `None` if all
    /// services were asked for, and of latencies, which are not kept by node.
    pub service_nodes: Option<u64>,
    /// What was read.
    pub read: FleetRead,
}

/// What was read for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FleetRead {
    /// The tier of days: 0 is whole, each further one keeps a fifth of the samples of the one
    /// before.
    pub tier: u8,
    /// One of this many samples was read, of days: 1, 5, 25 or 125.
    pub one_of: u64,
    /// Hours of the time that was asked for.
    pub hours: u32,
    /// Hours without tables.
    pub missing_hours: Vec<String>,
    /// Hours with tables that have no instructions, so that their samples are not among those with
    /// types: an older precise compacted them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hours_without_instructions: Vec<String>,
    /// Days whose own tables were read.
    pub days: u64,
    /// Parts with rows that were wanted.
    pub parts: u64,
    /// Size of these parts, in bytes. Not all of it was read.
    pub part_bytes: u64,
    /// Rows that were added up.
    pub rows: u64,
}

/// The manifests of a question, and its nodes.
pub(crate) struct OpenedTables {
    pub sources: SpanSources,
    pub counted: CountedNodes,
}

impl OpenedTables {
    /// Opens the tables of a span.
    pub fn new(
        bucket: &Arc<dyn FleetBucket>,
        question: &FleetQuestion,
        span: FleetSpan,
    ) -> Result<Self, AskError> {
        let sources = SpanSources::find(bucket, span)?;
        if sources.hours.is_empty() {
            return Err(AskError::NoTables { span, newest: FleetManifest::newest_day(bucket)? });
        }
        let before = SpanSources::find(bucket, span.before())?;
        let counted = count(bucket, &sources, &before, question.event.as_deref())?;
        Ok(Self { sources, counted })
    }

    /// Returns what the answer begins with.
    pub fn asked<S: Gathered>(
        &self,
        question: &FleetQuestion,
        tier: u8,
        gathered: &Gather<S>,
    ) -> Result<FleetAsked, AskError> {
        let FleetQuestion { service, event, .. } = question;
        let span = self.sources.span;
        if gathered.sections.is_empty() {
            let service = service.as_ref().map(|service| match service.as_str() {
                "" => "samples without a service".to_owned(),
                name => format!("the service '{name}'"),
            });
            let event = event.as_ref().map(|event| format!("the event '{event}'"));
            let what: Vec<String> = [service, event].into_iter().flatten().collect();
            let what = if what.is_empty() { "any service".to_owned() } else { what.join(" and ") };
            return Err(AskError::NoSamples { what, span });
        }
        let hourly = question.has(FleetKey::Hour);
        let lacking = if question.has_types() { self.sources.without_instructions() } else { Vec::new() };
        Ok(FleetAsked {
            service: service.clone(),
            event: event.clone(),
            from: span.first.to_string(),
            until: span.end.to_string(),
            span,
            nodes: self.counted.census.clone(),
            service_nodes: service.as_ref().and_then(|_| gathered.nodes()),
            read: FleetRead {
                tier,
                one_of: THINNER.pow(tier.into()),
                hours: span.hours(),
                missing_hours: self.sources.missing().iter().map(ToString::to_string).collect(),
                hours_without_instructions: lacking.iter().map(ToString::to_string).collect(),
                days: if hourly { 0 } else { self.sources.whole_days() },
                parts: gathered.parts,
                part_bytes: gathered.bytes,
                rows: gathered.rows,
            },
        })
    }

    /// Returns how many rows a question reads of a tier, with those of other hours.
    pub fn rows(&self, question: &FleetQuestion, tier: u8) -> u64 {
        let parts = self.sources.parts(question.samples(tier));
        parts.iter().fold(0, |sum: u64, source| sum.saturating_add(source.part.rows))
    }
}
