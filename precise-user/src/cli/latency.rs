//! `precise latency`.

use std::path::{Path, PathBuf};

use clap::Args;
use precise::error::{Class, Failure};
use precise::model::keys::Sort;
use precise::render::TextOptions;
use precise::views::gates::GateResult;
use precise::views::latency;
use precise::views::latency::{Latency, LatencyOptions, plot as latency_plot};

use super::{
    Outcome, Output,
    form::{Printers, ViewArguments, keys, no_answer},
    heatmap::{Picture, extension},
    output::say,
};

#[derive(Debug, Args)]
pub struct LatencyArguments {
    #[command(flatten)]
    view: ViewArguments,
    /// Draw histograms into this file instead: .png or .svg
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Width of the picture, pixels
    #[arg(long, default_value_t = 1000, value_name = "PIXELS")]
    width: u32,
    /// Whose latencies: level, function, line, cgroup, process, variable, …; level where it is known
    #[arg(long, value_name = "KEYS")]
    by: Option<String>,
    /// Sort by samples, latency, avg, max, or one of the keys
    #[arg(short, long, value_name = "WHAT", default_value = "samples")]
    sort: String,
    /// Show this many groups
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
}

/// Shows latencies.
pub fn run(arguments: &LatencyArguments, out: &mut Output) -> Outcome {
    let sort = Sort::parse(&arguments.sort).map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
    let options = LatencyOptions {
        by: keys(arguments.by.as_deref())?,
        sort,
        limit: Some(arguments.limit),
        ..LatencyOptions::default()
    };
    let capture = arguments.view.capture()?;
    let view = latency::latency(&capture, &options).map_err(no_answer)?;
    if let Some(path) = &arguments.output {
        draw(&view, arguments.width, path)?;
        return arguments.view.check(&capture);
    }
    let printers = Printers {
        text: |text: &TextOptions| precise::views::latency::text::latency_text(&view, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::views_csv::latency_csv(&view, separator),
    };
    arguments.view.print(&capture, out, printers)
}

/// Draws the one event that has latencies: samples of different events are never in one picture.
fn draw(view: &Latency, width: u32, path: &Path) -> Result<(), Failure> {
    let kind = extension(path)?;
    let drawable: Vec<_> = view.events.iter().filter(|event| event.all.is_some()).collect();
    let [event] = drawable[..] else {
        let what = match drawable.len() {
            0 => "no event of this capture has enough samples with a latency for a picture".to_owned(),
            many => format!("{many} events of this capture have latencies, and a picture shows one"),
        };
        return Err(
            Failure::new(Class::Usage, what).advise("`precise latency` without -o shows them as text.")
        );
    };
    let write = match kind {
        Picture::Png => latency_plot::write_png,
        Picture::Svg => latency_plot::write_svg,
    };
    write(view, event, width, path).map_err(|error| Failure::new(Class::Failed, error.to_string()))?;
    say(&format!("drew {}", path.display()));
    Ok(())
}
