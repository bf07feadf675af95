//! The rules and the dashboard, judged by Prometheus itself and by the list of metrics.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{checkout, process};

const RULES: &str = "packaging/prometheus/precise.rules.yml";
const TESTS: &str = "packaging/prometheus/precise.rules.test.yml";
const DASHBOARD: &str = "packaging/grafana/precise.json";
/// The page that a test keeps equal to the metrics that are served.
const METRICS: &str = "docs/serve.md";

/// Runs the check.
pub fn check(folder: &Path) -> Result<()> {
    let promtool = checkout::unpacked("prometheus").join("usr/bin/promtool");
    let run = |arguments: &[&str]| {
        process::output(Command::new(&promtool).current_dir(checkout::root()).args(arguments))
    };
    run(&["check", "rules", RULES])?;
    run(&["test", "rules", TESTS])?;

    let dashboard = fs::read_to_string(checkout::root().join(DASHBOARD))
        .with_context(|| format!("cannot read {DASHBOARD}"))?;
    let dashboard: Value =
        serde_json::from_str(&dashboard).with_context(|| format!("{DASHBOARD} is not JSON"))?;
    let queries = queries(&dashboard);
    ensure!(!queries.is_empty(), "{DASHBOARD} asks for nothing");
    // Prometheus reads the queries of the dashboard as rules.
    let file = folder.join("dashboard.rules.json");
    let rules: Vec<Value> = queries
        .iter()
        .enumerate()
        .map(|(n, query)| serde_json::json!({ "record": format!("query:{n}"), "expr": plain(query) }))
        .collect();
    let rules = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    fs::write(&file, rules.to_string()).with_context(|| format!("cannot write {}", file.display()))?;
    run(&["check", "rules", &file.display().to_string()])?;

    let known = fs::read_to_string(checkout::root().join(METRICS))
        .with_context(|| format!("cannot read {METRICS}"))?;
    let rules =
        fs::read_to_string(checkout::root().join(RULES)).with_context(|| format!("cannot read {RULES}"))?;
    for metric in queries.iter().map(String::as_str).chain([rules.as_str()]).flat_map(metrics) {
        let served = metric.strip_suffix("_bucket").unwrap_or(metric);
        ensure!(
            known.contains(&format!("`{served}`")) || rules.contains(&format!("record: {metric}")),
            "{RULES} or {DASHBOARD} asks for {metric}, which {METRICS} does not list"
        );
    }
    Ok(())
}

/// Returns the queries of a dashboard: every `expr` in it.
fn queries(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let own = map.get("expr").and_then(Value::as_str).map(str::to_owned);
            own.into_iter().chain(map.values().flat_map(queries)).collect()
        }
        Value::Array(list) => list.iter().flat_map(queries).collect(),
        _ => Vec::new(),
    }
}

/// Returns a query with Grafana's variables replaced.
fn plain(query: &str) -> String {
    query.replace("$__rate_interval", "5m").replace("$__interval", "1m").replace("$instance", ".*")
}

/// Returns the words of a text that are metrics of precise.
fn metrics(text: &str) -> BTreeSet<&str> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':');
    text.split(word).filter(|word| word.starts_with("precise_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_of_a_dashboard_is_found() {
        let dashboard = serde_json::json!({ "panels": [
            { "targets": [{ "expr": "rate(precise_a_total[$__rate_interval])" }] },
            { "panels": [{ "targets": [{ "expr": "precise_b" }] }] },
        ] });
        let queries = queries(&dashboard);
        assert_eq!(queries.len(), 2);
        assert_eq!(plain(&queries[0]), "rate(precise_a_total[5m])");
        assert!(metrics(&queries[0]).contains("precise_a_total"));
    }
}
