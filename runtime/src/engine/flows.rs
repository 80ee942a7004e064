//! Deployed flows and their machines, in memory as they are in the store.
//!
//! Leaves checking text to the dsl and durability to the committer. Invariant: a machine that a run needs is never removed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use outlast_dsl::Places;
use outlast_dsl::machine::Machine;
use outlast_kernel::Ready;
use outlast_protocol::requests::FlowView;
use outlast_protocol::{ApiError, Code};
use outlast_store::{Put, Store, Table};
use serde::{Deserialize, Serialize};

use super::errors;

/// The source of a machine, for people: nothing that runs reads it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Where its parts stand.
    pub(crate) places: Places,
    /// The files that were deployed together: name and text.
    pub(crate) files: Vec<(String, String)>,
    /// The other files of the request: what they use, such as tool catalogues.
    pub(crate) attachments: BTreeMap<String, String>,
}

/// All deployed flows.
pub(crate) struct Flows {
    store: Arc<dyn Store>,
    deployed: RwLock<BTreeMap<String, FlowView>>,
    machines: RwLock<HashMap<String, Ready>>,
    sources: RwLock<HashMap<String, Arc<Source>>>,
}

impl Flows {
    /// Reads the deployed flows.
    ///
    /// # Errors
    /// [`Code::Internal`] if the store cannot be read.
    pub(crate) fn open(store: Arc<dyn Store>) -> Result<Flows, ApiError> {
        let mut deployed = BTreeMap::new();
        for (_, bytes) in store.list(Table::Flow).map_err(|e| errors::store(&e))? {
            let flow: FlowView = serde_json::from_slice(&bytes)
                .map_err(|e| ApiError::new(Code::Internal, format!("a deployed flow cannot be read: {e}")))?;
            deployed.insert(flow.name.clone(), flow);
        }
        let deployed = RwLock::new(deployed);
        Ok(Flows { store, deployed, machines: RwLock::default(), sources: RwLock::default() })
    }

    /// Returns the deployed flows by name.
    pub(crate) fn list(&self) -> Vec<FlowView> {
        self.deployed.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns a deployed flow.
    pub(crate) fn get(&self, name: &str) -> Option<FlowView> {
        self.deployed.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Takes note of a flow that was made durable.
    pub(crate) fn deployed(&self, flow: FlowView, machine: Arc<Machine>) {
        let mut machines = self.machines.write().unwrap_or_else(PoisonError::into_inner);
        machines.insert(flow.machine.clone(), machine.into());
        drop(machines);
        // A new deployment may bring another layout of the same machine.
        self.sources.write().unwrap_or_else(PoisonError::into_inner).remove(&flow.machine);
        self.deployed.write().unwrap_or_else(PoisonError::into_inner).insert(flow.name.clone(), flow);
    }

    /// Returns a machine by its hash.
    ///
    /// # Errors
    /// [`Code::NotFound`] if there is none, [`Code::Internal`] if it cannot be read.
    pub(crate) fn machine(&self, hash: &str) -> Result<Arc<Machine>, ApiError> {
        self.ready(hash).map(|ready| Arc::clone(&ready))
    }

    /// Returns a machine by its hash, ready to run.
    ///
    /// # Errors
    /// As [`Flows::machine`].
    pub(crate) fn ready(&self, hash: &str) -> Result<Ready, ApiError> {
        if let Some(machine) = self.machines.read().unwrap_or_else(PoisonError::into_inner).get(hash) {
            return Ok(machine.clone());
        }
        let bytes = self.store.get(Table::Machine, hash.as_bytes()).map_err(|e| errors::store(&e))?;
        let Some(bytes) = bytes else {
            return Err(errors::no_machine(hash));
        };
        let machine = Machine::decode(&bytes)
            .map_err(|e| ApiError::new(Code::Internal, format!("machine {hash} cannot be read: {e}")))?;
        let machine = Ready::from(Arc::new(machine));
        let mut machines = self.machines.write().unwrap_or_else(PoisonError::into_inner);
        Ok(machines.entry(hash.to_owned()).or_insert(machine).clone())
    }

    /// Returns `file:line` and the text of a place in a machine; empty if they are not known.
    pub(crate) fn locate(&self, machine: &str, place: &(String, Option<String>, String)) -> (String, String) {
        let (flow, state, part) = place;
        let source = self.source(machine);
        let found = source.places.find(flow, state.as_deref(), part);
        found.map(|at| (format!("{}:{}", at.file, at.line), at.snippet.clone())).unwrap_or_default()
    }

    fn source(&self, machine: &str) -> Arc<Source> {
        if let Some(source) = self.sources.read().unwrap_or_else(PoisonError::into_inner).get(machine) {
            return source.clone();
        }
        // Only people read it, so a source that cannot be read is as good as none.
        let bytes = self.store.get(Table::Source, machine.as_bytes()).ok().flatten();
        let source = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        sources.entry(machine.to_owned()).or_insert(Arc::new(source)).clone()
    }
}

/// Makes the records of a flow.
pub(crate) fn records(flow: &FlowView, machine: &Machine, source: &Source) -> Vec<Put> {
    let hash = flow.machine.as_bytes();
    let put = |table, key: &[u8], value| Put { table, key: key.to_vec(), value: Some(value) };
    vec![
        put(Table::Machine, hash, machine.encode()),
        put(Table::Source, hash, serde_json::to_vec(source).unwrap_or_default()),
        put(Table::Flow, flow.name.as_bytes(), serde_json::to_vec(flow).unwrap_or_default()),
    ]
}
