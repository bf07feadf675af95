//! What perf says about the same accesses, by instruction.
//!
//! Where the two name different members, the data addresses judge: an address minus the distance of
//! the member is where the object would be, and objects of the type are known from the accesses
//! about which both say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::cold::{SwapFile, while_cold};
use super::programs::{RealProgram, run, stdout};

/// The size of a page. A fault in the page of its own instruction fetched code.
const PAGE: u64 = 4096;

/// A type, the accessed member, empty if the type has none, and the place of that member; perf says
/// where the accessed bytes begin instead, which has no size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    ty: String,
    member: String,
    offset: u64,
    size: u64,
}

/// An access that was sampled: the process and the data address, by instruction.
type Accesses = BTreeMap<u64, Vec<(u32, u64)>>;

/// Whom the data addresses support where the two say different things.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    pub precise: u64,
    pub perf: u64,
    pub both: u64,
    pub neither: u64,
}

/// The comparison, in samples.
#[derive(Debug, Default)]
pub struct SecondOpinion {
    pub same: u64,
    pub different: u64,
    pub judged: Judged,
    pub only_precise: u64,
    pub only_perf: u64,
    pub neither: u64,
    /// Samples at names that perf has for several instructions with different types, and in
    /// libraries that are elsewhere in another process.
    pub unmatched: u64,
    /// What was different, and where one has no type, by samples.
    pub details: BTreeMap<String, u64>,
    /// Seconds of `precise types` and of `perf annotate --data-type`.
    pub seconds: [f64; 2],
    /// What the addresses say about the types of precise.
    pub confirmed: u64,
    pub contradicted: u64,
}

impl SecondOpinion {
    /// Returns the number of samples that are compared.
    pub const fn all(&self) -> u64 {
        self.same + self.different + self.only_precise + self.only_perf + self.neither
    }
}

/// Records the page faults of a program whose memory becomes cold, and asks both.
pub fn compare(
    (precise, perf): (&Path, &Path),
    program: RealProgram,
    binary: &Path,
    folder: &Path,
) -> Result<SecondOpinion> {
    program.prepare(binary, folder)?;
    let [data, capture] = ["cold.data", "cold.parquet"].map(|name| folder.join(name).display().to_string());
    {
        let _swap = SwapFile::new(folder)?;
        // At the same addresses in each process, so that an address is one instruction.
        let mut words = ["-R".to_owned(), perf.display().to_string()].to_vec();
        let record = ["record", "-q", "-e", "page-faults:u", "-c", "1", "-d", "-o", &data, "--"];
        words.extend(record.map(str::to_owned));
        words.extend(program.command(binary, folder));
        while_cold(binary, || run(Path::new("setarch"), program, &words))?;
    }
    let by = "ip,address,process";
    stdout(precise, &["import", "-q", "--granule", "1", "--by", by, "-o", &capture, &data])?;

    let accesses = accesses(perf, &data)?;
    let by_perf = types_of_perf(perf, &data)?;
    let by_precise = types_of_precise(precise, &capture)?;
    let mut found = SecondOpinion::default();
    let mut objects: BTreeMap<&str, BTreeSet<(u32, u64)>> = BTreeMap::new();
    let mut differ = Vec::new();
    for (ip, at) in &accesses {
        let samples = at.len() as u64;
        let Some((ours, theirs)) = by_precise.get(ip).zip(by_perf.get(ip)) else {
            found.unmatched += samples;
            continue;
        };
        match (ours, theirs) {
            (None, None) => found.neither += samples,
            (Some(ours), None) => {
                found.only_precise += samples;
                *found.details.entry(format!("only precise: {}", ours.shown())).or_default() += samples;
            }
            (None, Some(theirs)) => {
                found.only_perf += samples;
                *found.details.entry(format!("only perf: {}", theirs.shown())).or_default() += samples;
            }
            (Some(ours), Some(theirs)) if ours.is(theirs) => {
                found.same += samples;
                // By both names of the type, since perf may have that of a typedef.
                for claim in [ours, theirs] {
                    let known = objects.entry(&claim.ty).or_default();
                    known.extend(at.iter().map(|(pid, address)| (*pid, address.wrapping_sub(claim.offset))));
                }
            }
            (Some(ours), Some(theirs)) => {
                found.different += samples;
                let what = format!("precise: {}, perf: {}", ours.shown(), theirs.shown());
                *found.details.entry(what).or_default() += samples;
                differ.push((ours, theirs, at));
            }
        }
    }
    for (ours, theirs, at) in differ {
        for (pid, address) in at {
            let is = |claim: &Claim| {
                let object = (*pid, address.wrapping_sub(claim.offset));
                objects.get(claim.ty.as_str()).is_some_and(|known| known.contains(&object))
            };
            let judged = &mut found.judged;
            *match (is(ours), is(theirs)) {
                (true, false) => &mut judged.precise,
                (false, true) => &mut judged.perf,
                (true, true) => &mut judged.both,
                (false, false) => &mut judged.neither,
            } += 1;
        }
    }
    let json = stdout(precise, &["types", "-i", &capture, "--json"])?;
    let json: Value = serde_json::from_slice(&json)?;
    let checked = &json["events"][0]["checked"];
    found.confirmed = checked["confirmed"].as_u64().context("confirmed")?;
    found.contradicted = checked["contradicted"].as_u64().context("contradicted")?;
    for (took, (tool, words)) in found.seconds.iter_mut().zip([
        (precise, ["types", "-i", &capture, "-n", "100000"]),
        (perf, ["annotate", "-i", &data, "--data-type", "--stdio"]),
    ]) {
        let begun = Instant::now();
        stdout(tool, &words)?;
        *took = begun.elapsed().as_secs_f64();
    }
    Ok(found)
}

