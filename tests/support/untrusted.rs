//! What reads bytes that nobody vouches for: for any bytes each comes back, in bounded time and memory. tests/fuzz looks for
//! bytes with which one does not, with libFuzzer; tests/untrusted.rs goes on from those that it kept.

use precise::capture::CaptureFile as _;
use std::io::Cursor;

use bytes::Bytes;
use precise::capture::Limits;
use precise::filter::parse;
use precise::import::{ImportOptions, import_from};
use precise::kernel::btf::Btf;
use precise::model::Capture;
use precise::records::perf_data::Reader;
use precise::records::record;
use precise::render::TextOptions;
use precise::views::{diff, heatmap, latency, mem, numa, report, summary, tlb};
use precise_common::{data_src::DataSource, ibs, latency as buckets};

/// A recording of perf's: a file, and the same bytes as what comes through a pipe.
pub fn recording(bytes: &[u8]) {
    let options =
        ImportOptions { input: "any".into(), output: "/dev/null".into(), ..ImportOptions::default() };
    let bytes = bytes.to_vec();
    let reader = Reader::file(Cursor::new(bytes.clone())).or_else(|_| Reader::pipe(Cursor::new(bytes)));
    if let Ok(reader) = reader {
        // What becomes of it is looked at elsewhere.
        let _ = import_from(reader, &options);
    }
}

/// A capture, and every view of it.
pub fn capture(bytes: &[u8]) {
    let limits = Limits { rows: 100_000 };
    let Ok(capture) = Capture::read_bytes(Bytes::copy_from_slice(bytes), "any", &limits) else { return };
    let text = TextOptions::default();
    let options = report::ReportOptions::default();
    let _ = report::report(&capture, &options).map(|view| precise::views::document::document(&view, None));
    let _ = summary::summary(&capture, &options)
        .map(|view| precise::views::report::text::summary_text(&view, &text));
    let _ = mem::mem(&capture, &mem::MemOptions::default());
    let _ = latency::latency(&capture, &latency::LatencyOptions::default());
    let _ = tlb::tlb(&capture, &tlb::TlbOptions::default());
    let _ = numa::numa(&capture, None);
    let _ = heatmap::heatmap(&capture, &heatmap::HeatmapOptions::default());
    let _ = diff::diff(&capture, &capture, &diff::DiffOptions::default());
}

/// Every decoder: what a ring holds, what a sample holds, the kernel's types, and the text of a filter.
pub fn decoders(bytes: &[u8]) {
    let word = |at: usize| {
        bytes.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let source = DataSource::decode(word(0));
    let _ = (source.op_name(), source.level.name(), DataSource::as_store(word(0)));
    for op in [
        ibs::Outcome::of_op(word(0), word(1), word(2), word(3) & 1 != 0),
        ibs::Outcome::of_fetch(word(0), false),
    ] {
        let _ =
            (op.width(), op.data_page(), op.source(), ibs::data_source(op, word(3) as u32, word(3) & 2 != 0));
    }
    assert!(buckets::lower(buckets::bucket(word(0) as u32)) <= u64::from(word(0) as u32));
    let _ = ibs::register(bytes, (word(0) & 15) as usize);

    let _ = parse::parse(&String::from_utf8_lossy(bytes));
    let _ = Btf::parse(bytes.to_vec())
        .map(|btf| (btf.offset("perf_sample_data", "period"), btf.function_id("f")));
    if bytes.len() > 40 {
        let layout = record::sample::SampleLayout {
            sample_type: word(0),
            read_format: word(1),
            branch_sample_type: word(2),
            regs_user: word(3),
            regs_intr: word(4),
        };
        let body = Bytes::copy_from_slice(&bytes[40..]);
        let _ = record::sample::decode(body.clone(), &layout);
        let layout = record::Layout { sample_type: word(0), sample_id_all: word(1) & 1 != 0 };
        assert!(record::records(body, layout).count() <= bytes.len());
    }
}
