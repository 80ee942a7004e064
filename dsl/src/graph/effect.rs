//! What a state does, in a few short lines.
//!
//! Leaves arrows to the builder. Invariant: each line fits a label.

use super::print::Printer;
use super::text;
use crate::limits::GRAPH_LABEL_COLUMNS_MAX;
use crate::machine::{
    Activity, ActivityIx, Ask, Await, Each, EachBody, Effect, Expr, Flow, FlowIx, Join, Parallel, Param,
    Slot, Spawn, Wait,
};

/// Returns the lines of an effect, and names the variables that it binds.
pub(super) fn lines(printer: &mut Printer<'_>, effect: &Effect) -> Vec<String> {
    let lines = match effect {
        Effect::Wait => Vec::new(),
        Effect::Do(ix, args, result) => vec![activity(printer, *ix, args, *result)],
        Effect::Run(ix, args, wait, result) => vec![run(printer, *ix, args, wait.as_ref(), *result)],
        Effect::Each(each) => self::each(printer, each),
        Effect::Parallel(parallel) => self::parallel(printer, parallel),
        Effect::Await(awaited) => vec![self::awaited(printer, awaited)],
        Effect::Ask(ask) => self::ask(printer, ask),
        Effect::Spawn(spawn) => vec![self::spawn(printer, spawn)],
        Effect::Choose(_) => vec!["choose".to_owned()],
        Effect::Match(subject, _) => vec![format!("choose {}", printer.expr(subject))],
    };
    lines.iter().map(|line| text::cut(line, GRAPH_LABEL_COLUMNS_MAX)).collect()
}

fn activity(printer: &mut Printer<'_>, ix: ActivityIx, args: &[Expr], result: Option<Slot>) -> String {
    let machine = printer.machine;
    let (name, params): (&str, &[Param]) =
        machine.activities.get(ix.at()).map_or(("_", &[]), |Activity { name, params, .. }| (name, params));
    printer.name_after(args, params);
    name_result(printer, result);
    printer.call(&format!("do {name}"), args)
}

fn run(
    printer: &mut Printer<'_>,
    ix: FlowIx,
    args: &[Expr],
    wait: Option<&Wait>,
    result: Option<Slot>,
) -> String {
    let machine = printer.machine;
    let (name, params): (&str, &[Param]) =
        machine.flows.get(ix.at()).map_or(("_", &[]), |Flow { name, params, .. }| (name, params));
    printer.name_after(args, params);
    name_result(printer, result);
    let call = printer.call(&format!("run {name}"), args);
    wait.map_or_else(|| call.clone(), |wait| format!("{call} {}", self::wait(printer, wait)))
}

fn name_result(printer: &mut Printer<'_>, result: Option<Slot>) {
    if let Some(slot) = result {
        printer.name(slot, "result");
    }
}

fn each(printer: &mut Printer<'_>, each: &Each) -> Vec<String> {
    // Written once for the names alone: the parameter that takes the item gives it its name.
    let _ = self::body(printer, &each.body);
    printer.name(each.item, "item");
    if let Some(index) = each.index {
        printer.name(index, "i");
    }
    let body = self::body(printer, &each.body);
    let item = printer.expr(&Expr::Local(each.item));
    let over = printer.expr(&each.over);
    let at_most = printer.expr(&each.at_most);
    let mut head = format!("each {item} in {over} at most {at_most}");
    if text::width(&head) > GRAPH_LABEL_COLUMNS_MAX {
        head = format!("each {item} in … at most {at_most}");
    }
    let mut lines = vec![head];
    printer.name(each.result, "results");
    if let Some(until) = &each.until {
        let until = printer.cond(until);
        lines.push(format!("until {until}{}", if each.draining { " draining" } else { "" }));
    }
    if each.keep_going {
        lines.push("keep going".to_owned());
    }
    if let Some(within) = &each.within {
        lines.push(wait(printer, within));
    }
    lines.extend(body.into_iter().map(|line| format!("  {line}")));
    lines
}

