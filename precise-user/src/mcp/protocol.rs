//! The Model Context Protocol over lines: JSON-RPC 2.0 requests in, one line of answer for each.
//!
//! Bytes are not trusted: what is not a request gets an error of JSON-RPC, and a line that is too
//! long is skipped without being held in memory.

use std::io::{self, BufRead, Read as _, Write};

use precise_model::text::sanitize;
use serde_json::{Map, Value, json};

use super::fit::shorten;
use super::{ToolHost, ToolResult, ToolServer, answers};

/// Longest line of a client, in bytes.
pub const LONGEST_LINE: usize = 1 << 20;
/// Versions of the protocol that this server speaks, newest first.
pub const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];
/// The version that has batches: several requests in one list.
const BATCHES: &str = "2025-03-26";
/// Most requests of a batch.
const LARGEST_BATCH: usize = 32;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// A session with one client.
pub struct ToolSession<H> {
    server: ToolServer<H>,
    version: &'static str,
}

/// An error of JSON-RPC.
struct Refusal {
    code: i64,
    message: String,
}

impl Refusal {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl<H: ToolHost> ToolSession<H> {
    /// Begins a session.
    pub fn new(server: ToolServer<H>) -> Self {
        Self { server, version: VERSIONS[0] }
    }

    /// Answers lines until the input ends or nobody reads the output.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be read or the output cannot be written.
    pub fn run(&mut self, mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = LONGEST_LINE as u64 + 1;
            if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let answer = if line.last() != Some(&b'\n') && line.len() > LONGEST_LINE {
                skip_line(&mut input)?;
                let refusal = Refusal::new(INVALID_REQUEST, "the line is longer than 1 MiB");
                Some(answers::line(&refused(&Value::Null, &refusal)))
            } else {
                self.answer(&line)
            };
            if let Some(answer) = answer {
                let written = writeln!(output, "{answer}").and_then(|()| output.flush());
                match written {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                    written => written?,
                }
            }
        }
    }

    /// Answers one line; `None` if it needs no answer.
    pub fn answer(&mut self, line: &[u8]) -> Option<String> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let answer = match serde_json::from_slice::<Value>(line) {
            Err(error) => {
                let message = format!("the line is not JSON: {error}");
                Some(refused(&Value::Null, &Refusal::new(PARSE_ERROR, message)))
            }
            Ok(Value::Array(requests)) => self.batch(&requests),
            Ok(request) => self.request(&request),
        };
        answer.map(|answer| answers::line(&answer))
    }

    fn batch(&mut self, requests: &[Value]) -> Option<Value> {
        let refuse = |message: &str| Some(refused(&Value::Null, &Refusal::new(INVALID_REQUEST, message)));
        if self.version != BATCHES {
            return refuse("this version of the protocol has no batches: send one request per line");
        }
        if requests.is_empty() || requests.len() > LARGEST_BATCH {
            return refuse("a batch has 1 to 32 requests");
        }
        let answers: Vec<Value> = requests.iter().filter_map(|request| self.request(request)).collect();
        (!answers.is_empty()).then_some(Value::Array(answers))
    }

    fn request(&mut self, request: &Value) -> Option<Value> {
        let Value::Object(fields) = request else {
            return Some(refused(&Value::Null, &Refusal::new(INVALID_REQUEST, "a request is an object")));
        };
        let id = fields.get("id");
        let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
        let answered_id = id.filter(|id| is_id(id)).cloned().unwrap_or_default();
        let refuse = |message: &str| Some(refused(&answered_id, &Refusal::new(INVALID_REQUEST, message)));
        if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return refuse("a request has \"jsonrpc\": \"2.0\"");
        }
        let Some(method) = fields.get("method") else {
            // The answer to a request that this server never makes.
            return match fields.contains_key("result") || fields.contains_key("error") {
                true => None,
                false => refuse("a request has a method"),
            };
        };
        let Some(method) = method.as_str() else { return refuse("a method is a text") };
        // Notifications have no id and get no answer; none of them changes anything here.
        let id = id?;
        if !is_id(id) {
            return refuse("an id is a text or a whole number");
        }
        let nothing = Map::new();
        let params = match fields.get("params") {
            None => &nothing,
            Some(Value::Object(params)) => params,
            Some(_) => {
                return Some(refused(id, &Refusal::new(INVALID_PARAMS, "params are an object")));
            }
        };
        Some(match self.method(method, params) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(refusal) => refused(id, &refusal),
        })
    }

    fn method(&mut self, method: &str, params: &Map<String, Value>) -> Result<Value, Refusal> {
        match method {
            "initialize" => self.initialize(params),
            "ping" => Ok(json!({})),
            "tools/list" => Ok(json!({ "tools": self.server.tools() })),
            "tools/call" => self.call(params),
            other => Err(Refusal::new(
                METHOD_NOT_FOUND,
                format!("there is no method {:?}; this server has tools only", shorten(&sanitize(other), 60)),
            )),
        }
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let asked = params.get("protocolVersion").and_then(Value::as_str).ok_or_else(|| {
            Refusal::new(INVALID_PARAMS, "initialize needs protocolVersion, as in \"2025-06-18\"")
        })?;
        // For a version that it does not speak, a server names the newest that it does.
        self.version = VERSIONS.into_iter().find(|version| *version == asked).unwrap_or(VERSIONS[0]);
        Ok(json!({
            "protocolVersion": self.version,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "precise", "version": env!("CARGO_PKG_VERSION") },
            "instructions": self.server.instructions(),
        }))
    }

    fn call(&mut self, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Refusal::new(INVALID_PARAMS, "tools/call needs the name of a tool"))?;
        let nothing = Map::new();
        let arguments = match params.get("arguments") {
            None | Some(Value::Null) => &nothing,
            Some(Value::Object(arguments)) => arguments,
            Some(_) => return Err(Refusal::new(INVALID_PARAMS, "arguments are an object")),
        };
        let called = self.server.call(name, arguments).ok_or_else(|| {
            let name = shorten(&sanitize(name), 60);
            Refusal::new(INVALID_PARAMS, format!("there is no tool {name:?}; tools/list has the names"))
        })?;
        let ToolResult { text, is_error } = called;
        Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
    }
}

fn refused(id: &Value, refusal: &Refusal) -> Value {
    let error = json!({ "code": refusal.code, "message": refusal.message });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

/// Skips the rest of a line.
fn skip_line(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let skipped = end.map_or(buffer.len(), |end| end + 1);
        input.consume(skipped);
        if end.is_some() {
            return Ok(());
        }
    }
}
