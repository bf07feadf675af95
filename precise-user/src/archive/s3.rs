//! A bucket of an object store with the S3 protocol.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    ClientOptions, Error, GetOptions, ListResult, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode,
    PutPayload, RetryConfig,
};
use tokio::runtime::Runtime;

use super::ArchivePlace;
use super::list::Found;
use super::s3_client::S3Connector;
use super::store::{Existing, exists};
use crate::error::{ExitClass, Failure};
use precise_capture::temporary;
use precise_model::text::sanitize;

/// Timeout for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Timeout for one request, including the body of its answer.
const REQUEST: Duration = Duration::from_secs(120);
/// Number of bytes that one request fetches. No more than this is held in memory.
const PIECE: u64 = 8 << 20;
/// Maximum number of retries of a request, and the time limit for all of them together.
const RETRIES: usize = 3;
const RETRY: Duration = Duration::from_secs(30);
/// Maximum number of names under one label.
const MOST_NAMES: usize = 10_000;
/// Address of the metadata service that has the credentials of an Amazon instance's role. It is the
/// last place where credentials are looked for.
const METADATA: &str = "169.254.169.254";

/// A prefix in a bucket.
pub(super) struct Bucket {
    store: AmazonS3,
    runtime: Runtime,
    /// Address of the store, if it is not Amazon's.
    endpoint: Option<String>,
    bucket: String,
    prefix: String,
}