impl Claim {
    /// Whether both name the same member, by its name and place: perf says which member of a union
    /// and which element of an array it is, which are one field here, and uses names of typedefs,
    /// which are no types here. Two types without members are the same for this comparison. One of
    /// them may name a struct and the other the struct that this is a member of.
    fn is(&self, perf: &Self) -> bool {
        if self.member.is_empty() || perf.member.is_empty() {
            return self.member == perf.member;
        }
        let ends =
            |outer: &str, inner: &str| outer.strip_suffix(inner).is_some_and(|rest| rest.ends_with('.'));
        if ends(&self.member, &perf.member) || ends(&perf.member, &self.member) {
            return true;
        }
        // Bit fields that share bytes are one field, which has the names of the first and the last.
        let bits = self.member.contains(':');
        let within = perf.member.strip_prefix(&self.member);
        let same = bits || within.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        same && (self.offset..self.offset + self.size.max(1)).contains(&perf.offset)
    }

    fn shown(&self) -> String {
        format!("{} +{:#x} {}", self.ty, self.offset, self.member)
    }
}

/// Returns the accesses of a recording, without the faults that fetched code.
fn accesses(perf: &Path, data: &str) -> Result<Accesses> {
    let said = String::from_utf8(stdout(perf, &["script", "-i", data, "-F", "pid,addr,ip"])?)?;
    let mut accesses = Accesses::new();
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [pid, address, ip] = words[..] else { bail!("perf script: {line:?}") };
        let number = |text| u64::from_str_radix(text, 16);
        let (address, ip) = (number(address)?, number(ip)?);
        if address / PAGE != ip / PAGE {
            accesses.entry(ip).or_default().push((pid.parse()?, address));
        }
    }
    Ok(accesses)
}

