//! How long a picture takes, by what there is to draw.

use std::rc::Rc;

use anyhow::Result;
use precise::capture::CaptureFile as _;
use precise::model::Capture;
use precise::model::testing::CaptureBuilder;

use super::growth::Growth;
use super::part::Part;
use super::setting::Setting;
use super::tool::Tool;

/// The numbers of epochs.
const EPOCHS: [u64; 3] = [10, 100, 1000];
/// The latencies that each group of processes has in each epoch, each of another bucket.
const LATENCIES: u32 = 100;
/// The groups, which are panels.
const GROUPS: u64 = 8;

/// Returns the parts of this chapter.
///
/// # Errors
///
/// Returns an error if a capture cannot be made.
pub fn parts(setting: &Rc<Setting>) -> Result<Vec<Part>> {
    for (at, epochs) in EPOCHS.into_iter().enumerate() {
        made(epochs).write(&setting.folder.join(file(at)))?;
    }
    let note = "Time from the start to the end of `precise heatmap -y latency --panels cgroup`. Each epoch has 100 \
                latencies of each of 8 cgroups. The answer alone is printed as JSON.";
    let growth = Growth::new("A heatmap of 100 × 8 cells for each epoch", "ms", note, "epochs", &EPOCHS);
    let ways = [
        ("the answer", "--json"),
        ("the answer and a picture, SVG", "-o x.svg"),
        ("the answer and a picture, PNG", "-o x.png"),
    ];
    let growth = ways.into_iter().fold(growth, |growth, (name, options)| {
        let setting = Rc::clone(setting);
        growth.with(name, move |at| {
            let text = format!("heatmap -y latency --panels cgroup {options} {}", file(at));
            Ok(setting.run(&setting.command(Tool::Precise, &text))?.seconds * 1e3)
        })
    });
    Ok(vec![Part::Growth(growth)])
}

fn file(at: usize) -> String {
    format!("heatmap-{at}.parquet")
}

fn made(epochs: u64) -> Capture {
    let mut made = CaptureBuilder::new();
    for epoch in 0..epochs {
        for group in 0..GROUPS {
            for latency in 0..LATENCIES {
                // A power of two has eight buckets.
                let cycles = (4.0 + f64::from(latency) / 8.0).exp2().ceil() as u32;
                let count = 1 + (epoch * 7 + u64::from(latency) * group) % 50;
                let cell = made.cell().epoch(epoch as u32).samples(count).latency(cycles);
                let _row = cell.cgroup(group + 1, &format!("/group-{group}"));
            }
        }
    }
    made.build()
}
