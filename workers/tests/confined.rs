//! Commands in their sandbox. On a machine that cannot enforce a part of it, the statement that says so is what is tested.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use outlast_protocol::sandbox::{Mode, Network, Sandbox};
use outlast_workers::sdk::{Activity, Done, Failure, Task, TaskContext};
use outlast_workers::tools::{self, Setting};
use serde_json::json;

struct Bench {
    outer: tempfile::TempDir,
    shell: Arc<dyn Activity>,
    statement: String,
}

fn guard() -> PathBuf {
    env!("CARGO_BIN_EXE_outlast-guard").into()
}

/// A sandbox in which nothing but the working directory can be written.
fn strict() -> Sandbox {
    Sandbox { write: Some(Vec::new()), ..Sandbox::default() }
}

/// A directory `work` beside `data`, which is the runtime's, and `keys`, which is hidden.
fn bench(sandbox: Sandbox, guard: Option<PathBuf>) -> Bench {
    bench_with(sandbox, guard, &self::guard())
}

/// The same; what cannot be enforced is found out with a guard of its own.
fn bench_with(sandbox: Sandbox, guard: Option<PathBuf>, tried: &std::path::Path) -> Bench {
    let outer = tempfile::tempdir().unwrap();
    for place in ["work", "data", "keys", "open"] {
        std::fs::create_dir(outer.path().join(place)).unwrap();
        std::fs::write(outer.path().join(place).join("file"), format!("in {place}\n")).unwrap();
    }
    let keys = outer.path().join("keys").display().to_string();
    let sandbox = Sandbox { hidden: Some(vec![keys]), ..sandbox };
    let statement = tools::unconfined(&sandbox, tried).unwrap().unwrap_or_default();
    let setting = Setting {
        directory: outer.path().join("work"),
        guard,
        sandbox,
        closed: vec![outer.path().join("data")],
        ..Setting::default()
    };
    let activities = tools::activities(setting).unwrap();
    let shell = activities.into_iter().find(|activity| activity.offer().name == "shell").unwrap();
    Bench { outer, shell, statement }
}

impl Bench {
    async fn run(&self, command: &str) -> Result<Done, Failure> {
        let task = Task { input: json!({ "command": command, "timeout": "20s" }), ..Task::default() };
        self.shell.run(TaskContext::alone(task)).await
    }

    /// What a command said, whether it failed or not.
    async fn said(&self, command: &str) -> String {
        match self.run(command).await {
            Ok(done) => done.value.as_str().unwrap().to_owned(),
            Err(failure) => failure.text,
        }
    }

    /// Whether the machine enforces a part; if not, it says so.
    fn enforces(&self, part: &str) -> bool {
        !self.statement.contains(&format!("{part}:"))
    }
}

/// What is hidden may lie among thousands: their names are no arguments, for which there is little room.
#[tokio::test]
async fn a_crowd_beside_what_is_hidden_takes_no_command_away() {
    let bench = bench(strict(), Some(guard()));
    for number in 0..3_000 {
        let name = format!("a neighbour of the hidden one, number {number}");
        std::fs::write(bench.outer.path().join(name), "").unwrap();
    }
    assert_eq!(bench.said("cat file ../open/file").await, "in work\nin open\n");
    if bench.enforces("files") {
        assert!(bench.said("cat ../keys/file").await.contains("denied"));
    }
}

#[tokio::test]
async fn a_command_keeps_to_its_files() {
    let bench = bench(strict(), Some(guard()));
    assert_eq!(
        bench.said("cat file ../open/file; echo x > new; mkdir d; mv new d/; cat d/new").await,
        "in work\nin open\nx\n"
    );
    let before = std::fs::read(bench.outer.path().join("open/file")).unwrap();
    let forbidden = bench
        .said("ln -s ../keys link; cat ../data/file ../keys/file link/file; echo x > ../open/file; rm ../open/file; mv file ../open/; false")
        .await;
    if bench.enforces("files") {
        assert!(!forbidden.contains("in data") && !forbidden.contains("in keys"), "{forbidden}");
        assert_eq!(forbidden.matches("ermission denied").count(), 6, "{forbidden}");
        assert!(forbidden.contains("writes only below the working directory"), "it is told why: {forbidden}");
        assert_eq!(std::fs::read(bench.outer.path().join("open/file")).unwrap(), before);
        assert!(bench.outer.path().join("work/file").exists());
    } else {
        assert!(bench.statement.contains("Landlock"), "{}", bench.statement);
    }
}

