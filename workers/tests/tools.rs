//! The tools as a flow and a model meet them: activities with real files and real processes.

#![expect(clippy::unwrap_used, reason = "a broken test bench should stop the test")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_workers::Json;
use outlast_workers::sdk::{Activity, Done, Failure, StoppedWhy, Task, TaskContext};
use outlast_workers::tools::{self, Setting};
use serde_json::json;
use tokio::sync::oneshot;

struct Bench {
    dir: tempfile::TempDir,
    activities: Vec<Arc<dyn Activity>>,
}

fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let guard = Some(env!("CARGO_BIN_EXE_outlast-guard").into());
    let activities =
        tools::activities(Setting { directory: dir.path().into(), guard, ..Setting::default() }).unwrap();
    Bench { dir, activities }
}

fn bench_without_guard() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let activities =
        tools::activities(Setting { directory: dir.path().into(), ..Setting::default() }).unwrap();
    Bench { dir, activities }
}

fn task(input: Json) -> TaskContext {
    TaskContext::alone(Task {
        input,
        run: "r1".to_owned(),
        op: "4.0".to_owned(),
        attempt: 2,
        key: "r1/4.0".to_owned(),
        ..Task::default()
    })
}

impl Bench {
    fn activity(&self, name: &str) -> Arc<dyn Activity> {
        self.activities.iter().find(|activity| activity.offer().name == name).unwrap().clone()
    }

    async fn run(&self, name: &str, input: Json) -> Result<Done, Failure> {
        self.activity(name).run(task(input)).await
    }

    async fn text(&self, name: &str, input: Json) -> String {
        self.run(name, input).await.unwrap().value.as_str().unwrap().to_owned()
    }

    /// Calls a tool as a model does; gives the answer's text and whether it is a result.
    async fn call(&self, name: &str, args: Json) -> (String, bool) {
        let call = json!({"id": "c7", "name": name, "args": args});
        let done = self.run("tool", json!({"call": {"value": call, "by": ["owner"]}})).await.unwrap();
        assert_eq!(done.value["id"], "c7");
        (done.value["text"].as_str().unwrap().to_owned(), done.value["ok"].as_bool().unwrap())
    }

    fn pid(&self, file: &str) -> i32 {
        let text = std::fs::read_to_string(self.dir.path().join(file)).unwrap();
        text.trim().parse().unwrap()
    }
}

fn lives(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}

/// How long anything here may take before the test gives up. Nothing waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(10);

/// A pipe that a command and all that it starts hold open: it tells when they are ready and when none of them is left.
struct Leash {
    ready: oneshot::Receiver<()>,
    gone: oneshot::Receiver<()>,
}

/// The beginning of a command that holds the leash.
const LEASHED: &str = "exec 9> leash;";

impl Leash {
    fn in_directory(dir: &Path) -> Self {
        let path = dir.join("leash");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let ((is_ready, ready), (is_gone, gone)) = (oneshot::channel(), oneshot::channel());
        std::thread::spawn(move || {
            // Opening waits for a writer; the end comes when the last one is gone.
            let mut pipe = BufReader::new(File::open(path).unwrap());
            if pipe.read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0) {
                let _ = is_ready.send(());
            }
            let _ = pipe.read_to_end(&mut Vec::new());
            let _ = is_gone.send(());
        });
        Self { ready, gone }
    }

    async fn ready(&mut self) {
        let told = tokio::time::timeout(PATIENCE, &mut self.ready).await;
        told.expect("the command runs in time").expect("the command says that it runs");
    }

    async fn gone(&mut self) {
        tokio::time::timeout(PATIENCE, &mut self.gone).await.expect("everything is ended in time").unwrap();
    }
}

#[tokio::test]
async fn a_command_gives_its_output_or_an_error_that_carries_it() {
    for bench in [bench(), bench_without_guard()] {
        assert_eq!(bench.text("shell", json!({"command": "echo out; echo err >&2; pwd"})).await, {
            format!("out\nerr\n{}\n", bench.dir.path().canonicalize().unwrap().display())
        });
        let error = bench.run("shell", json!({"command": "echo bad; exit 3"})).await.unwrap_err();
        assert_eq!((error.kind.as_str(), error.text.as_str()), ("CommandFailed", "exit code 3\nbad"));
        assert_eq!(error.fields["code"], 3);
        assert_eq!(
            bench.call("shell", json!({"command": "exit 3"})).await,
            ("exit code 3".to_owned(), false)
        );
        assert_eq!(bench.call("shell", json!({"command": "true"})).await, ("(no output)".to_owned(), true));
        let (text, ok) = bench.call("shell", json!({"command": "kill -9 $$"})).await;
        assert_eq!((text.as_str(), ok), ("ended by signal 9", false));
        // Standard input is empty, not the worker's.
        assert_eq!(bench.text("shell", json!({"command": "cat; echo end"})).await, "end\n");
    }
}

