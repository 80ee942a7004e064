//! Expressions of a machine as text like Flow's, for labels.
//!
//! A machine has no names of local variables, so this guesses: a field's name, the parameter that a variable is handed to, a
//! word for the outcome. Leaves exact text to the formatter, which has the source. Invariant: total, whatever the depth.

use std::collections::BTreeMap;
use std::convert::Infallible;

use super::text;
use crate::limits::{GRAPH_LABEL_COLUMNS_MAX, GRAPH_NESTING_MAX};
use crate::machine::{
    BinaryOp, Builtin, Cond, Expr, Flow, Fold, ForIn, Literal, Machine, Mention, Param, Slot, StateDef, Type,
    TypeIx,
};

/// Writes the expressions of one frame: a flow's own, or a state's.
pub(super) struct Printer<'a> {
    /// The machine, for names.
    pub machine: &'a Machine,
    /// The flow, for parameters and data.
    pub flow: &'a Flow,
    /// The state, for its parameters; none in the flow's own expressions.
    pub state: Option<&'a StateDef>,
    names: BTreeMap<Slot, String>,
}

impl<'a> Printer<'a> {
    /// Returns a printer that knows no local variable yet.
    pub(super) fn new(machine: &'a Machine, flow: &'a Flow, state: Option<&'a StateDef>) -> Printer<'a> {
        Printer { machine, flow, state, names: BTreeMap::new() }
    }

    /// Names a local variable; the first name stays.
    pub(super) fn name(&mut self, slot: Slot, name: &str) {
        self.names.entry(slot).or_insert_with(|| name.to_owned());
    }

    /// Names the variables that `args` hand on, after the parameters that take them.
    pub(super) fn name_after(&mut self, args: &[Expr], params: &[Param]) {
        for (arg, param) in args.iter().zip(params) {
            if let Expr::Local(slot) = arg {
                self.name(*slot, &param.name);
            }
        }
    }

    /// Returns `head(args)`, with `…` for the arguments that do not fit.
    pub(super) fn call(&mut self, head: &str, args: &[Expr]) -> String {
        let args: Vec<String> = args.iter().map(|arg| self.expr(arg)).collect();
        shorten(head, "(", ")", &args)
    }

    /// Returns an expression as text.
    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        self.at(expr, 0, 0)
    }

    /// Returns a condition as text, without the name that it binds.
    pub(super) fn cond(&mut self, cond: &Cond) -> String {
        self.expr(&cond.test)
    }

    /// Returns text that binds at least as tightly as `level` asks: 0 is loosest, 9 needs no brackets anywhere.
    fn at(&mut self, expr: &Expr, level: u8, depth: usize) -> String {
        if depth > GRAPH_NESTING_MAX {
            return "…".to_owned();
        }
        let (own, text) = self.compound(expr, depth + 1);
        if own < level { format!("({text})") } else { text }
    }

