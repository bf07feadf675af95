//! Reads the owners of cgroups from the columns that describe them.

use rustc_hash::FxHashSet;

use super::file::Column;
use super::read_columns::GroupReader;
use super::read_error::Stop;
use super::read_values::TextColumn;
use precise_model::{NameId, Names, Owner};

/// The owners of the cgroups that were read so far.
#[derive(Default)]
pub(super) struct ReadOwners {
    /// The cgroups, with and without an owner.
    seen: FxHashSet<NameId>,
    found: Vec<Owner>,
}

impl ReadOwners {
    /// Adds the owners of a batch. `cgroup` is its column of paths. Returns the bytes that the new
    /// owners take.
    pub fn add(
        &mut self,
        batch: &mut GroupReader<'_>,
        cgroup: &TextColumn<NameId>,
        names: &Names,
    ) -> Result<u64, Stop> {
        let mut column = |column| TextColumn::<String>::of(batch, column, |text| Ok(text.to_owned()));
        let (name, unit) = (column(Column::Owner)?, column(Column::Unit)?);
        let (runtime, namespace) = (column(Column::Runtime)?, column(Column::Namespace)?);
        let (container, container_id) = (column(Column::Container)?, column(Column::ContainerId)?);
        let (pod, pod_uid) = (column(Column::Pod)?, column(Column::PodUid)?);
        let mut bytes = 0;
        for i in 0..batch.rows() {
            let Some(id) = cgroup.get(i).filter(|id| !self.seen.contains(id)) else { continue };
            self.seen.insert(*id);
            let Some(name) = name.get(i).cloned() else { continue };
            let (container_id, pod_uid) = (container_id.get(i).cloned(), pod_uid.get(i).cloned());
            let owner = Owner {
                path: names.get(*id).to_owned(),
                name,
                unit: unit.get(i).cloned(),
                runtime: runtime.get(i).cloned(),
                // Where a name is not known, its column has the id.
                container: container.get(i).filter(|name| Some(*name) != container_id.as_ref()).cloned(),
                container_id,
                pod: pod.get(i).filter(|name| Some(*name) != pod_uid.as_ref()).cloned(),
                pod_uid,
                namespace: namespace.get(i).cloned(),
            };
            bytes += size(&owner);
            self.found.push(owner);
        }
        Ok(bytes)
    }

    /// Returns the owners, sorted by path.
    pub fn finish(mut self) -> Vec<Owner> {
        self.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
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
