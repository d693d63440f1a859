//! A small JSON Schema checker: a schema is compiled once, and violations are reported as text for
//! a model.
//!
//! It checks types, enumerations, required and unknown fields, items, lengths, bounds, combinations
//! of schemas, and references inside the document. `pattern`, `format`, `patternProperties` and
//! unknown keywords refuse nothing. The work is bounded for every schema and value. ADR 8 says why
//! this is not a library.

mod check;
mod compile;
mod findings;
mod value;

#[cfg(test)]
mod tests;

pub(super) use check::Verdict;
pub(super) use findings::{Finding, found};

use std::collections::HashMap;

use throughline_model::json::JsonError;
use value::{Literal, Number};

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema is not JSON.
    #[error("the schema is not valid JSON")]
    NotJson(#[source] JsonError),
    /// The schema does not describe an object.
    #[error("the schema of a tool must be an object that describes an object")]
    NotObject,
    /// A keyword has an invalid value.
    #[error("{keyword} at {place} must be {expected}")]
    Keyword {
        /// The place in the schema, as a JSON pointer.
        place: String,
        /// The keyword.
        keyword: &'static str,
        /// The allowed values.
        expected: &'static str,
    },
    /// A reference has no target in the schema.
    #[error("nothing is found at {reference:?}, to which {place} refers")]
    Reference {
        /// The place in the schema.
        place: String,
        /// The reference.
        reference: String,
    },
    /// A schema refers to itself without descending into the value.
    #[error("the schema refers to itself in a circle")]
    Endless,
    /// The schema has too many parts.
    #[error("the schema has more than {limit} parts")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// A compiled schema. Its parts refer to each other by index.
pub(super) struct Schema {
    /// The first is the root.
    nodes: Vec<Node>,
}

/// An index into [`Schema::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeId(usize);

/// One schema: all keywords that are set must hold.
#[derive(Default)]
struct Node {
    /// The schema `false`.
    never: bool,
    types: Option<Types>,
    /// `null` is valid in any case.
    nullable: bool,
    allowed: Option<Vec<Literal>>,
    /// The names of the known fields, in order.
    properties: Vec<String>,
    /// The schema of each field.
    fields: HashMap<String, NodeId>,
    required: Vec<String>,
    additional: Option<NodeId>,
    prefix: Vec<NodeId>,
    items: Option<NodeId>,
    count: Range,
    length: Range,
    minimum: Option<Bound>,
    maximum: Option<Bound>,
    multiple_of: Option<Bound>,
    any_of: Vec<NodeId>,
    one_of: Vec<NodeId>,
    all_of: Vec<NodeId>,
    not: Option<NodeId>,
    reference: Option<NodeId>,
}

#[derive(Clone, Copy, Default)]
struct Range {
    min: Option<u64>,
    max: Option<u64>,
}

#[derive(Clone)]
struct Bound {
    number: Number,
    /// As it is written in the schema.
    raw: String,
    exclusive: bool,
}

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const NAMES: [&'static str; 7] = [
        "object", "array", "string", "integer", "number", "boolean", "null",
    ];

    const NONE: Self = Self(0);

    fn named(name: &str) -> Option<Self> {
        let place = Self::NAMES.iter().position(|known| *known == name)?;
        Some(Self(1 << place))
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        let has = move |place: &usize| self.0 & (1 << place) != 0;
        (0..Self::NAMES.len())
            .filter(has)
            .map(|place| Self::NAMES[place])
    }
}

impl Schema {
    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }
}
