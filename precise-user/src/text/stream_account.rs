//! The account of a streaming run: where its samples went.

use precise_common::ledger::{Counter, Fate};
use schemars::JsonSchema;
use serde::Serialize;

use precise_model::digits::thousands;
use precise_model::text::{Cut, sanitize, wrap};
use precise_model::{Capture, Counted, Machine, Meta};
use precise_sampling::stream::{Account, AccountRow};
use precise_views::document::document_line;
use precise_views::render::TextOptions;
use precise_views::render::table::{Table, TableColumn};
use precise_views::trust::{EventTrust, Trust, trust};

/// Formats the account of each event: a line with the verdict, a table that shows where the samples
/// went, and the findings.
///
/// `cpus` is the number of CPUs of the machine. On each of them one period may be in flight.
pub fn account_text(accounts: &[Account], cpus: u32, options: &TextOptions) -> String {
    accounts.iter().map(|account| one(account, cpus, options)).collect()
}

/// Serializes the account as one line of JSON, with its newline. `events` are in the order of the
/// run; `notes` belong to no single event.
///
/// # Errors
///
/// Never returns an error in practice; the error type is serde_json's, for values that cannot be
/// serialized.
pub fn account_json(accounts: &[Account], cpus: u32, notes: &[String]) -> Result<String, serde_json::Error> {
    let events = accounts.iter().map(|account| AccountOfEvent {
        event: &account.event.name,
        encoding: &account.event.encoding,
        period: account.event.period,
        complete: account.is_complete(),
        closes: account.closes(),
        unaccounted: account.unaccounted(),
        rows: rows(account),
        trust: judged(account, cpus).events,
    });
    document_line(&Accounts {
        complete: accounts.iter().all(Account::is_complete),
        events: events.collect(),
        notes,
    })
}

/// The account of a streaming run: where its samples went.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Accounts<'a> {
    /// Whether every sample that passed the filter was written.
    complete: bool,
    /// One entry per event, in the order of the run.
    events: Vec<AccountOfEvent<'a>>,
    /// Notes that belong to no single event, one sentence each.
    notes: &'a [String],
}

/// The account of one event: where its samples went.
#[derive(Debug, Serialize, JsonSchema)]
struct AccountOfEvent<'a> {
    /// Name of the event, as the user wrote it.
    event: &'a str,
    /// PMU and encoding of the event.
    encoding: &'a str,
    /// Sample period: events per sample; null in frequency mode.
    period: Option<u64>,
    /// Whether every sample of the event that passed the filter was written.
    complete: bool,
    /// Whether the rows add up to what the kernel counted.
    closes: bool,
    /// Number of samples that the rows do not account for.
    unaccounted: i64,
    /// Where the samples went, one row per outcome.
    rows: Vec<Row>,
    /// Ledger and verdict: how far the numbers can be trusted.
    trust: Vec<EventTrust>,
}

/// Returns the ledger and verdict of one event.
fn judged(account: &Account, cpus: u32) -> Trust {
    let machine = Machine { cpus, ..Machine::default() };
    let meta = Meta { events: vec![account.event.clone()], machine, ..Meta::default() };
    trust(&Capture { meta, ..Capture::default() })
}

fn one(account: &Account, cpus: u32, options: &TextOptions) -> String {
    let trust = judged(account, cpus);
    let mut out = String::new();
    for event in &trust.events {
        out += &wrap(&format!("{}: {}", sanitize(&event.event), event.summary), options.width, 2);
        out.push('\n');
    }
    out += &table(account).render(options.table_width(), options.style);
    out += &closing(account, options);
    for finding in trust.events.iter().flat_map(|event| &event.findings) {
        out += &wrap(&format!("* {}", sanitize(finding)), options.width, 2);
        out.push('\n');
    }
    out
}

/// A number of samples that had the same outcome.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    what: String,
    samples: u64,
    meaning: String,
}

fn table(account: &Account) -> Table {
    let mut table = Table::new(vec![
        TableColumn::number("Samples"),
        TableColumn::text("What", Cut::End),
        TableColumn::text("Meaning", Cut::End),
    ]);
    for Row { what, samples, meaning } in rows(account) {
        table.row(vec![thousands(samples), what, meaning]);
    }
    table
}

fn rows(account: &Account) -> Vec<Row> {
    let ledger = &account.event.ledger;
    let of = |is: fn(Fate) -> bool| {
        let numbers = ledger.numbers().filter(move |(counted, _)| is(counted.fate()));
        numbers.map(|(counted, samples)| Row { what: counted.label(), samples, meaning: counted.meaning() })
    };
    let mut rows: Vec<Row> = of(|fate| fate == Fate::Arrived).collect();
    // A clause stays even if it rejected nothing; a run that keeps its own samples has no such row.
    let own = Counted::Counter(Counter::Own).label();
    rows.extend(of(|fate| fate == Fate::Rejected).filter(|row| row.samples > 0 || row.what != own));
    for AccountRow { fate, what, samples, meaning } in account.rows() {
        // These rows are shown even if they are zero, because readers look for them.
        if samples > 0 || fate == Fate::Kept || what == "lost" {
            rows.push(Row { what: what.to_owned(), samples, meaning: meaning.to_owned() });
        }
    }
    rows.extend(of(|fate| fate == Fate::Lost).filter(|row| row.samples > 0));
    rows
}

fn closing(account: &Account, options: &TextOptions) -> String {
    let mut out = if account.closes() {
        "Every sample that the program saw is in one of these rows.\n".to_owned()
    } else {
        let text = format!(
            "The rows do NOT add up: they are off by {} of the samples that the program saw. This is a \
             bug in precise.",
            account.unaccounted()
        );
        wrap(&text, options.width, 2) + "\n"
    };
    if account.lost() > 0 {
        let text = "* Samples arrived faster than they were written. Use a larger ring (--ring-pages), \
                    a narrower filter, fewer fields, or a longer period (-c).";
        out += &wrap(text, options.width, 2);
        out.push('\n');
    }
    out
}
