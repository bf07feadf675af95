//! A server of the S3 protocol (moto's), and a network before it that loses what it should carry.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::kill_on_drop::KillOnDrop;
use crate::program::python;
use crate::run::{Ended, command};

/// A server on its own port, with the bucket `profiles`, which is ended when this is dropped.
pub struct S3Server {
    _child: KillOnDrop,
    /// Its address, for `AWS_ENDPOINT_URL`.
    pub endpoint: String,
}

impl S3Server {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not start.
    pub fn start() -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(python()?)
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("moto is missing: `cargo xtask setup` installs it")?;
        let server = Self { _child: child.into(), endpoint: format!("http://127.0.0.1:{port}") };
        let begin = Instant::now();
        loop {
            match make_bucket(port) {
                Ok(answer) if answer.starts_with("HTTP/1.1 200") => return Ok(server),
                other if begin.elapsed() > Duration::from_secs(60) => {
                    other?;
                    anyhow::bail!("the server makes no bucket");
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Runs `precise` with this server as its object store.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub fn precise(&self, arguments: &[&str]) -> Result<Ended> {
        precise_at(&self.endpoint, arguments)
    }

    /// Returns the address of a network before the server that fails one of `each` requests, each
    /// time in another way: with status 503, without an answer, with half of one, or late. Also
    /// returns the number of requests that it failed.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no port for it.
    pub fn through_faults(&self, each: u64) -> Result<(String, Arc<AtomicU64>)> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let to = self.endpoint.trim_start_matches("http://").to_owned();
        let failed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&failed);
        std::thread::spawn(move || {
            for (number, client) in (1_u64..).zip(listener.incoming().flatten()) {
                let (to, counted) = (to.clone(), Arc::clone(&counted));
                let fault = if number % each == 0 { number / each % 4 + 1 } else { 0 };
                std::thread::spawn(move || {
                    // A client that went away has failed elsewhere.
                    if matches!(carry(client, &to, fault), Ok(true)) {
                        counted.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        Ok((endpoint, failed))
    }
}

/// Carries one request, with a fault. Returns whether there was a fault.
fn carry(mut client: TcpStream, to: &str, fault: u64) -> Result<bool> {
    let request = request(&mut client)?;
    if request.is_empty() {
        return Ok(false);
    }
    match fault {
        1 => {
            client.write_all(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
            return Ok(true);
        }
        2 => return Ok(true),
        3 => std::thread::sleep(Duration::from_secs(2)),
        _ => {}
    }
    let mut server = TcpStream::connect(to)?;
    server.write_all(&request)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    let whole = if fault == 4 { answer.len() / 2 } else { answer.len() };
    client.write_all(answer.get(..whole).unwrap_or_default())?;
    Ok(fault > 0)
}

/// Reads a request, and asks for an answer after which the connection ends.
fn request(client: &mut TcpStream) -> Result<Vec<u8>> {
    client.set_read_timeout(Some(Duration::from_secs(20)))?;
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 << 10]);
    let mut more = |bytes: &mut Vec<u8>| -> Result<bool> {
        let read = client.read(&mut buffer)?;
        bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
        Ok(read > 0)
    };
    let end = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
    while end(&bytes).is_none() {
        if !more(&mut bytes)? {
            return Ok(Vec::new());
        }
    }
    let head = end(&bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes.get(..head).unwrap_or_default()).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let whole = head + 4 + length.unwrap_or(0_usize);
    while bytes.len() < whole && more(&mut bytes)? {}
    let first = bytes.windows(2).position(|two| two == b"\r\n").unwrap_or(head) + 2;
    Ok([&bytes[..first], b"Connection: close\r\n", &bytes[first..]].concat())
}

fn make_bucket(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(
        b"PUT /profiles HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Runs `precise` with the object store at this address.
///
/// # Errors
///
/// Returns an error if it cannot be started.
pub fn precise_at(endpoint: &str, arguments: &[&str]) -> Result<Ended> {
    let mut command = command(arguments)?;
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "eu-central-1");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    Ok(command.output()?.into())
}
