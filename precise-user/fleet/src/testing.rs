//! A bucket in memory and the captures of a fleet that never was, with known sums. Not part of the
//! public interface.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use chrono::DateTime;
use precise_capture::CaptureFile as _;
use precise_model::testing::{CaptureBuilder, L1, L3_HITM, RAM, REMOTE_RAM, ibs_op};
use precise_model::{Capture, Epoch, Name, Owner};

use crate::bucket::{FleetBucket, FleetError, FleetObject};
use crate::hash::Random;
use crate::hour::FleetHour;

/// A minute in nanoseconds.
pub const MINUTE_NS: u64 = 60_000_000_000;
/// Data sources of rows, each with the least latency in cycles and the number of latencies: about
/// those of a server with two sockets. They decide how many rows of `latency` there are.
const SOURCES: [(u64, u32, u32); 4] =
    [(L1, 4, 5), (L3_HITM, 60, 100), (RAM, 150, 180), (REMOTE_RAM, 300, 200)];

/// A bucket in memory, which may stop working.
#[derive(Debug, Default)]
pub struct MemoryBucket {
    objects: Mutex<BTreeMap<String, (Bytes, u64)>>,
    /// The number of operations that succeed.
    left: Mutex<Option<u64>>,
    /// Whether ranges cost much, as in an object store.
    pub far: bool,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryBucket {
    /// Puts an object.
    pub fn put(&self, name: &str, bytes: impl Into<Bytes>, modified_ns: u64) {
        lock(&self.objects).insert(name.to_owned(), (bytes.into(), modified_ns));
    }

    /// Lets this number of operations succeed; `None`: all of them.
    pub fn allow(&self, operations: Option<u64>) {
        *lock(&self.left) = operations;
    }

    /// Returns the names and contents of all objects whose name begins with this.
    pub fn with_prefix(&self, prefix: &str) -> BTreeMap<String, Bytes> {
        let objects = lock(&self.objects);
        let own = objects.iter().filter(|(name, _)| name.starts_with(prefix));
        own.map(|(name, (bytes, _))| (name.clone(), bytes.clone())).collect()
    }

    /// Returns a bucket with the same objects, of those outside of the tables.
    #[must_use]
    pub fn raw(&self) -> Self {
        let objects = lock(&self.objects).clone();
        let raw = objects.into_iter().filter(|(name, _)| !name.starts_with("v1/")).collect();
        Self { objects: Mutex::new(raw), left: Mutex::default(), far: self.far }
    }

    /// Returns whether the operation succeeds, and if not, whether it was done all the same.
    fn operate(&self) -> Result<(), FleetError> {
        match &mut *lock(&self.left) {
            Some(0) => Err(FleetError::Bucket("the bucket was told to fail".into())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn names(&self, folder: &str) -> Vec<(String, String, u64, u64)> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let objects = lock(&self.objects);
        let inside = objects.iter().filter_map(|(name, (bytes, modified))| {
            let rest = name.strip_prefix(&start)?;
            Some((name.clone(), rest.to_owned(), bytes.len() as u64, *modified))
        });
        inside.collect()
    }
}

impl FleetBucket for MemoryBucket {
    fn folders(&self, folder: &str) -> Result<Vec<String>, FleetError> {
        self.operate()?;
        let names = self.names(folder).into_iter();
        let mut folders: Vec<String> =
            names.filter_map(|(_, rest, ..)| Some(rest.split_once('/')?.0.to_owned())).collect();
        folders.dedup();
        Ok(folders)
    }

    fn objects(&self, folder: &str) -> Result<Vec<FleetObject>, FleetError> {
        self.operate()?;
        let names = self.names(folder).into_iter().filter(|(_, rest, ..)| !rest.contains('/'));
        Ok(names.map(|(name, _, bytes, modified_ns)| FleetObject { name, bytes, modified_ns }).collect())
    }

    fn range(&self, name: &str, start: u64, length: usize) -> Result<Option<Bytes>, FleetError> {
        self.operate()?;
        let Some((bytes, _)) = lock(&self.objects).get(name).cloned() else { return Ok(None) };
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        let end = start.checked_add(length).filter(|end| *end <= bytes.len());
        end.map(|end| Some(bytes.slice(start..end)))
            .ok_or_else(|| FleetError::Bucket(format!("{name} has fewer bytes").into()))
    }

    fn create(&self, name: &str, bytes: Bytes) -> Result<bool, FleetError> {
        // Whether the last operation is done before it fails: an answer may be lost.
        let lost = *lock(&self.left) == Some(0) && name.len().is_multiple_of(2);
        let operated = self.operate();
        if !lost {
            operated?;
            let mut objects = lock(&self.objects);
            if objects.contains_key(name) {
                return Ok(false);
            }
            objects.insert(name.to_owned(), (bytes, u64::MAX));
            return Ok(true);
        }
        lock(&self.objects).entry(name.to_owned()).or_insert((bytes, u64::MAX));
        operated.map(|()| true)
    }

    fn is_near(&self) -> bool {
        !self.far
    }
}

/// A fleet whose nodes record all the time, in captures of six epochs. The first capture of an hour
/// begins 20 minutes after it.
#[derive(Clone, Copy, Debug)]
pub struct MadeFleet {
    /// Decides everything.
    pub seed: u64,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of services, of which a node has at most ten.
    pub services: u32,
    /// Number of functions of a service.
    pub functions: u32,
    /// Number of captures that a node begins in an hour, which divides 60.
    pub captures: u32,
    /// Number of rows of a capture.
    pub rows: u32,
    /// The first hour.
    pub first: FleetHour,
    /// After how many hours each service is deployed anew.
    pub deploy: u32,
}

/// A capture with its name and the time when it was written.
#[derive(Clone, Debug)]
pub struct MadeCapture {
    /// The name below the place.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
    /// When the file was written, in nanoseconds since the Unix epoch.
    pub modified_ns: u64,
}

/// Samples, events and latencies by hour, service and function.
pub type FleetTruth = BTreeMap<(FleetHour, String, String), [u64; 3]>;

impl MadeFleet {
    /// A small fleet.
    pub fn small() -> Self {
        let first = FleetHour::parse("2026-11-24T20").unwrap_or(FleetHour(0));
        Self { seed: 1, nodes: 12, services: 7, functions: 9, captures: 1, rows: 60, first, deploy: 3 }
    }

    /// Returns the name of a node.
    pub fn node(node: u32) -> String {
        format!("node-{node:05}")
    }

    /// Makes the first capture of a node that begins in an hour, and adds what is in it to `truth`.
    ///
    /// # Errors
    ///
    /// Returns an error if the capture cannot be written, which is a bug.
    pub fn capture(&self, node: u32, hour: u32, truth: &mut FleetTruth) -> io::Result<MadeCapture> {
        self.part(node, (hour, 0), 0, truth)
    }

    /// Makes all captures of a node that begin in an hour, like [`Self::capture`].
    ///
    /// # Errors
    ///
    /// Returns an error if a capture cannot be written, which is a bug.
    pub fn all(&self, node: u32, hour: u32, truth: &mut FleetTruth) -> io::Result<Vec<MadeCapture>> {
        (0..self.captures).map(|part| self.part(node, (hour, part), 0, truth)).collect()
    }

    /// Makes a capture like [`Self::capture`], of a node whose clock is some minutes ahead.
    ///
    /// # Errors
    ///
    /// Returns an error if the capture cannot be written, which is a bug.
    pub fn skewed(
        &self,
        node: u32,
        hour: u32,
        minutes: i64,
        truth: &mut FleetTruth,
    ) -> io::Result<MadeCapture> {
        self.part(node, (hour, 0), minutes, truth)
    }

    /// Makes a capture of an hour by its number in it.
    fn part(
        &self,
        node: u32,
        (hour, part): (u32, u32),
        minutes: i64,
        truth: &mut FleetTruth,
    ) -> io::Result<MadeCapture> {
        let hour = FleetHour(self.first.0 + hour);
        let long = self.long_ns();
        let due = hour.start_ns() + 20 * MINUTE_NS + u64::from(part) * long;
        let begin = due.saturating_add_signed(minutes * MINUTE_NS.cast_signed());
        let seed = self.seed ^ u64::from(part) << 56 ^ u64::from(node) << 32 ^ u64::from(hour.0);
        let capture = self.model((node, hour), (begin, seed), truth);
        let host = Self::node(node);
        let clock = DateTime::from_timestamp_nanos(begin.cast_signed()).format("%Y%m%dT%H%M%SZ").to_string();
        let day = clock.split('T').next().unwrap_or_default();
        let name = format!("prod-{host}-{day}/{clock}-{host}-precise.parquet");
        let modified_ns = due + long + 30_000_000_000;
        Ok(MadeCapture { name, bytes: written(&capture)?, modified_ns })
    }

    /// Returns how long a capture is, in nanoseconds.
    fn long_ns(&self) -> u64 {
        60 * MINUTE_NS / u64::from(self.captures.max(1))
    }

    fn model(
        &self,
        (node, hour): (u32, FleetHour),
        (begin, seed): (u64, u64),
        truth: &mut FleetTruth,
    ) -> Capture {
        let mut random = Random(seed);
        let mut builder = CaptureBuilder::new();
        let long = self.long_ns() / 6;
        let meta = builder.meta();
        (meta.machine.host, meta.start_unix_ns) = (Self::node(node), begin);
        meta.epochs =
            (0..6).map(|epoch| Epoch { start_ns: epoch * long, end_ns: (epoch + 1) * long }).collect();
        for event in &mut meta.events {
            event.name = "loads".to_owned();
            if node.is_multiple_of(3) {
                ibs_op(event);
            }
        }
        let deploy = (hour.0 - self.first.0) / self.deploy.max(1);
        for service in 0..self.services {
            meta.owners.push(Owner {
                path: format!("/kubepods/{service:04}"),
                name: format!("shop/web{service}"),
                pod: Some(format!("web{service}-7d9f8b6c{}-x2x4z", ["b", "c", "d"][deploy as usize % 3])),
                namespace: Some("shop".to_owned()),
                ..Owner::default()
            });
        }
        for _ in 0..self.rows {
            let mut below = |most: u32| (random.next() % u64::from(most.max(1))) as u32;
            let service = (node * 7 + below(10)) % self.services;
            // The first functions of a service take most of the time.
            let hot = below(self.functions) + 1;
            let function = below(hot);
            let (epoch, (source, least, latencies)) = (below(6), SOURCES[below(4) as usize]);
            // Every fiftieth node has a noisy neighbour.
            let noisy = if node % 50 == 7 { 4 } else { 1 };
            let (samples, latency) = (u64::from(1 + below(40)), noisy * (least + below(latencies)));
            let name = format!("web{service}::f{function}");
            let ip = 0x1000 + u64::from(function) * 64;
            let cell = builder.cell().epoch(epoch).samples(samples).latency(latency).data_src(source);
            let cell = cell.cgroup(u64::from(service) + 1, &format!("/kubepods/{service:04}"));
            let _ = cell.code(ip, &format!("/bin/web{service}"), &name, "", 0);
            let at = FleetHour::of_ns(begin + u64::from(epoch) * long);
            let total = truth.entry((at, format!("shop/web{service}"), name)).or_default();
            for (total, more) in total.iter_mut().zip([1, 1000, u64::from(latency)]) {
                *total += samples * more;
            }
        }
        let mut capture = builder.build();
        // A deploy has another build id, and the same names.
        for code in &mut capture.code {
            let Name::Known(module) = code.module else { continue };
            let build =
                format!("{:016x}", crate::hash::hash63(&[capture.names.get(module), &deploy.to_string()]));
            code.build_id = capture.names.intern(&build);
        }
        capture
    }
}

/// Returns a capture as its file.
///
/// # Errors
///
/// Returns an error if the capture cannot be written, which is a bug.
pub fn written(capture: &Capture) -> io::Result<Vec<u8>> {
    capture.to_bytes().map(Vec::from).map_err(io::Error::other)
}