#[tokio::test]
async fn commands_see_the_allowed_variables_only() {
    let bench = bench();
    let text = bench.text("shell", json!({"command": "env"})).await;
    let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    let allowed = ["PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR"];
    for name in &names {
        assert!(allowed.contains(name) || name.starts_with("OUTLAST_"), "{name} leaked");
    }
    for line in ["OUTLAST_RUN=r1", "OUTLAST_OP=4.0", "OUTLAST_ATTEMPT=2", "OUTLAST_IDEMPOTENCY_KEY=r1/4.0"] {
        assert!(text.lines().any(|found| found == line), "{line} is missing");
    }
    // Test runners set these, so this process surely has some that are not allowed.
    assert!(std::env::vars().any(|(name, _)| name.starts_with("CARGO")));
}

/// A command whose processes do all to stay: one ignores the polite signal and holds the output, one forks twice into a session of
/// its own, one has left its process group.
const STUBBORN: &str = "
    sh -c 'trap \"\" TERM; echo $$ > a; while :; do sleep 1000; done' &
    setsid sh -c 'sh -c \"trap \\\"\\\" TERM; echo \\$\\$ > b; while :; do sleep 1000; done\" & exit' &
    setsid sleep 1000 & echo $! > c
    while ! [ -s a ] || ! [ -s b ]; do sleep 0.01; done
";

#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let bench = bench();
    let started = Instant::now();
    let command = format!("{STUBBORN} sleep 1000");
    let (text, ok) = bench.call("shell", json!({"command": command, "timeout": "1500ms"})).await;
    assert!(!ok && text.starts_with("timed out after "), "{text}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    for file in ["a", "b", "c"] {
        assert!(!lives(bench.pid(file)), "{file} lives");
    }
}

#[tokio::test]
async fn a_cancel_ends_the_whole_tree_and_is_not_reported_before() {
    let bench = bench();
    let mut leash = Leash::in_directory(bench.dir.path());
    let context = task(json!({"command": format!("{LEASHED} {STUBBORN} echo ready >&9; sleep 1000")}));
    let shell = bench.activity("shell");
    let attempt = tokio::spawn({
        let context = context.clone();
        async move { shell.run(context).await }
    });
    leash.ready().await;
    context.stop(StoppedWhy::Cancelled);
    attempt.abort();
    leash.gone().await;
}

