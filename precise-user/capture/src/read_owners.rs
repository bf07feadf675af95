//! Reads the owners of cgroups from the columns that describe them.

use rustc_hash::FxHashSet;

use super::file::Column;
use super::read_columns::{GroupReader, OpenColumn};
use super::read_error::Stop;
use super::read_values::{NameColumn, NumberColumn, TextColumn};
use precise_model::{CompactSort as _, Name, NameId, Names, Owner};

/// The columns that describe the owner of a cgroup, in the order of [`CgroupColumns::owner`].
const OWNER: [Column; 8] = [
    Column::Owner,
    Column::Unit,
    Column::Runtime,
    Column::Container,
    Column::ContainerId,
    Column::Pod,
    Column::PodUid,
    Column::Namespace,
];

/// The columns of a cgroup.
pub(super) struct CgroupColumns {
    id: NumberColumn<u64>,
    path: NameColumn,
    owner: Vec<TextColumn<String>>,
}

impl CgroupColumns {
    pub fn open(group: &GroupReader<'_>) -> Result<Self, Stop> {
        Ok(Self {
            id: NumberColumn::open(group, Column::CgroupId)?,
            path: NameColumn::open(group, [Column::Cgroup, Column::CgroupReason])?,
            owner: OWNER.iter().map(|column| TextColumn::open(group, *column)).collect::<Result<_, _>>()?,
        })
    }

    /// Reads the next rows, and adds the owners of cgroups that are new. Returns the bytes that
    /// these take.
    pub fn read(&mut self, rows: usize, names: &mut Names, owners: &mut ReadOwners) -> Result<u64, String> {
        self.id.read(rows)?;
        self.path.read(rows, names)?;
        for column in &mut self.owner {
            column.read(rows, |text| Ok(text.to_owned()))?;
        }
        Ok(owners.add(rows, self, names))
    }

    /// Adds the columns that tell cgroups apart to a list.
    pub fn visit<'a>(&'a self, all: &mut Vec<&'a OpenColumn>) {
        self.id.visit(all);
        self.path.visit(all);
    }

    pub fn id(&self, i: usize) -> u64 {
        self.id.get(i).unwrap_or_default()
    }

    pub fn path(&self, i: usize) -> Name {
        self.path.get(i)
    }
}

/// The owners of the cgroups that were read so far.
#[derive(Default)]
pub(super) struct ReadOwners {
    /// The cgroups, with and without an owner.
    seen: FxHashSet<NameId>,
    found: Vec<Owner>,
}

impl ReadOwners {
    /// Adds the owners of the rows that were read last. Returns the bytes that the new owners take.
    fn add(&mut self, rows: usize, columns: &CgroupColumns, names: &Names) -> u64 {
        let mut bytes = 0;
        let mut last = None;
        for i in 0..rows {
            let Some(id) = columns.path.name.get(i).copied().filter(|id| last != Some(*id)) else { continue };
            last = Some(id);
            if !self.seen.insert(id) {
                continue;
            }
            let get = |column: usize| columns.owner.get(column).and_then(|column| column.get(i)).cloned();
            let Some(name) = get(0) else { continue };
            let (container_id, pod_uid) = (get(4), get(6));
            let owner = Owner {
                path: names.get(id).to_owned(),
                name,
                unit: get(1),
                runtime: get(2),
                // Where a name is not known, its column has the id.
                container: get(3).filter(|name| Some(name) != container_id.as_ref()),
                container_id,
                pod: get(5).filter(|name| Some(name) != pod_uid.as_ref()),
                pod_uid,
                namespace: get(7),
            };
            bytes += size(&owner);
            self.found.push(owner);
        }
        bytes
    }

    /// Returns the owners, sorted by path.
    pub fn finish(mut self) -> Vec<Owner> {
        self.found.compact_sort_by(|a, b| a.path.cmp(&b.path));
        self.found
    }
}

/// Returns the memory of an owner in bytes: in a list that may have been half full, with its texts.
fn size(owner: &Owner) -> u64 {
    let Owner { path, name, unit, runtime, container_id, container, pod_uid, pod, namespace } = owner;
    let texts = [unit, runtime, container_id, container, pod_uid, pod, namespace];
    let texts = texts.into_iter().flatten().chain([path, name]).map(String::len).sum::<usize>();
    (2 * size_of::<Owner>() + texts) as u64
}
