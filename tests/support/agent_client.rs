//! A client of `precise mcp`: it starts the server and asks by lines, as an agent does.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{run, schema};

/// A running server with its two ends.
#[derive(Debug)]
pub struct AgentClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl AgentClient {
    /// Starts `precise mcp` in a folder, and begins a session.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not start, or refuses the session.
    pub fn start(folder: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = run::command(["mcp"].iter().chain(arguments))?;
        command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        let mut client = Self { child, input, output, asked: 0 };
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        let begun = client.request("initialize", &params)?;
        ensure!(begun["protocolVersion"] == "2025-06-18", "{begun}");
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(client)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        writeln!(self.input, "{line}")?;
        Ok(self.input.flush()?)
    }

    /// Sends a line, and returns the line that answers it.
    ///
    /// # Errors
    ///
    /// Returns an error if the server ends, or answers no JSON.
    pub fn line(&mut self, line: &str) -> Result<Value> {
        self.send(line)?;
        let mut answer = String::new();
        ensure!(self.output.read_line(&mut answer)? > 0, "the server ended at {line}");
        serde_json::from_str(&answer).with_context(|| answer.clone())
    }

    /// Makes a request, and returns its result.
    ///
    /// # Errors
    ///
    /// Returns an error if the server refuses it.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.asked += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        let mut answer = self.line(&request.to_string())?;
        ensure!(answer["id"] == self.asked && answer.get("error").is_none(), "{method} {params}: {answer}");
        Ok(answer["result"].take())
    }

    /// Calls a tool, and returns its document, which is small and valid.
    ///
    /// # Errors
    ///
    /// Returns an error if it is larger than 4,096 bytes, or not what its schemas say.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        let text = result["content"][0]["text"].as_str().context("no text")?;
        ensure!(text.len() <= 4096, "{tool}: {} bytes", text.len());
        let document: Value = serde_json::from_str(text)?;
        schema::document(&document).with_context(|| format!("{tool} {arguments}"))?;
        if !document["answer"].is_null() {
            schema::document(&document["answer"]).with_context(|| format!("{tool} {arguments}"))?;
        }
        Ok(document)
    }

    /// Ends the input, and waits for the server to end well.
    ///
    /// # Errors
    ///
    /// Returns an error if it does not.
    pub fn end(self) -> Result<()> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let status = child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}