impl Bucket {
    /// Prepares the client. Credentials, region and endpoint come from the AWS_* variables.
    pub(super) fn open(bucket: &str, prefix: &str) -> Result<Self, Failure> {
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        // The AWS tools also accept an endpoint without TLS from these variables, for a store in
        // the same rack or for a test.
        let variables = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
        let endpoint =
            variables.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let plain = endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        check_variables(endpoint.as_deref())?;
        if let Some(endpoint) = &endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let client = ClientOptions::new().with_connect_timeout(CONNECT).with_allow_http(plain);
        let connector = S3Connector { connect: CONNECT, request: REQUEST };
        let retry = RetryConfig { max_retries: RETRIES, retry_timeout: RETRY, ..RetryConfig::default() };
        let builder = builder.with_client_options(client).with_http_connector(connector);
        let store = builder.with_retry(retry).build().map_err(|error| {
            Failure::new(ExitClass::Usage, format!("cannot reach s3://{bucket}: {error}"))
                .advise("Set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION; AWS_ENDPOINT_URL for a store that is not Amazon's.")
        })?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                Failure::new(ExitClass::Failed, format!("cannot start the client for s3://{bucket}: {error}"))
            })?;
        Ok(Self { store, runtime, endpoint, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }

    pub(super) fn place(&self) -> ArchivePlace {
        ArchivePlace::Bucket { bucket: self.bucket.clone(), prefix: self.prefix.clone() }
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.prefix))
    }

    /// Returns the error message. `name` is empty if the error concerns the whole place.
    fn failure(&self, name: &str, error: &Error) -> Failure {
        let place = self.place();
        let what = if name.is_empty() { place.to_string() } else { format!("{place}/{name}") };
        if matches!(error, Error::AlreadyExists { .. } | Error::Precondition { .. }) {
            return exists(&what);
        }
        let (said, all) = (answer(error), error.to_string());
        let denied = matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
            || all.contains("status code: 401")
            || all.contains("status code: 403");
        let because = said.as_ref().map_or_else(String::new, |said| format!(": {said}"));
        if all.contains(METADATA) {
            Failure::new(
                ExitClass::Permission,
                format!("no credentials for {what}: the environment has none, and this machine has no role"),
            )
            .advise(
                "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a \
                public bucket.",
            )
        } else if said.as_ref().is_some_and(|said| said.starts_with("NoSuchBucket")) {
            Failure::new(ExitClass::BadFile, format!("bucket {} does not exist", self.bucket))
                .advise("Check its name, AWS_REGION and AWS_ENDPOINT_URL. precise does not create buckets.")
        } else if matches!(error, Error::NotFound { .. }) {
            Failure::new(ExitClass::BadFile, format!("{what} does not exist"))
                .advise("Check bucket, label and AWS_REGION.")
        } else if denied {
            Failure::new(ExitClass::Permission, format!("the store denies access to {what}{because}")).advise(
                "Reading needs s3:GetObject and s3:ListBucket, writing s3:PutObject; the credentials \
                 come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            )
        } else if said.is_some() {
            Failure::new(ExitClass::Failed, format!("the store rejects {what}{because}"))
                .advise("Check AWS_REGION and AWS_ENDPOINT_URL.")
        } else {
            let at = self.endpoint.as_ref().map_or_else(String::new, |endpoint| format!(" at {endpoint}"));
            Failure::new(ExitClass::Failed, format!("cannot reach {what}{at}: {}", innermost(error)))
                .advise("Check AWS_ENDPOINT_URL and AWS_REGION. precise retried for up to half a minute.")
        }
    }

    pub(super) fn list(&self) -> Result<Vec<String>, Failure> {
        let objects = self.listed()?.objects;
        Ok(objects.iter().filter_map(|object| object.location.filename().map(str::to_owned)).collect())
    }

    /// Returns the objects under the prefix, and the names of the prefixes below it.
    pub(super) fn look(&self) -> Result<(Vec<Found>, Vec<String>), Failure> {
        let objects = self.listed()?;
        Ok(Self::found(objects))
    }

    /// Returns the objects in a folder, however many, and the names of the folders in it.
    pub(super) fn look_into(&self, folder: &str) -> Result<(Vec<Found>, Vec<String>), Failure> {
        let prefix = if folder.is_empty() { Path::from(self.prefix.as_str()) } else { self.path(folder) };
        let list = || self.runtime.block_on(self.store.list_with_delimiter(Some(&prefix)));
        patiently(list).map(Self::found).map_err(|error| self.failure(folder, &error))
    }

    fn found(listed: ListResult) -> (Vec<Found>, Vec<String>) {
        let ListResult { objects, common_prefixes, .. } = listed;
        let found = |object: &ObjectMeta| {
            Some(Found {
                name: object.location.filename()?.to_owned(),
                bytes: object.size,
                modified_ns: object.last_modified.timestamp_nanos_opt().unwrap_or_default(),
            })
        };
        let below = common_prefixes.iter().filter_map(|prefix| prefix.filename().map(str::to_owned));
        (objects.iter().filter_map(found).collect(), below.collect())
    }

    fn listed(&self) -> Result<ListResult, Failure> {
        let prefix = Path::from(self.prefix.as_str());
        let listed = self.runtime.block_on(self.store.list_with_delimiter(Some(&prefix)));
        let listed = listed.map_err(|error| self.failure("", &error))?;
        let objects = &listed.objects;
        if objects.len() > MOST_NAMES {
            return Err(Failure::new(
                ExitClass::Usage,
                format!("{} has {} objects, more than a label can have", self.place(), objects.len()),
            )
            .advise("Name the object."));
        }
        Ok(listed)
    }

    /// Fetches an object into an unnamed temporary file, so that memory use stays small for objects
    /// of any size.
    pub(super) fn fetch(&self, name: &str, largest: u64) -> Result<File, Failure> {
        let shown = || format!("{}/{name}", self.place());
        let mut file = temporary().map_err(|error| no_room(&shown(), &error))?;
        let path = self.path(name);
        let head =
            self.runtime.block_on(self.store.head(&path)).map_err(|error| self.failure(name, &error))?;
        if head.size > largest {
            return Err(Failure::new(
                ExitClass::BadFile,
                format!("{} has {} bytes, more than the limit of {largest}", shown(), head.size),
            )
            .advise("Copy it to a file first, or query it in place with SQL."));
        }
        let mut at = 0;
        while at < head.size {
            let range = at..(at + PIECE).min(head.size);
            // All pieces must come from the same version of the object, even if somebody replaces
            // it meanwhile.
            let options = GetOptions {
                range: Some(range.into()),
                if_match: head.e_tag.clone(),
                ..GetOptions::default()
            };
            let piece =
                self.runtime.block_on(async { self.store.get_opts(&path, options).await?.bytes().await });
            let piece = piece.map_err(|error| self.failure(name, &error))?;
            if piece.is_empty() {
                return Err(Failure::new(ExitClass::BadFile, format!("{} is truncated", shown())));
            }
            file.write_all(&piece).map_err(|error| no_room(&shown(), &error))?;
            at += piece.len() as u64;
        }
        file.seek(SeekFrom::Start(0)).map_err(|error| no_room(&shown(), &error))?;
        Ok(file)
    }

    /// Returns `length` bytes of an object from `start`; `None` if there is no such object.
    pub(super) fn range(&self, name: &str, start: u64, length: usize) -> Result<Option<Bytes>, Failure> {
        if length == 0 {
            return Ok(Some(Bytes::new()));
        }
        let range = start..start.saturating_add(length as u64);
        let path = self.path(name);
        match patiently(|| self.runtime.block_on(self.store.get_range(&path, range.clone()))) {
            Ok(bytes) if bytes.len() == length => Ok(Some(bytes)),
            Ok(bytes) => Err(Failure::new(
                ExitClass::Failed,
                format!(
                    "the store returned {} bytes of {}/{name} instead of {length}",
                    bytes.len(),
                    self.place()
                ),
            )),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure(name, &error)),
        }
    }

    /// Writes an object unless there is one of this name. Returns whether there was none, or if the
    /// answer to an earlier attempt was lost, whether that attempt failed.
    pub(super) fn create(&self, name: &str, bytes: Bytes) -> Result<bool, Failure> {
        let created = patiently(|| self.create_once(name, bytes.clone()));
        created.map_err(|error| self.failure(name, &error))
    }

    fn create_once(&self, name: &str, bytes: Bytes) -> Result<bool, Error> {
        let path = self.path(name);
        let put = self.store.put_opts(&path, PutPayload::from(bytes), PutMode::Create.into());
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn put(&self, name: &str, bytes: Bytes, existing: Existing) -> Result<(), Failure> {
        match self.create_once(name, bytes) {
            Ok(false) if existing == Existing::Refuse => Err(exists(&format!("{}/{name}", self.place()))),
            Ok(_) => Ok(()),
            Err(error) => Err(self.failure(name, &error)),
        }
    }
}

