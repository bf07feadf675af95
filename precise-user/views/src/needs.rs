//! Checks whether a capture has what a view needs, and names the command that records it. All views
//! use these checks, so that their error messages agree.

use super::ViewError;
use super::again::Again;
use super::view::View;
use precise_model::Preset;
use precise_model::keys::Key;
use precise_model::{Capture, Dimension, Fields};

/// The requirements of a view.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The command that has the requirements, as in "`precise mem`".
    pub view: String,
    /// Dimensions that must have been recorded.
    pub dimensions: Vec<Dimension>,
    /// A preset whose samples have these dimensions, for the error message.
    pub preset: Preset,
}

impl Needs {
    /// Returns what a view needs of every capture.
    pub fn of<V: View>() -> Self {
        let view = format!("`precise {}`", V::NAME);
        Self { view, dimensions: V::NEEDS.dimensions.to_vec(), preset: V::NEEDS.preset }
    }

    /// Adds dimensions to the requirements.
    #[must_use]
    pub fn with(mut self, dimensions: &[Dimension]) -> Self {
        self.dimensions.extend(dimensions);
        self
    }

    /// Adds the dimensions that `keys` need.
    #[must_use]
    pub fn and(mut self, keys: &[Key]) -> Self {
        self.dimensions.extend(keys.iter().filter_map(|key| key.dimension()));
        self
    }

    /// Checks whether a capture meets the requirements.
    ///
    /// # Errors
    ///
    /// Returns an error that names what is missing and the command that records it.
    pub fn check(&self, capture: &Capture) -> Result<(), ViewError> {
        let needed = |d: &Dimension| self.dimensions.contains(d);
        let missing = all(|d| needed(d) && !has(capture, *d));
        if missing.is_empty() {
            return Ok(());
        }
        let recorded = |d: &Dimension| capture.meta.dimensions.contains(d);
        let view = self.view.clone();
        let events =
            capture.meta.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>().join(",");
        let unknown: Vec<_> = missing.iter().filter(|d| !known(capture, **d)).map(|d| field(*d)).collect();
        let import = Again::import(capture, &all(needed));
        if unknown.is_empty() || import.is_some() {
            let by = if capture.meta.origin.is_some() {
                missing.clone()
            } else {
                all(|d| recorded(d) || missing.contains(d))
            };
            let again = import.unwrap_or_else(|| Again::record(capture, &events, &by));
            return Err(ViewError::NotRecorded { view, missing: names(&missing, " and "), again });
        }
        // Another event may lack the optional dimensions that this one has.
        let of_any_event = |d: &Dimension| {
            !matches!(
                d,
                Dimension::Address
                    | Dimension::PageSize
                    | Dimension::Source
                    | Dimension::Latency
                    | Dimension::Outcome
            )
        };
        let by = all(|d| needed(d) || recorded(d) && of_any_event(d));
        let usual = |d: &Dimension| {
            !matches!(d, Dimension::Address | Dimension::PageSize | Dimension::Thread | Dimension::Cpu)
        };
        let by = if by.iter().all(usual) { Vec::new() } else { by };
        let again = Again::record(capture, self.preset.name(), &by);
        Err(ViewError::NoSuchSamples { view, what: unknown.join(" and "), events, again })
    }
}

/// Checks whether a capture can be grouped by `keys`.
///
/// # Errors
///
/// Returns an error if dimensions are missing or addresses are too coarse.
pub fn check_keys(capture: &Capture, keys: &[Key]) -> Result<(), ViewError> {
    let preset = match keys.iter().find_map(|key| key.dimension().filter(|d| !has(capture, *d))) {
        Some(Dimension::Outcome) => Preset::Branches,
        Some(Dimension::Latency) => Preset::Loads,
        _ => Preset::Mem,
    };
    Needs { view: "this report".to_owned(), dimensions: Vec::new(), preset }.and(keys).check(capture)?;
    coarse(capture, keys)
}

/// Checks whether the addresses of a capture are fine enough for `keys`.
///
/// # Errors
///
/// Returns an error that says what the addresses are multiples of.
pub fn coarse(capture: &Capture, keys: &[Key]) -> Result<(), ViewError> {
    let granule = capture.meta.address_granule;
    for (key, size) in [(Key::LineAddress, 64), (Key::Page, 4096)] {
        if keys.contains(&key) && granule > size {
            return Err(ViewError::TooCoarse { key: key.name(), granule });
        }
    }
    Ok(())
}