    /// Returns text and how tightly it binds.
    fn compound(&mut self, expr: &Expr, depth: usize) -> (u8, String) {
        let text = match expr {
            Expr::Binary(op, a, b) => return self.binary(*op, a, b, depth),
            Expr::Else(a, b) => return (5, format!("{} ?? {}", self.at(a, 5, depth), self.at(b, 6, depth))),
            Expr::Not(e) => return (3, format!("not {}", self.at(e, 3, depth))),
            Expr::Neg(e) => return (8, format!("-{}", self.at(e, 8, depth))),
            Expr::If(cond, a, b) => {
                let (test, a) = (self.at(&cond.test, 0, depth), self.at(a, 0, depth));
                return (0, format!("if {test} then {a} else {}", self.at(b, 0, depth)));
            }
            Expr::Is(e, tag, fields) => {
                self.name_fields(fields);
                return (4, format!("{} is {tag}", self.at(e, 5, depth)));
            }
            Expr::Match(e, _) => return (0, format!("match {} {{…}}", self.at(e, 9, depth))),
            Expr::Lit(literal) => self::literal(literal),
            Expr::Local(slot) => self.names.get(slot).map_or("_", String::as_str).to_owned(),
            Expr::Param(at) => name_at(&self.flow.params, *at),
            Expr::Arg(at) => self.state.map_or_else(|| "_".to_owned(), |s| name_at(&s.params, *at)),
            Expr::Data(ix) => self.flow.data.get(ix.at()).map_or("_", |d| d.name.as_str()).to_owned(),
            Expr::Field(e, name) => format!("{}.{name}", self.at(e, 9, depth)),
            Expr::Index(e, i) => format!("{}[{}]", self.at(e, 9, depth), self.at(i, 0, depth)),
            Expr::Text(parts) => self.text(parts, depth),
            Expr::List(items) => format!("[{}]", self.list(items, depth)),
            Expr::ListFor(for_in, body) => format!("[{}]", self.for_in(for_in, &[body], depth)),
            Expr::Map(entries) => self.map(entries, depth),
            Expr::MapFor(for_in, key, value) => {
                format!("map {{{}}}", self.for_in(for_in, &[key, value], depth))
            }
            Expr::Fold(fold, for_in, body) => {
                format!("{}({})", self::fold(*fold), self.for_in(for_in, &[body], depth))
            }
            Expr::Record(ix, fields) => self.fields(&self.type_name(*ix), fields, depth),
            Expr::BuiltinRecord(tag, fields) => {
                self.fields(tag.as_deref().unwrap_or("record"), fields, depth)
            }
            Expr::Variant(_, tag, fields) => self.fields(tag, fields, depth),
            Expr::Call(ix, args) => {
                let args = self.list(args, depth);
                format!("{}({args})", self.machine.functions.get(ix.at()).map_or("_", |f| f.name.as_str()))
            }
            Expr::Builtin(Builtin::Now, _) => "now".to_owned(),
            Expr::Builtin(builtin, args) => {
                format!("{}({})", self::builtin(*builtin), self.list(args, depth))
            }
            Expr::FromJson(ty, e) => format!("{}.from({})", self.ty(ty), self.at(e, 0, depth)),
            Expr::ToJson(e) => format!("json({})", self.at(e, 0, depth)),
            Expr::Schemas(ix) => format!("{}.schemas", self.catalogue(ix.at())),
            Expr::Allow(ix, e) => format!("{}.allow({})", self.catalogue(ix.at()), self.at(e, 0, depth)),
        };
        (9, text)
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, depth: usize) -> (u8, String) {
        let (level, sign) = operator(op);
        // Comparisons do not chain; the other operators lean to the left.
        let left = if level == 4 { 5 } else { level };
        (level, format!("{} {sign} {}", self.at(a, left, depth), self.at(b, level + 1, depth)))
    }

    fn map(&mut self, entries: &[(Expr, Expr)], depth: usize) -> String {
        let entries: Vec<String> = entries
            .iter()
            .map(|(k, v)| format!("{}: {}", self.at(k, 0, depth), self.at(v, 0, depth)))
            .collect();
        format!("map {{{}}}", entries.join(", "))
    }

    /// Writes `body for x in over if cond`; the loop's names come first, because the body uses them.
    fn for_in(&mut self, for_in: &ForIn, body: &[&Expr], depth: usize) -> String {
        let over = self.at(&for_in.over, 0, depth);
        let item = item_name(&over);
        self.name(for_in.item, &item);
        if let Some(key) = for_in.key {
            self.name(key, "i");
        }
        let item = self.names.get(&for_in.item).cloned().unwrap_or(item);
        let vars = if for_in.key.is_some() { format!("i, {item}") } else { item };
        let body: Vec<String> = body.iter().map(|e| self.at(e, 0, depth)).collect();
        let cond = for_in.cond.as_ref().map(|c| format!(" if {}", self.at(&c.test, 0, depth)));
        format!("{} for {vars} in {over}{}", body.join(": "), cond.unwrap_or_default())
    }

    fn text(&mut self, parts: &[Expr], depth: usize) -> String {
        let mut out = String::from("\"");
        for part in parts {
            match part {
                Expr::Lit(Literal::Text(text)) => out.push_str(&escape(text)),
                other => {
                    out.push('{');
                    out.push_str(&self.at(other, 0, depth));
                    out.push('}');
                }
            }
        }
        out.push('"');
        out
    }

    fn list(&mut self, items: &[Expr], depth: usize) -> String {
        let items: Vec<String> = items.iter().map(|item| self.at(item, 0, depth)).collect();
        items.join(", ")
    }

    fn fields(&mut self, name: &str, fields: &[(String, Expr)], depth: usize) -> String {
        if fields.is_empty() {
            return name.to_owned();
        }
        let fields: Vec<String> =
            fields.iter().map(|(name, e)| format!("{name}: {}", self.at(e, 0, depth))).collect();
        format!("{name} {{ {} }}", fields.join(", "))
    }

    /// Names variables after the fields that they take.
    pub(super) fn name_fields(&mut self, fields: &[(String, Slot)]) {
        for (field, slot) in fields {
            self.name(*slot, field);
        }
    }

    /// Returns a named type's name.
    pub(super) fn type_name(&self, ix: TypeIx) -> String {
        self.machine.types.get(ix.at()).map_or("_", |def| def.name.as_str()).to_owned()
    }

