//! How a figure grows with what it depends on.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use precise::model::digits::thousands;
use precise_tests::quantile::median;
use precise_tests::say;

use super::table::number;

/// Measures one size of a [`Curve`].
type Measure = Box<dyn Fn(usize) -> Result<f64>>;

/// What is measured at each size.
struct Curve {
    name: String,
    measure: Measure,
    /// The values of each size, one for each round.
    values: Vec<Vec<f64>>,
}

/// Figures at several sizes.
pub struct Growth {
    title: String,
    unit: &'static str,
    note: String,
    of: &'static str,
    sizes: Vec<u64>,
    curves: Vec<Curve>,
}

impl Growth {
    /// Returns figures without curves. `sizes` has numbers `of` something, ascending.
    pub fn new(
        title: impl Into<String>,
        unit: &'static str,
        note: impl Into<String>,
        of: &'static str,
        sizes: &[u64],
    ) -> Self {
        Self { title: title.into(), unit, note: note.into(), of, sizes: sizes.to_vec(), curves: Vec::new() }
    }

    /// Adds what is measured; `measure` gets the position of the size.
    pub fn with(mut self, name: impl Into<String>, measure: impl Fn(usize) -> Result<f64> + 'static) -> Self {
        let values = vec![Vec::new(); self.sizes.len()];
        self.curves.push(Curve { name: name.into(), measure: Box::new(measure), values });
        self
    }

    /// Measures everything once in each round.
    ///
    /// # Errors
    ///
    /// Returns the first error.
    pub fn measure(&mut self, rounds: usize) -> Result<()> {
        for round in 1..=rounds {
            for curve in &mut self.curves {
                for (at, values) in curve.values.iter_mut().enumerate() {
                    let value = (curve.measure)(at);
                    values.push(value.with_context(|| format!("{}, {}", self.title, curve.name))?);
                }
            }
            say(&format!("{}: round {round} of {rounds}", self.title));
        }
        Ok(())
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let mut out = format!("### {}\n\n", self.title);
        if !self.note.is_empty() {
            out += &format!("{}\n\n", super::page::filled(&self.note));
        }
        let sizes = self.sizes.iter().map(|size| format!(" {} {} |", thousands(*size), self.of));
        let _ = writeln!(out, "| {} |{} order |", self.unit, sizes.collect::<String>());
        let _ = writeln!(out, "|{}", " --- |".repeat(self.sizes.len() + 2));
        for curve in &self.curves {
            let medians: Vec<Option<f64>> = curve.values.iter().map(|values| median(values)).collect();
            let cells = medians.iter().map(|value| format!(" {} |", value.map_or("-".into(), number)));
            let order = self.order(&medians).map_or("-".to_owned(), |order| format!("{order:.2}"));
            let _ = writeln!(out, "| {} |{} {order} |", curve.name, cells.collect::<String>());
        }
        out + "\n"
    }

    /// Returns the exponent of the growth between the last two sizes: 1 is linear.
    fn order(&self, medians: &[Option<f64>]) -> Option<f64> {
        let ([.., small, large], [.., before, last]) = (self.sizes.as_slice(), medians) else { return None };
        let (before, last) = ((*before)?, (*last)?);
        let exponent = (last / before).ln() / (*large as f64 / *small as f64).ln();
        exponent.is_finite().then_some(exponent)
    }
}
