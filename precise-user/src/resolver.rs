//! Where the names of hosts come from in a binary without shared libraries.
//!
//! glibc looks names up by plug-ins (NSS) that `/etc/nsswitch.conf` lists. A static binary would
//! load them from the machine, together with a second C library, whose version may be another:
//! glibc calls that unsupported, and it can crash. The plug-ins `files` (`/etc/hosts`) and `dns`
//! (`/etc/resolv.conf`) are part of the C library since glibc 2.34, and need no loading.

/// Restricts the lookup of hosts to what is linked in. A binary that uses the machine's C library
/// keeps the machine's configuration.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
pub fn stay_inside() {
    use std::ffi::{c_char, c_int};

    // SAFETY: the declaration is that of glibc's nss.h.
    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }
    // SAFETY: both arguments are strings that end with 0, and no thread has been started yet. It
    // fails only for a database or a list that glibc does not know.
    unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
}

/// Does nothing: the C library is the machine's, and so are its plug-ins.
#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
pub const fn stay_inside() {}
