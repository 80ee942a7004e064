//! Tool calls that are written out: whether a catalogue has the tool, and whether the arguments fit its schema.
//!
//! Looks at literals only; what is computed is checked by the worker that gets it. Leaves tests alone: there a call stands for what a
//! model said, which may be wrong. Invariant: what a schema says beyond types, fields and constants never refuses anything here.

use serde_json::Value;

use super::Analysed;
use crate::diag::catalogue::effects;
use crate::diag::{Diagnostic, FileId, TextSpan, closest};
use crate::machine::Tool;
use crate::syntax::ast::{self, AstNode as _};

/// The library's type of tool calls.
const TOOL_CALL: &str = "ToolCall";

/// Reports calls in flows and functions that no tool would take.
pub(super) fn check(of: &Analysed<'_>, out: &mut Vec<Diagnostic>) {
    let tools: Vec<&Tool> = of.program.catalogues.iter().flat_map(|catalogue| &catalogue.tools).collect();
    if tools.is_empty() {
        return;
    }
    let flows = of.texts.flows.iter().map(|(file, text)| (*file, text.syntax()));
    let functions = of.texts.functions.iter().map(|(file, text)| (*file, text.syntax()));
    for (file, node) in flows.chain(functions) {
        for call in node.descendants().filter_map(ast::Construct::cast) {
            if call.path().and_then(|path| path.last()).is_some_and(|name| name.text == TOOL_CALL) {
                check_call(file, &call, &tools, out);
            }
        }
    }
}

fn check_call(file: FileId, call: &ast::Construct, tools: &[&Tool], out: &mut Vec<Diagnostic>) {
    let field = |name: &str| {
        let mut inits = call.inits().filter(|init| init.field().is_some_and(|field| field.text() == name));
        inits.next().and_then(|init| init.value())
    };
    let Some((name, span)) = field("name").and_then(|name| Some((plain_text(&name)?, name.span()))) else {
        return;
    };
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        let near = closest(&name, tools.iter().map(|tool| tool.name.as_str()));
        let message = format!("no catalogue has a tool `{name}`");
        let diagnostic = Diagnostic::error(effects::TOOL_ARGUMENTS, file, span, message);
        out.push(match near {
            Some(near) => {
                diagnostic.hint(format!("did you mean `{near}`?")).unsure_fix(span, format!("\"{near}\""))
            }
            None => diagnostic.expected("a tool of a catalogue"),
        });
        return;
    };
    if let Some(args) = field("args").and_then(|args| inside_json(&args)) {
        Checking { file, tool, out }.value(&args, &tool.input, "the arguments");
    }
}

/// The value in `json(value)`.
fn inside_json(args: &ast::Expr) -> Option<ast::Expr> {
    let ast::Expr::Call(call) = args else { return None };
    let is_json = call.function().is_some_and(|name| name.text() == "json");
    let given: Vec<ast::Expr> = call.args()?.args().filter_map(|arg| arg.value()).collect();
    if is_json { given.into_iter().next() } else { None }
}

fn plain_text(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::String(text) => text.plain(),
        _ => None,
    }
}

struct Checking<'c> {
    file: FileId,
    tool: &'c Tool,
    out: &'c mut Vec<Diagnostic>,
}

impl Checking<'_> {
    fn report(&mut self, span: TextSpan, message: String, expected: String) {
        let diagnostic = Diagnostic::error(effects::TOOL_ARGUMENTS, self.file, span, message);
        self.out.push(diagnostic.expected(expected));
    }

    fn value(&mut self, value: &ast::Expr, schema: &Value, what: &str) {
        let Some(found) = kind_of(value) else { return };
        if !types_of(schema).iter().all(String::is_empty)
            && !types_of(schema).iter().any(|ty| fits(ty, found))
        {
            let wanted = types_of(schema).join(" or ");
            let message = format!("`{}` takes {what} as {wanted}, not as {found}", self.tool.name);
            self.report(value.span(), message, wanted);
            return;
        }
        if let (Some(text), Some(Value::Array(all))) = (plain_text(value), schema.get("enum"))
            && !all.iter().any(|one| one.as_str() == Some(&text))
        {
            let known: Vec<String> = all.iter().map(Value::to_string).collect();
            let message = format!("`{}` does not take \"{text}\" as {what}", self.tool.name);
            self.report(value.span(), message, known.join(" or "));
        }
        match value {
            ast::Expr::Map(map) => self.object(map, schema),
            ast::Expr::List(list) => {
                if let Some(item) = schema.get("items") {
                    list.elements().for_each(|one| self.value(&one, item, "an item"));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, map: &ast::Map, schema: &Value) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let mut given = Vec::new();
        let mut all_known = true;
        for entry in map.entries() {
            let Some(key) = entry.key().as_ref().and_then(plain_text) else {
                all_known = false;
                continue;
            };
            match (properties.and_then(|all| all.get(&key)), entry.key(), entry.value()) {
                (Some(schema), _, Some(value)) => self.value(&value, schema, &format!("`{key}`")),
                (None, Some(at), _) if closed => {
                    let known: Vec<String> =
                        properties.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
                    let message = format!("`{}` takes no `{key}`", self.tool.name);
                    self.report(at.span(), message, known.join(" or "));
                }
                _ => {}
            }
            given.push(key);
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if all_known && !given.iter().any(|one| one == name) {
                let message = format!("`{}` needs `{name}`", self.tool.name);
                self.report(map.span(), message, format!("an entry `\"{name}\": …`"));
            }
        }
    }
}

/// The JSON type of a literal.
fn kind_of(value: &ast::Expr) -> Option<&'static str> {
    match value {
        ast::Expr::String(_) => Some("string"),
        ast::Expr::Map(_) => Some("object"),
        ast::Expr::List(_) => Some("array"),
        ast::Expr::Literal(literal) => match literal.kind()? {
            ast::LiteralKind::Int(_) => Some("integer"),
            ast::LiteralKind::Number(_) => Some("number"),
            ast::LiteralKind::Bool(_) => Some("boolean"),
            ast::LiteralKind::None | ast::LiteralKind::Nothing | ast::LiteralKind::Duration(_) => None,
        },
        _ => None,
    }
}

fn types_of(schema: &Value) -> Vec<String> {
    match schema.get("type") {
        Some(Value::String(ty)) => vec![ty.clone()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn fits(wanted: &str, found: &str) -> bool {
    wanted == found || (wanted == "number" && found == "integer")
}
