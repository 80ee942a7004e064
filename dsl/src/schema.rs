//! JSON Schemas of types: for structured model output, for the inputs of activities, for questions.
//!
//! Leaves reading values to the kernel; a schema describes exactly what it reads and writes. Invariant: the same type gives the
//! same schema, byte for byte. Named types stand in `$defs`, so that a recursive one ends.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::machine::{Expr, FieldDef, FlowIx, Literal, Machine, Type, TypeDef, TypeIx, TypeKind, VariantDef};

/// Returns the JSON Schema of a type of `machine`.
#[must_use]
pub fn schema(machine: &Machine, of: &Type) -> Value {
    of_type(&machine.types, of)
}

/// Returns the JSON Schema of an object with these fields, such as the input of an activity or a flow.
#[must_use]
pub fn schema_of_fields(machine: &Machine, fields: &[FieldDef]) -> Value {
    let mut writer = Writer { types: &machine.types, defs: BTreeMap::new() };
    let object = writer.object(None, fields);
    writer.finish(object)
}

/// Returns the JSON Schema of a type whose named types stand in `types`.
pub(crate) fn of_type(types: &[TypeDef], of: &Type) -> Value {
    let mut writer = Writer { types, defs: BTreeMap::new() };
    let top = match of {
        Type::Named(ix) => writer.named(*ix),
        of => writer.ty(of),
    };
    writer.finish(top)
}

struct Writer<'t> {
    types: &'t [TypeDef],
    /// `None` while the type is being written: the mark that stops recursion.
    defs: BTreeMap<String, Option<Value>>,
}

impl Writer<'_> {
    fn finish(self, mut top: Value) -> Value {
        let defs: Map<String, Value> =
            self.defs.into_iter().filter_map(|(name, def)| def.map(|def| (name, def))).collect();
        if let (false, Value::Object(top)) = (defs.is_empty(), &mut top) {
            top.insert("$defs".to_owned(), Value::Object(defs));
        }
        top
    }

    fn ty(&mut self, of: &Type) -> Value {
        match of {
            Type::Nothing => json!({"type": "null"}),
            Type::Text => json!({"type": "string"}),
            Type::Int => json!({"type": "integer"}),
            Type::Float => json!({"type": "number"}),
            Type::Decimal => json!({"type": "string", "pattern": r"^-?\d+(\.\d+)?$"}),
            Type::Bool => json!({"type": "boolean"}),
            Type::Time => json!({"type": "string", "format": "date-time"}),
            Type::Duration => json!({"type": "string", "pattern": r"^(\d+(ms|[smhd]))+$"}),
            Type::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Type::Json => json!({}),
            Type::Secret => json!({"type": "object"}),
            Type::List(of) => json!({"type": "array", "items": self.ty(of)}),
            Type::Map(of) => json!({"type": "object", "additionalProperties": self.ty(of)}),
            Type::Option(of) => json!({"anyOf": [self.ty(of), {"type": "null"}]}),
            Type::Named(ix) => self.reference(*ix),
            Type::Approved(of) => {
                let by = Type::List(Box::new(Type::Text));
                self.object(None, &[field("value", (**of).clone()), field("by", by)])
            }
            Type::Slot(of) => self.union(&[
                variant("Done", vec![field("value", (**of).clone())]),
                variant("Failed", vec![field("error", Type::Problem)]),
                variant("Cut", Vec::new()),
                variant("NotStarted", Vec::new()),
            ]),
            Type::Verdict(of) => self.union(&[
                variant("Happened", vec![field("result", (**of).clone())]),
                variant("NotHappened", Vec::new()),
                variant("CannotTell", Vec::new()),
            ]),
            Type::Ended(of) => self.union(&[
                variant("Done", vec![field("value", (**of).clone())]),
                variant("Failed", vec![field("error", Type::Problem)]),
                variant("Cancelled", Vec::new()),
            ]),
            Type::Doubt(_) => self.object(
                None,
                &[field("text", Type::Text), field("kind", Type::Text), field("activity", Type::Text)],
            ),
            Type::Handle(FlowIx(_)) => json!({"type": "string"}),
            Type::Problem => self.object(
                None,
                &[
                    field("text", Type::Text),
                    field("kind", Type::Text),
                    field("activity", Type::Option(Box::new(Type::Text))),
                    field("retry_after", Type::Option(Box::new(Type::Duration))),
                    field("attempts", Type::Int),
                ],
            ),
        }
    }

    fn reference(&mut self, ix: TypeIx) -> Value {
        let name = self.types[ix.at()].name.clone();
        if !self.defs.contains_key(&name) {
            self.defs.insert(name.clone(), None);
            let def = self.named(ix);
            self.defs.insert(name.clone(), Some(def));
        }
        json!({"$ref": format!("#/$defs/{name}")})
    }

    fn named(&mut self, ix: TypeIx) -> Value {
        // The borrow of the table outlives `self`'s, so the definition can be read while definitions are added.
        let types = self.types;
        let def = &types[ix.at()];
        match &def.kind {
            TypeKind::Record(fields) => self.object(None, fields),
            TypeKind::Error(fields) => self.object(Some(&def.name), fields),
            TypeKind::Union(variants) => self.union(variants),
        }
    }

    fn union(&mut self, variants: &[VariantDef]) -> Value {
        let all: Vec<Value> =
            variants.iter().map(|variant| self.object(Some(&variant.name), &variant.fields)).collect();
        json!({"anyOf": all})
    }

    fn object(&mut self, tag: Option<&str>, fields: &[FieldDef]) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        if let Some(tag) = tag {
            properties.insert("type".to_owned(), json!({"const": tag}));
            required.push(json!("type"));
        }
        for field in fields {
            let mut value = self.ty(&field.ty);
            match (&field.default, &mut value) {
                (Some(default), Value::Object(object)) => {
                    constant(default).map(|default| object.insert("default".to_owned(), default));
                }
                (Some(_), _) => {}
                (None, _) if matches!(field.ty, Type::Option(_)) => {}
                (None, _) => required.push(json!(field.name)),
            }
            properties.insert(field.name.clone(), value);
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }
}

/// The plain constants; others are left out of the schema, since `default` in a schema only informs.
fn constant(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Lit(Literal::None) => Some(Value::Null),
        Expr::Lit(Literal::Bool(value)) => Some(json!(value)),
        Expr::Lit(Literal::Int(value)) => Some(json!(value)),
        Expr::Lit(Literal::Text(value) | Literal::Decimal(value)) => Some(json!(value)),
        Expr::List(all) if all.is_empty() => Some(json!([])),
        _ => None,
    }
}

fn field(name: &str, ty: Type) -> FieldDef {
    FieldDef { name: name.to_owned(), ty, default: None }
}

fn variant(name: &str, fields: Vec<FieldDef>) -> VariantDef {
    VariantDef { name: name.to_owned(), fields }
}
