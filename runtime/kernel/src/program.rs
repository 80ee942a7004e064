//! A machine made ready to run: shapes of its types, made once and shared by all their values, and its hash.
//!
//! Leaves the machine as it is. Invariant: holds nothing that is not derived from the machine.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use outlast_dsl::machine::{Flow, FlowIx, Machine, StateDef, StateIx, TypeKind};

use crate::value::Shape;

/// The shapes of a machine's named types.
#[derive(Debug)]
pub(crate) struct Shapes {
    types: Vec<Box<[Arc<Shape>]>>,
}

impl Shapes {
    /// Makes the shapes of all types.
    pub(crate) fn new(machine: &Machine) -> Shapes {
        let shapes = |def: &outlast_dsl::machine::TypeDef| -> Box<[Arc<Shape>]> {
            match &def.kind {
                TypeKind::Record(fields) => [Shape::new(None, fields.iter().map(|f| f.name.as_str()))].into(),
                TypeKind::Error(fields) => {
                    [Shape::new(Some(&def.name), fields.iter().map(|f| f.name.as_str()))].into()
                }
                TypeKind::Union(variants) => variants
                    .iter()
                    .map(|v| Shape::new(Some(&v.name), v.fields.iter().map(|f| f.name.as_str())))
                    .collect(),
            }
        };
        Shapes { types: machine.types.iter().map(shapes).collect() }
    }

    /// Returns the shapes of a type: one, or one for each variant.
    pub(crate) fn of(&self, ix: usize) -> &[Arc<Shape>] {
        &self.types[ix]
    }
}

/// A machine with its shapes.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) machine: Arc<Machine>,
    pub(crate) shapes: Shapes,
    /// Made when it is asked for: it takes writing the whole machine down.
    hash: OnceLock<Arc<str>>,
}

/// A machine that is ready to run. Making it takes longer than starting a run, so whoever starts many of one machine keeps it.
#[derive(Clone, Debug)]
pub struct Ready(pub(crate) Arc<Program>);

impl From<Arc<Machine>> for Ready {
    fn from(machine: Arc<Machine>) -> Ready {
        Ready(Program::new(machine))
    }
}

impl Deref for Ready {
    type Target = Arc<Machine>;

    fn deref(&self) -> &Arc<Machine> {
        &self.0.machine
    }
}

impl Program {
    /// Prepares a machine.
    pub(crate) fn new(machine: Arc<Machine>) -> Arc<Program> {
        let shapes = Shapes::new(&machine);
        Arc::new(Program { machine, shapes, hash: OnceLock::new() })
    }

    /// Returns the machine's hash.
    pub(crate) fn hash(&self) -> &Arc<str> {
        self.hash.get_or_init(|| self.machine.hash().0.into())
    }

    /// Returns a flow.
    pub(crate) fn flow(&self, ix: FlowIx) -> &Flow {
        &self.machine.flows[ix.at()]
    }

    /// Returns a state of a flow.
    pub(crate) fn state(&self, flow: FlowIx, state: StateIx) -> &StateDef {
        &self.flow(flow).states[state.at()]
    }
}
