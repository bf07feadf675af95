//! `--require` on a run of known size: a condition that holds gives exit code 0, one that fails
//! gives 68, a sentence, and the capture is kept.

use anyhow::Result;
use precise::capture::CaptureFile as _;
use precise::model::Capture;
use precise_tests::{program::faults, run::precise};

const PAGES: u64 = 1009;
/// The largest number of other faults, of the program and its loader.
const OTHERS: u64 = 1000;

#[test]
fn a_run_passes_or_fails_its_gates() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = faults(folder.path(), "faulting")?.display().to_string();
    let file = folder.path().join("gates.parquet").display().to_string();
    let pages = PAGES.to_string();
    let record = |require: &str, more: &[&str]| {
        let fixed = ["record", "-e", "page-faults", "-c", "1", "-o", &file, "--require", require];
        let command = ["--", &program, &pages];
        precise([&fixed[..], more, &command].concat())
    };
    let good = format!("precise,exact>=100%,coverage>=99%,samples>={PAGES},lost<=0%,symbols>=50%");
    // While another process is inside bpf(2), the kernel runs no program for the events of its CPU:
    // see run.rs.
    let mut runs = (0..5).map(|_| record(&good, &[]));
    let good_run = runs.find(|ended| ended.as_ref().is_ok_and(|ended| ended.code == Some(0)));
    let ended = good_run.unwrap_or_else(|| record(&good, &[]))?.expect(0)?;
    assert!(ended.stdout.contains("Requirements met: precise, exact>=100%"), "{ended:?}");

    std::fs::remove_file(&file)?;
    let much = PAGES + OTHERS + 1_000_000;
    let ended = record(&format!("precise,samples>={much}"), &["--json"])?.expect(68)?;
    let sentence = format!("precise: samples>={much} was required and is not met: page-faults has ");
    assert!(ended.stderr.contains(&sentence), "{ended:?}");
    assert!(ended.stderr.contains("The capture was written."), "{ended:?}");
    let json: serde_json::Value = serde_json::from_str(&ended.stdout)?;
    assert_eq!((&json["gates"][0]["met"], &json["gates"][1]["met"]), (&true.into(), &false.into()));
    assert_eq!(json["gates"][1]["gate"], format!("samples>={much}"));
    assert!(Capture::read(file.as_ref())?.rows.len() as u64 > 0);

    // The same conditions on the file, by report and by heatmap.
    for view in ["report", "heatmap"] {
        precise([view, "-i", &file, "--require", "precise,lost<=0%"])?.expect(0)?;
        let ended =
            precise([view, "-i", &file, "--json", "--require", &format!("samples>={much}")])?.expect(68)?;
        let json: serde_json::Value = serde_json::from_str(&ended.stdout)?;
        assert_eq!(json["gates"][0]["met"], false, "{view}");
    }
    let ended = precise(["report", "-i", &file, "--require", "covrage>=99%"])?.expect(2)?;
    assert!(ended.stderr.contains("valid requirements: precise, coverage, samples"), "{ended:?}");

    // A full table is a loss.
    let ended =
        record("lost<=0%", &["--table-cells", "16", "--by", "ip,address", "--granule", "4K"])?.expect(68)?;
    assert!(ended.stderr.contains("the share of lost samples of"), "{ended:?}");

    // A timer is never precise, and the output states so.
    let ended =
        precise(["record", "-e", "cpu-clock", "-o", &file, "--require", "precise", "--", &program, "100"])?;
    assert!(ended.expect(68)?.stderr.contains("cpu-clock is not precise"));
    Ok(())
}
