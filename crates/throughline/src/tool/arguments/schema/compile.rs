//! Compiles a schema into parts.
//!
//! Parts are compiled from a queue and never by recursion, because references may chain through the
//! whole document.

use std::collections::HashMap;

use throughline_model::json::{Node as Json, Value};

use super::value::{Literal, Number};
use super::{Bound, Node, NodeId, Range, Schema, SchemaError, Types};

/// The largest number of parts.
const PARTS: usize = 10_000;

impl Schema {
    pub(in super::super) fn compile(value: &Value<'_>) -> Result<Self, SchemaError> {
        let mut reader = SchemaReader {
            document: value,
            nodes: Vec::new(),
            known: HashMap::new(),
            todo: Vec::new(),
        };
        reader.place(value, "#".to_owned())?;
        while let Some((id, value, place)) = reader.todo.pop() {
            reader.nodes[id.0] = reader.node(value, &place)?;
        }
        let schema = Self {
            nodes: reader.nodes,
        };
        schema.refuse_circles()?;
        Ok(schema)
    }

    /// Refuses a part that refers to itself for the same value: it could never be decided.
    fn refuse_circles(&self) -> Result<(), SchemaError> {
        let mut waiting = vec![0usize; self.nodes.len()];
        for target in self.nodes.iter().flat_map(Node::in_place) {
            waiting[target.0] += 1;
        }
        let mut free: Vec<usize> = (0..waiting.len()).filter(|id| waiting[*id] == 0).collect();
        let mut done = 0;
        while let Some(id) = free.pop() {
            done += 1;
            for target in self.nodes[id].in_place() {
                waiting[target.0] -= 1;
                if waiting[target.0] == 0 {
                    free.push(target.0);
                }
            }
        }
        if done == self.nodes.len() {
            Ok(())
        } else {
            Err(SchemaError::Endless)
        }
    }
}

impl Node {
    /// The parts that are checked against the same value.
    fn in_place(&self) -> impl Iterator<Item = NodeId> {
        let lists = self.any_of.iter().chain(&self.one_of).chain(&self.all_of);
        lists.copied().chain(self.not).chain(self.reference)
    }
}

struct SchemaReader<'v, 't> {
    document: &'v Value<'t>,
    nodes: Vec<Node>,
    /// The parts that have an index already, by the address of their value.
    known: HashMap<*const Value<'t>, NodeId>,
    todo: Vec<(NodeId, &'v Value<'t>, String)>,
}

