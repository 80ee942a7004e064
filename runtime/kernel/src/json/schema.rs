//! The JSON Schema of a type, for models and for people's answers.
//!
//! Leaves checking to [`super::json_to_value`]. Invariant: named types stand once in `$defs`, so recursive types end.

use outlast_dsl::machine::{FieldDef, Machine, Type, TypeIx, TypeKind, VariantDef};
use serde_json::{Map, json};

use super::read::{built_in_fields, built_in_variants};
use crate::Json;

/// Returns the JSON Schema of a type.
#[must_use]
pub fn schema(machine: &Machine, ty: &Type) -> Json {
    let mut defs = Defs { machine, done: Map::new() };
    let mut root = defs.of(ty);
    if let (Json::Object(fields), false) = (&mut root, defs.done.is_empty()) {
        fields.insert("$defs".to_owned(), Json::Object(defs.done));
    }
    root
}

struct Defs<'a> {
    machine: &'a Machine,
    done: Map<String, Json>,
}

impl Defs<'_> {
    fn of(&mut self, ty: &Type) -> Json {
        match ty {
            Type::Nothing => json!({"type": "null"}),
            Type::Text => json!({"type": "string"}),
            Type::Int => json!({"type": "integer"}),
            Type::Float => json!({"type": "number"}),
            Type::Decimal => {
                json!({"type": ["string", "number"], "description": "a decimal such as \"0.40\""})
            }
            Type::Bool => json!({"type": "boolean"}),
            Type::Time => json!({"type": "string", "format": "date-time"}),
            Type::Duration => json!({"type": "string", "description": "a duration such as \"1h30m\""}),
            Type::Bytes => json!({"type": "string", "contentEncoding": "base64"}),
            Type::Json => json!({}),
            Type::Secret => json!({"type": "string", "description": "the name of a secret"}),
            Type::Handle(_) => json!({"type": "string", "description": "the id of a run"}),
            Type::List(inner) => json!({"type": "array", "items": self.of(inner)}),
            Type::Map(inner) => json!({"type": "object", "additionalProperties": self.of(inner)}),
            Type::Option(inner) => json!({"anyOf": [self.of(inner), {"type": "null"}]}),
            Type::Named(ix) => self.named(*ix),
            Type::Slot(_) | Type::Verdict(_) | Type::Ended(_) => self.union(&built_in_variants(ty)),
            Type::Approved(_) | Type::Doubt(_) | Type::Problem => self.object(None, &built_in_fields(ty)),
        }
    }

    fn named(&mut self, ix: TypeIx) -> Json {
        let def = self.machine.type_def(ix);
        if !self.done.contains_key(&def.name) {
            // The name is taken first, so that a recursive type finds itself.
            self.done.insert(def.name.clone(), Json::Null);
            let schema = match &def.kind {
                TypeKind::Record(fields) => self.object(None, fields),
                TypeKind::Error(fields) => self.object(Some(&def.name), fields),
                TypeKind::Union(variants) => self.union(variants),
            };
            self.done.insert(def.name.clone(), schema);
        }
        json!({"$ref": format!("#/$defs/{}", def.name)})
    }

    fn union(&mut self, variants: &[VariantDef]) -> Json {
        let variants: Vec<_> =
            variants.iter().map(|variant| self.object(Some(&variant.name), &variant.fields)).collect();
        json!({"anyOf": variants})
    }

    fn object(&mut self, tag: Option<&str>, fields: &[FieldDef]) -> Json {
        let mut properties = Map::new();
        let mut required = Vec::new();
        if let Some(tag) = tag {
            properties.insert("type".to_owned(), json!({"const": tag}));
            required.push(Json::from("type"));
        }
        for field in fields {
            properties.insert(field.name.clone(), self.of(&field.ty));
            if field.default.is_none() && !matches!(field.ty, Type::Option(_)) {
                required.push(Json::from(field.name.as_str()));
            }
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }
}
