//! The kernel side as user space sees it: events, the program, the table, the sideband.

pub mod record;
