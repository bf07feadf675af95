//! A sample with its names.

use std::sync::Arc;

use precise_common::data_src::DataSource;

use precise_model::{CodeLocation, DataLocation, Names, Reason};
use precise_records::Registers;
use precise_records::record::sample::Sample;

/// A sample, and what is known of its numbers.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    /// Addresses of the kernel are not for this user.
    pub kernel_hidden: bool,
    /// The event, as the user named it.
    pub event: &'a str,
    /// What the kernel wrote.
    pub sample: &'a Sample,
    /// What its raw record is, where it has one that is known.
    pub registers: Option<Registers>,
    /// The instruction address is exact: by hardware, or by the nature of the event.
    pub exact: bool,
    /// What the locations refer to.
    pub names: &'a Names,
    /// Name of the process.
    pub comm: Result<Arc<str>, Reason>,
    /// Where the instruction is; `None` where no field needs it.
    pub code: Option<&'a CodeLocation>,
    /// Where the data address points; `None` where there is none, or no field needs it.
    pub data: Option<&'a DataLocation>,
    /// Cgroup path.
    pub cgroup: Result<Arc<str>, Reason>,
}

impl Named<'_> {
    /// Whether it was taken in the kernel.
    pub fn kernel(&self) -> bool {
        (self.sample.ip as i64) < 0
    }

    /// Whether this address is not for this user.
    pub fn hides(&self, address: u64) -> bool {
        self.kernel_hidden && (address as i64) < 0
    }

    /// Level, snoop, TLB, lock; `None` where the hardware gave none.
    pub fn source(&self) -> Option<DataSource> {
        self.sample.data_src.filter(|word| !DataSource::is_na(*word)).map(DataSource::decode)
    }
}
