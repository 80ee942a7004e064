//! What differs between two versions of a machine, part by part.
//!
//! Leaves saying it to its callers. Invariant: parts are compared by what they name, not by number, so a declaration that is moved or put
//! in between changes no other part; two machines without a difference have the same parts in the same words.

use std::collections::BTreeMap;

use serde::Serialize;

use super::refs::{self, Ref};
use super::{
    ActivityIx, CatalogueIx, DataIx, Flow, FlowIx, FunctionIx, Machine, MessageIx, RetryIx, StateIx, TypeIx,
};

/// What became of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The newer version has it, the older has not.
    Added,
    /// The older version has it, the newer has not.
    Removed,
    /// Both have it, each in its own way.
    Changed,
}

/// A part that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The part, such as `state Review` or `type Order`; of another flow than the root with its name: `state Inner.Work`.
    pub part: String,
    /// What became of it.
    pub change: Change,
}

/// Returns the parts that differ: those of the newer version in its order, then what is gone.
///
/// ```
/// # use outlast_dsl::{SourceFile, check, machine::differences};
/// # let machine = |text: &str| {
/// #     let source = SourceFile { name: "f.flow".into(), text: text.into() };
/// #     check(&[source], &Default::default()).flows.remove(0).machine
/// # };
/// let old = machine("edition 1\nflow F() -> int version 1 { start A state A { choose if 1 > 2 -> end 1 else -> end 2 } }");
/// let new = machine("edition 1\nflow F() -> int version 2 { start A state A { choose if 1 > 3 -> end 1 else -> end 2 } }");
/// assert_eq!(differences(&old, &new)[0].part, "state A");
/// ```
#[must_use]
pub fn differences(old: &Machine, new: &Machine) -> Vec<Difference> {
    let mut names = Names::default();
    let (before, after) = (parts(old, &mut names), parts(new, &mut names));
    let texts: BTreeMap<&str, &str> = before.iter().map(|(part, text)| (&**part, &**text)).collect();
    let kept: BTreeMap<&str, &str> = after.iter().map(|(part, text)| (&**part, &**text)).collect();
    let differs = |(part, text): &(String, String)| match texts.get(&**part) {
        None => Some(Difference { part: part.clone(), change: Change::Added }),
        Some(before) if before != text => Some(Difference { part: part.clone(), change: Change::Changed }),
        Some(_) => None,
    };
    let gone = before.iter().filter(|(part, _)| !kept.contains_key(&**part));
    let gone = gone.map(|(part, _)| Difference { part: part.clone(), change: Change::Removed });
    after.iter().filter_map(differs).chain(gone).collect()
}

/// Numbers that mean the same in both machines.
#[derive(Default)]
struct Names(BTreeMap<String, u32>);

impl Names {
    fn number(&mut self, kind: &str, name: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(format!("{kind} {name}")).or_insert(next)
    }
}

/// Takes a machine apart: each part's name, and its text in numbers that both machines share.
fn parts(machine: &Machine, names: &mut Names) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, flow) in machine.flows.iter().enumerate() {
        let of = if at == machine.root.at() { String::new() } else { format!("{}.", flow.name) };
        flow_parts(machine, (flow, &of), names, &mut found);
    }
    let nothing = None;
    for mut activity in machine.activities.clone() {
        refs::activity(&mut activity, &mut |named| rename(machine, nothing, names, named));
        found.push((format!("activity {}", activity.name), text(&activity)));
    }
    for mut function in machine.functions.clone() {
        refs::function(&mut function, &mut |named| rename(machine, nothing, names, named));
        found.push((format!("function {}", function.name), text(&function)));
    }
    for mut def in machine.types.clone() {
        refs::type_def(&mut def, &mut |named| rename(machine, nothing, names, named));
        found.push((format!("type {}", def.name), text(&def)));
    }
    found.extend(machine.retries.iter().map(|retry| (format!("retry {}", retry.name), text(retry))));
    for catalogue in &machine.catalogues {
        let of = |name: &str| format!("tool {}.{name}", catalogue.name);
        found.extend(catalogue.tools.iter().map(|tool| (of(&tool.name), text(tool))));
    }
    found
}

/// Takes a flow apart; `of` stands before the names of what belongs to it.
fn flow_parts(
    machine: &Machine,
    (flow, of): (&Flow, &str),
    names: &mut Names,
    found: &mut Vec<(String, String)>,
) {
    let mut own = flow.clone();
    refs::flow(&mut own, &mut |named| rename(machine, Some(flow), names, named));
    for state in &mut own.states {
        refs::state(state, &mut |named| rename(machine, Some(flow), names, named));
    }
    for migration in &mut own.migrations {
        refs::migration(migration, &mut |named| rename(machine, Some(flow), names, named));
    }
    let mut put = |part: String, text: String| found.push((part, text));
    let Flow {
        name: _,
        version: _,
        saga,
        params,
        result,
        raises,
        emits,
        messages,
        data,
        limits,
        arrows,
        on_cancel,
        start,
        states,
        frame: _,
        migrations,
    } = own;
    put(format!("{of}parameters"), text(&params));
    put(format!("{of}result"), text(&(saga, result, raises, emits)));
    put(format!("{of}start"), text(&start));
    messages.iter().for_each(|message| put(format!("message {of}{}", message.name), text(message)));
    data.iter().for_each(|data| put(format!("data {of}{}", data.name), text(data)));
    put(format!("{of}limits"), text(&limits));
    states.iter().for_each(|state| put(format!("state {of}{}", state.name), text(state)));
    put(format!("{of}arrows of every state"), text(&arrows));
    put(format!("{of}on cancel"), text(&on_cancel));
    migrations.iter().for_each(|one| put(format!("migrate {of}{}", one.from), text(one)));
}

