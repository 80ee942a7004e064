//! Random programs as text: what the language offers, put together without much sense.
//!
//! Leaves judging them to the checker and driving them to the properties. Invariant: one seed gives one text on every computer.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// Numbers that a seed decides, or bytes as long as there are some.
pub(crate) struct Dice {
    seed: u64,
    bytes: VecDeque<u8>,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice { seed, bytes: VecDeque::new() }
    }

    /// Each byte decides once; a fuzzer changes them one by one.
    pub(crate) fn of(bytes: &[u8]) -> Dice {
        Dice { seed: bytes.len() as u64, bytes: bytes.iter().copied().collect() }
    }

    pub(crate) fn next(&mut self) -> u64 {
        if let Some(byte) = self.bytes.pop_front() {
            return u64::from(byte);
        }
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.seed ^ self.seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count.max(1) as u64).expect("it is less than a size")
    }

    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// What a program may wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// People, messages and time too.
    Everything,
    /// Activities only, so that nothing but counters bounds a loop.
    ActivitiesOnly,
}

const HEAD: &str = r#"edition 1
error Refused
error Bad { at: int }
type Side = Left { n: int } | Right
retry Gently { on Refused, failed up to 3 attempts wait 1s doubling to 4s }
retry Stubborn { on problem up to 2 attempts wait 2s then hold }
fn shown(slot: Slot<text>) -> text = match slot { Done { value } => value  Failed => "-"  Cut => "-"  NotStarted => "-" }
activity sort_out(x: int) -> Side within 1m effect pure
activity aside(x: int) within 1m in all 5m effect idempotent
activity seen(x: int) -> Verdict<text> within 1m effect idempotent
"#;

/// A declared activity: its name, and the outcomes besides `ok`, `failed` and `timeout`.
struct Activity {
    name: String,
    raises: bool,
    doubt: bool,
}

/// What the head of a flow says.
#[derive(Clone, Copy)]
struct Head {
    saga: bool,
    raises: bool,
}

/// An effect as text, and what may come of it.
struct Effect {
    text: String,
    outcomes: Vec<&'static str>,
    /// What the arrow on `ok` shows of it.
    shows: Option<String>,
    /// Whether `ok` gives a `Side`.
    side: bool,
}

/// Writes a program; its root is the flow `F0`.
pub(crate) fn program(dice: &mut Dice, world: World) -> String {
    let mut text = HEAD.to_owned();
    let patience = dice.pick(&["", "retry Gently ", "retry Stubborn "]);
    let _ = writeln!(
        text,
        "activity take_back(x: int, result: text?) within 1m in all 30m {patience}effect idempotent"
    );
    let activities: Vec<Activity> = (0..3).map(|at| activity(dice, at, &mut text)).collect();
    let heads: Vec<Head> =
        (0..=dice.below(3)).map(|_| Head { saga: dice.percent(35), raises: dice.percent(60) }).collect();
    for at in 0..heads.len() {
        let flow =
            Flow { world, activities: &activities, heads: &heads, at, states: Vec::new(), back: Vec::new() };
        text.push_str(&flow.write(dice));
    }
    text
}

fn activity(dice: &mut Dice, at: usize, text: &mut String) -> Activity {
    let class = dice.pick(&["pure", "idempotent", "idempotent", "once", "once", "once verify seen"]);
    let raises = dice.percent(50);
    let holds = class.starts_with("once") && dice.percent(30);
    let name = format!("act{at}");
    let mut clauses = String::new();
    if raises {
        clauses += " raises Refused";
    }
    clauses += dice.pick(&[" within 1m", " within 1m in all 20m", " within 30s in all 5m silent 10s"]);
    if (class != "once" && dice.percent(50)) || dice.percent(2) {
        clauses += if raises { " retry Gently" } else { " retry Stubborn" };
    }
    if dice.percent(25) {
        clauses += " costs <= 0.10";
    }
    let _ = write!(clauses, " effect {class}");
    if class != "pure" && dice.percent(60) {
        clauses += " undo take_back";
        clauses += if dice.percent(20) { " always" } else { "" };
    }
    clauses += if holds { " unknown holds" } else { "" };
    let _ = writeln!(text, "activity {name}(x: int) -> text{clauses}");
    Activity { name, raises, doubt: class.starts_with("once") && !holds }
}

/// A flow that is being written.
struct Flow<'a> {
    world: World,
    activities: &'a [Activity],
    heads: &'a [Head],
    at: usize,
    /// Which states have a parameter.
    states: Vec<bool>,
    /// States that were led back to.
    back: Vec<usize>,
}

