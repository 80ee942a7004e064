//! A server that is a program: started here, spoken to through its standard input and output.
//!
//! Leaves the protocol to the library and ending processes to the guard. Invariant: memory is bounded whatever the program writes;
//! what is no message is skipped, an answer that is too long is answered for, and nothing of the program outlives its connection.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, JsonRpcError, JsonRpcRequest, JsonRpcResponse, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::RoleClient;
use rmcp::transport::Transport;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, oneshot, watch};

use crate::Json;
use crate::limits::{
    KILL_MAX, MCP_LEAVE, MESSAGE_BYTES_MAX, MESSAGE_EDGE_BYTES, MESSAGE_ID_BYTES, QUOTE_CHARS_MAX,
    STDERR_TAIL_BYTES, TERM_GRACE,
};
use crate::sdk::Locked;
use crate::tools::guard::{SERVER, SUBCOMMAND};
use crate::tools::{bare_environment, quote};

/// A program to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program<'a> {
    pub(super) command: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) directory: &'a Path,
}

/// What is known of a program: how it ended, and the end of what it said on its standard error.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    end: watch::Receiver<Option<String>>,
    said: Arc<Locked<Vec<u8>>>,
}

impl Watched {
    /// How it ended, if it does within `patience`, and the last that it said.
    pub(super) async fn story(&self, patience: Duration) -> String {
        let mut end = self.end.clone();
        let ended = tokio::time::timeout(patience, end.wait_for(Option::is_some)).await;
        let how = match ended {
            Ok(Ok(end)) => end.clone().unwrap_or_default(),
            Ok(Err(_)) | Err(_) => String::new(),
        };
        let said = String::from_utf8_lossy(&self.said.lock()).trim().to_owned();
        let last: Vec<char> = said.chars().rev().take(QUOTE_CHARS_MAX * 2).collect();
        let said: String = last.into_iter().rev().collect();
        match (how.is_empty(), said.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!(": {how}"),
            (true, false) => format!("; it said: {said}"),
            (false, false) => format!(": {how}; it said: {said}"),
        }
    }
}

/// Starts a program under guard.
pub(super) fn start(program: Program<'_>, guard: Option<&PathBuf>) -> io::Result<(Pipes, Watched)> {
    let mut command = match guard {
        Some(guard) => {
            let mut command = Command::new(guard);
            command.args([SUBCOMMAND, SERVER]).arg(program.command);
            command
        }
        None => Command::new(program.command),
    };
    command.args(program.args).current_dir(program.directory).process_group(0);
    bare_environment(command.as_std_mut(), program.directory);
    command.envs(program.env);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A guard must not be killed: it ends by itself, last, when its input closes.
    let mut child = command.kill_on_drop(guard.is_none()).spawn()?;
    let missing = || io::Error::other("a pipe is missing");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let (keep, dropped) = oneshot::channel();
    let (ended, end) = watch::channel(None);
    let said = Arc::new(Locked::new(Vec::new()));
    let listening = tokio::spawn(listen(stderr, said.clone()));
    tokio::spawn(async move {
        let how = watch_over(child, dropped).await;
        // What it said last is read before its end is told; a stranger that holds the pipe open is not waited for.
        let _late = tokio::time::timeout(TERM_GRACE, listening).await;
        ended.send_replace(Some(how));
    });
    let write = Arc::new(Mutex::new(Some(stdin)));
    Ok((
        Pipes { lines: Lines::new(stdout), write, noise: Noise::default(), asked_last: None, _keep: keep },
        Watched { end, said },
    ))
}

/// Waits for the end of the program; ends it if its connection is dropped first.
async fn watch_over(mut child: Child, dropped: oneshot::Receiver<()>) -> String {
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let status = tokio::select! {
        status = child.wait() => status,
        _ = dropped => {
            // Its input is closed: a program that keeps to the protocol ends by itself, and the guard ends any other.
            match tokio::time::timeout(MCP_LEAVE + TERM_GRACE + KILL_MAX, child.wait()).await {
                Ok(status) => status,
                Err(_) => {
                    let _gone = group.map(|group| kill_process_group(group, Signal::KILL));
                    child.wait().await
                }
            }
        }
    };
    // Whatever is left of its group goes too, also if the guard itself was killed.
    let _gone = group.map(|group| kill_process_group(group, Signal::KILL));
    match status {
        Ok(status) => match (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)) {
            (Some(code), _) if code > 128 => format!("it was ended by signal {}", code - 128),
            (Some(code), _) => format!("it exited with code {code}"),
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => "it ended".to_owned(),
        },
        Err(error) => format!("it cannot be watched: {error}"),
    }
}

