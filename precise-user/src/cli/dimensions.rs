//! `--by` of the commands that make captures: group keys, and the dimensions that they need.

use precise::error::{ExitClass, Failure};
use precise::model::Dimension;
use precise::model::keys::Key;

/// Returns the dimensions that the group keys of `--by` need, each once. Keys that every capture
/// has, such as `event`, need none.
pub fn parse(by: &str) -> Result<Vec<Dimension>, Failure> {
    let keys = Key::parse_list(by).map_err(|error| Failure::new(ExitClass::Usage, error.to_string()))?;
    if keys.is_empty() {
        return Err(Failure::new(ExitClass::Usage, "--by names no group key")
            .advise(format!("Group keys are: {}.", Key::list())));
    }
    Ok(Key::dimensions(&keys))
}
