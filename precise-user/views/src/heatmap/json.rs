//! Heatmaps as JSON.

use precise_model::CpuGap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::heatmap::{Axis, Heatmap, RangeBase};

/// The JSON document of a heatmap.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HeatmapJson<'a> {
    /// The host name.
    pub host: &'a str,
    /// The names of the events drawn.
    pub events: &'a [String],
    /// What was sampled, in words.
    pub target: &'a str,
    /// The filter as the user wrote it; empty if there was none.
    pub filter: &'a str,
    /// The time from the start of the first epoch to the end of the last one, in nanoseconds.
    pub duration_ns: u64,
    /// The number of samples in all panels.
    pub samples: u64,
    /// Whether the samples were precise: one line per event.
    pub verdict: &'a [String],
    /// Notes for the reader, one sentence each.
    pub notes: &'a [String],
    /// The stretches of time in which a CPU was not measured, because it was offline.
    pub not_measured: &'a [CpuGap],
    /// The columns of the time axis.
    pub columns: Vec<ColumnJson>,
    /// The quantity on the vertical axis.
    pub y: &'static str,
    /// The rows, the lowest first. They are the same in every panel.
    pub rows: Vec<RowJson<'a>>,
    /// The number of samples in the fullest cell.
    pub max_cell: u64,
    /// The panels, most samples first.
    pub panels: Vec<PanelJson<'a>>,
}

/// A column of the time axis.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ColumnJson {
    /// The start, in nanoseconds since the start of the run.
    pub start_ns: u64,
    /// The end, in nanoseconds since the start of the run.
    pub end_ns: u64,
}

/// A row of the vertical axis.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RowJson<'a> {
    /// The function, variable or region, or what the samples of the row lack; `null` for a latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// The first latency (in core cycles) or the first address of the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The first latency (in core cycles) or the first address after the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// What an address is relative to: `variable`, `file` or `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<&'static str>,
}

/// A panel.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PanelJson<'a> {
    /// The title of the panel.
    pub title: &'a str,
    /// The number of samples in the panel.
    pub samples: u64,
    /// `[column, row, samples]` of every cell that has samples. If the governor changed the period,
    /// the number of samples that the shortest period would have given.
    pub cells: Vec<[u64; 3]>,
}

/// Returns the document of a heatmap.
pub fn json(heatmap: &Heatmap) -> HeatmapJson<'_> {
    let header = &heatmap.header;
    let row = RowJson { name: None, from: None, to: None, base: None };
    let mut rows: Vec<RowJson<'_>> = match &heatmap.axis {
        Axis::Latency { edges } => {
            edges.windows(2).map(|e| RowJson { from: Some(e[0]), to: Some(e[1]), ..row.clone() }).collect()
        }
        Axis::Function { names } | Axis::Values { names, .. } => {
            names.iter().map(|n| RowJson { name: Some(n), ..row.clone() }).collect()
        }
        Axis::Address { ranges } => ranges
            .iter()
            .flat_map(|range| {
                let base = match range.base {
                    RangeBase::Variable => "variable",
                    RangeBase::File => "file",
                    RangeBase::Memory => "memory",
                };
                (0..range.rows as u64).map(move |i| {
                    let from = range.start.saturating_add(i.saturating_mul(range.row_bytes));
                    let to = from.saturating_add(range.row_bytes);
                    RowJson { name: Some(&range.name), from: Some(from), to: Some(to), base: Some(base) }
                })
            })
            .collect(),
    };
    rows.extend(heatmap.rest.iter().map(|n| RowJson { name: Some(n), ..row.clone() }));
    let columns = heatmap.columns.len().max(1);
    HeatmapJson {
        host: &header.host,
        events: &header.events,
        target: &header.target,
        filter: &header.filter,
        duration_ns: header.duration_ns,
        samples: header.samples,
        verdict: &header.verdict,
        notes: &header.notes,
        not_measured: &header.gaps,
        columns: heatmap
            .columns
            .iter()
            .map(|c| ColumnJson { start_ns: c.start_ns, end_ns: c.end_ns })
            .collect(),
        y: match heatmap.axis {
            Axis::Latency { .. } => "latency_cycles",
            Axis::Address { .. } => "address",
            Axis::Function { .. } => "function",
            Axis::Values { key, .. } => key.name(),
        },
        rows,
        max_cell: heatmap.max_cell,
        panels: heatmap
            .panels
            .iter()
            .map(|panel| PanelJson {
                title: &panel.title,
                samples: panel.samples,
                cells: (panel.cells.iter().enumerate())
                    .filter(|(_, samples)| **samples > 0)
                    .map(|(i, &samples)| [(i % columns) as u64, (i / columns) as u64, samples])
                    .collect(),
            })
            .collect(),
    }
}
