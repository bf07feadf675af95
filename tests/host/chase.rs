//! A program whose loads have known dependences: each fault is at the expected load, with the
//! expected dependence.

use anyhow::{Context as _, Result};
use precise_tests::{
    program,
    run::{precise, record_faults},
};

const PAGES: u64 = 509;

#[test]
fn each_load_waits_for_what_it_does() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let source = include_str!("../lab/workloads/chase.c");
    let program = program::c(folder.path(), "chase", source)?.display().to_string();
    record_faults(folder.path(), &[], &[&program, "all", &PAGES.to_string()])?;
    let capture = folder.path().join("faults.parquet").display().to_string();
    let sources = folder.path().display().to_string();
    let chase = |more: &[&str]| -> Result<String> {
        let flags = ["chase", "-i", &capture, "--source", &sources];
        Ok(precise([&flags, more].concat())?.expect(0)?.stdout)
    };
    let json: serde_json::Value = serde_json::from_str(&chase(&["--json"])?)?;
    let event = &json["events"][0];
    let sites = event["sites"].as_array().context("a list")?;
    let of = |function: &str, kind: &str| -> Vec<_> {
        let both = |site: &&serde_json::Value| {
            site["function"] == function && site["waits_for"]["kind"] == kind && site["samples"] == PAGES
        };
        sites.iter().filter(both).collect()
    };
    // The last node's next pointer is in a zero page that was never written, so reading it is also
    // a fault.
    for (function, kind, line) in [
        ("list", "chase", "p = p->next"),
        ("list", "behind-chase", "sum += p->value"),
        ("gather", "gather", "sum += data[index[i]]"),
        ("scan", "independent", "sum += data[i * (PAGE / 8)]"),
    ] {
        let found = of(function, kind);
        let [site] = found.as_slice() else { panic!("{function}, {kind}: {sites:#?}") };
        let source = site["source"].as_str().context("the source is here")?;
        assert!(source.contains(line), "{function}: {source}");
        let text = site["instruction"].as_str().context("a text")?;
        assert!(text.contains('('), "a load: {text}");
    }
    assert_eq!(of("list", "chase")[0]["waits_for"]["hops"], 1);
    let from = &of("gather", "gather")[0]["address_from"];
    assert_eq!(from.as_array().context("a list")?.len(), 1, "the index: {from}");
    assert_eq!(event["by_latency"], false);

    let csv = chase(&["-x,"])?;
    assert!(csv.lines().any(|line| line.contains(",chase,1,list,")), "{csv}");
    assert!(chase(&[])?.contains("The samples have no latency"));

    // Without the program there is no result, and the output states so.
    std::fs::remove_file(&program)?;
    let gone: serde_json::Value = serde_json::from_str(&chase(&["--json"])?)?;
    assert!(gone["events"][0]["without"]["no_code"].as_u64() >= Some(4 * PAGES), "{gone:#}");
    Ok(())
}

/// The samples of a timer are not accesses.
#[test]
fn what_is_no_access_names_the_command_that_records_some() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let capture = folder.path().join("clock.parquet").display().to_string();
    precise(["record", "-q", "-o", &capture, "-e", "cpu-clock", "--duration", "300ms"])?;
    let said = precise(["chase", "-i", &capture])?.expect(2)?.stderr;
    assert!(said.contains("precise record -e loads"), "{said}");
    Ok(())
}