impl<'v, 't> SchemaReader<'v, 't> {
    /// The index of a part; a new part is queued.
    fn place(&mut self, value: &'v Value<'t>, place: String) -> Result<NodeId, SchemaError> {
        let at = std::ptr::from_ref(value);
        if let Some(id) = self.known.get(&at) {
            return Ok(*id);
        }
        if self.nodes.len() == PARTS {
            return Err(SchemaError::TooLarge { limit: PARTS });
        }
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node::default());
        self.known.insert(at, id);
        self.todo.push((id, value, place));
        Ok(id)
    }

    fn node(&mut self, value: &'v Value<'t>, place: &str) -> Result<Node, SchemaError> {
        let mut node = Node::default();
        match value.node() {
            Json::Bool(allowed) => {
                node.never = !allowed;
                return Ok(node);
            }
            Json::Object(_) => {}
            _ => return Err(wrong(place, "a schema", "an object, true or false")),
        }
        let keywords = Keywords { value, place };
        node.types = keywords.types()?;
        node.nullable = value.get("nullable").and_then(Value::as_bool) == Some(true);
        node.allowed = keywords.allowed()?;
        node.required = keywords.required()?;
        node.count = keywords.range("minItems", "maxItems")?;
        node.length = keywords.range("minLength", "maxLength")?;
        node.minimum = keywords.bound("minimum", "exclusiveMinimum")?;
        node.maximum = keywords.bound("maximum", "exclusiveMaximum")?;
        node.multiple_of = keywords.multiple_of()?;

        if let Some(properties) = keywords.get("properties") {
            let members = properties.as_object();
            let members = members.ok_or_else(|| wrong(place, "properties", "an object"))?;
            for member in members {
                let key = member.key.to_str().into_owned();
                let at = format!("{place}/properties/{key}");
                let part = self.place(&member.value, at)?;
                if node.fields.insert(key.clone(), part).is_none() {
                    node.properties.push(key);
                }
            }
        }
        // It is not known which names a pattern allows, so no name can be called unknown.
        if keywords.get("patternProperties").is_none() {
            node.additional = self.part(&keywords, "additionalProperties")?;
        }
        self.items(&keywords, &mut node)?;
        node.any_of = self.parts(&keywords, "anyOf")?;
        node.one_of = self.parts(&keywords, "oneOf")?;
        node.all_of = self.parts(&keywords, "allOf")?;
        node.not = self.part(&keywords, "not")?;
        if let Some(reference) = keywords.get("$ref") {
            let text = reference.as_str();
            let text = text.ok_or_else(|| wrong(place, "$ref", "a string"))?;
            let Some(target) = resolve(self.document, &text) else {
                return Err(SchemaError::Reference {
                    place: place.to_owned(),
                    reference: text.into_owned(),
                });
            };
            node.reference = Some(self.place(target, text.into_owned())?);
        }
        Ok(node)
    }

    /// Items, in the keywords of the current and of earlier drafts.
    fn items(
        &mut self,
        keywords: &Keywords<'v, 't, '_>,
        node: &mut Node,
    ) -> Result<(), SchemaError> {
        node.prefix = self.parts(keywords, "prefixItems")?;
        let tuple = keywords
            .get("items")
            .is_some_and(|items| items.as_array().is_some());
        if tuple {
            node.prefix = self.parts(keywords, "items")?;
            node.items = self.part(keywords, "additionalItems")?;
        } else {
            node.items = self.part(keywords, "items")?;
        }
        Ok(())
    }

    fn part(
        &mut self,
        keywords: &Keywords<'v, 't, '_>,
        keyword: &'static str,
    ) -> Result<Option<NodeId>, SchemaError> {
        let place = keywords.place;
        let part = keywords.get(keyword);
        part.map(|part| self.place(part, format!("{place}/{keyword}")))
            .transpose()
    }

    fn parts(
        &mut self,
        keywords: &Keywords<'v, 't, '_>,
        keyword: &'static str,
    ) -> Result<Vec<NodeId>, SchemaError> {
        let Some(list) = keywords.get(keyword) else {
            return Ok(Vec::new());
        };
        let place = keywords.place;
        let parts = list.as_array();
        let parts = parts.ok_or_else(|| wrong(place, keyword, "a list of schemas"))?;
        let numbered = parts.iter().enumerate();
        numbered
            .map(|(number, part)| self.place(part, format!("{place}/{keyword}/{number}")))
            .collect()
    }
}

fn wrong(place: &str, keyword: &'static str, expected: &'static str) -> SchemaError {
    SchemaError::Keyword {
        place: place.to_owned(),
        keyword,
        expected,
    }
}

/// The keywords of one schema that refer to no other part.
struct Keywords<'v, 't, 'p> {
    value: &'v Value<'t>,
    place: &'p str,
}

