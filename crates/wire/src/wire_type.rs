//! What a wire type is and how its ids work. Each format has a table of these in its `types`
//! module; the rules that turn id fields into call ids stand here once, for all.

use throughline_model::json::Value;
use throughline_model::{
    CallId, Family, IdField, IdFields, Output, Path, Runner, Scope, ToolResult,
};

use crate::{DecodeError, read};

/// How the ids of a wire type work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdClass {
    /// A correlation field exists and is always set.
    Natural,
    /// A correlation field exists and may be null or missing.
    Nullable,
    /// The field is on the wire but not in the published schema.
    SchemaGap,
    /// Only an item id; nothing refers to it.
    Conflated,
    /// No identifier at all.
    Absent,
}

impl IdClass {
    /// The name of the class, as the catalogue of wire types has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Natural => "natural",
            Self::Nullable => "nullable",
            Self::SchemaGap => "schema-gap",
            Self::Conflated => "conflated",
            Self::Absent => "absent",
        }
    }
}

/// What a wire type does in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemRole {
    /// Asks for work.
    Call,
    /// Answers a call.
    Output,
    /// Both in one item.
    CallAndOutput,
    /// Asks for approval.
    ApprovalRequest,
    /// Grants or denies approval.
    ApprovalResponse,
    /// Thoughts of a model.
    Reasoning,
    /// Part of a history that must survive.
    Other,
}

/// Where a call has its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentsAt {
    /// The type has no such member.
    Nowhere,
    /// JSON text in a string.
    Text(&'static str),
    /// A JSON value; the first of these keys that is there.
    Json(&'static [&'static str]),
    /// Free text in a string.
    Free(&'static str),
}

/// Where an output has what the tool gave back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputAt {
    /// The type has no such member.
    Nowhere,
    /// A string, an array of content parts, or any other JSON.
    Any(&'static str),
    /// A string or any other JSON; an array is a value, not parts.
    TextOrJson(&'static str),
    /// A JSON value.
    Json(&'static str),
    /// An image in base 64.
    Image(&'static str),
}

/// One wire type.
#[derive(Clone, Debug)]
pub struct WireType {
    /// The value of `type` that identifies it on the wire.
    pub tag: &'static str,
    /// What it does.
    pub role: ItemRole,
    /// What kind of tool.
    pub family: Family,
    /// Who runs it.
    pub runner: Runner,
    /// How its ids work.
    pub class: IdClass,
    /// The field that names the item.
    pub id: Option<&'static str>,
    /// The field by which call and result find each other.
    pub call: Option<&'static str>,
    /// The field with the tool's name.
    pub name: Option<&'static str>,
    /// Where the arguments are.
    pub arguments: ArgumentsAt,
    /// Where the output is.
    pub output: OutputAt,
}

impl WireType {
    /// A type with nothing but a tag; the base from which tables are written.
    pub const fn new(tag: &'static str, role: ItemRole, family: Family, class: IdClass) -> Self {
        Self {
            tag,
            role,
            family,
            runner: Runner::Client,
            class,
            id: Some("id"),
            call: match class {
                IdClass::Natural | IdClass::Nullable | IdClass::SchemaGap => Some("call_id"),
                IdClass::Conflated | IdClass::Absent => None,
            },
            name: None,
            arguments: ArgumentsAt::Nowhere,
            output: OutputAt::Nowhere,
        }
    }

    /// The same, run by the vendor.
    #[must_use]
    pub const fn by_vendor(mut self) -> Self {
        self.runner = Runner::Vendor;
        self
    }

    /// The same with other id fields.
    #[must_use]
    pub const fn ids(mut self, id: Option<&'static str>, call: Option<&'static str>) -> Self {
        self.id = id;
        self.call = call;
        self
    }

    /// The same with a field for the tool's name.
    #[must_use]
    pub const fn named_by(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// The same with arguments.
    #[must_use]
    pub const fn arguments(mut self, at: ArgumentsAt) -> Self {
        self.arguments = at;
        self
    }

    /// The same with an output.
    #[must_use]
    pub const fn output(mut self, at: OutputAt) -> Self {
        self.output = at;
        self
    }

    /// The id fields of an item of this type, verbatim.
    pub(crate) fn id_fields(
        &self,
        item: &Value<'_>,
        path: &Path<'_>,
    ) -> Result<IdFields, DecodeError> {
        let read = |field: Option<&str>| match field {
            Some(field) => read::id_field(item, field, path),
            None => Ok(IdField::NoField),
        };
        Ok(IdFields {
            id: read(self.id)?,
            call: read(self.call)?,
        })
    }

    /// The id that the fields give: the correlation id if it is set; the item id where the type
    /// has nothing else (for a schema gap, where the field is missing); else none.
    pub(crate) fn given_id(&self, id_fields: &IdFields) -> Option<CallId> {
        match self.class {
            IdClass::Natural | IdClass::Nullable => set(&id_fields.call).and_then(CallId::natural),
            IdClass::SchemaGap => set(&id_fields.call)
                .or_else(|| set(&id_fields.id))
                .and_then(CallId::natural),
            IdClass::Conflated => set(&id_fields.id).and_then(CallId::item),
            IdClass::Absent => None,
        }
    }
}

fn set(field: &IdField) -> Option<&str> {
    match field {
        IdField::Set(value) if !value.is_empty() => Some(value),
        IdField::Set(_) | IdField::Null | IdField::Missing | IdField::NoField => None,
    }
}

/// Gives ids to calls that have none, and remembers them for the results that have none either.
#[derive(Debug, Default)]
pub(crate) struct IdMinter {
    waiting: Vec<(Family, CallId)>,
}

impl IdMinter {
    /// The id of a call: the one given, or a minted one that a result may claim later.
    pub(crate) fn call(
        &mut self,
        given: Option<CallId>,
        family: &Family,
        scope: Scope<'_>,
        ordinal: usize,
    ) -> CallId {
        given.unwrap_or_else(|| {
            let id = CallId::minted(scope, ordinal);
            self.waiting.push((family.clone(), id.clone()));
            id
        })
    }

    /// A result of the call whose id is given, or else of the first call of the row's family that still
    /// waits; a standalone result if there is none.
    pub(crate) fn result(
        &mut self,
        row: &WireType,
        id_fields: &IdFields,
        family: Family,
        output: Output,
        standalone: impl FnOnce() -> CallId,
    ) -> ToolResult {
        match row.given_id(id_fields).or_else(|| self.claim(&row.family)) {
            Some(call) => ToolResult::answering(call, family, output),
            None => ToolResult::standalone(standalone(), family, output),
        }
    }

    /// The id of the first call of this family that still waits for a result without an id.
    pub(crate) fn claim(&mut self, family: &Family) -> Option<CallId> {
        let place = self.waiting.iter().position(|(found, _)| found == family)?;
        Some(self.waiting.remove(place).1)
    }
}