#[tokio::test]
async fn what_a_command_leaves_running_is_ended_with_it() {
    let bench = bench();
    let started = Instant::now();
    let (text, ok) = bench.call("shell", json!({"command": format!("{STUBBORN} echo done")})).await;
    assert!(ok, "{text}");
    assert!(text.starts_with("done\n["), "{text}");
    assert!(text.contains("left running were ended]"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(8));
    for file in ["a", "b", "c"] {
        assert!(!lives(bench.pid(file)), "{file} lives");
    }
}

#[tokio::test]
async fn without_a_guard_the_end_of_the_command_is_the_end_of_the_call() {
    let bench = bench_without_guard();
    let started = Instant::now();
    let mut leash = Leash::in_directory(bench.dir.path());
    let command = format!("{LEASHED} sleep 1000 & echo done");
    let text = bench.text("shell", json!({ "command": command })).await;
    assert_eq!(text, "done\n");
    assert!(started.elapsed() < Duration::from_secs(8));
    leash.gone().await;
}

#[tokio::test]
async fn the_death_of_the_worker_ends_the_whole_tree() {
    use std::os::fd::OwnedFd;
    let dir = tempfile::tempdir().unwrap();
    let mut leash = Leash::in_directory(dir.path());
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    // The worker's end of this line is closed by the kernel however the worker dies.
    let mut guard = tokio::process::Command::new(env!("CARGO_BIN_EXE_outlast-guard"))
        .args(["guard", "/bin/sh", "-c", &format!("{LEASHED} {STUBBORN} echo ready >&9; sleep 1000")])
        .current_dir(dir.path())
        .stdin(OwnedFd::from(theirs))
        .spawn()
        .unwrap();
    leash.ready().await;
    drop(ours);
    guard.wait().await.unwrap();
    for file in ["a", "b", "c"] {
        let pid = std::fs::read_to_string(dir.path().join(file)).unwrap().trim().parse().unwrap();
        assert!(!lives(pid), "{file} lives");
    }
}

#[tokio::test]
async fn a_command_whose_guard_is_killed_is_ended_and_not_answered_for() {
    let command = format!("{LEASHED} echo $$ > a; echo $PPID > guard; echo ready >&9; sleep 1000");
    let args = json!({ "command": command });
    let call = json!({"call": {"id": "c7", "name": "shell", "args": args}});
    for (name, input) in [("shell", args), ("tool", call)] {
        let bench = bench();
        let mut leash = Leash::in_directory(bench.dir.path());
        let context = task(input);
        let activity = bench.activity(name);
        let attempt = tokio::spawn({
            let context = context.clone();
            async move { activity.run(context).await }
        });
        leash.ready().await;
        let guard = rustix::process::Pid::from_raw(bench.pid("guard")).unwrap();
        rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
        assert_eq!(context.cancelled().await, StoppedWhy::BrokenOff, "broken off, not failed");
        assert!(!lives(bench.pid("a")), "it is gone before it is said");
        assert!(!attempt.is_finished(), "there is no answer");
        attempt.abort();
    }
}

#[tokio::test]
async fn huge_and_binary_output_survives() {
    let bench = bench();
    let command = "head -c 200000000 /dev/zero | tr '\\0' x; echo; echo end";
    let (text, ok) = bench.call("shell", json!({"command": command})).await;
    assert!(ok && text.len() < 60_000, "{}", text.len());
    assert!(text.contains("bytes left out"), "says that it is cut");
    assert!(text.contains("end\n[cut: 200000005 bytes in all]"), "{}", &text[text.len() - 100..]);
    let (text, ok) = bench.call("shell", json!({"command": "printf 'a\\377\\000b\\001'"})).await;
    assert_eq!(
        (text.as_str(), ok),
        ("a\u{FFFD}\0b\u{1}\n[1 bytes were not UTF-8 and are shown as \u{FFFD}]", true)
    );
}

/// Case LIM-07: odd characters in texts, paths and commands come as they are, or the call is answered with what is wrong; a file whose
/// name is no text is in nobody's way.
#[tokio::test]
async fn odd_characters_are_kept_or_answered() {
    let bench = bench();
    let odd: String =
        (0..0x20).filter_map(char::from_u32).chain("\u{7f}\u{2028}\u{feff}a\rb".chars()).collect();
    bench.text("write", json!({"path": "odd", "text": odd})).await;
    assert_eq!(std::fs::read_to_string(bench.dir.path().join("odd")).unwrap(), odd);
    assert_eq!(bench.text("read", json!({"path": "odd"})).await, odd);
    for c in odd.chars() {
        let name = format!("x{c}y");
        let (text, ok) = bench.call("write", json!({"path": name, "text": "1"})).await;
        let (said, ran) = bench.call("shell", json!({"command": format!("printf %s '{name}'")})).await;
        if c == '\0' {
            assert!(!ok && text.contains("is no path"), "{text}");
            assert!(!ran && !said.is_empty(), "{said}");
        } else {
            assert!(
                ok && bench.call("read", json!({"path": name})).await == ("1".to_owned(), true),
                "{text}"
            );
            assert_eq!((said, ran), (name.clone(), true));
            let listed = bench.run("list", json!({})).await.unwrap().value;
            assert!(listed.as_array().unwrap().contains(&json!(name)), "{listed}");
        }
    }
    let raw = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9.raw");
    std::fs::write(bench.dir.path().join::<&std::ffi::OsStr>(raw), "needle").unwrap();
    let shown = json!(["caf\u{FFFD}.raw"]);
    assert_eq!(bench.run("find", json!({"pattern": "*.raw"})).await.unwrap().value, shown);
    let found = bench.run("grep", json!({"pattern": "needle"})).await.unwrap().value;
    assert_eq!(found, json!(["caf\u{FFFD}.raw:1: needle"]));
    let (text, ok) = bench.call("read", json!({"path": "caf\u{FFFD}.raw"})).await;
    assert!(!ok && text.contains("no such file"), "{text}");
}

#[tokio::test]
async fn what_a_model_gets_wrong_is_answered_and_nothing_runs() {
    let bench = bench();
    for (name, args, problem) in [
        ("Shell", json!({"command": "touch x"}), "there is no tool \"Shell\""),
        ("", json!({}), "there is no tool \"\""),
        ("server__shell", json!({"command": "touch x"}), "there is no tool"),
        ("shell", json!("touch x"), "no JSON object"),
        ("shell", json!(["touch x"]), "no JSON object"),
        ("shell", json!(null), "no JSON object"),
        ("shell", json!({"command": "touch x", "cwd": "/"}), "there is no cwd"),
        ("shell", json!({}), "command is missing"),
        ("read", json!({"path": "../x"}), "leads out of the working directory"),
        ("read", json!({"path": "x"}), "x: no such file or directory"),
        ("write", json!({"path": "/etc/x", "text": ""}), "leads out of the working directory"),
    ] {
        let (text, ok) = bench.call(name, args.clone()).await;
        assert!(!ok && text.contains(problem), "{name} {args}: {text}");
    }
    assert_eq!(std::fs::read_dir(bench.dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn files_are_written_edited_and_found() {
    let bench = bench();
    assert_eq!(
        bench.text("write", json!({"path": "a/b.txt", "text": "one\ntwo\n"})).await,
        "wrote 8 bytes to a/b.txt"
    );
    bench.text("edit", json!({"path": "a/b.txt", "old": "two", "new": "zwei"})).await;
    assert_eq!(bench.text("read", json!({"path": "a/b.txt", "offset": 2})).await, "zwei\n");
    assert_eq!(bench.run("list", json!({})).await.unwrap().value, json!(["a/"]));
    assert_eq!(bench.run("find", json!({"pattern": "*.txt"})).await.unwrap().value, json!(["a/b.txt"]));
    assert_eq!(bench.run("grep", json!({"pattern": "zw"})).await.unwrap().value, json!(["a/b.txt:2: zwei"]));
    assert_eq!(bench.call("grep", json!({"pattern": "drei"})).await, ("(nothing found)".to_owned(), true));
}

#[tokio::test]
async fn an_interrupted_edit_is_not_made_twice() {
    let bench = bench();
    let file = bench.dir.path().join("f");
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let handle = json!({"before": hash("a-b"), "after": hash("aa-b")});
    let input = json!({"path": "f", "old": "a", "new": "aa"});
    // What the second attempt finds decides: undone, done, or changed by somebody else.
    for (found, left, ok) in [("a-b", "aa-b", true), ("aa-b", "aa-b", true), ("a-c", "a-c", false)] {
        std::fs::write(&file, found).unwrap();
        let again =
            Task { input: input.clone(), handle: Some(handle.clone()), attempt: 2, ..Task::default() };
        let result = bench.activity("edit").run(TaskContext::alone(again)).await;
        assert_eq!(result.is_ok(), ok, "{found}: {result:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), left, "{found}");
    }
}

#[tokio::test]
async fn verdicts_tell_what_the_directory_shows() {
    let bench = bench();
    bench.text("append", json!({"path": "log", "line": "paid"})).await;
    let effect = |line: &str| bench.run("append_effect", json!({"path": "log", "line": line}));
    assert_eq!(effect("paid").await.unwrap().value, json!({"type": "Happened", "result": "appended to log"}));
    assert_eq!(effect("sent").await.unwrap().value, json!({"type": "NotHappened"}));
    std::fs::write(bench.dir.path().join("f"), "new").unwrap();
    for (name, args, verdict) in [
        ("shell", json!({"command": "make"}), "CannotTell"),
        ("write", json!({"path": "f", "text": "new"}), "Happened"),
        ("write", json!({"path": "f", "text": "other"}), "NotHappened"),
        ("edit", json!({"path": "f", "old": "old", "new": "new"}), "Happened"),
        ("edit", json!({"path": "f", "old": "new", "new": "old"}), "NotHappened"),
        ("edit", json!({"path": "missing", "old": "a", "new": "b"}), "CannotTell"),
        ("append", json!({"path": "log", "line": "paid"}), "Happened"),
        ("nothing", json!({}), "NotHappened"),
        ("shell", json!("make"), "NotHappened"),
    ] {
        let call = json!({"id": "c", "name": name, "args": args});
        let done = bench.run("tool_effect", json!({"call": call})).await.unwrap();
        assert_eq!(done.value["type"], verdict, "{name} {args}");
        if verdict == "Happened" {
            assert_eq!(
                (&done.value["result"]["id"], &done.value["result"]["ok"]),
                (&json!("c"), &json!(true))
            );
        }
    }
}

#[test]
fn the_catalogue_of_the_built_in_agent_is_this_one() {
    let bench = bench();
    let offered: Vec<String> = bench.activities.iter().map(|activity| activity.offer().name).collect();
    let catalogue = tools::catalogue();
    let mut lines = Vec::new();
    for tool in catalogue["tools"].as_array().unwrap() {
        assert!(offered.iter().any(|name| tool["name"] == name.as_str()), "{tool}");
        lines.push(format!("    {tool}"));
    }
    let text = format!("{{\n  \"tools\": [\n{}\n  ]\n}}\n", lines.join(",\n"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/dev.tools.json");
    let found = std::fs::read_to_string(file).unwrap();
    assert!(
        serde_json::from_str::<Json>(&found).unwrap() == catalogue,
        "examples/dev.tools.json should be:\n{text}"
    );
}
