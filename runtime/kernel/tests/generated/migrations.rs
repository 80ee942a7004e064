//! Other versions of generated programs, and runs that go on with them.
//!
//! Leaves programs to the generator and what must always hold to the driver. Invariant: one seed gives one change on every computer.

use std::fmt::Write as _;
use std::sync::Arc;

use outlast_dsl::machine::{FieldDef, Machine};
use outlast_kernel::event::OnOpen;
use outlast_kernel::ids::OpId;
use outlast_kernel::operation::{Operation, OperationKind};
use outlast_kernel::{Compatibility, Json, State, check_input};

use crate::driver::Driven;
use crate::generator::Dice;

/// How a state of the old version is found again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    ByWas,
    ByMigration,
    /// Not at all.
    Never,
}

/// Writes another version of a program: every number in its machine is another, a state has another name, and now and then
/// something does not fit.
pub(crate) fn next_version(text: &str, dice: &mut Dice) -> String {
    let extra =
        "activity a_new_one(x: int) -> int within 1m effect pure\ntype Another { a: Side?, b: text }\n";
    let mut text = text.replacen("error Refused\n", &format!("{extra}error Refused\n"), 1);
    text = text.replace("  data c: int = 0\n", "  data extra: text = \"n{x}\"\n  data c: int = 0\n");
    let found =
        dice.pick(&[Found::ByWas, Found::ByWas, Found::ByMigration, Found::ByMigration, Found::Never]);
    text = renamed(&text, found);
    if dice.percent(60) {
        text = text.replace(" at most 2", " at most 3").replace("each v in", "each v, at in");
    }
    if dice.percent(30) {
        let name = format!("act{}", dice.below(3));
        text = text
            .replace(&format!("activity {name}(x: int)"), &format!("activity {name}(x: int, y: int = 2)"));
    }
    if dice.percent(15) {
        text = text
            .replace(" for text to", " for int to")
            .replace("on answer { value } yield value", "on answer yield \"r0\"");
    }
    text
}

/// Renames every `S1`; a `migrate` also says what its parameter and a counter become.
fn renamed(text: &str, found: Found) -> String {
    let mut migrations = String::new();
    for flow in text.split("flow F").skip(1) {
        let Some(number) = flow.chars().next() else { continue };
        let params = if flow.contains("state S1(n: int)") { "n: int" } else { "" };
        let args = if params.is_empty() { "" } else { "(n + 1)" };
        let _ = writeln!(migrations, "migrate F{number}.S1({params}) set c += 1 -> T1{args}");
    }
    let state = match found {
        Found::ByWas => "state T1 was S1",
        Found::ByMigration | Found::Never => "state T1",
    };
    let mut text = text.replace("state S1", state);
    for (before, after) in [("-> S1", "-> T1"), ("visits(S1)", "visits(T1)"), ("since S1", "since T1")] {
        text = text.replace(before, after);
    }
    match found {
        Found::ByWas | Found::Never => text,
        Found::ByMigration => text + &migrations,
    }
}

/// What became of the attempt to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Went {
    Safely,
    WithReplacements,
    Not,
}

/// Lets a run go on with another machine if it can, and looks at what it took along.
pub(crate) fn go_on(driven: &mut Driven, machine: &Arc<Machine>, dice: &mut Dice) -> Went {
    let before = driven.run.state.clone();
    match before.compatibility(machine) {
        Compatibility::Safe => {
            driven.migrate(machine, Vec::new());
            let (old, new) = (work(&before), work(&driven.run.state));
            assert_eq!(old, new, "what was open is not what is open");
            values_have_their_types(&driven.run.state);
            Went::Safely
        }
        Compatibility::NeedsMigrate(needs) => {
            assert!(!needs.is_empty(), "it cannot go on, and nothing is said to be missing");
            assert!(before.migration(machine, Vec::new(), "ann".to_owned()).is_err());
            Went::Not
        }
        Compatibility::Drain(misfits) => {
            assert!(misfits.iter().all(|op| before.operation(*op).is_some()), "{misfits:?} are not open");
            let how = dice.pick(&[OnOpen::Cut, OnOpen::Again]);
            let map: Vec<(OpId, OnOpen)> = misfits.iter().map(|op| (*op, how)).collect();
            // A question that is cut has no arrow to take.
            if before.migration(machine, map.clone(), "ann".to_owned()).is_err() {
                return Went::Not;
            }
            driven.migrate(machine, map);
            for op in &misfits {
                assert!(driven.run.state.operation(*op).is_none(), "{op} does not fit and is still open");
            }
            values_have_their_types(&driven.run.state);
            Went::WithReplacements
        }
    }
}

/// What is open, without where: timers and questions of states may change with their version.
fn work(state: &State) -> Vec<(OpId, OperationKind)> {
    let is_work = |op: &&Operation| !matches!(op.kind, OperationKind::Timer);
    state.operations().filter(is_work).map(|op| (op.id, op.kind.clone())).collect()
}

/// The data of the root flow are read as parameters of their types would be.
fn values_have_their_types(state: &State) {
    let mut machine = (**state.machine()).clone();
    let root = machine.root.at();
    let fields = machine.root().data.iter().map(|field| {
        let value = state.data(&field.name)?;
        Some((FieldDef { name: field.name.clone(), ty: field.ty.clone(), default: None }, value))
    });
    let Some(fields) = fields.collect::<Option<Vec<(FieldDef, Json)>>>() else { return };
    let values: serde_json::Map<String, Json> =
        fields.iter().map(|(field, value)| (field.name.clone(), value.clone())).collect();
    machine.flows[root].params = fields.into_iter().map(|(field, _)| field).collect();
    let read = check_input(&machine, Json::Object(values.clone()));
    assert_eq!(read, Ok(Json::Object(values)), "data of another type");
}
