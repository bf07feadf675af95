//! The owners of the cgroups of a window, in few blocks of memory.

use std::collections::BTreeMap;

use precise_model::Owner;

/// The texts of an owner beside its path.
const TEXTS: usize = 8;

/// The owners of cgroups, by path.
///
/// Where containers come and go, a window has thousands of them. As values of the model each would
/// have six blocks of memory, between which others come and go for as long as a run lasts.
#[derive(Debug, Default)]
pub(super) struct KeptOwners {
    by_path: BTreeMap<Box<str>, PackedOwner>,
    /// Their memory, about.
    bytes: usize,
}

/// The texts of an owner: of each a number of four bytes, which is 0 if the text is not known, else
/// its length and 1; then the texts.
#[derive(Debug)]
struct PackedOwner(Box<[u8]>);

impl KeptOwners {
    /// Adds an owner, in the place of one with the same path.
    pub fn add(&mut self, owner: &Owner) {
        let packed = PackedOwner::of(owner);
        self.bytes += bytes_of(&owner.path, &packed);
        if let Some(before) = self.by_path.insert(owner.path.as_str().into(), packed) {
            self.bytes -= bytes_of(&owner.path, &before);
        }
    }

    /// Forgets the owners of cgroups that are not to be kept.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.by_path.retain(|path, _| keep(path));
        self.bytes = self.by_path.iter().map(|(path, owner)| bytes_of(path, owner)).sum();
    }

    /// Returns about how many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of owners.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_path.len()
    }

    /// Returns the owners, by path.
    pub fn all(&self) -> Vec<Owner> {
        self.by_path.iter().map(|(path, packed)| packed.unpack(path)).collect()
    }
}

/// Returns about how many bytes of memory an owner takes: with its place in the map, and with what
/// the allocator adds to its two blocks.
fn bytes_of(path: &str, packed: &PackedOwner) -> usize {
    2 * size_of::<Box<str>>() + 32 + path.len() + packed.0.len()
}

impl PackedOwner {
    fn of(owner: &Owner) -> Self {
        let Owner { path: _, name, unit, runtime, container_id, container, pod_uid, pod, namespace } = owner;
        let texts: [Option<&String>; TEXTS] = [
            Some(name),
            unit.as_ref(),
            runtime.as_ref(),
            container_id.as_ref(),
            container.as_ref(),
            pod_uid.as_ref(),
            pod.as_ref(),
            namespace.as_ref(),
        ];
        let mut bytes =
            Vec::with_capacity(4 * TEXTS + texts.iter().flatten().map(|text| text.len()).sum::<usize>());
        for text in texts {
            // A path and a name have at most 4 KiB each.
            let length = text.map_or(0, |text| u32::try_from(text.len() + 1).unwrap_or(u32::MAX));
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        texts.iter().flatten().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
        Self(bytes.into())
    }

    fn unpack(&self, path: &str) -> Owner {
        let (lengths, mut rest) = self.0.split_at(4 * TEXTS);
        let mut texts = lengths.as_chunks::<4>().0.iter().map(|length| {
            let length = (u32::from_le_bytes(*length) as usize).checked_sub(1)?;
            let (text, after) = rest.split_at_checked(length)?;
            rest = after;
            Some(String::from_utf8_lossy(text).into_owned())
        });
        let mut next = || texts.next().flatten();
        Owner {
            path: path.to_owned(),
            name: next().unwrap_or_default(),
            unit: next(),
            runtime: next(),
            container_id: next(),
            container: next(),
            pod_uid: next(),
            pod: next(),
            namespace: next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_come_back_as_they_were() {
        let text = |text: &str| Some(text.to_owned());
        let pod = Owner {
            path: "/kubepods/é".to_owned(),
            name: "shop/web-0/nginx".to_owned(),
            runtime: text("containerd"),
            container_id: text("0123"),
            pod_uid: text(""),
            pod: text("web-0"),
            namespace: text("a\0b"),
            ..Owner::default()
        };
        let unit = Owner { path: "/a".to_owned(), unit: text("a.service"), ..Owner::default() };
        let mut kept = KeptOwners::default();
        kept.add(&Owner { name: "an older name".to_owned(), ..pod.clone() });
        [&pod, &unit, &pod].into_iter().for_each(|owner| kept.add(owner));
        assert_eq!(kept.all(), [unit.clone(), pod]);
        let before = kept.bytes();
        kept.retain(|path| path == "/a");
        assert_eq!(kept.all(), [unit]);
        assert!(kept.bytes() > 0 && kept.bytes() < before / 2);
        kept.retain(|_| false);
        assert_eq!((kept.bytes(), kept.len()), (0, 0));
    }
}
