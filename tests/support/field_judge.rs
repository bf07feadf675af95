//! Judges the fields of samples by their addresses: programs print where the members of their
//! objects are.

use anyhow::{Context as _, Result, bail};

/// An array of objects that a program printed.
#[derive(Debug)]
struct Objects {
    name: String,
    start: u64,
    count: u64,
    size: u64,
}

/// A member of the objects, with the names that are right for it.
#[derive(Debug)]
struct KnownMember {
    of: String,
    names: Vec<String>,
    offset: u64,
    size: u64,
}

/// What a program printed about its objects.
#[derive(Debug, Default)]
pub struct Printed {
    objects: Vec<Objects>,
    members: Vec<KnownMember>,
}

impl Printed {
    /// Reads what a program printed.
    ///
    /// # Errors
    ///
    /// Returns an error if a number is none.
    pub fn of(text: &str) -> Result<Self> {
        let mut printed = Self::default();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["array", name, start, count, size] => printed.objects.push(Objects {
                    name: name.to_owned(),
                    start: u64::from_str_radix(start.trim_start_matches("0x"), 16)?,
                    count: count.parse()?,
                    size: size.parse()?,
                }),
                ["member", of, names, offset, size] => printed.members.push(KnownMember {
                    of: of.to_owned(),
                    names: names.split('|').map(str::to_owned).collect(),
                    offset: offset.parse()?,
                    size: size.parse()?,
                }),
                _ => {}
            }
        }
        Ok(printed)
    }

    /// Returns whether the program printed objects and members.
    pub fn is_complete(&self) -> bool {
        !self.objects.is_empty() && !self.members.is_empty()
    }

    /// Returns the member at an address.
    fn member(&self, address: u64) -> Option<&KnownMember> {
        let all = &self.objects;
        let inside = |o: &&Objects| (o.start..o.start + o.size * o.count).contains(&address);
        let objects = all.iter().find(inside)?;
        let at = (address - objects.start) % objects.size;
        let mut of = self.members.iter().filter(|member| member.of == objects.name);
        of.find(|member| (member.offset..member.offset + member.size).contains(&at))
    }
}

/// How many samples have the right type, a wrong one, and none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    /// Samples with the right type.
    pub right: u64,
    /// Samples with a wrong one.
    pub wrong: u64,
    /// Samples without a type.
    pub untyped: u64,
    /// Those of code without variables, which nothing can type.
    pub undescribed: u64,
}

impl Judged {
    /// Adds those of another program.
    pub fn add(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.untyped += other.untyped;
        self.undescribed += other.undescribed;
    }

    /// Returns the upper end of the 95 % interval of the share that is wrong (Wilson).
    pub fn wrong_at_most(self) -> f64 {
        let (n, z2) = ((self.right + self.wrong) as f64, 1.96_f64 * 1.96);
        let p = self.wrong as f64 / n;
        let spread = (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        (p + z2 / (2.0 * n) + 1.96 * spread) / (1.0 + z2 / n)
    }

    /// Returns the share that has a type, of the samples in code that has variables.
    pub fn covered(self) -> f64 {
        (self.right + self.wrong) as f64 / (self.right + self.wrong + self.untyped) as f64
    }
}

/// Judges the field of each sample of a report by `field,address` by the address; with `process`
/// those of this process, in a report by `process,field,address`. Calls `note` with what is not
/// right, and its samples.
///
/// # Errors
///
/// Returns an error if it is no such report.
pub fn judge(
    printed: &Printed,
    process: Option<&str>,
    report: &serde_json::Value,
    mut note: impl FnMut(String, u64),
) -> Result<Judged> {
    let mut judged = Judged::default();
    for group in report["events"][0]["groups"].as_array().context("groups")? {
        let values = group["values"].as_array().context("values")?;
        let [.., field, address] = &values[..] else { bail!("no fields and addresses: {group}") };
        if process.is_some_and(|process| values[0]["text"] != process) {
            continue;
        }
        let samples = group["measures"]["count"].as_u64().context("samples")?;
        let Some(address) = address["address"].as_str() else { continue };
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
        let Some(member) = printed.member(address) else { continue };
        match (field["text"].as_str(), field["untyped"].as_str()) {
            (Some(path), _) => {
                // The names in a path: of the type, of the member, and of what it contains.
                let words = path.split(|c: char| !c.is_alphanumeric() && c != '_');
                let is_right = words.into_iter().any(|word| member.names.iter().any(|name| name == word));
                if is_right {
                    judged.right += samples;
                } else {
                    note(format!("{path} is {}.{}", member.of, member.names.join("|")), samples);
                    judged.wrong += samples;
                }
            }
            (None, Some("function without variables" | "no debug information")) => {
                judged.undescribed += samples;
            }
            (None, Some(why)) => {
                note(format!("{}.{}: {why}", member.of, member.names.join("|")), samples);
                judged.untyped += samples;
            }
            (None, None) => judged.undescribed += samples,
        }
    }
    Ok(judged)
}
