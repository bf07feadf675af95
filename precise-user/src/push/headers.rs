//! Header fields that the operator adds to requests, most often a token. They come from a file that
//! only its owner may read, or from the environment, and are never shown.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::PushKind;
use crate::error::{ExitClass, Failure};

/// The largest file, in bytes.
const LARGEST: u64 = 64 << 10;
/// The most fields.
const MOST: usize = 64;
/// Fields that the client sets itself.
const OWN: [&str; 6] =
    ["connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding"];
/// The variables of OpenTelemetry's exporters with header fields. The first one that is set counts.
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];

/// Header fields for the backends of one kind.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PushHeaders {
    fields: Vec<(String, String)>,
}

impl fmt::Debug for PushHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushHeaders({} fields)", self.fields.len())
    }
}

impl PushHeaders {
    /// Reads the fields of a kind: those of the file, and for OTLP those of the environment that
    /// the file does not have.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, if others may read it, or if a field is not
    /// valid. The error never has a value.
    pub fn read(
        kind: PushKind,
        file: Option<&Path>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let mut headers = Self::default();
        if let Some(path) = file {
            let text = text_of(path)?;
            for (at, line) in (1..).zip(text.lines()) {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let wrong = |what: String| invalid(format!("{}:{at}: {what}", path.display()));
                let (name, value) = line
                    .split_once(':')
                    .ok_or_else(|| wrong("a header field is written NAME: VALUE".to_owned()))?;
                headers.add(name, value).map_err(wrong)?;
            }
        }
        let of_variable = |name: &'static str| Some((name, variable(name).filter(|text| !text.is_empty())?));
        if kind == PushKind::Otlp
            && let Some((name, text)) = VARIABLES.into_iter().find_map(of_variable)
        {
            let wrong = |what: String| invalid(format!("{name}: {what}"));
            for part in text.split(',').filter(|part| !part.trim().is_empty()) {
                let (field, value) = part
                    .split_once('=')
                    .ok_or_else(|| wrong("header fields are written NAME=VALUE,NAME=VALUE".to_owned()))?;
                let value = decoded(value.trim());
                if !headers.has(field.trim()) {
                    headers.add(field, &value).map_err(wrong)?;
                }
            }
        }
        Ok(headers)
    }

    /// Returns the fields.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let (name, value) = (name.trim(), value.trim());
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(is_token) {
            return Err("the name of a header field is of letters, digits and '-'".to_owned());
        }
        if OWN.contains(&&*name.to_ascii_lowercase()) {
            return Err(format!("precise sets the field {name} itself"));
        }
        if !value.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
            return Err(format!("the value of {name} must be of ASCII letters, digits and signs"));
        }
        if self.fields.len() == MOST {
            return Err(format!("there are more than {MOST} header fields"));
        }
        self.fields.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
}

fn invalid(what: String) -> Failure {
    Failure::new(ExitClass::Usage, what)
}

/// Reads a file that only its owner may read.
fn text_of(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let failed =
        |error: std::io::Error| invalid(format!("cannot read the header fields in {shown}: {error}"));
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(invalid(format!(
            "other users may read the header fields in {shown} (mode {mode:o}): set the mode to 600"
        )));
    }
    let mut text = String::new();
    let read = file.take(LARGEST + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > LARGEST {
        return Err(invalid(format!("{shown} has more than 64 KiB of header fields")));
    }
    Ok(text)
}

/// Decodes `%20`, as the values of OpenTelemetry's variables are encoded.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match byte.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
