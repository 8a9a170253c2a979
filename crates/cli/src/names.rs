//! Lookup of names in a statically linked program.

/// Lets the C library look up names by itself: hosts in `/etc/hosts` and by DNS, users in `/etc/passwd`.
///
/// A system may ask for other ways in `/etc/nsswitch.conf`, as modules that are loaded while the program runs. A static program
/// must not load them: they belong to another C library. Without this call, a container with such a file resolves no name.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
pub fn look_up_without_modules() {
    unsafe extern "C" {
        fn __nss_configure_lookup(
            database: *const std::ffi::c_char,
            ways: *const std::ffi::c_char,
        ) -> std::ffi::c_int;
    }
    for (database, ways) in [(c"hosts", c"files dns"), (c"passwd", c"files")] {
        // SAFETY: both are C strings that live as long as the program, and no other thread runs yet. A failure leaves the
        // system's setting.
        unsafe { __nss_configure_lookup(database.as_ptr(), ways.as_ptr()) };
    }
}

/// Leaves the lookup of names to the system.
#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
pub const fn look_up_without_modules() {}
