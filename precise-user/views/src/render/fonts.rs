//! The built-in fonts of pictures.

use std::sync::LazyLock;

use precise_packed::{PackedFiles, unpack};

use super::plot::PlotError;

static FONTS: LazyLock<Option<PackedFiles>> =
    LazyLock::new(|| unpack(include_bytes!(concat!(env!("OUT_DIR"), "/fonts.z"))).ok());

fn font(name: &str) -> Result<&'static [u8], PlotError> {
    FONTS.as_ref().and_then(|fonts| fonts.find(name)).ok_or(PlotError::Font)
}

/// Returns DejaVu Sans.
pub(super) fn regular() -> Result<&'static [u8], PlotError> {
    font("regular")
}

/// Returns DejaVu Sans Bold.
pub(super) fn bold() -> Result<&'static [u8], PlotError> {
    font("bold")
}
