//! Who touched pages first, once a view has found it. It follows from rows of the capture, so that
//! no file stores it.

use rustc_hash::FxHashMap;

use crate::names::{NameId, Reason};

/// The page faults of a process at a page, in the order of epochs: the epoch, and the functions.
pub(crate) type Touches = FxHashMap<(u32, u64), Vec<(u32, NameId)>>;

/// The page faults of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstTouches {
    pub(crate) pages: Touches,
    /// By huge page, for samples in one.
    pub(crate) huge_pages: Touches,
    /// Why nothing is known of any page.
    pub(crate) missing: Option<Reason>,
}
