use std::time::Duration;

use precise_common::ledger::Counter;
use precise_model::testing::{CaptureBuilder, L1, RAM};
use precise_model::{Capture, Dimension, Epoch, Fields, Precision};
use precise_sampling::top::{LiveCost, WindowSnapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

/// A name that would write over the screen of a terminal, if it were printed.
const HOSTILE: &str = "evil\x1b[2J\x1b]0;title\x07\u{202e}name";

/// Returns a window of three seconds in which `parse` waits for memory, and `send` comes last.
fn snapshot() -> WindowSnapshot {
    let mut made = CaptureBuilder::new();
    let app = "/usr/bin/app";
    for epoch in 0..3 {
        let cell = made.cell().epoch(epoch).cgroup(7, "/shop.slice/web").process(10, "app");
        cell.samples(300).latency(200).data_src(RAM).code(
            0x1000,
            app,
            "parse<alloc::string::String>",
            "p.rs",
            7,
        );
    }
    let cell = made.cell().epoch(2).cgroup(8, "/batch.slice").process(11, "batch");
    cell.samples(90).latency(5).data_src(L1).code(0x2000, app, "send", "s.rs", 9);
    let cell = made.cell().epoch(2).cgroup(8, "/batch.slice").process(11, "batch");
    cell.samples(10).latency(9).data_src(L1).code(0x3000, app, HOSTILE, "e.rs", 1);
    let meta = made.meta();
    meta.target = "all processes".into();
    meta.dimensions =
        vec![Dimension::Ip, Dimension::Cgroup, Dimension::Process, Dimension::Source, Dimension::Latency];
    let second = |at: u64| Epoch { start_ns: at * 1_000_000_000, end_ns: (at + 1) * 1_000_000_000 };
    meta.epochs = (0..3).map(second).collect();
    let event = &mut meta.events[0];
    event.name = "loads".into();
    event.fields = Fields { address: false, latency: true, data_source: true, outcome: false };
    event.verdict.requested = Precision::Auto;
    (event.verdict.precise, event.verdict.granted, event.marks_exact) = (true, 3, true);
    for counter in [Counter::Seen, Counter::Aggregated, Counter::Exact] {
        event.ledger.counters.set(counter, 1000);
    }
    (event.ledger.event_count, event.ledger.enabled_ns, event.ledger.running_ns) = (1_000_000, 3, 3);
    event.ledger.counters.set(Counter::PeriodSeen, 1_000_000);
    WindowSnapshot {
        capture: made.build(),
        elapsed: Duration::from_secs(75),
        cost: LiveCost { sampling: 0.0042, budget: Some(0.01), process: 0.013 },
        shortened: None,
    }
}

fn screen() -> Screen {
    let mut screen = Screen::new(Colours::None, false);
    screen.show(snapshot());
    screen
}

/// Returns what a terminal of this size shows.
fn shown(screen: &mut Screen, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y: u16| -> String { (0..columns).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..lines).map(|y| line(y).trim_end().to_owned() + "\n").collect()
}

fn press(screen: &mut Screen, keys: &str) {
    for key in keys.chars() {
        screen.key(if key == '\n' { ScreenKey::Enter } else { ScreenKey::Char(key) });
    }
}

#[test]
fn the_functions_at_the_smallest_usual_size() {
    let wanted = "\
precise top  loads of all processes  last 3.0 s of 75.0 s
▆▆█ 400 samples/s  cost: sampling 0.42% (limit 1.0%), process 1.3%
ledger  seen 1.00k, kept 1.00k, lost 0; closes; coverage 100.0%
verdict precise (level 3 granted), 100.0% of samples exact
1 Functions 2 Lines 3 Levels 4 Cgroups 5 Time 6 Shared 7 Calls 8 Ledger 9 Types
    Share▼  Samples  Latency  Avg  Max  Function                      Module
90.0% ±2.0      900    99.7%  200  200  parse<alloc::string::String>  app
 9.0% ±1.9       90     0.2%    5    5  send                          app
 1.0% ±0.8       10    <0.1%    9    9  evil�[2J�]0;title��name       app
";
    let found = shown(&mut screen(), 80, 24);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[..9].join("\n") + "\n", wanted, "\n{found}");
    assert_eq!(lines[22], "parse<alloc::string::String>  /usr/bin/app");
    assert_eq!(lines[23], "q quit  ? help  / filter  s sort: samples  space pause  w write");
}

#[test]
fn numbers_stay_and_names_are_cut_at_the_end() {
    let found = shown(&mut screen(), 60, 14);
    let line = found.lines().nth(6).unwrap();
    assert!(line.starts_with("90.0% ±2.0      900    99.7%  200  200  parse<al"), "{found}");
    assert!(line.contains('…'), "{found}");
    for line in found.lines() {
        assert!(precise_model::text::width(line) <= 60, "{line}");
    }
}

