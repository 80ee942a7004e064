//! What an expression can see, and where its mistakes go.
//!
//! Leaves declarations to `check::tables`. Invariant: every variable that is bound gets a slot of its own in the frame, so that
//! a machine needs no scopes.

use std::collections::BTreeMap;

use super::flows::position;
use crate::check::tables::{FieldSig, Layer, Spot, Tables};
use crate::check::ty::Ty;
use crate::diag::{Code, Diagnostic, FileId, TextSpan};
use crate::machine::{DataIx, Expr, MessageIx, Slot, StateIx};

/// A variable, parameter or data field.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    /// How it is read.
    pub(crate) read: Expr,
}

/// A message of the flow.
#[derive(Clone, Debug)]
pub(crate) struct MessageSig {
    pub(crate) name: String,
    pub(crate) fields: Vec<FieldSig>,
}

/// A state of the flow.
#[derive(Clone, Debug)]
pub(crate) struct StateSig {
    pub(crate) name: String,
    pub(crate) params: Vec<FieldSig>,
}

/// What belongs to the flow around an expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowNames {
    pub(crate) messages: Vec<MessageSig>,
    pub(crate) states: Vec<StateSig>,
    /// Names and types of its data, in text order.
    pub(crate) data: Vec<(String, Ty)>,
    message_at: BTreeMap<String, MessageIx>,
    state_at: BTreeMap<String, StateIx>,
    data_at: BTreeMap<String, DataIx>,
}

impl FlowNames {
    pub(crate) fn message(&self, name: &str) -> Option<MessageIx> {
        self.message_at.get(name).copied()
    }

    pub(crate) fn state(&self, name: &str) -> Option<StateIx> {
        self.state_at.get(name).copied()
    }

    pub(crate) fn data(&self, name: &str) -> Option<DataIx> {
        self.data_at.get(name).copied()
    }

    /// Adds a message whose name is new.
    pub(crate) fn add_message(&mut self, message: MessageSig) {
        self.message_at.insert(message.name.clone(), MessageIx(position(self.messages.len())));
        self.messages.push(message);
    }

    /// Adds a state whose name is new.
    pub(crate) fn add_state(&mut self, state: StateSig) {
        self.state_at.insert(state.name.clone(), StateIx(position(self.states.len())));
        self.states.push(state);
    }

    /// Adds a data field whose name is new.
    pub(crate) fn add_data(&mut self, name: String, ty: Ty) {
        self.data_at.insert(name.clone(), DataIx(position(self.data.len())));
        self.data.push((name, ty));
    }
}

/// The frame that is being filled, with the variables in sight.
pub(crate) struct Scope<'t> {
    pub(crate) tables: &'t Tables,
    pub(crate) layer: Layer,
    pub(crate) file: FileId,
    pub(crate) out: &'t mut Vec<Diagnostic>,
    /// The innermost last.
    variables: Vec<Variable>,
    slots: u32,
    /// Whether this is a default, which sees and binds nothing.
    pub(crate) constant: bool,
    /// How many defaults are being filled in within each other.
    pub(crate) defaults: u32,
    /// Whether an arrow names an outcome that does not exist.
    pub(crate) outcome_lost: bool,
}

impl<'t> Scope<'t> {
    pub(crate) fn new(
        tables: &'t Tables,
        layer: Layer,
        file: FileId,
        out: &'t mut Vec<Diagnostic>,
    ) -> Scope<'t> {
        let (variables, slots) = (Vec::new(), 0);
        Scope {
            tables,
            layer,
            file,
            out,
            variables,
            slots,
            constant: false,
            defaults: 0,
            outcome_lost: false,
        }
    }

    /// A scope that sees the same and reports elsewhere, to find out what something is.
    pub(crate) fn aside<'u>(&self, out: &'u mut Vec<Diagnostic>) -> Scope<'u>
    where
        't: 'u,
    {
        let Scope { tables, layer, file, out: _, variables, slots, constant, defaults, outcome_lost } = self;
        Scope {
            tables,
            layer: *layer,
            file: *file,
            out,
            variables: variables.clone(),
            slots: *slots,
            constant: *constant,
            defaults: *defaults,
            outcome_lost: *outcome_lost,
        }
    }

    /// How many slots the frame needs so far.
    pub(crate) fn frame(&self) -> u32 {
        self.slots
    }

    /// Marks what is in sight now, for [`Scope::leave`].
    pub(crate) fn enter(&self) -> usize {
        self.variables.len()
    }

    /// Forgets what came into sight since `mark`; the slots stay taken.
    pub(crate) fn leave(&mut self, mark: usize) {
        self.variables.truncate(mark);
    }

    /// Brings a variable into sight.
    pub(crate) fn show(&mut self, name: &str, ty: Ty, read: Expr) {
        self.variables.push(Variable { name: name.to_owned(), ty, read });
    }

    /// Takes a slot and brings its variable into sight.
    pub(crate) fn bind(&mut self, name: &str, ty: Ty) -> Slot {
        let slot = self.take_slot();
        self.show(name, ty, Expr::Local(slot));
        slot
    }

    /// Takes a slot whose variable nobody sees yet.
    pub(crate) fn take_slot(&mut self) -> Slot {
        let slot = Slot(self.slots);
        self.slots += 1;
        slot
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().rev().find(|variable| variable.name == name)
    }

    /// The nearest variable in sight.
    pub(crate) fn near(&self, name: &str) -> Option<&str> {
        self.tables.closest(name, self.variables.iter().map(|variable| variable.name.as_str()))
    }

    pub(crate) fn spot(&self, span: TextSpan) -> Spot {
        Spot { file: self.file, span }
    }

    /// Begins an error in this file.
    pub(crate) fn error(&self, code: Code, span: TextSpan, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.file, span, message)
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.out.push(diagnostic);
    }

    /// Reports an unknown name with the nearest known one, and the change if there is one.
    pub(crate) fn report_unknown(&mut self, code: Code, span: TextSpan, message: String, near: Option<&str>) {
        let diagnostic = self.error(code, span, message);
        let diagnostic = match near {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`?")).unsure_fix(span, near),
            None => diagnostic,
        };
        self.report(diagnostic);
    }
}
