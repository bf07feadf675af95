//! Files of packaging/ with places for values: `@NAME@`.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::checkout;

/// Reads a file of the checkout and fills in the values.
pub fn fill(path: &str, values: &[(&str, &str)]) -> Result<String> {
    let file = checkout::root().join(path);
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    filled(&text, values).with_context(|| format!("cannot fill in {path}"))
}

fn filled(text: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut filled = text.to_owned();
    for (name, value) in values {
        let place = format!("@{name}@");
        ensure!(filled.contains(&place), "it has no place {place}");
        filled = filled.replace(&place, value);
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_needs_a_place() {
        assert_eq!(filled("v@A@-@A@", &[("A", "1")]).unwrap(), "v1-1");
        assert!(filled("v1", &[("A", "1")]).unwrap_err().to_string().contains("@A@"));
    }
}
