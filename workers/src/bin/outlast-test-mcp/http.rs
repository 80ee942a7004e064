//! The scripted server over HTTP: one connection for each request, answers as a stream of events.
//!
//! A file `forget` in the working directory makes it forget its sessions, once. Leaves the messages to its parent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::{Out, Server, append, oauth};

/// Counts sessions.
static SESSIONS: AtomicU64 = AtomicU64::new(0);
/// The last session that was forgotten; those that came before it were, too.
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

/// Serves until it is killed.
pub(crate) fn serve(server: &Arc<Server>, address: &Path) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let fresh = address.with_extension("fresh");
    std::fs::write(&fresh, format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    std::fs::rename(&fresh, address).unwrap();
    for connection in listener.incoming().map_while(Result::ok) {
        let server = server.clone();
        // A client that goes away in the middle is no fault of the server.
        std::thread::spawn(move || drop(answer(&server, connection)));
    }
}

/// A request, as far as it matters.
struct Request {
    first: String,
    session: Option<String>,
    token: Option<String>,
    body: Vec<u8>,
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Request> {
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut length, mut session, mut token) = (0, None, None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "mcp-session-id" => session = Some(value.to_owned()),
            "authorization" => token = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Request { first, session, token, body })
}

fn answer(server: &Server, mut connection: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let Request { first, session, token, body } = read(&mut reader)?;
    if let Some(rules) = &server.script.oauth {
        if !oauth::is_answered(&first) {
            // Until the client is gone.
            let _none = reader.read(&mut [0])?;
            return Ok(());
        }
        let own = format!("http://{}", connection.local_addr()?);
        let asked = oauth::Asked { own: &own, first: &first, body: &body, token: token.as_deref() };
        if let Some(answer) = oauth::answer(rules, &mut server.logins.lock().unwrap(), &asked) {
            return connection.write_all(answer.as_bytes());
        }
    }
    if !first.starts_with("POST") {
        return plain(connection, "405 Method Not Allowed");
    }
    let message: Value = serde_json::from_slice(&body)?;
    append(
        "requests.jsonl",
        &serde_json::json!({"method": message["method"], "session": session, "token": token}),
    );
    let starts = message["method"] == "initialize";
    if std::fs::remove_file("forget").is_ok() {
        FORGOTTEN.store(SESSIONS.load(Ordering::SeqCst), Ordering::SeqCst);
    }
    let known = match starts {
        true => Some(SESSIONS.fetch_add(1, Ordering::SeqCst) + 1),
        false => session.and_then(|session| session.parse().ok()),
    };
    let forgets = server.script.forgetful && message["method"] == "tools/call";
    let known = known.filter(|session| *session > FORGOTTEN.load(Ordering::SeqCst) && !forgets);
    let Some(known) = known else { return plain(connection, "404 Not Found") };
    if message["id"].is_null() || message["method"].is_null() {
        server.take(&message, &(Arc::new(Mutex::new(|_: &Value| {})) as Out));
        return plain(connection, "202 Accepted");
    }
    let mut stream = connection.try_clone()?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: {known}\r\nconnection: close\r\n\r\n"
    )?;
    let out: Out = Arc::new(Mutex::new(move |message: &Value| {
        let _gone = write!(stream, "event: message\ndata: {message}\n\n").and_then(|()| stream.flush());
    }));
    server.take(&message, &out);
    connection.shutdown(std::net::Shutdown::Both)
}

fn plain(mut connection: TcpStream, status: &str) -> std::io::Result<()> {
    write!(connection, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}
