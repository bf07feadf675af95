//! A result to a table, JSON or a picture.

pub mod heatmap_json;
pub mod heatmap_plot;
pub mod heatmap_text;
pub mod plot;
pub mod plot_colour;
pub mod plot_scale;
