//! Whose code an instruction is: the kernel's, a process's, or that of a virtual machine's guest.

/// The first address of the vsyscall page of x86-64, in the kernel's half of the address space.
/// Old programs call it, and the processor runs it in user mode. The kernel maps nothing else there
/// (`VSYSCALL_ADDR` in arch/x86/include/uapi/asm/vsyscall.h).
pub const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;
/// The number of low bits of an address that are the position in its page.
const PAGE_SHIFT: u32 = 12;

/// The instruction of a sample that was taken while the CPU ran a virtual machine's guest. The
/// guest's own addresses mean nothing on its host, where other code has them. No code has this
/// address: it is not canonical.
pub const IN_GUEST: u64 = 0x7fff_ffff_ffff_f800;

/// Returns whether an address is in the vsyscall page.
#[inline(always)]
pub const fn in_vsyscall(address: u64) -> bool {
    address >> PAGE_SHIFT == VSYSCALL >> PAGE_SHIFT
}

/// Returns whether code or data at an address is the kernel's: in its half of the address space,
/// and not in the vsyscall page. For processors with 64-bit addresses.
#[inline(always)]
pub const fn in_kernel(address: u64) -> bool {
    (address as i64) < 0 && !in_vsyscall(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_of_the_upper_half_is_the_users() {
        let kernel = [1 << 63, 0xffff_8000_0000_0000, VSYSCALL - 1, VSYSCALL + 4096, u64::MAX];
        assert!(kernel.into_iter().all(in_kernel));
        let user =
            [0, 0x7fff_ffff_ffff, (1 << 63) - 1, IN_GUEST, VSYSCALL, VSYSCALL + 0x400, VSYSCALL + 4095];
        assert!(!user.into_iter().any(in_kernel));
    }
}