/// What the worker has in its environment is not read off it.
#[tokio::test]
async fn a_command_looks_into_no_process_outside() {
    let bench = bench(strict(), Some(guard()));
    let own = std::process::id();
    let said =
        bench.said(&format!("tr '\\0' ' ' < /proc/{own}/environ; kill -0 {own} && echo reached")).await;
    if bench.enforces("files") {
        assert!(!said.contains("PATH="), "{said}");
    }
    if bench.enforces("signals to other processes") {
        assert!(!said.contains("reached"), "{said}");
    } else {
        assert!(said.contains("reached"), "{said}");
    }
}

const SELF_SERVED: &str = r#"python3 -c "
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname(), 5)
print('served itself')
""#;

#[tokio::test]
async fn a_command_has_a_network_of_its_own_unless_it_is_given_the_machines() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('through')\""
    );
    let open = bench(Sandbox { network: Some(Network::All), ..strict() }, Some(guard()));
    assert_eq!(open.said(&connect).await, "through\n");
    let closed = bench(strict(), Some(guard()));
    let said = closed.said(&connect).await;
    if closed.enforces("network") {
        assert!(said.contains("refused") && said.contains("has no network"), "{said}");
        assert_eq!(closed.said(SELF_SERVED).await, "served itself\n");
    } else {
        assert!(closed.statement.contains("network: only TCP") || said.contains("through"), "{said}");
    }
}

#[tokio::test]
async fn a_command_and_all_that_it_starts_share_its_memory() {
    let bench = bench(Sandbox { memory: Some("96MB".to_owned()), ..strict() }, Some(guard()));
    assert_eq!(bench.said("python3 -c 'print(len(bytearray(10 << 20)))'").await, "10485760\n");
    let alone = bench.said("python3 -c 'print(len(bytearray(200 << 20)))'").await;
    assert!(alone.contains("MemoryError"), "{alone}");
    // None of them ends by itself: each holds what it has for as long as the pipe is open, whose other end is its own.
    let many = "for i in 1 2 3 4 5 6; do python3 -c 'import os; x = bytearray(40 << 20); os.read(os.pipe()[0], 1)' & done; wait";
    let together = bench.said(many).await;
    assert!(together.contains("[it used more memory than it may"), "{together}");
}

/// Case SEC-09: a guard that cannot do its work lets nothing through.
#[tokio::test]
async fn where_the_sandbox_is_required_and_cannot_be_had_nothing_runs() {
    let required = || Sandbox { mode: Some(Mode::Required), ..strict() };
    let unguarded = bench(required(), None);
    let refused = unguarded.run("touch ran").await.unwrap_err();
    assert_eq!(refused.kind, "Unconfined");
    assert!(refused.text.contains("[sandbox] in outlast.toml requires"), "{refused}");
    assert!(!unguarded.outer.path().join("work/ran").exists());
    // A program in the guard's place that fails, dies or talks nonsense is no guard.
    for (name, script) in [("fails", "exit 1"), ("dies", "kill -9 $$"), ("babbles", "echo enforced: all")] {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for guard in [path, place.path().join("missing")] {
            let refused = bench(required(), Some(guard)).run("touch ran").await.unwrap_err();
            assert!(refused.text.contains("cannot be tried out"), "{name}: {refused}");
        }
    }
    let guarded = bench(required(), Some(guard()));
    let ended = guarded.run("touch ran").await;
    assert_eq!(ended.is_ok(), guarded.statement.is_empty(), "{ended:?}: {}", guarded.statement);
    assert_eq!(guarded.outer.path().join("work/ran").exists(), guarded.statement.is_empty());
}

#[tokio::test]
async fn a_sandbox_that_is_off_confines_nothing_and_says_so() {
    let bench = bench(Sandbox { mode: Some(Mode::Off), ..strict() }, Some(guard()));
    assert_eq!(bench.said("cat ../data/file; echo x > ../open/new; cat ../open/new").await, "in data\nx\n");
    assert_eq!(bench.statement, "commands are not confined: [sandbox] mode is off");
}

