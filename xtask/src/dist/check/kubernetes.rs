//! The Helm chart and the plain manifest, judged by Helm's own library and Kubernetes' schema.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::dist::packages::CHART;
use crate::{checkout, process};

/// The plain manifest in the checkout: the chart with its defaults.
const PLAIN: &str = "packaging/kubernetes/daemonset.yaml";
/// What the plain manifest says about itself.
const HEAD: &str = "\
# The Helm chart with its default settings, made by `cargo xtask test --step packages`. It expects the
# image in a registry of yours, and a secret `precise` with tls.crt, tls.key and token.
";
/// Values that reach every branch of the templates.
const VALUES: &[&str] = &[
    "{}",
    r#"{"config": {"event": ["loads", "stores"], "series": 100}, "podLabels": {"a": "b"},
        "podAnnotations": {"c": "d"}, "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {"nodeAffinity": {}}, "tolerations": [], "port": 9000,
        "push": {"to": ["otlp=http://collector:4318", "pyroscope=https://pyroscope.example"],
                 "headers": {"otlp": "precise-otlp", "pyroscope": "precise-pyroscope"}},
        "image": {"repository": "registry.example/precise", "tag": "1", "pullPolicy": "Always"}}"#,
];

/// Runs the check.
pub fn check(folder: &Path) -> Result<()> {
    chart_has_the_version()?;
    let mut render = Command::new(checkout::venv().join("bin/python3"));
    render.arg(checkout::root().join("xtask/src/dist/check/render.py")).arg(checkout::root().join(CHART));
    for (number, values) in VALUES.iter().enumerate() {
        let file = folder.join(format!("values-{number}.json"));
        fs::write(&file, values).with_context(|| format!("cannot write {}", file.display()))?;
        render.arg(file);
    }
    let made = format!("{HEAD}{}", process::output(&mut render)?);
    let plain = checkout::root().join(PLAIN);
    if fs::read_to_string(&plain).is_ok_and(|text| text == made) {
        return Ok(());
    }
    let new = folder.join("daemonset.yaml");
    fs::write(&new, made).with_context(|| format!("cannot write {}", new.display()))?;
    anyhow::bail!("{PLAIN} is not what the chart makes; `cp {} {PLAIN}` renews it", new.display())
}

fn chart_has_the_version() -> Result<()> {
    let file = checkout::root().join(CHART).join("Chart.yaml");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    for key in ["version", "appVersion"] {
        let line = format!("\n{key}: {}\n", env!("CARGO_PKG_VERSION"));
        ensure!(text.contains(&line), "{} must say{line}", file.display());
    }
    Ok(())
}
