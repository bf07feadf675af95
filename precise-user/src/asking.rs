//! Questions to a fleet as people and agents write them: keys and times, the documents that answer,
//! what an error advises, and the code that types are read from.

use std::time::{SystemTime, UNIX_EPOCH};

use precise_code::FunctionId;
use precise_fleet::{
    AskError, FleetAccess, FleetDiff, FleetFunction, FleetKey, FleetLatency, FleetReport, FleetSpan,
    FleetTypes,
};
use precise_model::accesses::NO_CODE;
use precise_views::code::Code;
use precise_views::typing::accessed;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{ExitClass, Failure};

/// The document of `precise fleet report`: where the samples of a fleet are.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ReportDocument<'a>(pub &'a FleetReport);

/// The document of `precise fleet latency`: how long the accesses of a fleet take.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct LatencyDocument<'a>(pub &'a FleetLatency);

/// The document of `precise fleet diff`: what changed in a fleet.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct DiffDocument<'a>(pub &'a FleetDiff);

/// Returns the time now, in nanoseconds since the Unix epoch.
pub fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Parses a time.
///
/// # Errors
///
/// Returns an error that shows how times are written.
pub fn span(text: &str) -> Result<FleetSpan, String> {
    let wrong = || {
        format!(
            "'{text}' is not a time, such as 2026-11-24, 2026-11-24T19 or 2026-11-24T19..2026-11-24T22 (UTC)"
        )
    };
    FleetSpan::parse(text).ok_or_else(wrong)
}

/// Parses a group key.
///
/// # Errors
///
/// Returns an error that lists the keys.
pub fn key(text: &str) -> Result<FleetKey, String> {
    let names = FleetKey::ALL.map(FleetKey::name);
    FleetKey::parse(text.trim()).ok_or_else(|| format!("'{text}' is not a group key: {}", names.join(", ")))
}

/// Parses group keys with commas between.
///
/// # Errors
///
/// Returns an error that lists the keys.
pub fn keys(text: &str) -> Result<Vec<FleetKey>, String> {
    text.split(',').map(key).collect()
}

/// Parses the keys of a question about latencies; `none` is one distribution of everything.
///
/// # Errors
///
/// Returns an error if latencies are not kept by one of the keys.
pub fn latency_keys(text: &str) -> Result<Vec<FleetKey>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let keys = keys(text)?;
    if keys.iter().any(|key| key.is_of_types()) {
        return Err(
            "the tables of latencies are not kept by instruction: `precise fleet types` has the mean \
             latency of each type"
                .to_owned(),
        );
    }
    if keys.contains(&FleetKey::Node) {
        return Err(
            "the tables of latencies are not kept by node: `precise fleet report --by node` has the \
                    mean latency of each"
                .to_owned(),
        );
    }
    Ok(keys)
}

/// Returns the keys of a question that names none.
pub fn usual_keys(service: Option<&str>) -> Vec<FleetKey> {
    match service {
        None => vec![FleetKey::Service],
        Some(_) => vec![FleetKey::Function, FleetKey::Module],
    }
}

/// Checks the keys of a comparison.
///
/// # Errors
///
/// Returns an error if both times have no groups in common.
pub fn check_keys_of_diff(by: &[FleetKey]) -> Result<(), Failure> {
    if !by.contains(&FleetKey::Hour) {
        return Ok(());
    }
    let text = "the hours of two times are never the same, so --by hour compares nothing";
    Err(Failure::new(ExitClass::Usage, text)
        .advise("Choose the hours with --before and --after, or use `precise fleet report --by hour`."))
}

/// Checks the keys of a question about types.
///
/// # Errors
///
/// Returns an error if none of the keys is of types.
pub fn check_keys_of_types(by: &[FleetKey]) -> Result<(), Failure> {
    if by.iter().any(|key| key.is_of_types()) {
        return Ok(());
    }
    let names: Vec<_> = by.iter().map(|key| key.name()).collect();
    let text = format!("--by {} has neither type nor field", names.join(","));
    Err(Failure::new(ExitClass::Usage, text).advise("`precise fleet report` groups by other keys."))
}

/// Says why a question to a place has no answer, and what to do.
pub fn failed(place: &str, error: AskError) -> Failure {
    let text = error.to_string();
    match error {
        AskError::Fleet(error) => error.into(),
        AskError::NoTables { newest, .. } => {
            let compact =
                format!("`precise fleet compact {place}` makes them of the captures that are there");
            let advice = match newest {
                Some(day) => format!("{compact}; --time {day} asks about the newest ones."),
                None => format!("{compact}."),
            };
            Failure::new(ExitClass::NoSamples, format!("{place}: {text}")).advise(advice)
        }
        AskError::NotWithTypes(_) | AskError::NoTypesOfLatencies => Failure::new(ExitClass::Usage, text)
            .advise("Types go with the keys service, function, module and hour."),
        AskError::NoSamples { .. } => Failure::new(ExitClass::NoSamples, format!("{place}: {text}"))
            .advise("`precise fleet report --by service` lists the services and events of the time."),
    }
}

/// The types of the instructions of a fleet, read from the debug information of some code.
pub struct CodeTypes<'a>(pub &'a mut dyn Code);

impl FleetTypes for CodeTypes<'_> {
    fn accesses(
        &mut self,
        function: &FleetFunction,
        wanted: &[u64],
    ) -> Result<Vec<(u64, Vec<FleetAccess>)>, String> {
        let FleetFunction { name, module, build_id, start } = function.clone();
        let id = FunctionId { module, build_id, name, start, kernel: false };
        let code = self.0.types(&id, wanted).map_err(|_| NO_CODE.to_owned())?;
        let of_instruction = code.instructions.iter().map(|instruction| {
            let accesses = instruction.accesses.iter().map(|access| FleetAccess {
                reads: access.reads,
                writes: access.writes,
                found: accessed(access, &code).map_err(str::to_owned),
            });
            (instruction.offset, accesses.collect())
        });
        Ok(of_instruction.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_keys_are_parsed() {
        assert!(span("yesterday").unwrap_err().contains("'yesterday' is not a time"));
        assert_eq!(key(" node"), Ok(FleetKey::Node));
        assert_eq!(keys("service, level"), Ok(vec![FleetKey::Service, FleetKey::Level]));
        let all = "service, function, module, level, node, cluster, hour, type, field";
        assert!(key("pid").unwrap_err().contains(all));
        assert!(latency_keys("none").unwrap().is_empty() && latency_keys("level,node").is_err());
        assert!(latency_keys("type").unwrap_err().contains("precise fleet types"));
        assert!(check_keys_of_diff(&[FleetKey::Hour]).is_err() && check_keys_of_diff(&[]).is_ok());
        assert!(check_keys_of_types(&[FleetKey::Node]).unwrap_err().what.contains("--by node has neither"));
    }
}
