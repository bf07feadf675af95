//! A result to a table, JSON or a picture.

pub mod heatmap_json;
mod heatmap_layout;
pub mod heatmap_plot;
mod heatmap_svg;
#[cfg(test)]
mod heatmap_tests;
pub mod heatmap_text;
pub mod plot;
pub mod plot_colour;
pub mod plot_scale;
