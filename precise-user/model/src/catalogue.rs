//! A macro for enums whose variants carry a name and other texts.

/// Declares an enum together with one entry per variant, so that a variant, its name and its texts
/// stand in one place.
///
/// The enum gets `ALL`, every variant in the order of the declaration, and a private `entry`, the
/// value behind the arrow.
///
/// ```
/// precise_model::catalogue! {
///     /// A traffic light.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Light: (&'static str, u32) {
///         /// Stop.
///         Red => ("red", 30),
///         /// Go.
///         Green => ("green", 20),
///     }
/// }
///
/// impl Light {
///     /// Its word.
///     pub const fn word(self) -> &'static str {
///         self.entry().0
///     }
/// }
///
/// assert_eq!(Light::ALL.map(Light::word), ["red", "green"]);
/// ```
#[macro_export]
macro_rules! catalogue {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident: $entry:ty {
            $($(#[$variant_meta:meta])* $variant:ident => $value:expr,)*
        }
    ) => {
        $(#[$meta])*
        $visibility enum $name {
            $($(#[$variant_meta])* $variant,)*
        }

        impl $name {
            /// Every variant, in the order of the declaration.
            $visibility const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];

            /// Returns the entry of the variant.
            const fn entry(self) -> $entry {
                match self {
                    $(Self::$variant => $value,)*
                }
            }
        }
    };
}
