//! Readers that do not read: they cost a bounded amount of memory, and hold up neither a run nor other readers.
//!
//! Leaves the bounds themselves to the unit tests of what waits for a reader.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use outlast_tests::world::World;
use serde_json::{Value, json};

/// Commands that print 25 megabytes each.
const TIMES: usize = 20;

/// Mebibytes by which a process may grow beyond what it had at first: less than two thirds of what is printed, however much that is. Most of it
/// is the store's, which keeps each output whole.
const GROWTH_MIB_MAX: usize = 300;

/// How much memory a process had at most, in KiB.
fn peak(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim_end().parse().unwrap()
}

/// A client of the stream that asks and never reads.
fn stuck_stream(api_url: &str) -> TcpStream {
    let address = api_url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /v1/runs/r/stream HTTP/1.1\r\nhost: {address}\r\n\r\n").unwrap();
    stream
}

/// A program that follows the run over pipes, hears that it does, and never reads on. Ends with its input.
fn stuck_pipe(world: &World) -> Child {
    let mut rpc = world.command(&["rpc"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let watch = json!({"jsonrpc": "2.0", "id": 1, "method": "runs.watch", "params": {"run": "r"}});
    writeln!(rpc.stdin.as_mut().unwrap(), "{watch}").unwrap();
    // Unbuffered, or more would be read than the one line.
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(1, rpc.stdout.as_mut().unwrap());
    while !line.contains("\"watch\":\"w1\"") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the program ended");
    }
    rpc
}

/// Case RPC-08: commands print half a gigabyte, and of three who follow only one reads.
#[test]
fn who_does_not_read_fills_no_memory_and_holds_nobody_up() {
    let world = World::with_flows();
    let (server, api) = world.serve(&["flows/prints_much.flow"]);
    world.begin("PrintsMuch", "r", &json!({"times": TIMES}));
    let mut program = stuck_pipe(&world);
    let _stuck = stuck_stream(&api.url(""));
    let mut frames = api.stream("r", None);
    assert!(frames.next().is_some(), "what is there already");
    let at_first = [server.pid(), program.id()].map(peak);
    assert_eq!(api.post("/v1/runs/r/messages", &json!({"type": "Go"})).status, 202);
    let (mut partial, mut ended) = (0, false);
    for frame in frames {
        let data: Value = serde_json::from_str(&frame.data).unwrap();
        if frame.event == "partial" {
            partial += data["text"].as_str().unwrap().len();
        }
        ended |= frame.event == "ended";
    }
    assert!(ended, "who reads is told all to the end");
    assert!(partial > (TIMES / 2) << 20, "{partial} bytes of output were shown");
    assert_eq!(world.outcome("r")["value"], "printed");
    let growth: Vec<usize> =
        [server.pid(), program.id()].map(peak).iter().zip(at_first).map(|(now, then)| now - then).collect();
    assert!(growth.iter().all(|grown| *grown < GROWTH_MIB_MAX * 1024), "grew by {growth:?} KiB");
    // The end of its input ends the program, although nobody reads what it has to say.
    drop(program.stdin.take());
    drop(program.stdout.take());
    assert!(program.wait().unwrap().code().is_some(), "the program ends by itself");
}
