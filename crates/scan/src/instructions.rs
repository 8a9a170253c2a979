//! The choice of the instructions of a search.

/// Instructions that a search uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// No vectors at all: one byte after the other. Short texts are searched so in any case.
    Bytes,
    /// Any processor.
    Portable,
    /// x86-64 with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-512 F, BW, VBMI, VBMI2, BITALG and GFNI: Ice Lake, Zen 4 and later.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Kernel {
    /// The kernels that this processor can run, the fastest last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "only some processors have more")]
        let mut kernels = vec![Self::Bytes, Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if crate::vector::avx2::available() {
                kernels.push(Self::Avx2);
            }
            if crate::vector::avx512::available() {
                kernels.push(Self::Avx512);
            }
        }
        kernels
    }
}
