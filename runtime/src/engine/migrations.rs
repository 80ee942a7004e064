//! Migration: runs go on with another version of their flow, one by one, each wholly or not at all.
//!
//! Leaves what fits to the kernel. Invariant: the machine is durable before a run goes on with it, and the old one stays for the history
//! before.

use std::sync::Arc;

use outlast_dsl::machine::Machine;
use outlast_kernel::event::OnOpen;
use outlast_kernel::{Compatibility, Json};
use outlast_protocol::requests;
use outlast_protocol::{ApiError, Code};
use serde_json::json;

use super::Engine;
use super::message::Message;
use super::shard::{MigrateRun, Migration};

impl Engine {
    /// Migrates a run to a machine that was deployed: `{"run", "fit": "done", "accepted": n}`, or why it cannot be now.
    ///
    /// # Errors
    /// [`Code::NotFound`] (run, machine), [`Code::Invalid`], [`Code::DiskFull`].
    pub async fn migrate(&self, run: &str, request: requests::Migrate, by: &str) -> Result<Json, ApiError> {
        let machine = self.core.ctx.flows.machine(&request.machine)?;
        let open = match request.open.as_deref() {
            None => None,
            Some("cut") => Some(OnOpen::Cut),
            Some("again") => Some(OnOpen::Again),
            Some(other) => {
                let message = format!("open {other:?}; `cut` or `again` is expected");
                return Err(ApiError::new(Code::Invalid, message).at("open"));
            }
        };
        self.migration(run, machine, open, (by, false)).await
    }

    /// Says whether a run could go on with a machine, given as its canonical text; nothing changes.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Invalid`].
    pub async fn compatibility(&self, run: &str, request: requests::Compatibility) -> Result<Json, ApiError> {
        let machine = Machine::decode(request.machine.as_bytes()).map_err(|error| {
            let whole = "its whole text is expected; GET /v1/machines/HASH gives that of a deployed one";
            ApiError::new(Code::Invalid, error.to_string()).at("machine").hint(whole)
        })?;
        self.migration(run, Arc::new(machine), None, ("", true)).await
    }

    async fn migration(
        &self,
        run: &str,
        machine: Arc<Machine>,
        open: Option<OnOpen>,
        (by, only_look): (&str, bool),
    ) -> Result<Json, ApiError> {
        let run = self.known(run)?;
        let migrate = MigrateRun { run: run.clone(), machine, open, by: by.to_owned(), only_look };
        let migration = self.core.ask(&run, |reply| Message::Migrate(Box::new(migrate), reply)).await?;
        Ok(match migration {
            Migration::Done(n) => json!({ "run": run, "fit": "done", "accepted": n }),
            Migration::Same => json!({ "run": run, "fit": "same" }),
            Migration::Ended => json!({ "run": run, "fit": "ended" }),
            Migration::Fit(Compatibility::Safe) => json!({ "run": run, "fit": "safe" }),
            Migration::Fit(Compatibility::Drain(ops)) => {
                let ops: Vec<String> = ops.iter().map(ToString::to_string).collect();
                json!({ "run": run, "fit": "drain", "ops": ops })
            }
            Migration::Fit(Compatibility::NeedsMigrate(needs)) => {
                json!({ "run": run, "fit": "needs_migrate", "needs": needs })
            }
        })
    }
}
