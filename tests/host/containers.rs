//! Cgroups as container runtimes create them: reports show their names, and a run includes those
//! that are created while it goes on.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    cgroup::Cgroup,
    clock,
    program::{FUNCTION, faults},
    run::{FAULTS, Live, Recorded, precise, undisturbed},
};

const A: u64 = 1009;
const B: u64 = 503;
const C: u64 = 251;

fn count(recorded: &Recorded, cgroup: &str) -> u64 {
    recorded.rows().of(FUNCTION).only(|row| row.cgroup == cgroup).count()
}

/// Returns a container id that neither a container nor another run of this test uses.
fn id(seed: u32) -> String {
    format!("{:08x}{seed:08x}{}", std::process::id(), "ab".repeat(24))
}

/// The trace that the kubelet leaves of a container: the name of a link. Removed when this is
/// dropped, with the folders that were created for it.
struct Kubelet {
    link: PathBuf,
    made: bool,
}

impl Kubelet {
    fn names(pod: &str, namespace: &str, container: &str, id: &str) -> Result<Self> {
        let folder = Path::new("/var/log/containers");
        let made = !folder.exists();
        fs::create_dir_all(folder)?;
        let link = folder.join(format!("{pod}_{namespace}_{container}-{id}.log"));
        std::os::unix::fs::symlink("/nowhere", &link)?;
        Ok(Self { link, made })
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.link);
        if self.made {
            let _in_use = self.link.parent().map(fs::remove_dir);
        }
    }
}

#[test]
fn a_pattern_means_what_is_made_later_too() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let parent = Cgroup::new("slice")?;
        let before = parent.child("web-before")?;
        let pattern = format!("{}/web-*", parent.path);
        for read_path in ["direct", "probe"] {
            let options = ["-a", "-G", &pattern, "--duration", "60s", "--read-path", read_path];
            let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
            let during = parent.child("web-during")?;
            let other = parent.child("db-during")?;
            // The pattern has one level, and all cgroups below it belong to it.
            let below = during.child("worker")?;
            clock::sleep(Duration::from_millis(1500));
            before.run(&program, [A.to_string()])?;
            during.run(&program, [B.to_string()])?;
            below.run(&program, [C.to_string()])?;
            other.run(&program, [A.to_string()])?;
            parent.run(&program, [A.to_string()])?;
            let recorded = live.interrupt()?;
            assert_eq!(count(&recorded, &before.path), A, "{read_path}");
            assert_eq!(count(&recorded, &during.path), B, "{read_path}");
            assert_eq!(count(&recorded, &below.path), C, "{read_path}");
            assert_eq!(recorded.rows().of(FUNCTION).count(), A + B + C, "{read_path}");
            assert_eq!(recorded.ledger().unaccounted(), 0);
            let notes = &recorded.capture.meta.notes;
            ensure!(notes.iter().any(|note| note.ends_with("2 cgroups matched in total")), "{notes:?}");
        }
        Ok(())
    })
}

#[test]
fn a_pod_is_picked_up_and_named() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?;
        let kubepods = Cgroup::new("kubepods")?;
        let options = ["-a", "-G", "pod:precise-shop/web-*", "--duration", "60s"];
        // No cgroup matches yet, so the run waits.
        let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
        let pod = kubepods.child("pod0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")?;
        let (web, db) = (id(1), id(2));
        let (web_cgroup, db_cgroup) = (pod.child(&web)?, pod.child(&db)?);
        clock::sleep(Duration::from_millis(1200));
        // The names appear after the cgroups.
        let _web = Kubelet::names("web-0", "precise-shop", "nginx", &web)?;
        let _db = Kubelet::names("db-0", "precise-shop", "postgres", &db)?;
        clock::sleep(Duration::from_millis(2500));
        web_cgroup.run(&program, [A.to_string()])?;
        db_cgroup.run(&program, [B.to_string()])?;
        let recorded = live.interrupt()?;
        assert_eq!((count(&recorded, &web_cgroup.path), count(&recorded, &db_cgroup.path)), (A, 0));
        let owner = recorded.capture.meta.owner(&web_cgroup.path).context("an owner")?;
        assert_eq!(owner.name, "precise-shop/web-0/nginx");

        // Reports show the name; JSON also has the path.
        let file = folder.path().join("live.parquet");
        let file = file.to_str().context("a path")?;
        let table = precise(["report", "-i", file, "--by", "cgroup"])?.expect(0)?.stdout;
        ensure!(table.contains("precise-shop/web-0/nginx") && !table.contains(&web), "{table}");
        let json = precise(["report", "-i", file, "--by", "cgroup", "--json"])?.expect(0)?.stdout;
        let json: serde_json::Value = serde_json::from_str(&json)?;
        let value = &json["events"][0]["groups"][0]["values"][0];
        assert_eq!(value["text"], web_cgroup.path.as_str(), "{value}");
        assert_eq!(value["name"], "precise-shop/web-0/nginx", "{value}");
        Ok(())
    })
}
