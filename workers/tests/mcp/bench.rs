//! A directory with servers, and the activity `tool` that calls them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_workers::Json;
use outlast_workers::mcp::{Logins, Servers, file_of};
use outlast_workers::sdk::{Activity, Failure, Task, TaskContext};
use outlast_workers::tools::{self, Setting};
use serde_json::json;

/// How long anything here may take before the test gives up. Nothing waits for it to pass.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The scripted server.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_outlast-test-mcp");

pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) activities: Vec<Arc<dyn Activity>>,
}

/// The entry of a scripted server.
pub(crate) fn scripted(script: &Json) -> Json {
    json!({"command": SERVER, "args": [script.to_string()]})
}

/// A directory with these servers: name and entry.
pub(crate) fn bench(servers: &[(&str, Json)]) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let guard = Some(env!("CARGO_BIN_EXE_outlast-guard").into());
    let logins = Logins::of(dir.path());
    let setting = Setting { directory: dir.path().into(), guard, logins, ..Setting::default() };
    let activities = tools::activities(setting).unwrap();
    let bench = Bench { dir, activities };
    bench.configure(servers);
    bench
}

/// A directory with the one server `s`.
pub(crate) fn bench_of(script: &Json) -> Bench {
    bench(&[("s", scripted(script))])
}

/// The task of a call as a model makes it.
pub(crate) fn task_of(tool: &str, args: &Json, effect: &str) -> Task {
    let call = json!({"id": "c7", "name": tool, "args": args});
    Task {
        activity: "tool".to_owned(),
        input: json!({"call": {"value": call, "by": ["owner"]}}),
        run: "r1".to_owned(),
        op: "4.0".to_owned(),
        attempt: 1,
        key: "r1/4.0".to_owned(),
        effect: effect.to_owned(),
        ..Task::default()
    }
}

impl Bench {
    pub(crate) fn configure(&self, servers: &[(&str, Json)]) {
        let servers: serde_json::Map<String, Json> =
            servers.iter().map(|(name, entry)| ((*name).to_owned(), entry.clone())).collect();
        self.write(".mcp.json", &json!({"mcpServers": servers}).to_string());
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).unwrap();
    }

    /// The lines of a file, each one a value.
    pub(crate) fn lines(&self, name: &str) -> Vec<Json> {
        let text = std::fs::read_to_string(self.path().join(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until a file is there.
    pub(crate) async fn appears(&self, name: &str) {
        self.until(name, || self.path().join(name).exists()).await;
    }

    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let wait = async {
            let mut look = tokio::time::interval(Duration::from_millis(2));
            while !holds() {
                look.tick().await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "waited in vain for {what}");
    }

    pub(crate) fn tool(&self) -> Arc<dyn Activity> {
        self.activities.iter().find(|activity| activity.offer().name == "tool").unwrap().clone()
    }

    /// Runs a task to its answer: the text, and whether it is a result.
    pub(crate) async fn run(&self, task: TaskContext) -> Result<(String, bool), Failure> {
        let ran = tokio::time::timeout(PATIENCE, self.tool().run(task)).await;
        let done = ran.expect("the call ends in time")?;
        Ok((done.value["text"].as_str().unwrap().to_owned(), done.value["ok"].as_bool().unwrap()))
    }

    pub(crate) async fn try_call(&self, tool: &str, args: Json) -> Result<(String, bool), Failure> {
        self.run(TaskContext::alone(task_of(tool, &args, "pure"))).await
    }

    pub(crate) async fn call(&self, tool: &str, args: Json) -> (String, bool) {
        self.try_call(tool, args).await.unwrap()
    }

    /// A call that must give a result.
    pub(crate) async fn text(&self, tool: &str, args: Json) -> String {
        let (text, ok) = self.call(tool, args).await;
        assert!(ok, "{tool}: {text}");
        text
    }

    /// The servers, as the command line has them.
    pub(crate) fn servers(&self, guard: Option<std::path::PathBuf>) -> Servers {
        Servers::new(self.path(), &file_of(self.path()), guard, Logins::of(self.path()))
    }

    /// The tools of a server, as the catalogue has them.
    pub(crate) async fn tools(&self, server: &str) -> Result<Vec<Json>, String> {
        let guard = Some(env!("CARGO_BIN_EXE_outlast-guard").into());
        let servers = self.servers(guard);
        tokio::time::timeout(PATIENCE, servers.tools(server))
            .await
            .expect("the list ends in time")
            .map(|listed| listed.tools)
    }
}

/// The process ids in a file of whose processes none must be left.
pub(crate) fn lives(pid: i64) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z'))
}
