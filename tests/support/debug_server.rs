//! A server of debug information, as debuginfod(8) is one.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};

/// What is known of a build id, by the path of its address.
type Served = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A server on a port of its own. It lasts as long as the test.
#[derive(Debug)]
pub struct DebuginfodServer {
    address: SocketAddr,
    served: Served,
    asked: Arc<Mutex<Vec<String>>>,
}

impl DebuginfodServer {
    /// Starts a server that has nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if no port is free.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (served, asked) = (Served::default(), Arc::<Mutex<Vec<String>>>::default());
        let (known, log) = (served.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let _client_has_gone = answer(stream, &known, &log);
            }
        });
        Ok(Self { address, served, asked })
    }

    /// Returns its address, for `DEBUGINFOD_URLS`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves a file as the debug information of a build id, in hexadecimal digits.
    pub fn serve(&self, build_id: &str, content: Vec<u8>) {
        let path = format!("/buildid/{build_id}/debuginfo");
        self.served.lock().unwrap_or_else(PoisonError::into_inner).insert(path, content);
    }

    /// Returns the paths that were asked for since the last call.
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn answer(mut stream: TcpStream, served: &Served, asked: &Mutex<Vec<String>>) -> Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)?;
    let path = head.split(' ').nth(1).context("a path")?.to_owned();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    let content = served.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    let (status, content) = content.map_or(("404 Not Found", Vec::new()), |content| ("200 OK", content));
    let length = content.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&content)?;
    Ok(())
}
