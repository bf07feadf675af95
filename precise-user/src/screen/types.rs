//! The tab of types. Its answer reads the debug information of binaries, which can take seconds, so
//! the program around the screen makes it: [`Screen::types_question`], [`Screen::types_answered`].

use precise_model::text::sanitize;
use precise_model::{Capture, CompactSort as _, digits::thousands};
use precise_views::render::number::{cycles, share};
use precise_views::types::{SampledType, TypeProfile, TypesEvent};

use super::answers::MOST_LINES;
use super::{Screen, ScreenTable, Tab, TabAnswer, TableLine};

/// The most fields that are shown beside a type.
const FIELDS: usize = 3;

/// The part of the window whose types are wanted.
#[derive(Debug)]
pub struct TypesQuestion {
    /// A copy of what the tables are about.
    pub capture: Capture,
    filter: u64,
}

impl TypesQuestion {
    /// Makes the answer of a profile, or of a sentence that says why there is none.
    pub fn answered(&self, profile: Result<TypeProfile, String>) -> TypesAnswer {
        TypesAnswer { profile, filter: self.filter }
    }
}

/// The types of a part of the window.
#[derive(Debug)]
pub struct TypesAnswer {
    profile: Result<TypeProfile, String>,
    filter: u64,
}

/// What the screen knows of types.
#[derive(Debug, Default)]
pub(super) struct TypesPane {
    /// The number of the filter in effect: an answer about another one is not shown.
    filter: u64,
    /// Whether there is a part of the window that was not asked about.
    is_new: bool,
    /// Whether a question has no answer yet.
    waits: bool,
    profile: Option<Result<TypeProfile, String>>,
}

impl TypesPane {
    /// Notes that there is a newer window.
    pub fn renew(&mut self) {
        self.is_new = true;
    }

    /// Forgets what was known of another part of the window.
    pub fn forget(&mut self) {
        (self.is_new, self.profile) = (true, None);
        self.filter += 1;
    }

    /// Returns the answer of the tab about an event.
    pub fn answer(&self, event: usize) -> TabAnswer {
        match &self.profile {
            None => TabAnswer::Nothing("Reading the debug information of the sampled programs …".to_owned()),
            Some(Err(why)) => TabAnswer::Nothing(sanitize(why)),
            Some(Ok(profile)) => match profile.events.get(event) {
                None => TabAnswer::Nothing("The window has no such event.".to_owned()),
                Some(event) => table(event),
            },
        }
    }
}

impl Screen {
    /// Returns the part of the window whose types the screen wants to show; `None` while the tab is
    /// not open, while it has the newest, and until the last question is answered.
    pub fn types_question(&mut self) -> Option<TypesQuestion> {
        if self.tab != Tab::Types || self.types.waits || !self.types.is_new {
            return None;
        }
        let capture = self.shown.as_ref()?.part().ok()?.clone();
        (self.types.waits, self.types.is_new) = (true, false);
        Some(TypesQuestion { capture, filter: self.types.filter })
    }

    /// Takes the answer to the last question.
    pub fn types_answered(&mut self, answer: TypesAnswer) {
        self.types.waits = false;
        if answer.filter == self.types.filter {
            self.types.profile = Some(answer.profile);
        }
        if self.tab == Tab::Types {
            self.answer = None;
        }
    }
}

fn table(event: &TypesEvent) -> TabAnswer {
    if event.types.is_empty() && event.untyped.is_empty() {
        return TabAnswer::Nothing("No samples yet.".to_owned());
    }
    let timed = event.types.iter().any(|found| found.average.is_some());
    let mut titles = vec!["Share", "Samples"];
    titles.extend(timed.then_some("Avg cycles"));
    titles.extend(["Bytes", "Type", "Fields"]);
    let types = event.types.iter().map(|found| typed(found, timed));
    let untyped = event.untyped.iter().map(|missing| {
        let words = sanitize(&format!("[{}]", missing.words));
        let mut cells = vec![String::new(), thousands(missing.samples)];
        cells.extend(timed.then(String::new));
        cells.extend([String::new(), words.clone(), String::new()]);
        TableLine { cells, about: words }
    });
    TabAnswer::Table(ScreenTable {
        titles: titles.into_iter().map(str::to_owned).collect(),
        names: 2,
        lines: types.chain(untyped).take(MOST_LINES).collect(),
        note: event.too_few.map(|needed| {
            let have = thousands(event.accesses);
            format!("Only {have} accesses. At least {needed} are needed to rank types.")
        }),
    })
}

fn typed(found: &SampledType, timed: bool) -> TableLine {
    let mut cells = vec![share(&found.share), thousands(found.samples)];
    cells.extend(timed.then(|| found.average.map_or_else(|| "-".to_owned(), cycles)));
    let uncertain = if found.uncertain { " (uncertain)" } else { "" };
    let name = sanitize(&format!("{}{uncertain}", found.name));
    let fields = fields(found);
    let about = format!("{name}  {fields}");
    cells.extend([thousands(found.size), name, fields]);
    TableLine { cells, about }
}

/// Returns the fields with most samples, in one text.
fn fields(found: &SampledType) -> String {
    let mut fields: Vec<_> = found.fields.iter().filter(|field| field.samples > 0).collect();
    fields.compact_sort_by_key(|field| std::cmp::Reverse(field.samples));
    let texts = fields.iter().take(FIELDS).map(|field| {
        let part = precise_model::digits::percent(field.share.value);
        sanitize(&format!("{part} {}", field.name))
    });
    texts.collect::<Vec<_>>().join(", ")
}