/// Puts the number that both machines share in the place of one that only `machine` knows.
fn rename(machine: &Machine, flow: Option<&Flow>, names: &mut Names, named: Ref<'_>) {
    let inside = |what: &str| format!("{}.{what}", flow.map_or("", |flow| &flow.name));
    let of = |flow: &Flow, at: StateIx| flow.states.get(at.at()).map(|state| inside(&state.name));
    match named {
        Ref::Flow(FlowIx(at)) => renamed(at, "flow", &machine.flows, names, |flow| flow.name.clone()),
        Ref::Activity(ActivityIx(at)) => {
            renamed(at, "activity", &machine.activities, names, |activity| activity.name.clone());
        }
        Ref::Function(FunctionIx(at)) => {
            renamed(at, "function", &machine.functions, names, |function| function.name.clone());
        }
        Ref::Retry(RetryIx(at)) => renamed(at, "retry", &machine.retries, names, |retry| retry.name.clone()),
        Ref::Type(TypeIx(at)) => renamed(at, "type", &machine.types, names, |def| def.name.clone()),
        Ref::Catalogue(CatalogueIx(at)) => {
            renamed(at, "catalogue", &machine.catalogues, names, |catalogue| catalogue.name.clone());
        }
        Ref::State(at) => {
            if let Some(name) = flow.and_then(|flow| of(flow, *at)) {
                at.0 = names.number("state", &name);
            }
        }
        Ref::Message(MessageIx(at)) => {
            let messages = flow.map_or(&[][..], |flow| &flow.messages);
            renamed(at, "message", messages, names, |message| inside(&message.name));
        }
        Ref::Data(DataIx(at)) => {
            let data = flow.map_or(&[][..], |flow| &flow.data);
            renamed(at, "data", data, names, |data| inside(&data.name));
        }
        // They count within their part.
        Ref::Slot(_) | Ref::Arg(_) | Ref::Param(_) => {}
    }
}

fn renamed<T>(at: &mut u32, kind: &str, table: &[T], names: &mut Names, name: impl Fn(&T) -> String) {
    if let Some(entry) = usize::try_from(*at).ok().and_then(|at| table.get(at)) {
        *at = names.number(kind, &name(entry));
    }
}

fn text(part: &impl Serialize) -> String {
    match serde_json::to_string(part) {
        Ok(text) => text,
        Err(error) => unreachable!("a machine holds only strings, numbers and lists: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str) -> Machine {
        let source = crate::SourceFile { name: "t.flow".to_owned(), text: text.to_owned() };
        let checked = crate::check(&[source], &BTreeMap::new());
        assert!(checked.flows.len() == 1, "{:?}", checked.diagnostics);
        checked.flows.into_iter().next().unwrap().machine
    }

    const OLD: &str = "edition 1
activity work(n: int) -> int within 1m effect pure
fn twice(n: int) -> int = n * 2
flow F(n: int) -> int version 1 {
  data seen: int = 0
  start A
  state A { do work(twice(n)) as got on ok set seen += 1 -> B(got) on problem -> end 0 }
  state B(got: int) { choose if got > 3 -> end got else -> end seen }
}";

    fn told(new: &str) -> Vec<String> {
        let differences = differences(&machine(OLD), &machine(new));
        differences.iter().map(|one| format!("{:?} {}", one.change, one.part)).collect()
    }

    #[test]
    fn only_what_is_different_differs() {
        assert_eq!(told(OLD), [""; 0]);
        // A state, an activity, a data field and a function before the others move every number and change nothing else.
        let more = OLD
            .replace("activity work", "activity first() -> int within 1m effect pure\nactivity work")
            .replace("fn twice", "fn once(n: int) -> int = n\nfn twice")
            .replace("data seen", "data early: int = once(1)\n  data seen")
            .replace(
                "state A",
                "state Z { do first() on ok set early += 1 -> A on problem -> end 0 }\n  state A",
            )
            .replace("start A", "start Z");
        assert_eq!(
            told(&more),
            [
                "Changed start",
                "Added data early",
                "Added state Z",
                "Added activity first",
                "Added function once"
            ]
        );
        assert_eq!(told(&OLD.replace("got > 3", "got > 4")), ["Changed state B"]);
        assert_eq!(told(&OLD.replace("within 1m", "within 2m")), ["Changed activity work"]);
        assert_eq!(told(&OLD.replace("n * 2", "n * 3")), ["Changed function twice"]);
        assert_eq!(told(&OLD.replace("seen: int = 0", "seen: int = 7")), ["Changed data seen"]);
        let gone = OLD
            .replace("-> B(got)", "-> end got")
            .replace("  state B(got: int) { choose if got > 3 -> end got else -> end seen }\n", "");
        assert_eq!(told(&gone), ["Changed state A", "Removed state B"]);
    }
}