/// Returns whether the run recorded a dimension, or another one that implies it.
pub fn has(capture: &Capture, dimension: Dimension) -> bool {
    let recorded = &capture.meta.dimensions;
    // A run that recorded threads also knows their processes.
    recorded.contains(&dimension)
        || (dimension == Dimension::Process && recorded.contains(&Dimension::Thread))
}

/// Returns the command that makes a capture with a dimension; `None` if this one has it.
pub(crate) fn again(capture: &Capture, dimension: Dimension) -> Option<Again> {
    let needs = Needs { view: String::new(), dimensions: vec![dimension], preset: Preset::Mem };
    needs.check(capture).err()?.again().cloned()
}

/// Returns whether the samples of any event in the capture could have a dimension.
fn known(capture: &Capture, dimension: Dimension) -> bool {
    let any = |has: fn(&Fields) -> bool| capture.meta.events.iter().any(|event| has(&event.fields));
    match dimension {
        Dimension::Address | Dimension::PageSize => any(|fields| fields.address),
        Dimension::Source => any(|fields| fields.data_source),
        Dimension::Latency => any(|fields| fields.latency),
        Dimension::Outcome => any(|fields| fields.outcome),
        Dimension::Ip
        | Dimension::Cgroup
        | Dimension::Process
        | Dimension::Thread
        | Dimension::Cpu
        | Dimension::Stack => true,
    }
}

/// Returns the data that a dimension contains, in words.
fn field(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Ip => "the instruction",
        Dimension::Address => "the data address",
        Dimension::Cgroup => "the cgroup",
        Dimension::Process => "the process",
        Dimension::Thread => "the thread",
        Dimension::Cpu => "the CPU",
        Dimension::Source => "the data source",
        Dimension::Latency => "the latency",
        Dimension::Outcome => "the outcome of a branch or fetch",
        Dimension::Stack => "the call chain",
        Dimension::PageSize => "the page size of the data",
    }
}

fn all(wanted: impl Fn(&Dimension) -> bool) -> Vec<Dimension> {
    Dimension::ALL.into_iter().filter(|d| wanted(d)).collect()
}

fn names(dimensions: &[Dimension], between: &str) -> String {
    dimensions.iter().map(|d| d.as_str()).collect::<Vec<_>>().join(between)
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::testing::Builder;

    fn needs() -> Needs {
        let dimensions = vec![Dimension::Source, Dimension::Latency];
        Needs { view: "`precise latency`".to_owned(), dimensions, preset: Preset::Loads }
    }

    #[test]
    fn the_command_repeats_the_event_where_it_has_what_is_missing() {
        let mut capture = Builder::new().build();
        assert_eq!(needs().check(&capture), Ok(()));
        capture.meta.dimensions = vec![Dimension::Ip, Dimension::Thread];
        assert_eq!(
            needs().check(&capture).unwrap_err().to_string(),
            "`precise latency` needs the dimensions source and latency, which this capture lacks. Record with `precise \
             record -e cycles --by ip,thread,source,latency`."
        );
        assert_eq!(check_keys(&capture, &[Key::Pid, Key::Function]), Ok(()));
    }

    #[test]
    fn and_names_another_preset_where_the_event_has_not() {
        let mut capture = Builder::new().build();
        capture.meta.dimensions = vec![Dimension::Ip];
        capture.meta.events[0].name = "page-faults".into();
        capture.meta.events[0].fields = Fields { address: true, ..Fields::default() };
        assert_eq!(
            needs().check(&capture).unwrap_err().to_string(),
            "`precise latency` needs the data source and the latency, which samples of page-faults do not have. Record \
             others with `precise record -e loads`; `precise list` shows whether this machine supports it."
        );
        // If the recorded event supports the missing dimension, no other event is suggested.
        let error = check_keys(&capture, &[Key::Page]).unwrap_err().to_string();
        assert!(error.contains("`precise record -e page-faults --by ip,address`"), "{error}");
    }
}
