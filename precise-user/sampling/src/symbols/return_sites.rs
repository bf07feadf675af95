//! Checks return addresses: whether a call precedes them in the file that their code is from.

use precise_code::ReturnSite;
use rustc_hash::FxHashMap;

use super::mapping::{MapKind, Mapped};
use super::query::CodeQuery;
use super::resolve::{AddressTarget, Resolver};
use crate::reader::protocol::FileId;

impl Resolver {
    /// Returns what the code says about return addresses, in the order of the queries, each of
    /// which is for the last byte before the address; `None` if there is no file to tell.
    pub fn return_sites(&mut self, queries: &[CodeQuery]) -> Vec<Option<ReturnSite>> {
        let mut sites = Vec::with_capacity(queries.len());
        while let Some(rest) = queries.get(sites.len()..).filter(|rest| !rest.is_empty()) {
            let places = self.places(rest.iter().map(|q| (q.kernel, &q.mapping, q.address)));
            self.forget_closed();
            let mut found = vec![None; places.len()];
            for (file, asked) in self.by_file(rest, &places) {
                let Some(open) = self.files.get(file) else { continue };
                let offsets: Vec<u64> = asked.iter().map(|(_, offset)| *offset).collect();
                match self.reader.return_sites(&open.file, &offsets) {
                    Ok(answers) => {
                        for ((at, _), answer) in asked.into_iter().zip(answers) {
                            if let Some(site) = found.get_mut(at) {
                                *site = answer;
                            }
                        }
                    }
                    Err(why) => {
                        let path = &open.path;
                        self.notes.add(format!("return addresses in {path} are not checked: {why}"));
                    }
                }
            }
            sites.extend(found);
        }
        sites
    }

    /// Returns for each file the queries by their index, with the offset of the return address.
    fn by_file(
        &self,
        queries: &[CodeQuery],
        places: &[AddressTarget],
    ) -> FxHashMap<FileId, Vec<(usize, u64)>> {
        let mut by_file: FxHashMap<FileId, Vec<(usize, u64)>> = FxHashMap::default();
        for (at, (query, place)) in queries.iter().zip(places).enumerate() {
            if let (AddressTarget::File { file, .. }, Ok(mapped)) = (place, &query.mapping)
                && has_code_of_file(mapped)
                // JIT compilers also put code into files.
                && self.files.get(*file).is_some_and(|open| open.elf.is_some())
            {
                let offset = mapped.file_offset(query.address).saturating_add(1);
                by_file.entry(*file).or_default().push((at, offset));
            }
        }
        by_file
    }
}

/// Returns whether the code in a mapping is that of its file: a process may write to others.
fn has_code_of_file(mapped: &Mapped) -> bool {
    !mapped.mapping.writable && matches!(mapped.mapping.kind, MapKind::File | MapKind::Vdso)
}
