//! Callers that many call chains share.
//!
//! Each row group has the texts of its own chains. A program that repeats itself has the same
//! chains in each of them, and two different chains mostly have the same callers: a million samples
//! of a Python program have 650 MB of chains in 20 row groups, and 1400 different callers. So the
//! text of each caller is decoded once, and then it is only compared.

use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::file::Column;
use super::read_columns::utf8;
use super::stack_json;
use precise_model::{CodeLocation, Interner, LocationId, Names};

/// The callers of a chain.
pub(super) enum ChainCallers {
    /// Their places in [`KnownCallers`].
    Known(Vec<u32>),
    /// Callers that are not remembered.
    Own(Vec<CodeLocation>),
}

/// The callers that were decoded so far.
#[derive(Default)]
pub(super) struct KnownCallers {
    all: Vec<KnownCaller>,
    /// The places of callers by the hash of [`start`]. No two callers have the same start, so that
    /// a caller is found, or not, with one comparison.
    places: HashTable<u32>,
    /// Seeds the hash: who wrote the capture chose the texts.
    seed: RandomState,
    /// The bytes that all of this takes.
    bytes: u64,
}

struct KnownCaller {
    /// A JSON object. No JSON object is the beginning of a longer one, so a text that begins with
    /// this one has this caller.
    text: Box<str>,
    hash: u64,
    location: CodeLocation,
    /// The place of the location in the capture, once a row has it.
    id: Option<LocationId>,
    /// The place of the caller that came after it the last time.
    next: u32,
}

impl KnownCallers {
    /// Decodes the callers of a chain. No more callers are remembered once they take `most` bytes.
    pub fn decode(&mut self, text: &[u8], names: &mut Names, most: u64) -> Result<ChainCallers, String> {
        if let Some(places) = self.known(text) {
            return Ok(ChainCallers::Known(places));
        }
        let text = utf8(Column::Stack.name(), text)?;
        match self.learned(text, names, most) {
            Some(places) => Ok(ChainCallers::Known(places)),
            None => stack_json::decode(text, names).map(ChainCallers::Own),
        }
    }

    /// Forgets all callers if they take more than `most` bytes. Places that were returned are not
    /// valid any more.
    pub fn make_room(&mut self, most: u64) {
        if self.bytes > most {
            *self = Self::default();
        }
    }

    /// Returns the location of a caller, and its place in the capture if a row has it.
    pub fn get(&self, place: u32) -> Option<(&CodeLocation, Option<LocationId>)> {
        self.all.get(place as usize).map(|caller| (&caller.location, caller.id))
    }

    /// Notes the place of a caller in the capture.
    pub fn set_id(&mut self, place: u32, id: LocationId) {
        if let Some(caller) = self.all.get_mut(place as usize) {
            caller.id = Some(id);
        }
    }

    /// Returns the places of the callers of a chain; `None` if not all are known.
    fn known(&mut self, text: &[u8]) -> Option<Vec<u32>> {
        let (mut rest, mut places) = (text.strip_prefix(b"[")?, Vec::with_capacity(text.len() / 128));
        while rest != b"]" {
            let (place, length) = self.first(rest, places.last().copied())?;
            places.push(place);
            rest = after(rest, length)?;
        }
        Some(places)
    }

    /// Returns the places of the callers of a chain, and adds those that are new; `None` if they
    /// cannot be added, or the text is not as precise writes it.
    fn learned(&mut self, text: &str, names: &mut Names, most: u64) -> Option<Vec<u32>> {
        let (mut places, mut new, mut callers) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest = text.as_bytes().strip_prefix(b"[")?;
        while rest != b"]" {
            let length = match self.first(rest, None) {
                Some((place, length)) => {
                    places.push(place);
                    length
                }
                None => {
                    let rest = text.get(text.len() - rest.len()..)?;
                    if self.bytes > most || !rest.starts_with('{') {
                        return None;
                    }
                    let (caller, length) = stack_json::first(rest)?;
                    new.push((places.len(), rest.get(..length)?));
                    callers.push(caller);
                    places.push(0);
                    length
                }
            };
            rest = after(rest, length)?;
        }
        for ((index, text), location) in new.into_iter().zip(stack_json::locations(&callers, names)) {
            *places.get_mut(index)? = self.add(text, location)?;
        }
        Some(places)
    }