/// Refuses system calls as kernels do that lack them or whose administrator forbids them, then becomes another program.
const FILTER: &str = r#"
import ctypes, os, platform, struct, sys
LANDLOCK, UNSHARE = 444, {'x86_64': 272, 'aarch64': 97}[platform.machine()]
NEW_USER_OR_NET, ERRNO, ALLOW = 0x50000000, 0x00050000, 0x7fff0000
def word(code, jt, jf, k): return struct.pack('HBBI', code, jt, jf, k)
steps = [word(0x20, 0, 0, 0)]
if 'landlock' in sys.argv[1]:
    steps += [word(0x15, 0, 1, LANDLOCK), word(0x06, 0, 0, ERRNO | 38)]
if 'spaces' in sys.argv[1]:
    steps += [word(0x15, 0, 3, UNSHARE), word(0x20, 0, 0, 16), word(0x45, 0, 1, NEW_USER_OR_NET), word(0x06, 0, 0, ERRNO | 1)]
steps.append(word(0x06, 0, 0, ALLOW))
code = ctypes.create_string_buffer(b''.join(steps))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
"#;

/// The guard on a machine that lacks what is named.
fn guard_without(place: &tempfile::TempDir, lacking: &str) -> PathBuf {
    let (filter, path) = (place.path().join("filter.py"), place.path().join("guard"));
    std::fs::write(&filter, FILTER).unwrap();
    let script =
        format!("#!/bin/sh\nexec python3 {} {lacking} {} \"$@\"\n", filter.display(), guard().display());
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// Case SEC-09: on machines that cannot enforce a part, that part is named, the rest is enforced, and nothing runs where all is required.
#[tokio::test]
async fn a_machine_that_lacks_a_part_names_it_and_enforces_the_rest() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}), 5); print('through')\""
    );
    let whole = bench(strict(), Some(guard()));
    for lacking in ["landlock", "spaces", "landlock,spaces"] {
        let place = tempfile::tempdir().unwrap();
        let weak = guard_without(&place, lacking);
        let bench = bench_with(strict(), Some(weak.clone()), &weak);
        let (no_landlock, no_spaces) = (lacking.contains("landlock"), lacking.contains("spaces"));
        let statement = bench.statement.clone();
        assert!(statement.starts_with("commands are not held to "), "{lacking}: {statement}");
        assert_eq!(bench.said("cat file").await, "in work\n", "{lacking}: it runs");
        let said = bench.said("cat ../keys/file").await;
        if no_landlock {
            assert!(statement.contains("files: this kernel cannot"), "{lacking}: {statement}");
            assert!(said.contains("in keys"), "{lacking}: {said}");
        } else if whole.enforces("files") {
            assert!(!statement.contains("files:"), "{lacking}: {statement}");
            assert!(said.contains("denied"), "{lacking}: {said}");
        }
        let said = bench.said(&connect).await;
        match (no_landlock, no_spaces) {
            (true, true) => {
                assert!(statement.contains("network: this kernel cannot"), "{lacking}: {statement}");
                assert!(said.contains("through"), "{lacking}: {said}");
            }
            (false, true) => {
                let only_tcp = statement.contains("network: only TCP");
                assert!(only_tcp || statement.contains("network: "), "{lacking}: {statement}");
                assert_eq!(said.contains("through"), !only_tcp, "{lacking}: {said}");
            }
            (_, false) => {
                assert_eq!(
                    whole.enforces("network"),
                    !statement.contains("network:"),
                    "{lacking}: {statement}"
                );
                assert_eq!(whole.enforces("network"), !said.contains("through"), "{lacking}: {said}");
            }
        }
        let required = Sandbox { mode: Some(Mode::Required), ..strict() };
        let required = bench_with(required, Some(weak.clone()), &weak);
        assert!(required.statement.starts_with("no command runs: "), "{lacking}: {}", required.statement);
        let refused = required.run("touch ran").await.unwrap_err();
        assert_eq!(refused.kind, "Unconfined", "{lacking}");
        assert!(refused.text.contains("[sandbox] in outlast.toml requires"), "{lacking}: {refused}");
        assert!(!required.outer.path().join("work/ran").exists(), "{lacking}");
    }
}
