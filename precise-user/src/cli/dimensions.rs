//! `--by` of what makes captures: names of dimensions.

use precise::error::{Class, Failure};
use precise::model::Dimension;

/// The dimensions of a list of words, each once.
pub fn parse(words: &[String]) -> Result<Vec<Dimension>, Failure> {
    let mut dimensions = Vec::new();
    for word in words {
        let dimension = match word.trim() {
            "function" | "line" | "sym" | "symbol" | "module" | "dso" | "srcline" => Some(Dimension::Ip),
            "pid" | "comm" => Some(Dimension::Process),
            "tid" => Some(Dimension::Thread),
            "addr" | "variable" | "region" | "page" | "cacheline" => Some(Dimension::Address),
            "branch" | "fetch" => Some(Dimension::Outcome),
            "page_size" | "data_page_size" | "data_pgsz" => Some(Dimension::PageSize),
            "level" | "snoop" | "tlb" | "mem" => Some(Dimension::Source),
            name => Dimension::ALL.into_iter().find(|dimension| dimension.as_str() == name),
        };
        let Some(dimension) = dimension else {
            let all: Vec<_> = Dimension::ALL.iter().map(|dimension| dimension.as_str()).collect();
            return Err(Failure::new(Class::Usage, format!("'{word}' is nothing to group by"))
                .advise(format!("There are: {}.", all.join(", "))));
        };
        if !dimensions.contains(&dimension) {
            dimensions.push(dimension);
        }
    }
    Ok(dimensions)
}