impl Flow<'_> {
    fn write(mut self, dice: &mut Dice) -> String {
        let Head { saga, raises } = self.heads[self.at];
        let at = self.at;
        let count = 2 + dice.below(if at == 0 { 5 } else { 3 });
        self.states = (0..count).map(|state| state > 0 && dice.percent(25)).collect();
        let states: Vec<String> = (0..count).map(|state| self.state(dice, state)).collect();
        let items = self.items(dice);
        let mut text = String::new();
        let (kind, errors) =
            (if saga { "saga flow" } else { "flow" }, if raises { " raises Bad" } else { "" });
        let _ = writeln!(text, "{kind} F{at}(x: int) -> text{errors} emits text {{");
        let _ = writeln!(text, "  message Poke{at} {{ n: int }}\n  message Stop{at} now");
        let _ = writeln!(text, "  data c: int = 0\n  data side: Side = Right\n{items}  start S0");
        text + &states.concat() + "}\n"
    }

    /// Limits, arrows for all states, and what is done when the flow is cancelled.
    fn items(&mut self, dice: &mut Dice) -> String {
        let mut text = String::new();
        let count = self.states.len();
        if dice.percent(90) {
            let goal = self.way_out(dice);
            let _ = writeln!(text, "  limit c <= {} else {goal}", 1 + dice.below(3));
        }
        let mut counted: Vec<usize> = (0..count).filter(|_| dice.percent(8)).collect();
        counted.extend(self.back.clone().into_iter().filter(|_| dice.percent(93)));
        counted.sort_unstable();
        counted.dedup();
        for state in counted {
            let since =
                if dice.percent(15) { format!(" since S{}", dice.below(count)) } else { String::new() };
            let goal = self.way_out(dice);
            let _ = writeln!(text, "  limit visits(S{state}){since} <= {} else {goal}", 1 + dice.below(3));
        }
        if self.world == World::Everything {
            if dice.percent(15) {
                let goal = self.way_out(dice);
                let _ = writeln!(text, "  limit age <= {} else {goal}", dice.pick(&["1h", "12h"]));
            }
            if dice.percent(15) {
                let goal = self.way_out(dice);
                let _ = writeln!(text, "  limit cost <= 0.30 else {goal}");
            }
            if dice.percent(25) {
                let to = dice.below(count);
                let goal = if dice.percent(70) { self.place(dice, to) } else { "-> end \"r{x}\"".to_owned() };
                let _ = writeln!(text, "  on cancel within 1h {goal}");
            }
            if dice.percent(40) {
                let goal = self.goal(dice, 0);
                let _ = writeln!(text, "  on Stop{} {goal}", self.at);
            }
        }
        if dice.percent(25) {
            let _ = writeln!(text, "  on problem {}", self.goal(dice, 0));
        }
        text
    }

    /// Where a broken limit leads.
    fn way_out(&mut self, dice: &mut Dice) -> String {
        match dice.below(10) {
            0 => format!("set c += 1 {}", self.place(dice, self.states.len() - 1)),
            1 => {
                let to = dice.below(self.states.len());
                self.place(dice, to)
            }
            2 if self.heads[self.at].raises => "-> fail Bad { at: c }".to_owned(),
            _ => "-> end \"r{x}\"".to_owned(),
        }
    }

    fn place(&self, dice: &mut Dice, state: usize) -> String {
        let args = if self.states[state] { dice.pick(&["(x)", "(c)", "(7)"]) } else { "" };
        format!("-> S{state}{args}")
    }

    /// A goal with what is done on the way to it, mostly onwards.
    fn goal(&mut self, dice: &mut Dice, from: usize) -> String {
        let count = self.states.len();
        let mut acts = String::new();
        let goal = match dice.below(20) {
            0..9 if from + 1 < count => {
                let skipped = if dice.percent(80) { 0 } else { dice.below(count - from - 1) };
                self.place(dice, from + 1 + skipped)
            }
            9..12 => {
                let to = dice.below(from + 1);
                self.back.push(to);
                if dice.percent(60) {
                    acts += " set c += 1";
                }
                self.place(dice, to)
            }
            12..15 if self.heads[self.at].raises => "-> fail Bad { at: x }".to_owned(),
            _ => "-> end \"r{x}\"".to_owned(),
        };
        self.acts(dice, acts) + &goal
    }

    fn acts(&self, dice: &mut Dice, mut acts: String) -> String {
        if acts.is_empty() && dice.percent(20) {
            acts +=
                dice.pick(&[" set c += 1", " set c = 0", " set side = Left { n: c }", " set side = Right"]);
        }
        if dice.percent(5) {
            let _ = write!(acts, " discard Poke{}", self.at);
        }
        if dice.percent(10) {
            acts += " also do aside(x)";
        }
        if dice.percent(10) {
            acts += " emit \"passed\"";
        }
        acts.trim_start().to_owned() + " "
    }

    fn state(&mut self, dice: &mut Dice, state: usize) -> String {
        let param = if self.states[state] { "(n: int)" } else { "" };
        let mut text = format!("  state S{state}{param} {{\n");
        if dice.percent(15) {
            let (first, rest) = (self.onward(dice, state), self.goal(dice, state));
            let _ = match dice.percent(50) {
                true => writeln!(text, "    choose if c < {} {first}\n    else {rest}", dice.below(3)),
                false => writeln!(
                    text,
                    "    choose side {{ Left {{ n: left }} if left < 2 {first}\n    Left {rest}\n    Right {rest} }}"
                ),
            };
            return text + "  }\n";
        }
        let effect = self.effect(dice, state);
        let _ = writeln!(text, "    {}", effect.text);
        text += &self.arrows(dice, state, &effect);
        if self.world == World::Everything {
            if dice.percent(10) {
                let goal = self.goal(dice, state);
                let _ = writeln!(text, "    on Stop{} {goal}", self.at);
            }
            if dice.percent(10) {
                let _ = writeln!(text, "    after {} {}", dice.pick(&["5s", "10m"]), self.goal(dice, state));
            }
            if dice.percent(5) {
                let _ = writeln!(text, "    every 1m emit \"tick\" -> stay");
            }
        }
        text + "  }\n"
    }

    /// A goal that makes the next state reachable.
    fn onward(&mut self, dice: &mut Dice, state: usize) -> String {
        if state + 1 < self.states.len() { self.place(dice, state + 1) } else { self.goal(dice, state) }
    }

    /// An arrow for each outcome, now and then one too few.
    fn arrows(&mut self, dice: &mut Dice, state: usize, effect: &Effect) -> String {
        let mut names: Vec<&str> = effect.outcomes.clone();
        let special = |name: &str| matches!(name, "Refused" | "Bad" | "failed" | "timeout");
        if names.iter().any(|name| special(name)) && dice.percent(60) {
            let first = names.iter().find(|name| special(name)).copied();
            let keep = dice.percent(30);
            names.retain(|name| !special(name) || (keep && Some(*name) != first));
            names.push("problem");
        }
        let mut lines = Vec::new();
        for name in names {
            if dice.below(400) == 0 {
                continue;
            }
            let on = if name == "Poke" { format!("Poke{}", self.at) } else { name.to_owned() };
            let mut line = String::new();
            if dice.percent(12) {
                let _ = writeln!(line, "    on {on} if c < {} {}", dice.below(3), self.goal(dice, state));
            }
            let goal = if matches!(name, "ok" | "approve" | "answer" | "Poke") {
                self.onward(dice, state)
            } else {
                self.goal(dice, state)
            };
            match (&effect.shows, name) {
                (Some(shows), "ok") => {
                    let goal = goal.replacen("->", &format!("emit {shows} ->"), 1);
                    let _ = writeln!(line, "    on ok {goal}");
                }
                (None, "ok") if effect.side => {
                    let other = self.goal(dice, state);
                    let _ = writeln!(
                        line,
                        "    on ok {{ Left {{ n: left }} if left < 2 {goal}\n      Left {other}\n      Right {other} }}"
                    );
                }
                _ => {
                    let _ = writeln!(line, "    on {on} {goal}");
                }
            }
            let place = dice.below(lines.len() + 1);
            lines.insert(place, line);
        }
        lines.concat()
    }

    fn effect(&self, dice: &mut Dice, state: usize) -> Effect {
        let arg = if self.states[state] { "n" } else { "x" };
        let people = self.world == World::Everything;
        match dice.below(if people { 18 } else { 12 }) {
            0..5 => self.single(dice, arg),
            5 => Effect {
                text: format!("do sort_out({arg}) as found"),
                outcomes: vec!["ok", "failed", "timeout"],
                shows: None,
                side: true,
            },
            6..8 => self.run(dice, arg),
            8..10 => self.each(dice),
            10..12 => self.parallel(dice, arg),
            12..15 => {
                let wait = dice.pick(&[" within 1h", " within forever", " within 10s"]);
                let (closed, mut outcomes) =
                    if dice.percent(50) { (", closed", vec!["Poke", "closed"]) } else { ("", vec!["Poke"]) };
                if !wait.contains("forever") {
                    outcomes.push("timeout");
                }
                let text = format!("await Poke{}{closed}{wait}", self.at);
                Effect { text, outcomes, shows: None, side: false }
            }
            _ => {
                let (wanted, yes) = if dice.percent(40) { (" for text", "answer") } else { ("", "approve") };
                let to = dice.pick(&["\"ann\"", "\"ann\" and 2 of \"bob\""]);
                let text = format!("ask \"now?\" show {arg}{wanted} to {to} within 2h");
                Effect { text, outcomes: vec![yes, "reject", "timeout"], shows: None, side: false }
            }
        }
    }

    /// One activity.
    fn single(&self, dice: &mut Dice, arg: &str) -> Effect {
        let activity = &self.activities[dice.below(self.activities.len())];
        let mut outcomes = vec!["ok", "failed", "timeout"];
        outcomes.extend(activity.raises.then_some("Refused"));
        outcomes.extend(activity.doubt.then_some("unknown"));
        Effect { text: format!("do {}({arg}) as r", activity.name), outcomes, shows: None, side: false }
    }

    /// One flow, or an activity where no other flow may be run.
    fn run(&self, dice: &mut Dice, arg: &str) -> Effect {
        let inner = self.heads.len() - self.at - 1;
        if inner == 0 {
            return self.single(dice, arg);
        }
        let flow = self.at + 1 + dice.below(inner);
        let mut outcomes = vec!["ok"];
        outcomes.extend(self.heads[flow].raises.then_some("Bad"));
        outcomes.extend(self.heads[flow].saga.then_some("undo_failed"));
        let bounded = self.world == World::Everything && dice.percent(30);
        outcomes.extend(bounded.then_some("timeout"));
        let within = if bounded { " within 3h" } else { "" };
        Effect { text: format!("run F{flow}({arg}){within} as r"), outcomes, shows: None, side: false }
    }

    /// An effect that may be a member of a group, with what it yields if it ends in another way than well.
    fn member(&self, dice: &mut Dice, arg: &str, takes_all: bool) -> (Effect, String) {
        let effect = match dice.below(if self.world == World::Everything { 6 } else { 5 }) {
            0..3 => self.single(dice, arg),
            3 | 4 => self.run(dice, arg),
            _ => Effect {
                text: format!("ask \"so?\" show {arg} for text to \"ann\" within 1h"),
                outcomes: vec!["answer", "reject", "timeout"],
                shows: None,
                side: false,
            },
        };
        let mut yields = String::new();
        for name in &effect.outcomes {
            match *name {
                "answer" => yields += " on answer { value } yield value",
                "unknown" | "undo_failed" | "reject" if takes_all || dice.percent(50) => {
                    let _ = write!(yields, " on {name} yield \"r{{{arg}}}\"");
                }
                "failed" | "Refused" | "Bad" if dice.percent(20) => {
                    let _ = write!(yields, " on {name} yield \"r{{{arg}}}\"");
                }
                _ => {}
            }
        }
        (effect, yields)
    }

    fn each(&self, dice: &mut Dice) -> Effect {
        let items = dice.pick(&["1", "1, 2", "1, 2, 3", "4, 3, 2, 1", "5, 5, 6, 6, 7"]);
        let at_most = 1 + dice.below(3);
        let keeps = dice.percent(40);
        let (member, yields) = self.member(dice, "v", keeps);
        let bounded = self.world == World::Everything && dice.percent(30);
        let mut outcomes: Vec<&str> = member.outcomes.clone();
        outcomes
            .retain(|name| !yields.contains(&format!("on {name} ")) && *name != "answer" && *name != "ok");
        if keeps {
            outcomes.clear();
        }
        outcomes.push("ok");
        if bounded && !outcomes.contains(&"timeout") {
            outcomes.push("timeout");
        }
        let until =
            dice.pick(&["", "", "", " until size(done(rs)) >= 2", " until size(done(rs)) >= 2 draining"]);
        let (until, keep) = (if keeps { until } else { "" }, if keeps { " keep going" } else { "" });
        let within = if bounded { " within 5h" } else { "" };
        let text = format!(
            "each v in [{items}] at most {at_most}{until}{keep}{within} as rs {{ {}{yields} }}",
            member.text
        );
        let list = if keeps { "[shown(one) for one in rs]" } else { "rs" };
        let shows = format!("\"group {};{{join({list}, \",\")}}\"", items.replace(", ", ","));
        Effect { text, outcomes, shows: Some(shows), side: false }
    }

    fn parallel(&self, dice: &mut Dice, arg: &str) -> Effect {
        let mut regions = String::new();
        for name in ["left", "right", "third"].iter().take(2 + dice.below(2)) {
            if self.world == World::Everything && dice.percent(10) {
                let _ = write!(regions, " {name}: await Poke{} within 1h", self.at);
                continue;
            }
            let (member, yields) = self.member(dice, arg, true);
            let _ = write!(regions, " {name}: {}{yields}", member.text);
        }
        let join = dice.pick(&["all", "any", "2", "left"]);
        let bounded = self.world == World::Everything && dice.percent(30);
        let mut outcomes = vec!["ok", "failed"];
        outcomes.extend(bounded.then_some("timeout"));
        let within = if bounded { " within 6h" } else { "" };
        let text = format!("parallel {{{regions} }} join {join}{within}");
        Effect { text, outcomes, shows: None, side: false }
    }
}
