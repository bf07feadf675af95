//! The place of an archive, and the rules for labels.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{ExitClass, Failure};

/// A folder, or a prefix in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivePlace {
    /// A folder. In a reference to a capture it can also be a file.
    Folder(PathBuf),
    /// `s3://BUCKET/PREFIX`.
    Bucket {
        /// Name of the bucket.
        bucket: String,
        /// Prefix of the names of the objects, without slashes at the ends; may be empty.
        prefix: String,
    },
}

impl ArchivePlace {
    /// Parses `s3://bucket/prefix`, or a path.
    ///
    /// # Errors
    ///
    /// Returns an error if the bucket has no name, or if the scheme is not `s3`.
    pub fn parse(text: &Path) -> Result<Self, Failure> {
        let url = text.to_str().and_then(|text| text.split_once("://"));
        let Some((scheme, rest)) = url else {
            return Ok(Self::Folder(text.to_owned()));
        };
        if scheme != "s3" {
            return Err(Failure::new(
                ExitClass::Usage,
                format!("{} is not a place for captures: use a path or s3://BUCKET/PREFIX", text.display()),
            ));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(Failure::new(ExitClass::Usage, format!("{} does not name a bucket", text.display()))
                .advise("Write s3://BUCKET/LABEL."));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !bucket.chars().all(allowed) {
            return Err(Failure::new(
                ExitClass::Usage,
                format!("{bucket:?} is not a bucket name: use letters, digits, '.', '_' and '-'"),
            ));
        }
        Ok(Self::Bucket { bucket: bucket.to_owned(), prefix: prefix.trim_matches('/').to_owned() })
    }

    /// Returns the place `name` below this one.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        match self {
            Self::Folder(path) => Self::Folder(path.join(name)),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => {
                Self::Bucket { bucket: bucket.clone(), prefix: name.to_owned() }
            }
            Self::Bucket { bucket, prefix } => {
                Self::Bucket { bucket: bucket.clone(), prefix: format!("{prefix}/{name}") }
            }
        }
    }

    /// Splits an object's place into the place above it and the object's name. Returns `None`
    /// unless this is a `.parquet` object in a bucket.
    pub(super) fn object(&self) -> Option<(Self, String)> {
        let Self::Bucket { bucket, prefix } = self else { return None };
        let (folder, name) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let place = Self::Bucket { bucket: bucket.clone(), prefix: folder.to_owned() };
        name.ends_with(".parquet").then(|| (place, name.to_owned()))
    }
}

impl fmt::Display for ArchivePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Bucket { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::Bucket { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

/// The label of an archive: a word that is a valid file name on every system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    /// Parses a label: ASCII letters, digits, `.`, `_` and `-`. A label does not start with a dot.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says which labels are valid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if text.is_empty() || text.len() > 128 || text.starts_with('.') || !text.chars().all(allowed) {
            return Err(
                "a label has 1 to 128 letters, digits, '.', '_' and '-', and does not start with a dot: \
                 deploy-41"
                    .to_owned(),
            );
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the text of the label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