    /// Returns the place of the caller that a text begins with, and the length of its text; `None`
    /// if it is not known. `before` is the caller before it.
    fn first(&mut self, rest: &[u8], before: Option<u32>) -> Option<(u32, usize)> {
        let before = before.map(|before| before as usize);
        let next = before.and_then(|before| self.all.get(before)).map(|before| before.next);
        if let Some(found) = next.and_then(|next| self.at(next, rest)) {
            return Some(found);
        }
        let found = self.at(self.starting(start(rest)?)?, rest)?;
        if let Some(before) = before.and_then(|before| self.all.get_mut(before)) {
            before.next = found.0;
        }
        Some(found)
    }

    /// Returns a caller with the length of its text if it is the one that a text begins with.
    fn at(&self, place: u32, rest: &[u8]) -> Option<(u32, usize)> {
        let text = self.all.get(place as usize)?.text.as_bytes();
        rest.starts_with(text).then_some((place, text.len()))
    }

    /// Returns the place of the caller with this start.
    fn starting(&self, start: &[u8]) -> Option<u32> {
        let hash = self.seed.hash_one(start);
        let same = |place: &u32| {
            let known = self.all.get(*place as usize);
            known.is_some_and(|known| known.hash == hash && known.text.as_bytes().starts_with(start))
        };
        self.places.find(hash, same).copied()
    }

    /// Adds a caller, unless it is there. Returns its place; `None` if another one has its start.
    fn add(&mut self, text: &str, location: CodeLocation) -> Option<u32> {
        let start = start(text.as_bytes())?;
        if let Some(place) = self.starting(start) {
            // Deep recursion has the same caller many times.
            return self.all.get(place as usize).filter(|known| *known.text == *text).map(|_| place);
        }
        let (place, hash) = (u32::try_from(self.all.len()).ok()?, self.seed.hash_one(start));
        let Self { all, places, .. } = self;
        let hash_of = |place: &u32| all.get(*place as usize).map_or(0, |known| known.hash);
        places.insert_unique(hash, place, hash_of);
        // The list is copied to one of twice its size when it is full.
        let each = 3 * size_of::<KnownCaller>() + Interner::BYTES;
        self.bytes += (each + text.len() + size_of_val(location.inlined_into.as_slice())) as u64;
        all.push(KnownCaller { text: text.into(), hash, location, id: None, next: 0 });
        Some(place)
    }
}

/// Returns the beginning of a text of callers that tells the first one apart from most others: up
/// to the first brace that may be its end. If frames are inlined, that is the end of the first of
/// them. A name may contain braces too.
fn start(text: &[u8]) -> Option<&[u8]> {
    let mut braces = memchr::memchr_iter(b'}', text).map(|at| text.split_at(at + 1));
    let found = braces.find(|(_, rest)| matches!(rest, [] | [b']', ..] | [b',', b'{', ..]));
    found.map(|(start, _)| start)
}

