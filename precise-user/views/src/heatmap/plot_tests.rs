//! Tests of pictures of synthetic captures. With `PRECISE_PICTURES=folder` the pictures are written
//! to that folder for inspection.

use crate::heatmap::plot::*;
use crate::heatmap::tests::{blank, code, data, row};
use crate::heatmap::{Heatmap, HeatmapOptions, heatmap};
use crate::render::raster::tests::decoded;
use precise_common::latency::bucket;
use precise_model::{Capture, Dimension, Name, Reason, Row};
use tiny_skia::Pixmap;

/// Pseudo-random numbers that are the same in every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Returns a number within a quarter of `middle`, more often close to it.
    fn around(&mut self, middle: u64) -> u64 {
        middle * 3 / 4 + (0..4).map(|_| self.below(middle / 8 + 1)).sum::<u64>()
    }
}

fn cgroup(capture: &mut Capture, path: &str) -> (u64, Name) {
    let id = capture.names.intern(path);
    (u64::from(id.0) + 100, Name::Known(id))
}

/// Two cgroups whose loads hit a cache or memory.
pub(crate) fn bimodal() -> Capture {
    services(&["/system.slice/nginx.service", "/kubepods.slice/kubepods-burstable.slice/pod4711/redis"])
}

fn services(paths: &[&str]) -> Capture {
    let mut capture = blank(120);
    for epoch in &mut capture.meta.epochs {
        epoch.start_ns /= 10;
        epoch.end_ns /= 10;
    }
    let mut noise = Noise(1);
    for (i, path) in paths.iter().enumerate() {
        let (cgroup_id, cgroup) = cgroup(&mut capture, path);
        for epoch in 0..120 {
            for (middle, samples) in
                [(14, 300), (48, 60), (320 + 40 * i as u64, 20 + epoch as u64 / 2 * (i as u64 + 1))]
            {
                for _ in 0..(samples / (i as u64 + 1)).max(1) {
                    let cycles = noise.around(middle) as u32;
                    capture.rows.push(Row {
                        cgroup_id,
                        cgroup,
                        latency_bucket: Some(bucket(cycles) as u8),
                        ..row(epoch, 1 + noise.below(5))
                    });
                }
            }
        }
    }
    let event = &mut capture.meta.events[0];
    event.name = "cpu/mem-loads,ldlat=3/P".into();
    capture.meta.filter = "latency > 8 && level != l1".into();
    capture
}

/// Functions with long names, imprecise samples, and a gap in the measured time.
fn functions() -> Capture {
    let mut capture = blank(40);
    for (i, epoch) in capture.meta.epochs.iter_mut().enumerate() {
        if i >= 20 {
            epoch.start_ns += 5_000_000_000;
            epoch.end_ns += 5_000_000_000;
        }
    }
    capture.meta.dimensions = vec![Dimension::Ip];
    let mut noise = Noise(7);
    for f in 0..35u64 {
        let code = code(
            &mut capture,
            &match f % 3 {
                0 => format!(
                    "<alloc::collections::btree::map::BTreeMap<K,V,A> as core::Extend<(K,V)>>::extend_{f}"
                ),
                1 => format!("do_{f}"),
                _ => format!(
                    "std::vector<std::__cxx11::basic_string<char>, std::allocator<char>>::_M_realloc_{f}"
                ),
            },
        );
        for epoch in 0..40 {
            if noise.below(4) > 0 {
                capture.rows.push(Row { code, ..row(epoch, 1 + noise.below(400 / (f + 1))) });
            }
        }
    }
    let event = &mut capture.meta.events[0];
    event.name = "cpu-clock".into();
    event.verdict.precise = false;
    event.verdict.findings =
        vec!["cpu-clock has skid.".into(), "The PMU of this virtual machine has no precise events.".into()];
    capture
}

fn one_epoch() -> Capture {
    let mut capture = blank(1);
    capture.rows = vec![Row { latency_bucket: Some(bucket(200) as u8), ..row(0, 1) }];
    capture
}

fn addresses() -> Capture {
    let mut capture = blank(100);
    let mut noise = Noise(3);
    for epoch in 0..100 {
        for k in 0..60u64 {
            let (region, variable, address) = match k % 4 {
                0 => ("/usr/bin/app", Some("hot_counters"), 0x5500_0000 + noise.below(8) * 64),
                1 => ("[heap]", None, 0x7f10_0000_0000 + (epoch as u64 * 4096 + noise.below(4096)) / 64 * 64),
                2 => ("[stack]", None, 0x7ffd_0000_0000 + noise.below(1 << 13) / 64 * 64),
                _ => ("[anon]", None, 0x7e00_0000_0000 + (noise.below(12) << 32)),
            };
            let data = data(&mut capture, region, variable, address);
            capture.rows.push(Row { data, ..row(epoch, 1 + noise.below(3)) });
        }
        capture.rows.push(row(epoch, 2));
    }
    capture
}

