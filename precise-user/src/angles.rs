//! The functions of angles, for the static binary.
//!
//! glibc has each of them four times, for CPUs with and without fused multiplication, and tables
//! that make the last bit right: 285 kB. Only corners of shapes in pictures and two statistics ask
//! for them. The linker takes what is here first.

/// Defines functions of the C library by those of `libm`.
macro_rules! angles {
    ($($name:ident($($argument:ident),+);)+) => {$(
        // SAFETY: the function has the type and the meaning that C gives to this name.
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: f64),+) -> f64 {
            libm::$name($($argument),+)
        }
    )+};
}

angles! {
    acos(x);
    asin(x);
    atan(x);
    atan2(y, x);
    cos(x);
    sin(x);
    tan(x);
}

/// Writes the sine and the cosine of an angle.
///
/// # Safety
///
/// Both pointers are to numbers.
// SAFETY: the function has the type and the meaning that the GNU C library gives to this name.
#[unsafe(no_mangle)]
unsafe extern "C" fn sincos(x: f64, sine: *mut f64, cosine: *mut f64) {
    let (of_sine, of_cosine) = libm::sincos(x);
    // SAFETY: what the caller guarantees.
    unsafe {
        sine.write(of_sine);
        cosine.write(of_cosine);
    }
}