    fn catalogue(&self, at: usize) -> &'a str {
        self.machine.catalogues.get(at).map_or("_", |catalogue| catalogue.name.as_str())
    }

    /// Returns a type as text.
    pub(super) fn ty(&self, ty: &Type) -> String {
        let mut name = |named| -> Result<String, Infallible> {
            Ok(match named {
                Mention::Type(ix) => self.type_name(ix),
                Mention::Flow(ix) => {
                    self.machine.flows.get(ix.at()).map_or("_", |flow| flow.name.as_str()).to_owned()
                }
            })
        };
        let Ok(text) = ty.written(&mut name);
        text
    }
}

/// Returns `head`, then as many of `parts` as fit a label, in brackets.
pub(super) fn shorten(head: &str, open: &str, close: &str, parts: &[String]) -> String {
    for kept in (0..=parts.len()).rev() {
        let mut shown = parts[..kept].to_vec();
        if kept < parts.len() {
            shown.push("…".to_owned());
        }
        let text = text::clean(&format!("{head}{open}{}{close}", shown.join(", ")));
        if text::width(&text) <= GRAPH_LABEL_COLUMNS_MAX {
            return text;
        }
    }
    text::cut(head, GRAPH_LABEL_COLUMNS_MAX)
}

/// Returns the name of an item of a list that reads as `over`: `call` for `calls`.
fn item_name(over: &str) -> String {
    let last = over.rsplit('.').next().unwrap_or(over);
    let is_name = !last.is_empty() && last.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match last.strip_suffix('s') {
        Some(one) if is_name && one.len() > 1 => one.to_owned(),
        Some(_) | None => "x".to_owned(),
    }
}

fn name_at(params: &[Param], at: u32) -> String {
    params.get(at as usize).map_or("_", |param| param.name.as_str()).to_owned()
}

fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Nothing => "nothing".to_owned(),
        Literal::None => "none".to_owned(),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) | Literal::Decimal(value) => value.clone(),
        Literal::Text(value) => format!("\"{}\"", escape(value)),
        Literal::Duration(ms) => duration(*ms),
        Literal::Json(value) => format!("json({value})"),
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('{', "\\{")
}

/// Returns milliseconds as Flow writes them: days from two days on, else the largest units that fit.
pub(super) fn duration(ms: u64) -> String {
    const DAY: u64 = 86_400_000;
    if ms == 0 {
        return "0s".to_owned();
    }
    if ms >= 2 * DAY && ms.is_multiple_of(DAY) {
        return format!("{}d", ms / DAY);
    }
    let mut out = String::new();
    let mut rest = ms;
    for (unit, name) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")] {
        if rest >= unit {
            out.push_str(&format!("{}{name}", rest / unit));
            rest %= unit;
        }
    }
    out
}

fn operator(op: BinaryOp) -> (u8, &'static str) {
    match op {
        BinaryOp::Or => (1, "or"),
        BinaryOp::And => (2, "and"),
        BinaryOp::Eq => (4, "=="),
        BinaryOp::Ne => (4, "!="),
        BinaryOp::Lt => (4, "<"),
        BinaryOp::Le => (4, "<="),
        BinaryOp::Gt => (4, ">"),
        BinaryOp::Ge => (4, ">="),
        BinaryOp::In => (4, "in"),
        BinaryOp::Add => (6, "+"),
        BinaryOp::Sub => (6, "-"),
        BinaryOp::Mul => (7, "*"),
        BinaryOp::Div => (7, "/"),
        BinaryOp::Rem => (7, "%"),
    }
}

fn fold(fold: Fold) -> &'static str {
    match fold {
        Fold::Count => "count",
        Fold::Sum | Fold::SumDecimal | Fold::SumDuration | Fold::SumFloat | Fold::SumList => "sum",
        Fold::Any => "any",
        Fold::All => "all",
        Fold::First => "first",
        Fold::Last => "last",
    }
}

fn builtin(builtin: Builtin) -> &'static str {
    match builtin {
        Builtin::Size => "size",
        Builtin::FirstN => "first_n",
        Builtin::LastN => "last_n",
        Builtin::Range => "range",
        Builtin::Min => "min",
        Builtin::Max => "max",
        Builtin::Sort => "sort",
        Builtin::Keys => "keys",
        Builtin::Values => "values",
        Builtin::Put => "put",
        Builtin::Join => "join",
        Builtin::Split => "split",
        Builtin::StartsWith => "starts_with",
        Builtin::Contains => "contains",
        Builtin::Find => "find",
        Builtin::Trim => "trim",
        Builtin::Lower => "lower",
        Builtin::ParseInt => "parse_int",
        Builtin::ParseDecimal => "parse_decimal",
        Builtin::NewId => "new_id",
        Builtin::Now => "now",
        Builtin::Done => "done",
        Builtin::NotDone => "not_done",
    }
}
