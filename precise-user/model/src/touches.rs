//! Who touched pages first, once a view has found it. It follows from rows of the capture, so that
//! no file stores it.

use rustc_hash::FxHashMap;

use crate::names::{NameId, Reason};

/// The page faults of a process at a page, in the order of epochs: the epoch, and the functions.
pub(crate) type Touches = FxHashMap<(u32, u64), Vec<(u32, NameId)>>;

/// What is known of the first touch of a page, as names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTouch {
    /// The functions that touched it, the innermost one first.
    pub functions: NameId,
    /// How long before the access that was; `None` if the capture does not say when its epochs
    /// were.
    pub age: Option<NameId>,
}

/// The page faults of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstTouches {
    pub(crate) pages: Touches,
    /// By huge page, for samples in one.
    pub(crate) huge_pages: Touches,
    /// The names of [`crate::first_touch::AGES`].
    pub(crate) ages: Vec<NameId>,
    /// Why nothing is known of any page.
    pub(crate) missing: Option<Reason>,
}