/// Returns the type of each instruction, as perf says; `None` if it knows none. Instructions that
/// share a name but not a type are not there.
fn types_of_perf(perf: &Path, data: &str) -> Result<BTreeMap<u64, Option<Claim>>> {
    let report = ["report", "-i", data, "--stdio", "-g", "none", "-s", "symoff,typeoff"];
    let said = String::from_utf8_lossy(&stdout(perf, &report)?).into_owned();
    let mut of_name: BTreeMap<String, BTreeSet<Option<Claim>>> = BTreeMap::new();
    for line in said.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        // Share, `[.] name+offset`, `type +offset (member)`: columns are two spaces apart.
        let columns = line.split_once("%  ").and_then(|(_, rest)| rest.split_once("  "));
        let (name, ty) = columns.with_context(|| format!("perf report: {line:?}"))?;
        let name = name.split_once("] ").map_or(name, |(_, name)| name);
        of_name.entry(name.trim().to_owned()).or_default().insert(claim_of_perf(ty.trim()));
    }
    let said =
        String::from_utf8_lossy(&stdout(perf, &["script", "-i", data, "-F", "ip,sym,symoff"])?).into_owned();
    let mut found = BTreeMap::new();
    for line in said.lines() {
        let Some((ip, name)) = line.trim().split_once(' ') else { continue };
        let Some(types) = of_name.get(name.trim()) else { continue };
        if let (Some(ty), 1) = (types.first(), types.len()) {
            found.insert(u64::from_str_radix(ip, 16)?, ty.clone());
        }
    }
    ensure!(!found.is_empty(), "perf has no types: {said}");
    Ok(found)
}

/// Returns what a column `Data Type Offset` of perf says.
fn claim_of_perf(text: &str) -> Option<Claim> {
    let (ty, rest) = text.rsplit_once(" +")?;
    let (offset, member) = rest.split_once(" (")?;
    let offset = u64::from_str_radix(offset.trim_start_matches("0x"), 16).ok()?;
    let ty = ["struct ", "union ", "enum "].iter().find_map(|kind| ty.strip_prefix(kind)).unwrap_or(ty);
    let member = member.trim_end_matches(')');
    let member = if member == "no field" { "" } else { member };
    Some(Claim { ty: ty.trim().to_owned(), member: member.to_owned(), offset, size: 0 })
}

/// Returns the type of each instruction, as precise says; `None` if it knows none.
fn types_of_precise(precise: &Path, capture: &str) -> Result<BTreeMap<u64, Option<Claim>>> {
    let layouts = stdout(precise, &["types", "", "-i", capture, "--json", "-n", "1000000"])?;
    let layouts: Value = serde_json::from_slice(&layouts)?;
    let mut places: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for ty in layouts["events"][0]["types"].as_array().context("types")? {
        for field in ty["fields"].as_array().into_iter().flatten() {
            let name = (ty["name"].as_str().context("a name")?, field["name"].as_str().context("a name")?);
            let number = |what: &str| field[what].as_u64().context("a number");
            places.insert(name, (number("offset")?, number("size")?));
        }
    }
    let words = ["report", "-i", capture, "--by", "ip,type,field", "-n", "100000000", "--json"];
    let report: Value = serde_json::from_slice(&stdout(precise, &words)?)?;
    let mut found = BTreeMap::new();
    for group in report["events"][0]["groups"].as_array().context("groups")? {
        let [ip, ty, field] = &group["values"].as_array().context("values")?[..] else { bail!("{group}") };
        let Some(ip) = ip["address"].as_str() else { continue };
        let claim = match (ty["text"].as_str(), field["text"].as_str()) {
            (Some(ty), Some(field)) => {
                // What says which variant an enum is has no name, as in perf.
                let place = places.get(&(ty, field)).filter(|_| !field.starts_with('('));
                let member = if place.is_some() { field } else { "" };
                let (offset, size) = place.copied().unwrap_or_default();
                Some(Claim { ty: ty.to_owned(), member: member.to_owned(), offset, size })
            }
            _ => None,
        };
        // An instruction may have a group of its own for faults that fetched code.
        let of_instruction =
            found.entry(u64::from_str_radix(ip.trim_start_matches("0x"), 16)?).or_insert(None);
        *of_instruction = claim.or(of_instruction.take());
    }
    Ok(found)
}
