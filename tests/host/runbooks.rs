//! The runbooks on this machine: they end with an answer, whatever it can sample. The lab runs them
//! on known work with the drivers of hardware.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Result, ensure};
use precise_tests::run::binary;

fn runbook(name: &str, folder: &Path, baseline: Option<&Path>) -> Result<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/runbooks").join(format!("{name}.sh"));
    let mut command = Command::new(script);
    command.args(["--duration", "1s"]).env("PRECISE", binary()?).env("EVIDENCE", folder);
    if let Some(baseline) = baseline {
        command.env("BASELINE", baseline);
    }
    let ended = command.stdin(Stdio::null()).output()?;
    let (text, said) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    ensure!(ended.status.success(), "{name}: {}: {text}{said}", ended.status);
    // The reason, and what to read the answer with.
    let instead = text.contains("CPU time and page faults instead");
    ensure!(instead == said.contains("cannot be sampled here"), "{name}: {text}{said}");
    ensure!(!instead || text.contains("A machine with PEBS or IBS would also show"), "{name}: {text}");
    Ok(text.into_owned())
}

#[test]
fn every_runbook_ends_with_an_answer() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // Something to see: processes that start.
    let mut work = Command::new("sh").args(["-c", "while ls / >/dev/null; do :; done"]).spawn()?;
    let run = || -> Result<()> {
        for name in ["false-sharing", "front-end-stall", "noisy-neighbour", "tlb-storm"] {
            let text = runbook(name, &folder.path().join(name), None)?;
            ensure!(
                text.contains("$ precise explain") && text.contains("The evidence is in"),
                "{name}: {text}"
            );
        }
        let before = folder.path().join("before");
        let text = runbook("cold-misses", &before, None)?;
        ensure!(text.contains("This is the baseline"), "{text}");
        let baseline = before.join("before.parquet");
        let text = runbook("cold-misses", &folder.path().join("after"), Some(&baseline))?;
        ensure!(text.contains("Per second") && text.contains("$ precise explain"), "{text}");
        Ok(())
    };
    let result = run();
    work.kill()?;
    work.wait()?;
    result
}
