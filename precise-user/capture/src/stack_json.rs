//! The callers of a call chain as the file stores them: a JSON list, from the innermost outwards,
//! that SQL can unnest.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use precise_model::{Capture, CodeLocation, Frame, LocationId, Name, NameId, Names, Reason};

/// A text that is read without a copy if nothing in it is escaped. serde borrows a `Cow` only where
/// it is told to, which it cannot be told within an `Option`.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// A frame that another function is inlined into, as the file stores it.
#[derive(Serialize, Deserialize)]
pub(super) struct JsonFrame<'a> {
    #[serde(borrow)]
    pub function: Cow<'a, str>,
    #[serde(borrow)]
    pub source: Cow<'a, str>,
    pub line: u32,
}

/// One caller. Fields that are not known or empty are left out.
#[derive(Serialize, Deserialize)]
pub(super) struct JsonCaller<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    function: Option<JsonText<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    function_reason: Option<JsonText<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    module: Option<JsonText<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    module_reason: Option<JsonText<'a>>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    build_id: Cow<'a, str>,
    /// The offset of the call in its file, in bytes.
    file_offset: u64,
    /// The distance of the call from the start of the function, in bytes.
    function_offset: u64,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    source: Option<JsonText<'a>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    source_reason: Option<JsonText<'a>>,
    line: u32,
    kernel: bool,
    ip: u64,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    inlined: Vec<JsonFrame<'a>>,
}

/// Encodes the callers of a chain as JSON.
pub(super) fn encode(capture: &Capture, callers: &[LocationId]) -> String {
    let get = |id| Cow::Borrowed(capture.names.get(id));
    let known = |name| match name {
        Name::Known(id) => (Some(JsonText(get(id))), None),
        Name::Unknown(reason) => (None, Some(JsonText(Cow::Borrowed(reason.as_str())))),
    };
    let callers = callers.iter().filter_map(|id| capture.code.get(*id as usize)).map(|code| {
        let (function, function_reason) = known(code.function);
        let (module, module_reason) = known(code.module);
        let (source, source_reason) = known(code.source);
        let inlined = code.inlined_into.iter();
        JsonCaller {
            function,
            function_reason,
            module,
            module_reason,
            build_id: get(code.build_id),
            file_offset: code.file_offset,
            function_offset: code.function_offset,
            source,
            source_reason,
            line: code.line,
            kernel: code.kernel,
            ip: code.runtime_address,
            inlined: inlined
                .map(|f| JsonFrame { function: get(f.function), source: get(f.source), line: f.line })
                .collect(),
        }
    });
    serde_json::to_string(&callers.collect::<Vec<_>>()).unwrap_or_default()
}

/// Decodes the callers of a chain from JSON.
pub(super) fn decode(text: &str, names: &mut Names) -> Result<Vec<CodeLocation>, String> {
    let callers: Vec<JsonCaller> =
        serde_json::from_str(text).map_err(|e| format!("the column stack cannot be parsed: {e}"))?;
    Ok(locations(&callers, names))
}

/// Decodes the caller that a text begins with. Returns it with the length of its text; `None` if
/// there is none.
pub(super) fn first(text: &str) -> Option<(JsonCaller<'_>, usize)> {
    let mut callers = serde_json::Deserializer::from_str(text).into_iter();
    let caller = callers.next()?.ok()?;
    Some((caller, callers.byte_offset()))
}

/// Converts callers to locations of the model.
pub(super) fn locations(callers: &[JsonCaller], names: &mut Names) -> Vec<CodeLocation> {
    let mut name = |name: &Option<JsonText>, reason: &Option<JsonText>| match (name, reason) {
        (Some(name), _) => Name::Known(names.intern(&name.0)),
        // A newer writer may have reasons that this version does not know: they still are reasons.
        (None, Some(reason)) => Name::Unknown(Reason::parse(&reason.0).unwrap_or(Reason::Failed)),
        (None, None) => Name::Unknown(Reason::NotRecorded),
    };
    let mut found: Vec<CodeLocation> = callers
        .iter()
        .map(|caller| CodeLocation {
            kernel: caller.kernel,
            runtime_address: caller.ip,
            module: name(&caller.module, &caller.module_reason),
            build_id: NameId::default(),
            file_offset: caller.file_offset,
            function: name(&caller.function, &caller.function_reason),
            function_offset: caller.function_offset,
            source: name(&caller.source, &caller.source_reason),
            line: caller.line,
            inlined_into: Vec::new(),
        })
        .collect();
    for (found, caller) in found.iter_mut().zip(callers) {
        found.build_id = names.intern(&caller.build_id);
        found.inlined_into = frames(&caller.inlined, names);
    }
    found
}

/// Converts inlined frames to those of the model.
pub(super) fn frames(frames: &[JsonFrame], names: &mut Names) -> Vec<Frame> {
    let frame = |f: &JsonFrame| Frame {
        function: names.intern(&f.function),
        source: names.intern(&f.source),
        line: f.line,
    };
    frames.iter().map(frame).collect()
}
