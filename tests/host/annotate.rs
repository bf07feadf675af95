//! Annotates a program that faults known pages: the listing has every sample at the one store that
//! touches them.

use anyhow::{Context as _, Result};
use precise_tests::{
    program::{FUNCTION, LINE, faults},
    run::{precise, record_faults},
};

const PAGES: u64 = 1009;

#[test]
fn every_sample_is_at_the_store() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = faults(folder.path(), "faulting")?.display().to_string();
    record_faults(folder.path(), &[], &[&program, &PAGES.to_string()])?;
    let capture = folder.path().join("faults.parquet").display().to_string();
    let sources = folder.path().display().to_string();
    let annotate = |more: &[&str]| -> Result<serde_json::Value> {
        let flags = ["annotate", "-i", &capture, "--source", &sources, "--json", FUNCTION];
        let ended = precise([&flags, more].concat())?.expect(0)?;
        Ok(serde_json::from_str(&ended.stdout)?)
    };

    let function = &annotate(&[])?["events"][0]["functions"][0];
    assert_eq!((&function["name"], &function["samples"]), (&FUNCTION.into(), &PAGES.into()));
    let listing = function["instructions"].as_array().context("a list")?;
    let sampled: Vec<_> = listing.iter().filter(|listed| listed["samples"] != 0).collect();
    let [store] = sampled.as_slice() else { panic!("{sampled:?}") };
    assert_eq!(store["samples"], PAGES);
    let text = store["text"].as_str().context("a text")?;
    assert!(text.starts_with("movb") && text.ends_with(')'), "a store to memory: {text}");
    assert_eq!(store["frames"][0]["line"], LINE);
    let source = store["source"].as_str().context("the source is here")?;
    assert!(source.contains("p[i * 4096] = 1"), "{source}");
    assert_eq!(function["lines"][0]["samples"], PAGES);

    // A changed binary, or one that is gone, gives no listing; the source lines in the capture
    // remain.
    let names = ["file-changed", "file-missing"];
    for (what, name) in names.iter().enumerate() {
        match what {
            0 => drop(std::fs::copy("/bin/true", &program)?),
            _ => std::fs::remove_file(&program)?,
        }
        let function = &annotate(&[])?["events"][0]["functions"][0];
        assert_eq!(function["no_code"], *name);
        assert_eq!(function["instructions"][0]["samples"], PAGES);
        assert_eq!(function["lines"][0]["place"]["line"], LINE);
    }
    Ok(())
}