fn parallel(printer: &mut Printer<'_>, parallel: &Parallel) -> Vec<String> {
    let join = match parallel.join {
        Join::All => "all".to_owned(),
        Join::Count(1) => "any".to_owned(),
        Join::Count(n) => n.to_string(),
        Join::Region(at) => parallel.regions.get(at as usize).map_or("_", |r| r.name.as_str()).to_owned(),
    };
    let within = parallel.within.as_ref().map(|wait| format!(" {}", self::wait(printer, wait)));
    let mut lines = vec![format!("parallel join {join}{}", within.unwrap_or_default())];
    for region in &parallel.regions {
        let body = body(printer, &region.body);
        printer.name(region.result, &region.name);
        for (n, line) in body.iter().enumerate() {
            lines.push(if n == 0 { format!("  {}: {line}", region.name) } else { format!("    {line}") });
        }
    }
    lines
}

fn body(printer: &mut Printer<'_>, body: &EachBody) -> Vec<String> {
    match body {
        EachBody::Do(ix, args, result) => vec![activity(printer, *ix, args, *result)],
        EachBody::Run(ix, args, wait, result) => vec![run(printer, *ix, args, wait.as_ref(), *result)],
        EachBody::Ask(ask) => self::ask(printer, ask),
        EachBody::Await(awaited) => vec![self::awaited(printer, awaited)],
        EachBody::Each(each) => self::each(printer, each),
    }
}

fn awaited(printer: &mut Printer<'_>, awaited: &Await) -> String {
    let flow = printer.flow;
    let mut names: Vec<String> = awaited
        .messages
        .iter()
        .map(|ix| flow.messages.get(ix.at()).map_or("_", |message| message.name.as_str()).to_owned())
        .collect();
    if awaited.closed {
        names.push("closed".to_owned());
    }
    for handle in &awaited.ended {
        let handle = printer.expr(handle);
        names.push(format!("ended({handle})"));
    }
    format!("await {} {}", names.join(", "), wait(printer, &awaited.wait))
}

fn ask(printer: &mut Printer<'_>, ask: &Ask) -> Vec<String> {
    let mut lines = vec![format!("ask {}", printer.expr(&ask.text))];
    if let Some(show) = &ask.show {
        let show = printer.expr(show);
        lines.push(format!("show {show}{}", if ask.editable { " editable" } else { "" }));
    }
    let mut people = Vec::new();
    for who in &ask.to {
        let role = printer.expr(&who.role);
        people.push(if who.count > 1 { format!("{} of {role}", who.count) } else { role });
    }
    let answer = ask.answer.as_ref().map(|ty| format!("for {} ", printer.ty(ty))).unwrap_or_default();
    let (people, wait) = (format!("{answer}to {}", people.join(" and ")), wait(printer, &ask.wait));
    let both = format!("{people} {wait}");
    if text::width(&both) <= GRAPH_LABEL_COLUMNS_MAX {
        lines.push(both);
    } else {
        lines.extend([people, wait]);
    }
    lines
}

fn spawn(printer: &mut Printer<'_>, spawn: &Spawn) -> String {
    let machine = printer.machine;
    let name = machine.flows.get(spawn.flow.at()).map_or("_", |flow| flow.name.as_str());
    if let Some(handle) = spawn.handle {
        printer.name(handle, "handle");
    }
    let call = printer.call(&format!("spawn {name}"), &spawn.args);
    format!("{call}{}", if spawn.cancel { " cancel" } else { " detach" })
}

fn wait(printer: &mut Printer<'_>, wait: &Wait) -> String {
    match wait {
        Wait::Within(expr) => format!("within {}", printer.expr(expr)),
        Wait::Until(expr) => format!("until {}", printer.expr(expr)),
        Wait::Forever => "within forever".to_owned(),
    }
}
