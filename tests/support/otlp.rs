//! Reads OTLP requests with OpenTelemetry's own classes for Python.

use std::{
    collections::BTreeMap,
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::program::python;

/// The program that reads a request, checks it against the rules of the schema, and prints JSON.
const READ: &str = include_str!("otlp.py");

/// Reads a request, which may be compressed.
///
/// # Errors
///
/// Returns an error if it is not a valid request.
pub fn read_request(bytes: &[u8]) -> Result<Value> {
    let mut child = Command::new(python()?)
        .args(["-c", READ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("opentelemetry_proto is missing: `cargo xtask setup` installs it")?;
    child.stdin.take().context("its standard input")?.write_all(bytes)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A sum by service, type of the profile, stack (from the outermost function) and level.
pub type StackSums = BTreeMap<(String, String, String, String), u64>;

/// Returns the sums of a request that was read.
pub fn sums(request: &Value) -> StackSums {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut sums = StackSums::new();
    for resource in list(&request["resources"]) {
        for profile in list(&resource["profiles"]) {
            for sample in list(&profile["samples"]) {
                let mut frames: Vec<String> = list(&sample["stack"]).iter().map(text).collect();
                frames.reverse();
                let key = (
                    text(&resource["attributes"]["service.name"]),
                    text(&profile["type"]),
                    frames.join(";"),
                    text(&sample["attributes"]["precise.level"]),
                );
                *sums.entry(key).or_default() += sample["value"].as_u64().unwrap_or(0);
            }
        }
    }
    sums
}
