//! The rows of a capture, with names instead of ids.

use std::collections::BTreeSet;

use precise::model::{Capture, Name};

/// A row with its names as text. If a name is not known, the text is the reason in brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Function.
    pub function: String,
    /// Functions that the function is inlined into, from the innermost outwards.
    pub inlined_into: Vec<String>,
    /// Source file.
    pub source: String,
    /// Line.
    pub line: u32,
    /// Module: the file of the code.
    pub module: String,
    /// Process name.
    pub process: String,
    /// Thread name.
    pub thread: String,
    /// Process id.
    pub pid: u32,
    /// Cgroup path.
    pub cgroup: String,
    /// Instruction address.
    pub ip: u64,
    /// Data address.
    pub address: Option<u64>,
    /// CPU.
    pub cpu: Option<u16>,
    /// Whether it is kernel code.
    pub kernel: bool,
    /// Samples.
    pub count: u64,
}

/// A list of rows.
#[derive(Clone, Debug)]
pub struct Rows(pub Vec<Row>);

/// Returns all rows of a capture.
pub fn rows(capture: &Capture) -> Rows {
    let name = |name: Name| match name {
        Name::Known(id) => capture.names.get(id).to_owned(),
        Name::Unknown(reason) => format!("[{}]", reason.as_str()),
    };
    let rows = capture.rows.iter().map(|row| {
        let code = row.code.and_then(|id| capture.code.get(id as usize));
        let text = |of: fn(&precise::model::CodeLocation) -> Name| {
            code.map_or_else(String::new, |code| name(of(code)))
        };
        Row {
            function: text(|code| code.function),
            inlined_into: code
                .into_iter()
                .flat_map(|code| &code.inlined_into)
                .map(|frame| capture.names.get(frame.function).to_owned())
                .collect(),
            source: text(|code| code.source),
            line: code.map_or(0, |code| code.line),
            module: text(|code| code.module),
            process: name(row.process),
            thread: name(row.thread),
            pid: row.pid,
            cgroup: name(row.cgroup),
            ip: code.map_or(0, |code| code.runtime_address),
            address: row.data.and_then(|id| capture.data.get(id as usize)).map(|data| data.runtime_address),
            cpu: row.cpu,
            kernel: row.kernel,
            count: row.measures.count,
        }
    });
    Rows(rows.collect())
}

impl Rows {
    /// Returns the rows that pass a test.
    pub fn only(&self, keep: impl Fn(&Row) -> bool) -> Self {
        Self(self.0.iter().filter(|row| keep(row)).cloned().collect())
    }

    /// Returns the rows of a function.
    pub fn of(&self, function: &str) -> Self {
        self.only(|row| row.function == function)
    }

    /// Returns the number of samples.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|row| row.count).sum()
    }

    /// Returns the distinct values of a property.
    pub fn all<T: Ord>(&self, of: impl Fn(&Row) -> T) -> BTreeSet<T> {
        self.0.iter().map(of).collect()
    }
}
