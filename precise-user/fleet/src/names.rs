//! Names of functions.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::bucket::{FleetBucket, FleetError};
use crate::manifest::ManifestPart;
use crate::part::{FleetPick, read_part};
use crate::tables::SYMBOLS;

/// A function and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionName {
    /// The name, or in brackets the file and why there is none.
    pub name: String,
    pub module: Option<String>,
    pub build_id: String,
    /// Whether `name` is that of a function.
    pub known: bool,
}

/// Returns the names of the functions that are wanted.
pub(crate) fn names(
    bucket: &Arc<dyn FleetBucket>,
    parts: &[&ManifestPart],
    wanted: &FxHashSet<u64>,
) -> Result<FxHashMap<u64, FunctionName>, FleetError> {
    let mut found: FxHashMap<u64, FunctionName> = FxHashMap::default();
    for part in parts {
        if found.len() == wanted.len() {
            break;
        }
        let [id, name, module, build, reason] = SYMBOLS;
        read_part(bucket, part, &FleetPick::default(), &[id, name, module, build, reason], |batch| {
            for row in batch.rows() {
                let Some(id) = batch.number(0, row) else { continue };
                if wanted.contains(&id) && !found.contains_key(&id) {
                    let module = batch.text(2, row).map(str::to_owned);
                    let build_id = batch.text(3, row).unwrap_or_default().to_owned();
                    let known = batch.text(1, row).is_some();
                    let name = match batch.text(1, row) {
                        Some(name) => name.to_owned(),
                        None => {
                            let file = module.as_deref().and_then(|module| module.rsplit('/').next());
                            let reason = batch.text(4, row).unwrap_or("no name");
                            format!("[{}: {reason}]", file.unwrap_or("unknown file"))
                        }
                    };
                    found.insert(id, FunctionName { name, module, build_id, known });
                }
            }
        })?;
    }
    Ok(found)
}
