//! Who made the memory: `--by object` names the functions whose page fault made a page, and their
//! callers.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use precise_tests::{program::c, run::precise};
use serde_json::Value;

/// Makes two tables, each by a function of its own.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) void grow_index(char *at) {
    for (long page = 0; page < 300; page++) ((volatile char *)at)[page * 4096] = 1;
}
__attribute__((noinline)) void load_rows(char *at) {
    for (long page = 0; page < 700; page++) ((volatile char *)at)[page * 4096] = 2;
}
int main(void) {
    char *all = mmap(0, 1000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(all, 1000 * 4096, MADV_NOHUGEPAGE);
    // The callers of a program that has just begun are not known yet.
    usleep(700000);
    grow_index(all);
    load_rows(all + 300 * 4096);
    return 0;
}
"#;

/// Two events of page faults sample the same ones: what one of them says of a page is what the
/// other saw there.
#[test]
fn pages_are_named_by_the_function_of_their_fault() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = c(folder.path(), "tables", PROGRAM)?.display().to_string();
    let file = folder.path().join("faults.parquet").display().to_string();
    for (chains, callers) in [(&[][..], ""), (&["-g"], " ← main")] {
        let events = ["record", "-q", "-e", "page-faults", "-e", "minor-faults", "-c", "1"];
        let by = ["--by", "ip,address,process", "-o", &file, "--", &program];
        precise([&events[..], chains, &by].concat())?.expect(0)?;
        let ended = precise(["report", "-i", &file, "--by", "object", "-n", "1000", "--json"])?.expect(0)?;
        objects_are(&serde_json::from_str(&ended.stdout)?, callers)?;
    }
    Ok(())
}

/// Checks the objects of both events; the functions have these callers.
fn objects_are(report: &Value, callers: &str) -> Result<()> {
    let events = report["events"].as_array().context("events")?;
    for name in ["page-faults", "minor-faults"] {
        let event = events.iter().find(|event| event["event"] == name).context(name)?;
        let mut objects: BTreeMap<&str, u64> = BTreeMap::new();
        for group in event["groups"].as_array().context("groups")? {
            let object = &group["values"][0];
            let text = object["text"].as_str().or(object["unknown"].as_str()).context("an object")?;
            *objects.entry(text).or_default() += group["measures"]["count"].as_u64().unwrap_or(0);
        }
        let of = |start: &str| -> u64 {
            objects.iter().filter(|(object, _)| object.starts_with(start)).map(|(_, count)| count).sum()
        };
        assert_eq!(of(&format!("grow_index{callers}")), 300, "{name}: {objects:?}");
        assert_eq!(of(&format!("load_rows{callers}")), 700, "{name}: {objects:?}");
        // No page is without a fault: the event of all faults was sampled, too.
        assert_eq!(of("no-"), 0, "{name}: {objects:?}");
    }
    Ok(())
}