fn many_panels() -> Capture {
    let paths: Vec<String> = (0..12).map(|i| format!("/user.slice/user-{i}.slice")).collect();
    services(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Names made to break out of a page or a terminal.
pub(crate) fn hostile() -> Capture {
    let mut capture = blank(2);
    let evil = "</text><script>alert('1')</script>&\"\x1b[31m\u{202e}\0\u{ffff}";
    let (cgroup_id, cgroup) = cgroup(&mut capture, evil);
    let code = code(&mut capture, evil);
    capture.meta.machine.host = evil.into();
    capture.meta.filter = evil.into();
    capture.meta.notes = vec![evil.into()];
    capture.meta.events[0].name = evil.into();
    capture.meta.events[0].verdict.findings = vec![evil.into()];
    capture.rows = vec![Row { cgroup_id, cgroup, code, ..row(0, 3) }];
    capture.rows.push(Row { cgroup_id: 7, cgroup: Name::Unknown(Reason::ProcessGone), ..row(1, 2) });
    capture
}

/// 300 by 96 cells with different numbers: the most that a picture can hold.
fn dense() -> Capture {
    let mut capture = blank(300);
    let mut noise = Noise(11);
    for epoch in 0..300 {
        for b in 16..112 {
            capture.rows.push(Row { latency_bucket: Some(b), ..row(epoch, 1 + noise.below(1000)) });
        }
    }
    capture
}

/// Ten thousand epochs.
fn long() -> Capture {
    let mut capture = blank(10_000);
    let rows = (0..10_000).map(|e| Row { latency_bucket: Some((e % 200) as u8), ..row(e, 1 + e as u64 % 7) });
    capture.rows = rows.collect();
    capture
}

pub(crate) fn captures() -> Vec<(&'static str, Capture)> {
    vec![
        ("bimodal", bimodal()),
        ("functions", functions()),
        ("one_epoch", one_epoch()),
        ("addresses", addresses()),
        ("many_panels", many_panels()),
        ("hostile", hostile()),
        ("dense", dense()),
        ("long", long()),
    ]
}

fn map(capture: &Capture) -> Heatmap {
    heatmap(capture, &HeatmapOptions { max_columns: 300, ..Default::default() }).unwrap()
}

/// Returns the chunks of a PNG, after checking their checksums.
fn chunks(png: &[u8]) -> Vec<(String, Vec<u8>)> {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let (mut at, mut chunks) = (8, Vec::new());
    while at < png.len() {
        let length = u32::from_be_bytes(png[at..at + 4].try_into().unwrap()) as usize;
        let body = &png[at + 4..at + 8 + length];
        let crc = body.iter().fold(!0u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
        });
        assert_eq!((!crc).to_be_bytes(), png[at + 8 + length..at + 12 + length]);
        chunks.push((String::from_utf8(body[..4].to_vec()).unwrap(), body[4..].to_vec()));
        at += 12 + length;
    }
    chunks
}

/// Returns the pixels of a heatmap's PNG.
fn drawn(map: &Heatmap, width: u32) -> Pixmap {
    decoded(png(map, width).unwrap()).0
}

#[test]
fn pictures_are_whole_and_not_blank() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = std::env::var("PRECISE_PICTURES").map_or(temporary.path().to_owned(), Into::into);
    for (name, capture) in captures() {
        let map = map(&capture);
        let picture = drawn(&map, DEFAULT_WIDTH);
        let (width, height) = (picture.width(), picture.height());
        // Two pixels for each of the SVG.
        assert_eq!(width, 2 * DEFAULT_WIDTH);
        let inked = picture.pixels().iter().filter(|p| (p.red(), p.green(), p.blue()) != (255, 255, 255));
        let inked = inked.count();
        assert!(inked * 20 > (width * height) as usize, "{name}: {inked} pixels are not white");
        let file = png(&map, DEFAULT_WIDTH).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), &file).unwrap();
        let chunks = chunks(&file);
        assert_eq!(chunks[0].0, "IHDR");
        assert_eq!(chunks[0].1[..8], [width.to_be_bytes(), height.to_be_bytes()].concat());
        assert_eq!(chunks.last().unwrap().0, "IEND");
        std::fs::write(folder.join(format!("{name}.svg")), svg(&map, DEFAULT_WIDTH).unwrap()).unwrap();
    }
}

/// Panics unless `svg` is one well-formed element; returns its texts.
fn well_formed(svg: &str) -> Vec<String> {
    let (mut open, mut texts, mut rest) = (Vec::new(), Vec::new(), svg);
    while let Some(at) = rest.find('<') {
        let text = rest[..at].trim();
        assert!(!text.contains('>'), "{text}");
        if !text.is_empty() {
            texts.push(text.to_owned());
        }
        let end = rest.find('>').unwrap();
        let tag = &rest[at + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name.to_owned())),
            None if tag.ends_with('/') => {}
            None => open.push(tag.split(' ').next().unwrap().to_owned()),
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    texts
}

#[test]
fn svgs_are_well_formed_and_small() {
    for (name, capture) in captures() {
        let svg = svg(&map(&capture), DEFAULT_WIDTH).unwrap();
        let texts = well_formed(&svg);
        assert!(texts.iter().any(|t| t.contains("time since the start of the run")), "{name}");
        assert!(svg.len() < 300_000, "{name}: {} bytes", svg.len());
        assert!(!svg.contains("<image"));
    }
}

#[test]
fn hostile_names_stay_text() {
    let svg = svg(&map(&hostile()), DEFAULT_WIDTH).unwrap();
    assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"));
    assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
    assert!(!svg.contains(['\u{202e}', '\u{ffff}']));
}

#[test]
fn full_cells_leave_no_seams() {
    let picture = drawn(&map(&dense()), DEFAULT_WIDTH);
    // From the middle of the picture to the right: inside the plot and outside of all labels.
    let blue = |x: u32, y: u32| picture.pixel(x, y).unwrap().blue();
    let inside = (1200..2200).flat_map(|x| (500..1000).map(move |y| (x, y)));
    let pale = inside.filter(|&(x, y)| blue(x, y) > 200);
    assert_eq!(pale.count(), 0);
}

#[test]
fn sizes_out_of_range_are_refused() {
    let map = map(&one_epoch());
    for width in [0, MIN_WIDTH - 1, MAX_WIDTH + 1, u32::MAX] {
        assert!(svg(&map, width).unwrap_err().to_string().ends_with("a width from 640 to 8000."));
    }
    for width in [MIN_WIDTH, MAX_WIDTH] {
        assert!(svg(&map, width).is_ok(), "{width}");
    }
}