/// Asks again if the store could not be asked. The client by itself repeats requests that got no
/// answer, if that is safe; it does not repeat those whose answer breaks off.
fn patiently<T>(ask: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let begin = Instant::now();
    let mut result = ask();
    for _ in 0..RETRIES {
        if !matches!(result, Err(Error::Generic { .. })) || begin.elapsed() > RETRY {
            break;
        }
        result = ask();
    }
    result
}

fn no_room(what: &str, error: &io::Error) -> Failure {
    Failure::new(ExitClass::Failed, format!("cannot write {what} to a temporary file: {error}"))
        .advise("Free some space in TMPDIR, or set TMPDIR to another folder.")
}

/// Returns the code and the message of S3's error document, if the store answered with one.
fn answer(error: &Error) -> Option<String> {
    let text = error.to_string();
    let part = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(sanitize(rest.split_once(&format!("</{name}>"))?.0))
    };
    let code = part("Code")?;
    Some(part("Message").map_or_else(|| code.clone(), |message| format!("{code}: {message}")))
}

/// Returns the innermost cause of an error, because the outer errors of the client repeat the
/// request.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    sanitize(&inner.to_string())
}

/// Rejects invalid variables that the client does not check: it puts them into addresses and
/// headers unchanged.
fn check_variables(endpoint: Option<&str>) -> Result<(), Failure> {
    let fits = |name: &str, value: &str| match name {
        "AWS_REGION" | "AWS_DEFAULT_REGION" => value.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
        _ => value.chars().all(|c| c.is_ascii_graphic()),
    };
    for name in [
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ] {
        if std::env::var(name).is_ok_and(|value| !fits(name, &value)) {
            return Err(Failure::new(ExitClass::Usage, format!("{name} contains an invalid character"))
                .advise("Look for a space or a newline at its end."));
        }
    }
    let url = endpoint.map(reqwest::Url::parse);
    if url.is_some_and(|url| !url.is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host()))
    {
        let shown = sanitize(endpoint.unwrap_or_default());
        return Err(Failure::new(
            ExitClass::Usage,
            format!("AWS_ENDPOINT_URL is not the address of a store: {shown:?}"),
        )
        .advise("Write http://HOST:PORT or https://HOST."));
    }
    Ok(())
}
