//! Memory that goes back to the system when it is no longer needed.

/// Blocks of this size and larger have a mapping of their own.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES: i32 = 128 << 10;

/// Lets each large block have a mapping of its own, which grows without a copy and goes back to the system when it is freed.
///
/// The allocator of glibc begins so. But with each block of this kind that is freed it raises its threshold, up to 32 MiB, and cuts
/// later ones out of areas that all blocks share. Bodies of 2 MB that grow there while they arrive leave gaps behind: under a
/// flood of them the server held two and a half times the bytes that its limits allow for, and more with time.
pub fn map_large_blocks() {
    // SAFETY: the call changes a number of the allocator, and may be made at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
    }
}
