//! What a frame is called in other tools' formats.

use precise_model::{CodeLocation, Name, Names};

/// Returns the name of a function at a place. Without a symbol, it is the file and the reason,
/// which is the most that is known.
pub(super) fn frame_name(names: &Names, place: &CodeLocation, function: Name) -> String {
    match function {
        Name::Known(id) => names.get(id).to_owned(),
        Name::Unknown(reason) => match place.module {
            Name::Known(id) => {
                format!("{} [{}]", names.get(id).rsplit('/').next().unwrap_or_default(), reason.words())
            }
            Name::Unknown(_) => format!("[{}]", reason.words()),
        },
    }
}

/// Returns the path of a place's file, or in brackets why it is not known.
pub(super) fn module_name(names: &Names, place: &CodeLocation) -> String {
    match place.module {
        Name::Known(id) => names.get(id).to_owned(),
        Name::Unknown(reason) => format!("[{}]", reason.words()),
    }
}

/// Returns the address of a place: its offset in its file, so that the same code has one address
/// wherever processes have mapped the file; where there is no file, the runtime address.
pub(super) const fn frame_address(place: &CodeLocation) -> u64 {
    if place.file_offset > 0 { place.file_offset } else { place.runtime_address }
}