#[test]
fn every_tab_has_an_answer_or_a_reason_at_both_sizes() {
    let wanted = [
        "parse<alloc",
        "p.rs:7",
        "RAM hit",
        "/shop.slice/web",
        "core cycles upwards",
        "needs the data address",
        "no call chains",
        "Ledger of loads",
        "Reading the debug information",
    ];
    for (columns, lines) in [(80, 24), (200, 60)] {
        let mut screen = screen();
        for (tab, wanted) in ('1'..='9').zip(wanted) {
            press(&mut screen, &tab.to_string());
            let found = shown(&mut screen, columns, lines);
            assert!(found.contains(wanted), "tab {tab} at {columns}×{lines}, {wanted}:\n{found}");
            assert!(!found.contains('\x1b') && !found.contains('\u{202e}'), "{found}");
        }
    }
}

#[test]
fn strips_show_when_a_cgroup_began() {
    let mut screen = screen();
    press(&mut screen, "5");
    let found = shown(&mut screen, 80, 24);
    let web = found.lines().position(|line| line.starts_with("/shop.slice/web (900")).unwrap();
    let batch = found.lines().position(|line| line.starts_with("/batch.slice (100")).unwrap();
    let columns = |from: usize| -> Vec<String> {
        let used = |line: &str| line.chars().skip(18).any(|c| c != ' ');
        found
            .lines()
            .skip(from + 1)
            .take(6)
            .take_while(|l| !l.contains("samples"))
            .filter(|l| used(l))
            .map(|line| line.chars().skip(18).collect())
            .collect()
    };
    assert_eq!(columns(web)[0].chars().filter(|c| *c != ' ').count(), 3, "{found}");
    assert!(columns(batch).iter().all(|line| line.starts_with("  ")), "{found}");
}

#[test]
fn a_filter_narrows_the_window_and_what_is_wrong_is_said() {
    let mut screen = screen();
    press(&mut screen, "/comm == batch");
    assert!(screen.is_typing());
    assert!(shown(&mut screen, 80, 24).ends_with("filter: comm == batch\n"));
    press(&mut screen, "\n");
    let found = shown(&mut screen, 80, 24);
    assert!(!found.contains("parse<") && found.contains("90.0% ±"), "{found}");
    assert!(found.contains("[comm == batch]"), "{found}");
    // A later window is narrowed too, and what is written is not.
    screen.show(snapshot());
    assert!(!shown(&mut screen, 80, 24).contains("parse<"));
    assert_eq!(screen.with_window(|window| window.rows.len()), Some(5));
    press(&mut screen, "/ nonsense\n");
    assert!(screen.is_typing(), "a filter that is wrong stays in the box");
    assert!(shown(&mut screen, 80, 24).contains("nonsense"));
    screen.key(ScreenKey::Escape);
    screen.key(ScreenKey::Escape);
    assert!(shown(&mut screen, 80, 24).contains("parse<"));
    press(&mut screen, "/comm == nobody\n");
    assert!(shown(&mut screen, 80, 24).contains("none of the 1,000 samples"));
}

/// A window of cycles in which an idle CPU has nine of ten samples.
fn idle_snapshot() -> WindowSnapshot {
    let mut made = CaptureBuilder::new();
    made.cell().samples(900).code(0xffff_8000_0000_1000, "[kernel]", "pv_native_safe_halt", "", 0);
    made.cell().samples(100).process(17, "app").code(0x1000, "/bin/app", "parse", "", 0);
    let mut capture = made.build();
    capture.rows.iter_mut().for_each(|row| row.kernel = row.pid == 0);
    WindowSnapshot { capture, elapsed: Duration::from_secs(1), cost: LiveCost::default(), shortened: None }
}

#[test]
fn what_is_written_has_the_idle_cpus_that_no_table_has() {
    let mut screen = Screen::new(Colours::None, false);
    screen.show(idle_snapshot());
    let wanted = idle_snapshot().capture;
    for keys in ["", "/comm == app\n", "/\u{8}"] {
        press(&mut screen, keys);
        let found = shown(&mut screen, 80, 24);
        assert!(found.contains("parse") && !found.contains("safe_halt"), "{found}");
        let same = |window: &Capture| {
            assert_eq!((window.rows.len(), window.meta.events[0].idle), (wanted.rows.len(), None));
            assert_eq!(window.rows.iter().map(|row| row.measures.count).sum::<u64>(), 1000);
        };
        assert!(screen.with_window(same).is_some());
    }
}

