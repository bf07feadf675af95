//! Results to text, JSON, CSV and pictures. Nothing here looks at the terminal: the caller says how wide it is and
//! whether it has colours.

mod annotate_csv;
mod annotate_text;
mod archive_text;
mod branches_text;
mod c2c_csv;
mod c2c_text;
mod call_graph_text;
mod chase_text;
mod check_text;
pub mod cost_text;
mod csv;
mod derived_text;
mod diff_text;
pub mod doctor_text;
mod explain_text;
mod fetch_text;
mod flame_svg;
mod front_csv;
#[cfg(test)]
mod front_tests;
mod group_table;
pub mod heatmap_json;
mod heatmap_layout;
pub mod heatmap_plot;
mod heatmap_svg;
#[cfg(test)]
mod heatmap_tests;
pub mod heatmap_text;
pub mod html;
pub mod import_text;
mod json;
pub mod latency_plot;
mod latency_text;
mod mem_text;
mod numa_text;
pub mod number;
pub mod plot;
mod plot_area;
pub mod plot_colour;
pub mod plot_scale;
#[cfg(test)]
mod render_tests;
mod report_text;
mod run_text;
pub mod safe_json;
pub mod schema;
mod skid_text;
pub mod stream_account;
pub mod stream_json;
#[cfg(test)]
mod stream_tests;
pub mod stream_text;
mod style;
pub mod table;
pub mod text;
mod tlb_text;
mod trust_text;
mod views_csv;
#[cfg(test)]
mod views_tests;

pub use annotate_csv::annotate_csv;
pub use annotate_text::{Detail, annotate_text};
pub use archive_text::archive_text;
pub use branches_text::branches_text;
pub use c2c_csv::c2c_csv;
pub use c2c_text::c2c_text;
pub use call_graph_text::{call_graph_csv, call_graph_text};
pub use chase_text::{chase_csv, chase_text};
pub use check_text::{check_csv, check_text};
pub(crate) use csv::line as csv_line;
pub use csv::report_csv;
pub use derived_text::derived_text;
pub use diff_text::{diff_csv, diff_text};
pub use explain_text::{explain_csv, explain_text};
pub use fetch_text::fetch_text;
pub use flame_svg::flame_svg;
pub use front_csv::{branches_csv, derived_csv, fetch_csv};
pub use json::{Doctor, document, document_line};
pub use latency_text::latency_text;
pub use mem_text::mem_text;
pub use numa_text::numa_text;
pub use report_text::{report_text, summary_text};
pub use skid_text::{skid_csv, skid_text};
pub use style::{Style, Tint};
pub use tlb_text::tlb_text;
pub use trust_text::trust_text;
pub use views_csv::{latency_csv, mem_csv, numa_csv, tlb_csv};

/// What the output goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns.
    pub width: usize,
    /// Colours, or none.
    pub style: Style,
}

impl Default for TextOptions {
    /// What suits a pipe: 80 columns, no colour.
    fn default() -> Self {
        Self { width: 80, style: Style::plain() }
    }
}