impl<'v, 't> Keywords<'v, 't, '_> {
    fn get(&self, keyword: &str) -> Option<&'v Value<'t>> {
        self.value.get(keyword)
    }

    fn types(&self) -> Result<Option<Types>, SchemaError> {
        let Some(types) = self.get("type") else {
            return Ok(None);
        };
        let named = |value: &Value<'_>| value.as_str().and_then(|name| Types::named(&name));
        let found = match types.as_array() {
            Some(list) => list
                .iter()
                .try_fold(Types::NONE, |all, value| Some(all.and(named(value)?))),
            None => named(types),
        };
        match found {
            Some(Types::NONE) | None => Err(wrong(
                self.place,
                "type",
                "object, array, string, integer, number, boolean or null, or a list of them",
            )),
            found => Ok(found),
        }
    }

    fn allowed(&self) -> Result<Option<Vec<Literal>>, SchemaError> {
        let list = match self.get("enum") {
            Some(values) => {
                let values = values.as_array();
                let values = values.ok_or_else(|| wrong(self.place, "enum", "a list of values"))?;
                Some(values.iter().map(Literal::of).collect::<Vec<_>>())
            }
            None => None,
        };
        Ok(match (self.get("const"), list) {
            (None, list) => list,
            (Some(value), None) => Some(vec![Literal::of(value)]),
            (Some(value), Some(mut list)) => {
                list.retain(|literal| literal.is(value));
                Some(list)
            }
        })
    }

    fn required(&self) -> Result<Vec<String>, SchemaError> {
        let Some(required) = self.get("required") else {
            return Ok(Vec::new());
        };
        let names = required.as_array().and_then(|names| {
            let texts = names.iter().map(Value::as_str);
            texts
                .map(|text| text.map(std::borrow::Cow::into_owned))
                .collect::<Option<Vec<_>>>()
        });
        names.ok_or_else(|| wrong(self.place, "required", "a list of names"))
    }

    fn range(&self, min: &'static str, max: &'static str) -> Result<Range, SchemaError> {
        let count = |keyword| match self.get(keyword) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(wrong(self.place, keyword, "a whole number from 0")),
            },
        };
        Ok(Range {
            min: count(min)?,
            max: count(max)?,
        })
    }

    fn number(&self, keyword: &'static str) -> Result<Option<&'v Value<'t>>, SchemaError> {
        match self.get(keyword) {
            None => Ok(None),
            Some(value) if matches!(value.node(), Json::Number) => Ok(Some(value)),
            Some(_) => Err(wrong(self.place, keyword, "a number")),
        }
    }

    /// A bound; the exclusive one if there are both. Early drafts mark the inclusive bound as
    /// exclusive with `true`.
    fn bound(
        &self,
        inclusive: &'static str,
        exclusive: &'static str,
    ) -> Result<Option<Bound>, SchemaError> {
        let flag = self.get(exclusive).and_then(Value::as_bool);
        let sharp = match flag {
            Some(_) => None,
            None => self.number(exclusive)?,
        };
        let (value, exclusive) = match sharp {
            Some(value) => (Some(value), true),
            None => (self.number(inclusive)?, flag == Some(true)),
        };
        Ok(value.map(|value| Bound {
            number: Number::read(value.raw()),
            raw: value.raw().to_owned(),
            exclusive,
        }))
    }

    fn multiple_of(&self) -> Result<Option<Bound>, SchemaError> {
        let Some(value) = self.number("multipleOf")? else {
            return Ok(None);
        };
        let number = Number::read(value.raw());
        if !number.is_positive() {
            return Err(wrong(self.place, "multipleOf", "a number greater than 0"));
        }
        Ok(Some(Bound {
            number,
            raw: value.raw().to_owned(),
            exclusive: false,
        }))
    }
}

/// The target of a reference inside the document.
fn resolve<'v, 't>(document: &'v Value<'t>, reference: &str) -> Option<&'v Value<'t>> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.is_empty() {
        return Some(document);
    }
    pointer
        .strip_prefix('/')?
        .split('/')
        .try_fold(document, |value, step| {
            let step = percent_decoded(step)?.replace("~1", "/").replace("~0", "~");
            match value.as_array() {
                Some(values) => values.get(step.parse::<usize>().ok()?),
                None => value.get(&step),
            }
        })
}

fn percent_decoded(step: &str) -> Option<String> {
    if !step.contains('%') {
        return Some(step.to_owned());
    }
    let mut bytes = Vec::with_capacity(step.len());
    let mut rest = step.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let high = char::from(rest.next()?).to_digit(16)?;
        let low = char::from(rest.next()?).to_digit(16)?;
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}