#[test]
fn sorting_takes_the_numbers_in_turn() {
    let mut screen = screen();
    let mut orders = Vec::new();
    for _ in 0..6 {
        let found = shown(&mut screen, 120, 24);
        let title = found.lines().nth(5).unwrap().split_whitespace().find(|word| word.ends_with('▼'));
        orders.push(title.unwrap_or_default().to_owned());
        press(&mut screen, "s");
    }
    assert_eq!(orders, ["Share▼", "Events▼", "Latency▼", "Avg▼", "Max▼", "Share▼"]);
}

#[test]
fn the_selection_stays_with_its_line_and_a_pause_keeps_the_window() {
    let mut screen = screen();
    shown(&mut screen, 80, 24);
    screen.key(ScreenKey::Down);
    assert!(shown(&mut screen, 80, 24).contains("\nsend  /usr/bin/app\n"));
    press(&mut screen, " ");
    let mut later = snapshot();
    later.capture.rows[3].measures.count = 9000;
    screen.show(later);
    let found = shown(&mut screen, 80, 24);
    assert!(found.contains("PAUSED") && found.contains("90.0% ±2.0"), "{found}");
    press(&mut screen, " ");
    let found = shown(&mut screen, 80, 24);
    assert!(found.lines().nth(6).unwrap().contains("send"), "{found}");
    assert!(found.contains("\nsend  /usr/bin/app\n"), "{found}");
    screen.key(ScreenKey::End);
    screen.key(ScreenKey::PageUp);
    screen.key(ScreenKey::Home);
    assert_eq!(screen.at, 0);
}

#[test]
fn there_is_a_screen_before_the_first_window_and_in_any_size() {
    let mut empty = Screen::new(Colours::None, false);
    assert!(shown(&mut empty, 80, 24).contains("waiting for the first epoch"));
    assert_eq!(empty.key(ScreenKey::Char('w')), Action::None);
    let mut screen = screen();
    for (columns, lines) in [(1, 1), (10, 40), (59, 12), (60, 12), (300, 100)] {
        for key in "12345678?".chars() {
            screen.key(ScreenKey::Char(key));
            shown(&mut screen, columns, lines);
        }
        screen.key(ScreenKey::Escape);
    }
    assert!(shown(&mut screen, 50, 5).contains("needs 60 columns and 12 lines"));
    assert_eq!(screen.key(ScreenKey::Char('q')), Action::Quit);
    assert_eq!(screen.key(ScreenKey::Char('w')), Action::Write);
}

#[test]
fn bars_are_relative_to_the_largest() {
    assert_eq!(head::sparkline(&[0.0, 1.0, 50.0, 100.0], 10), " ▁▄█");
    assert_eq!(head::sparkline(&[5.0, 1.0, 8.0], 2), "▁█");
    assert_eq!(head::sparkline(&[], 5), "");
}

#[test]
fn an_empty_window_has_an_answer_for_every_tab() {
    let mut screen = Screen::new(Colours::True, true);
    let capture = Capture::default();
    screen.show(WindowSnapshot {
        capture,
        elapsed: Duration::ZERO,
        cost: LiveCost::default(),
        shortened: None,
    });
    for key in "123456789se ".chars() {
        screen.key(ScreenKey::Char(key));
        shown(&mut screen, 80, 24);
    }
}

fn found_types(question: &TypesQuestion) -> TypesAnswer {
    use precise_views::types::{TypesOptions, types};
    let found = types(&question.capture, &TypesOptions::default(), &mut precise_views::code::NoCode);
    question.answered(found.map_err(|error| error.to_string()))
}

#[test]
fn types_are_asked_for_while_the_tab_is_open_and_answered_later() {
    let mut screen = screen();
    assert!(screen.types_question().is_none());
    press(&mut screen, "9");
    let first = screen.types_question().unwrap();
    // The next window comes before the answer, and waits.
    screen.show(snapshot());
    assert!(screen.types_question().is_none());
    screen.types_answered(found_types(&first));
    let found = shown(&mut screen, 80, 24);
    let line = found.lines().find(|line| line.contains("[code not available]"));
    assert!(line.is_some_and(|line| line.contains("  1,000  ")), "{found}");
    assert!(screen.types_question().is_some() && screen.types_question().is_none());
}

#[test]
fn types_of_what_another_filter_selects_are_not_shown() {
    let mut screen = screen();
    press(&mut screen, "9");
    let of_all = screen.types_question().unwrap();
    press(&mut screen, "/comm == batch\n");
    screen.types_answered(found_types(&of_all));
    assert!(shown(&mut screen, 80, 24).contains("Reading the debug information"));
    let of_batch = screen.types_question().unwrap();
    assert_eq!(of_batch.capture.rows.len(), 2);
    screen.types_answered(found_types(&of_batch));
    assert!(!shown(&mut screen, 80, 24).contains("Reading the debug information"));
}
