//! The section of a view on the HTML page, as data.

/// A section of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The anchor of the section, which no other section has.
    pub id: &'static str,
    /// The heading, and the name of the link to the section.
    pub title: &'static str,
    /// Where on the page the section stands.
    pub place: SectionPlace,
    /// The HTML after the heading. Text from the capture must be escaped by `markup::text`.
    pub body: String,
    /// The numbers that the script of the page reads; `None` if it needs none.
    pub numbers: Option<SectionNumbers>,
}

/// The numbers of a section for the script of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionNumbers {
    /// The id of the element that holds them.
    pub id: &'static str,
    /// The numbers as JSON. The page escapes them.
    pub json: String,
}

/// The place of a section, from the top of the page down. Sections of the same place follow the
/// order of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SectionPlace {
    /// Tables of groups of samples: who and where.
    Tables,
    /// Findings: what the reader should do something about.
    Findings,
    /// Pictures of the whole run.
    Pictures,
    /// Lines of source and instructions.
    Code,
    /// How far the capture can be trusted. The head of the page has the sum of it.
    Reliability,
    /// How the capture was made, and what the words of the page mean.
    Making,
}
