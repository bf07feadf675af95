//! Asks the reader about the addresses of a batch before the batch's turn, so that the reader has
//! work while the batch before it is turned into locations.

use rustc_hash::FxHashMap;

use super::query::CodeQuery;
use super::resolve::{AddressTarget, BatchResolver};
use crate::reader::SentAhead;
use crate::reader::protocol::FileId;

/// Addresses of a file that the reader looks up.
pub struct AskedAhead {
    file: FileId,
    addresses: Vec<u64>,
    sent: SentAhead,
}

impl BatchResolver {
    /// Has the reader look up the addresses of these queries, of which there may be no answer yet,
    /// in the file that has most of them. [`Self::code`] is to be called for these queries, and in
    /// the order of the calls to this.
    pub fn ask_ahead(&mut self, queries: &[CodeQuery]) -> Option<AskedAhead> {
        let places = self.places(queries.iter().map(|query| (query.kernel, &query.mapping, query.address)));
        self.forget_closed();
        let (file, addresses) = self.unanswered(&places).into_iter().max_by_key(|(_, all)| all.len())?;
        let sent = self.files.ask_ahead(&mut self.reader, file, &addresses)?;
        Some(AskedAhead { file, addresses, sent })
    }

    /// Keeps the answers to what was asked ahead.
    pub(super) fn take_ahead(&mut self, asked: AskedAhead) {
        let AskedAhead { file, addresses, sent } = asked;
        // A file that was closed since may be another one when it is asked for again.
        if self.files.get(file).is_some() {
            self.keep_answers(file, addresses, Some(sent));
        } else {
            self.reader.forget_ahead(&sent);
        }
    }

    /// Returns the addresses without an answer by file, in ascending order: neighbours are in the
    /// same part of the debug information.
    pub(super) fn unanswered(&mut self, places: &[AddressTarget]) -> FxHashMap<FileId, Vec<u64>> {
        let mut by_file: FxHashMap<FileId, Vec<u64>> = FxHashMap::default();
        for place in places {
            if let AddressTarget::File { file, vaddr: Some(vaddr) } = *place
                && self.answers.get(&(file, vaddr)).is_none()
            {
                by_file.entry(file).or_default().push(vaddr);
            }
        }
        for addresses in by_file.values_mut() {
            addresses.sort_unstable();
            addresses.dedup();
        }
        by_file
    }
}
