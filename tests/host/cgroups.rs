//! Containers side by side: each has its own samples, under its own name.

use anyhow::Result;
use precise_tests::{
    cgroup::Cgroup,
    program::{FUNCTION, faults},
    run::{EVERYWHERE, FAULTS, Live, Recorded, undisturbed},
};

// Primes, so that no sum of some of them equals another.
const A: u64 = 1009;
const B: u64 = 503;
const CHILD: u64 = 251;

fn count(recorded: &Recorded, cgroup: &str) -> u64 {
    recorded.rows().of(FUNCTION).only(|row| row.cgroup == cgroup).count()
}

#[test]
fn one_of_two_cgroups() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let (a, b) = (Cgroup::new("a")?, Cgroup::new("b")?);
        for read_path in ["direct", "probe"] {
            let options = ["-a", "-G", &a.path, "--duration", "60s", "--read-path", read_path];
            let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
            a.run(&program, [A.to_string()])?;
            b.run(&program, [B.to_string()])?;
            let recorded = live.interrupt()?;
            assert_eq!(count(&recorded, &a.path), A, "{read_path}");
            // No samples of b, or of anything else on this machine.
            assert_eq!(recorded.rows().all(|row| row.cgroup.clone()), [a.path.clone()].into(), "{read_path}");
            assert_eq!(recorded.rows().of(FUNCTION).count(), A, "{read_path}");
            let ledger = recorded.ledger();
            assert_eq!(ledger.unaccounted(), 0, "{ledger:?}");
            assert!(ledger.rejected_total() >= B, "{ledger:?}");
        }
        Ok(())
    })
}

#[test]
fn without_a_filter_both_are_named() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let (a, b) = (Cgroup::new("a")?, Cgroup::new("b")?);
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE].concat())?;
        a.run(&program, [A.to_string()])?;
        b.run(&program, [B.to_string()])?;
        let recorded = live.interrupt()?;
        assert_eq!((count(&recorded, &a.path), count(&recorded, &b.path)), (A, B));
        Ok(())
    })
}

#[test]
fn a_cgroup_is_its_whole_subtree() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let (a, b) = (Cgroup::new("a")?, Cgroup::new("b")?);
        let inner = a.child("inner")?;
        let deepest = inner.child("deepest")?;
        let pattern = format!("{}*", a.path);
        for wanted in [&a.path, &pattern] {
            let options = ["-a", "-G", wanted, "--duration", "60s"];
            let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
            // While it runs: a container that starts late is also below a.
            let late = a.child("late")?;
            deepest.run(&program, [CHILD.to_string()])?;
            b.run(&program, [B.to_string()])?;
            late.run(&program, [A.to_string()])?;
            let recorded = live.interrupt()?;
            assert_eq!(count(&recorded, &deepest.path), CHILD);
            assert_eq!(count(&recorded, &late.path), A);
            assert_eq!(recorded.rows().of(FUNCTION).count(), CHILD + A, "{wanted}");
        }
        let options = ["-a", "-G", &inner.path, "--duration", "60s"];
        let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
        deepest.run(&program, [CHILD.to_string()])?;
        a.run(&program, [A.to_string()])?;
        assert_eq!(
            live.interrupt()?.rows().of(FUNCTION).count(),
            CHILD,
            "the parent is not part of the child"
        );
        Ok(())
    })
}

#[test]
fn an_expression_names_cgroups_too() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let (a, b) = (Cgroup::new("a")?, Cgroup::new("b")?);
        let neither = Cgroup::new("c")?;
        let filter = format!("cgroup in {{\"{}\", \"{}\"}} && comm == faulting", a.path, b.path);
        let options = ["-a", "--filter", &filter, "--duration", "60s"];
        let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
        for (cgroup, pages) in [(&a, A), (&b, B), (&neither, CHILD)] {
            cgroup.run(&program, [pages.to_string()])?;
        }
        let recorded = live.interrupt()?;
        assert_eq!((count(&recorded, &a.path), count(&recorded, &b.path)), (A, B));
        assert_eq!(recorded.rows().of(FUNCTION).count(), A + B);
        Ok(())
    })
}

#[test]
fn a_cgroup_that_is_gone_is_still_named() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let before = Cgroup::new("before")?;
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "10s"]].concat())?;
        // One cgroup that existed when the run started, and one that exists only within an epoch.
        let during = Cgroup::new("during")?;
        before.run(&program, [A.to_string()])?;
        during.run(&program, [B.to_string()])?;
        let (before_path, during_path) = (before.path.clone(), during.path.clone());
        before.remove()?;
        during.remove()?;
        let recorded = live.interrupt()?;
        assert_eq!(count(&recorded, &before_path), A);
        assert_eq!(count(&recorded, &during_path), B);
        Ok(())
    })
}