/// Reads all that a program says on its standard error, and keeps the end.
async fn listen(mut stderr: ChildStderr, said: Arc<Locked<Vec<u8>>>) {
    let mut piece = vec![0; STDERR_TAIL_BYTES];
    while let Ok(length) = stderr.read(&mut piece).await
        && length > 0
    {
        let mut said = said.lock();
        said.extend_from_slice(&piece[..length]);
        let over = said.len().saturating_sub(STDERR_TAIL_BYTES);
        said.drain(..over);
    }
}

/// The connection to a program, as the library uses it.
#[derive(Debug)]
pub(super) struct Pipes {
    lines: Lines,
    write: Arc<Mutex<Option<ChildStdin>>>,
    noise: Noise,
    /// The number of the last request: the library counts them.
    asked_last: Option<i64>,
    /// Its end tells the watcher that nobody speaks to the program any more.
    _keep: oneshot::Sender<()>,
}

/// Whether the program has written what is neither a message nor blank.
#[derive(Debug, Default)]
struct Noise(bool);

impl Noise {
    /// Takes note of a line that is no message; says whether it is the first one worth a word.
    fn begins(&mut self, line: &[u8]) -> bool {
        !line.trim_ascii().is_empty() && !std::mem::replace(&mut self.0, true)
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let write = self.write.clone();
        if let ClientJsonRpcMessage::Request(JsonRpcRequest { id: RequestId::Number(id), .. }) = &message {
            self.asked_last = self.asked_last.max(Some(*id));
        }
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            match write.lock().await.as_mut() {
                Some(stdin) => stdin.write_all(&line).await,
                None => Err(io::ErrorKind::NotConnected.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let read = match self.lines.next().await? {
                Line::Whole(line) => message(line),
                Line::TooLong { head, tail } => too_long(&head, &tail).ok_or(head),
            };
            match read {
                // Amid a handshake the library takes such an answer for the end of it.
                Ok(message) if answers_nobody(&message, self.asked_last) => {
                    tracing::warn!("an MCP server answers what it was not asked; that is skipped");
                }
                Ok(message) => return Some(message),
                Err(line) => {
                    if self.noise.begins(&line) {
                        let line = quote(&String::from_utf8_lossy(&line), QUOTE_CHARS_MAX);
                        tracing::warn!(
                            line,
                            "an MCP server writes what is no message; such lines are skipped"
                        );
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.write.lock().await.take();
        Ok(())
    }
}

/// Whether a message answers a request that was never made.
fn answers_nobody(message: &ServerJsonRpcMessage, asked_last: Option<i64>) -> bool {
    let id = match message {
        ServerJsonRpcMessage::Response(response) => &response.id,
        ServerJsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) => id,
        ServerJsonRpcMessage::Error(_)
        | ServerJsonRpcMessage::Request(_)
        | ServerJsonRpcMessage::Notification(_) => return false,
    };
    match id {
        RequestId::Number(id) => !asked_last.is_some_and(|last| (0..=last).contains(id)),
        RequestId::String(_) => true,
    }
}

/// Reads a line as a message. One that answers a request but cannot be read becomes an error for that request, so that nobody waits
/// for it in vain.
///
/// # Errors
/// The beginning of a line that is no message.
fn message(mut line: Vec<u8>) -> Result<ServerJsonRpcMessage, Vec<u8>> {
    let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
    let mut value = match serde_json::from_slice::<Json>(text) {
        Ok(value) if value.get("jsonrpc").and_then(Json::as_str) == Some("2.0") => value,
        Ok(_) | Err(_) => return Err(line),
    };
    let id = value.get("id").filter(|id| !id.is_null());
    let answers = value.get("method").is_none().then_some(id).flatten().cloned();
    // What follows makes copies; the line is not kept beside them.
    line.truncate(MESSAGE_EDGE_BYTES);
    line.shrink_to_fit();
    let of_call = taken_out(&mut value);
    match (serde_json::from_value(value), answers) {
        (Ok(ServerJsonRpcMessage::Response(response)), _) => {
            let result = of_call
                .map_or(response.result, |of_call| ServerResult::CustomResult(CustomResult::new(of_call)));
            Ok(ServerJsonRpcMessage::Response(JsonRpcResponse { result, ..response }))
        }
        (Ok(message), _) => Ok(message),
        (Err(error), Some(id)) => failed(&id, &format!("the answer cannot be read: {error}")).ok_or(line),
        (Err(_), None) => Err(line),
    }
}

/// Takes the answer to a tool's call out of a message, if that is what it brings: the library copies a result several times over to
/// find out of which kind it is, and this kind may be large.
fn taken_out(message: &mut Json) -> Option<Json> {
    let result = message.get_mut("result")?;
    let others = ["task", "action"].iter().any(|name| result.get(*name).is_some());
    let is_of_call = !others && result.get("content").is_some_and(Json::is_array);
    is_of_call.then(|| std::mem::replace(result, json!({})))
}

/// The error for the request that an overlong line answers, if its id can be made out at either end of the line.
fn too_long(head: &[u8], tail: &[u8]) -> Option<ServerJsonRpcMessage> {
    let head = String::from_utf8_lossy(head);
    let tail = String::from_utf8_lossy(tail);
    if !head.trim_start().starts_with('{') {
        return None;
    }
    let before_result = head.split("\"result\"").next().unwrap_or_default();
    let in_tail = || {
        let near_end = tail.rfind('}')?.saturating_sub(MESSAGE_ID_BYTES);
        id_in(&tail[tail.floor_char_boundary(near_end)..])
    };
    let id = id_in(before_result).or_else(in_tail)?;
    failed(&json!(id), &format!("the answer is longer than {MESSAGE_BYTES_MAX} bytes and was not read"))
}

/// The last numeric `"id"` of a piece of JSON.
fn id_in(text: &str) -> Option<i64> {
    let (_, after) = text.rsplit_once("\"id\"")?;
    let digits = after.trim_start().strip_prefix(':')?.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

fn failed(id: &Json, why: &str) -> Option<ServerJsonRpcMessage> {
    serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": why}}))
        .ok()
}

/// A line of a program's output.
enum Line {
    Whole(Vec<u8>),
    /// Too long to keep: its beginning and its end.
    TooLong {
        head: Vec<u8>,
        tail: Vec<u8>,
    },
}

/// Cuts output into lines. What was read stays here when the reader is interrupted.
#[derive(Debug)]
struct Lines {
    from: ChildStdout,
    /// What is read and not taken yet; without a line break before `seen`.
    buffer: Vec<u8>,
    seen: usize,
    /// The beginning of a line that is too long.
    head: Option<Vec<u8>>,
}

impl Lines {
    fn new(from: ChildStdout) -> Lines {
        Lines { from, buffer: Vec::new(), seen: 0, head: None }
    }

    async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(at) = self.buffer[self.seen..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(self.seen + at + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                self.seen = 0;
                line.pop();
                return Some(match self.head.take() {
                    None => Line::Whole(line),
                    Some(head) => Line::TooLong { head, tail: line },
                });
            }
            if self.buffer.len() > MESSAGE_BYTES_MAX && self.head.is_none() {
                self.head = Some(self.buffer[..MESSAGE_EDGE_BYTES].to_vec());
            }
            if self.head.is_some() {
                self.buffer.drain(..self.buffer.len().saturating_sub(MESSAGE_EDGE_BYTES));
            }
            self.seen = self.buffer.len();
            match self.from.read_buf(&mut self.buffer).await {
                Ok(length) if length > 0 => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_are_messages() {
        for (line, is_message) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true),
            ("\u{FEFF}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", true),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#,
                true,
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#, true),
            (r#"{"jsonrpc":"2.0","id":3,"result":7,"error":8}"#, true),
            (r#"{"level":"info","msg":"hello"}"#, false),
            ("Server listening on stdio", false),
            ("[1,2]", false),
            ("", false),
            ("\r", false),
            ("{\"jsonrpc\":\"2.0\",", false),
        ] {
            assert_eq!(message(line.as_bytes().to_vec()).is_ok(), is_message, "{line}");
        }
    }

    #[test]
    fn noise_is_told_once_and_blank_lines_are_none() {
        let mut noise = Noise::default();
        let told: Vec<bool> =
            ["", "\r", "hello", "", " ", "again", ""].map(|line| noise.begins(line.as_bytes())).into();
        assert_eq!(told, [false, false, true, false, false, false, false]);
    }

    #[test]
    fn an_overlong_answer_ends_its_request() {
        for (head, tail, id) in [
            (r#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"id":9"#, r#"xx"}]}}"#, Some(12)),
            (r#"{"result":{"content":[{"id":9,"text":"xx"#, r#"xx"}]},"jsonrpc":"2.0","id":12}"#, Some(12)),
            // Whatever stands before the id, also where a character is longer than a byte.
            (
                r#"{"result":{"content":[{"text":"xx"#,
                r#"日日日日日日日日日日"}]},"jsonrpc":"2.0","id":12}"#,
                Some(12),
            ),
            (
                r#"{"result":{"content":[{"text":"xx"#,
                r#"日日日日日日日日日日."}]},"jsonrpc":"2.0","id":12}"#,
                Some(12),
            ),
            (
                r#"{"result":{"content":[{"text":"xx"#,
                r#"日日日日日日日日日日.."}]},"jsonrpc":"2.0","id":12}"#,
                Some(12),
            ),
            ("garbage \"id\":12", "}", None),
            (r#"{"result":{}"#, "no end", None),
        ] {
            let found = too_long(head.as_bytes(), tail.as_bytes());
            let found = found.map(|message| serde_json::to_value(message).unwrap()["id"].as_i64().unwrap());
            assert_eq!(found, id, "{head}");
        }
    }
}
