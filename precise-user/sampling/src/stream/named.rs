//! A sample with its names.

use std::sync::Arc;

use precise_common::data_src::DataSource;
use precise_common::mode::{IN_GUEST, in_kernel};

use precise_model::{ChainEnd, CodeLocation, DataLocation, Names, Reason};
use precise_records::Registers;
use precise_records::record::sample::Sample;

/// A sample, with the names of its addresses and ids.
#[derive(Clone, Debug)]
pub struct NamedSample<'a> {
    /// Whether kernel addresses must be hidden from this user.
    pub kernel_hidden: bool,
    /// The event, as the user named it.
    pub event: &'a str,
    /// The sample as the kernel wrote it.
    pub sample: &'a Sample,
    /// The registers in its raw data; `None` if it has none that are known.
    pub registers: Option<Registers>,
    /// Whether the instruction address is exact, through hardware or by the nature of the event.
    pub exact: bool,
    /// The name table of the locations.
    pub names: &'a Names,
    /// The name of the process, or why it is unknown.
    pub comm: Result<Arc<str>, Reason>,
    /// The name of the thread, or why it is unknown.
    pub thread: Result<Arc<str>, Reason>,
    /// The location of the instruction; `None` if no field needs it.
    pub code: Option<&'a CodeLocation>,
    /// The location of the data address; `None` if the sample has none, or if no field needs it.
    pub data: Option<&'a DataLocation>,
    /// The path of the cgroup, or why it is unknown.
    pub cgroup: Result<Arc<str>, Reason>,
    /// The call chain; `None` if the run takes none.
    pub chain: Option<NamedChain<'a>>,
}

/// The call chain of a sample.
#[derive(Clone, Debug)]
pub struct NamedChain<'a> {
    /// The callers, the innermost first: the address of the call, and its location, whose address
    /// may be that of another process that maps the same file.
    pub callers: Vec<(u64, &'a CodeLocation)>,
    /// Why there are no more; `None` if the kernel unwound, which does not say so.
    pub end: Option<ChainEnd>,
}

impl NamedSample<'_> {
    /// Returns whether the sample was taken in the kernel.
    pub fn kernel(&self) -> bool {
        in_kernel(self.sample.ip)
    }

    /// Returns whether this address must be hidden from this user.
    pub fn hides(&self, address: u64) -> bool {
        self.kernel_hidden && in_kernel(address)
    }

    /// Returns an address as this user may see it: 0 if it must be hidden, or is a guest's.
    pub fn shown(&self, address: u64) -> u64 {
        if self.hides(address) || address == IN_GUEST { 0 } else { address }
    }

    /// Returns level, snoop, TLB and lock of the access; `None` if the hardware reported none.
    pub fn source(&self) -> Option<DataSource> {
        self.sample.data_src.filter(|word| !DataSource::is_na(*word)).map(DataSource::decode)
    }
}