/// Returns what comes after the first caller of a text, whose length this is: the next callers, or
/// the end. `None` if that is neither.
fn after(text: &[u8], length: usize) -> Option<&[u8]> {
    match text.get(length..)? {
        [b',', next @ ..] if next.starts_with(b"{") => Some(next),
        end @ [b']'] => Some(end),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{CaptureFile as _, CaptureWriter};
    use precise_model::Capture;
    use precise_model::testing::{CaptureBuilder, spelled_out};

    const MOST: u64 = 1 << 20;

    fn caller(function: &str, ip: u64) -> String {
        format!(
            r#"{{"function":"{function}","module":"/bin/x","file_offset":1,"function_offset":2,"source_reason":"no-line","line":0,"kernel":false,"ip":{ip}}}"#
        )
    }

    fn inlined(ip: u64, frames: &[&str]) -> String {
        let frames = frames.iter().map(|f| format!(r#"{{"function":"{f}","source":"a.c","line":3}}"#));
        let frames = frames.collect::<Vec<_>>().join(",");
        caller("f", ip).replace(&format!("{ip}}}"), &format!(r#"{ip},"inlined":[{frames}]}}"#))
    }

    fn chain(callers: &[String]) -> String {
        format!("[{}]", callers.join(","))
    }

    /// Returns the locations of a chain, and whether they are remembered.
    fn found(known: &KnownCallers, callers: ChainCallers) -> (Vec<CodeLocation>, bool) {
        match callers {
            ChainCallers::Own(callers) => (callers, false),
            ChainCallers::Known(places) => {
                (places.iter().map(|place| known.get(*place).unwrap().0.clone()).collect(), true)
            }
        }
    }

    /// Decodes texts one after the other, and checks that each is what its text says. Returns
    /// whether all their callers are remembered.
    fn decoded(known: &mut KnownCallers, texts: &[&str], most: u64) -> Vec<bool> {
        let (mut names, mut expected_names) = (Names::default(), Names::default());
        let mut all = Vec::new();
        for text in texts {
            let expected = stack_json::decode(text, &mut expected_names);
            let got = known.decode(text.as_bytes(), &mut names, most).map(|callers| found(known, callers));
            assert_eq!(got.as_ref().map(|(callers, _)| callers), expected.as_ref(), "{text}");
            all.push(got.is_ok_and(|(_, known)| known));
        }
        assert!(names == expected_names, "the names and their order are the same");
        all
    }

    #[test]
    fn a_caller_is_decoded_once() {
        let [a, b, c] = [1, 2, 3].map(|ip| caller("main", ip));
        // Closures of Rust have braces in their names, and `start` must not stop there.
        let d = caller("x::{{closure}}", 4);
        let e = caller("x::{{closure}}", 5);
        let [f, g] = [inlined(6, &["g"]), inlined(7, &["g", "h"])];
        let first = chain(&[a.clone(), b.clone(), d.clone(), f.clone(), g.clone()]);
        let recursion = chain(&vec![c.clone(); 9]);
        let later = chain(&[a, b, e, g, f, d, c]);
        let mut known = KnownCallers::default();
        let texts = [first.as_str(), &first, &recursion, &later, "[]"];
        assert_eq!(decoded(&mut known, &texts, MOST), [true; 5]);
        assert_eq!(known.all.len(), 7);
        // A text that differs in its last caller is another chain.
        let mut places = |text: &str| known.known(text.as_bytes());
        assert_eq!(places(&first), Some(vec![0, 1, 2, 3, 4]));
        assert_eq!(places(&later), Some(vec![0, 1, 6, 4, 3, 2, 5]));
        assert_eq!(places(&first.replace("\"h\"", "\"i\"")), None);
    }

    #[test]
    fn what_precise_does_not_write_is_decoded_as_before() {
        let (a, b) = (caller("a", 1), caller("b", 2));
        let good = chain(&[a.clone(), b.clone()]);
        let strange = [
            format!("[ {a},{b}]"),
            format!("[{a} ,{b}]"),
            format!("[{a}, {b}]"),
            format!("[{a},{b}] "),
            format!(" [{a},{b}]"),
            "[ ]".to_owned(),
            // Errors.
            String::new(),
            "[".to_owned(),
            a.clone(),
            format!("[{a}"),
            format!("[{a},]"),
            format!("[{a},,{b}]"),
            format!("[{a}{b}]"),
            format!("[{a},{b}]]"),
            format!("[,{a}]"),
            format!("[{a},7]"),
            format!("[{a},{{}}]"),
        ];
        for text in &strange {
            for texts in [&[text.as_str()][..], &[&good, text, &good]] {
                let known = decoded(&mut KnownCallers::default(), texts, MOST);
                assert_eq!(known, texts.iter().map(|text| **text == good).collect::<Vec<_>>(), "{text}");
            }
        }
        let error = KnownCallers::default().decode(b"[\xff]", &mut Names::default(), MOST).err();
        assert!(error.is_some_and(|error| error.contains("column stack: invalid utf-8")));
    }

    #[test]
    fn callers_take_no_more_than_they_may() {
        let mut known = KnownCallers::default();
        let texts: Vec<String> = (0..1000).map(|ip| chain(&[caller("main", ip)])).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let remembered = decoded(&mut known, &texts, 10_000).iter().filter(|known| **known).count();
        assert!((1..40).contains(&remembered), "{remembered}");
        assert!(known.bytes < 11_000, "{}", known.bytes);
        known.make_room(11_000);
        assert_eq!(known.all.len(), remembered);
        known.make_room(10_000);
        assert!(known.all.is_empty());
        assert_eq!(decoded(&mut known, &texts[990..], 10_000), [true; 10]);
    }

    #[test]
    fn a_chain_in_two_row_groups_has_one_id() {
        let mut made = CaptureBuilder::new();
        for functions in [&["f", "g", "main"][..], &["f", "h", "main"]] {
            made.cell().samples(1).code(0x1000, "/bin/app", "leaf", "", 0).callers(functions);
        }
        let capture = made.build();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.parquet");
        let mut writer = CaptureWriter::create(&path).unwrap();
        let rows: Vec<_> =
            capture.rows.iter().cycle().take(crate::file::ROW_GROUP_ROWS + 2).copied().collect();
        writer.append_epoch(&capture, &rows).unwrap();
        writer.finish(&capture.meta).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let file = parquet::file::reader::SerializedFileReader::new(file).unwrap();
        assert!(parquet::file::reader::FileReader::num_row_groups(&file) > 1);
        let back = Capture::read(&path).unwrap();
        assert_eq!((back.stacks.len(), back.code.len()), (2, capture.code.len()));
        assert_eq!(spelled_out(&back), spelled_out(&Capture { rows, ..capture }));
    }

    proptest! {
        /// Pieces of texts in any order, most of which are chains.
        #[test]
        fn any_texts_are_decoded_as_one_by_one(
            texts in prop::collection::vec(prop::collection::vec(0_usize..12, 0..6), 0..12),
            noise in prop::collection::vec(prop::option::weighted(0.1, (any::<prop::sample::Index>(), any::<u8>())), 12),
            most in prop::sample::select(vec![0, 500, 2000, MOST]),
        ) {
            let names = ["f", "{{closure}}", "a},{b", "a]}", "\\\"}"];
            let piece = |at: usize| match at {
                0..=6 => caller(names[at % names.len()], at as u64 / 5),
                7 => inlined(1, &["g"]),
                8 => inlined(1, &["g", "h"]),
                9 => inlined(1, &["g", "}]"]),
                10 => "{\"file_offset\":0,\"function_offset\":0,\"line\":0,\"kernel\":true,\"ip\":0}".to_owned(),
                _ => caller("f", 0).replace(":1,", ": 1,"),
            };
            let texts: Vec<String> = texts
                .iter()
                .zip(&noise)
                .map(|(pieces, noise)| {
                    let mut text = chain(&pieces.iter().map(|at| piece(*at)).collect::<Vec<_>>()).into_bytes();
                    if let Some((at, byte)) = noise {
                        let at = at.index(text.len());
                        text[at] = byte % 128;
                    }
                    String::from_utf8(text).unwrap()
                })
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            decoded(&mut KnownCallers::default(), &texts, most);
        }
    }
}
