//! A server that takes what `precise serve --push` sends, or fails in a prepared way.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

/// What a server does with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Takes it: status 200 without a body.
    Take,
    /// Takes all but this number of profiles, as OTLP has it.
    TakePart(u8),
    /// Answers with a status line and a field, each complete: `503 Busy`, `Retry-After: 1`.
    Answer(&'static str, &'static str),
    /// Closes the connection without an answer.
    Reset,
    /// Answers with status 200 after this time.
    Slow(Duration),
}

impl Reaction {
    /// Returns the answer; empty if there is none.
    fn bytes(&self) -> Vec<u8> {
        let answer = |status: &str, field: &str, body: &[u8]| {
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\n{field}\r\nContent-Length: {length}\r\n\r\n");
            [head.as_bytes(), body].concat()
        };
        let protobuf = "Content-Type: application/x-protobuf";
        match self {
            Self::Take | Self::Slow(_) => answer("200 OK", protobuf, b""),
            // An ExportProfilesServiceResponse with the two fields of its partial_success.
            Self::TakePart(refused) => {
                let said = b"no room";
                let mut partial = vec![0x08, *refused, 0x12, said.len() as u8];
                partial.extend_from_slice(said);
                let body = [&[0x0a, partial.len() as u8], &partial[..]].concat();
                answer("200 OK", protobuf, &body)
            }
            Self::Answer(status, field) => answer(status, field, b"not now"),
            Self::Reset => Vec::new(),
        }
    }
}

/// A request that was received whole.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// What the server did with it.
    pub reaction: Reaction,
    /// The first line.
    pub head: String,
    /// The header fields, by their names in lower case.
    pub fields: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// A server on a port of its own. It lasts as long as the test.
#[derive(Debug)]
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
}

impl Receiver {
    /// Starts a server that reacts to the first requests as prepared, and takes all others.
    ///
    /// # Errors
    ///
    /// Returns an error if no port is free.
    pub fn start(reactions: impl IntoIterator<Item = Reaction>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let deliveries: Arc<Mutex<Vec<Delivery>>> = Arc::default();
        let (received, mut reactions) = (deliveries.clone(), reactions.into_iter().collect::<VecDeque<_>>());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let reaction = reactions.pop_front().unwrap_or(Reaction::Take);
                let Ok(delivery) = receive(&mut stream, reaction.clone()) else { continue };
                received.lock().unwrap_or_else(PoisonError::into_inner).push(delivery);
                let answer = move || {
                    if let Reaction::Slow(time) = reaction {
                        std::thread::sleep(time);
                    }
                    // The client may have gone.
                    let _gone = stream.write_all(&reaction.bytes());
                };
                // A slow answer does not delay the next request.
                std::thread::spawn(answer);
            }
        });
        Ok(Self { address, deliveries })
    }

    /// Returns the requests so far.
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn receive(stream: &mut TcpStream, reaction: Reaction) -> Result<Delivery> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = std::str::from_utf8(&bytes[..end])?;
            let (head, rest) = text.split_once("\r\n").context("a request has fields")?;
            let field = |line: &str| {
                let (name, value) = line.split_once(": ")?;
                Some((name.to_ascii_lowercase(), value.to_owned()))
            };
            let fields: BTreeMap<_, _> = rest.lines().filter_map(field).collect();
            let length: usize = fields.get("content-length").context("no length")?.parse()?;
            if bytes.len() >= end + 4 + length {
                let head = head.to_owned();
                return Ok(Delivery { reaction, head, fields, body: bytes.split_off(end + 4) });
            }
        }
        let read = stream.read(&mut chunk)?;
        ensure!(read > 0, "the client closed the connection");
        bytes.extend_from_slice(&chunk[..read]);
    }
}
