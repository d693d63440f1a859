//! What an operation takes and answers, as data.

use super::schema::{Schema, SchemaKind};

/// The method of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api::native) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    /// The key in the document.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

/// A parameter of the query, or a header.
#[derive(Clone, Debug)]
pub(in crate::api::native) struct Parameter {
    pub(in crate::api::native) name: &'static str,
    pub(in crate::api::native) schema: Schema,
    pub(super) place: ParameterPlace,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterPlace {
    Query,
    Header,
}

/// The body that an operation takes.
#[derive(Clone, Debug)]
pub(in crate::api::native) enum RequestBody {
    None,
    /// JSON that is read whole and checked. If it is optional, an empty body is an empty object.
    Json {
        schema: Schema,
        is_required: bool,
    },
    /// The handler reads it; these are the types that it takes.
    Stream(&'static [&'static str]),
}

/// What stands in an answer.
#[derive(Clone, Debug)]
pub(in crate::api::native) enum Content {
    Json(Schema),
    /// A stream of this media type.
    Stream(&'static str),
}

/// An answer that is no error.
#[derive(Clone, Debug)]
pub(super) struct Success {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) contents: Vec<Content>,
}

/// One method of one path.
#[derive(Clone, Debug)]
pub(in crate::api::native) struct Operation {
    pub(super) id: &'static str,
    pub(in crate::api::native) verb: Verb,
    /// With the names of its parameters in braces.
    pub(in crate::api::native) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(in crate::api::native) parameters: Vec<Parameter>,
    pub(in crate::api::native) body: RequestBody,
    pub(super) answers: Vec<Success>,
    /// Statuses of errors besides those that every operation has, and when they come.
    pub(super) errors: Vec<(u16, &'static str)>,
}

impl Parameter {
    /// Whether it may be given several times.
    pub(in crate::api::native) const fn is_list(&self) -> bool {
        matches!(self.schema.kind, SchemaKind::List { .. })
    }
}

impl Operation {
    /// An operation that takes nothing but its path.
    pub(in crate::api::native) const fn new(
        verb: Verb,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            id,
            verb,
            path,
            summary,
            description: "",
            parameters: Vec::new(),
            body: RequestBody::None,
            answers: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// With more about it than its summary.
    pub(in crate::api::native) const fn about(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// With a parameter of the query. A list may be given several times.
    pub(in crate::api::native) fn query(self, name: &'static str, schema: Schema) -> Self {
        self.parameter(name, schema, ParameterPlace::Query)
    }

    /// With a header.
    pub(in crate::api::native) fn header(self, name: &'static str, schema: Schema) -> Self {
        self.parameter(name, schema, ParameterPlace::Header)
    }

    fn parameter(mut self, name: &'static str, schema: Schema, place: ParameterPlace) -> Self {
        self.parameters.push(Parameter {
            name,
            schema,
            place,
        });
        self
    }

    /// With a body in JSON.
    pub(in crate::api::native) fn takes(mut self, schema: Schema) -> Self {
        self.body = RequestBody::Json {
            schema,
            is_required: true,
        };
        self
    }

    /// With a body in JSON that may be left out.
    pub(in crate::api::native) fn may_take(mut self, schema: Schema) -> Self {
        self.body = RequestBody::Json {
            schema,
            is_required: false,
        };
        self
    }

    /// With a body that the handler reads.
    pub(in crate::api::native) fn streams(mut self, types: &'static [&'static str]) -> Self {
        self.body = RequestBody::Stream(types);
        self
    }

    /// With an answer in JSON.
    pub(in crate::api::native) fn answers(
        self,
        status: u16,
        description: &'static str,
        schema: Schema,
    ) -> Self {
        self.answers_with(status, description, [Content::Json(schema)])
    }

    /// With an answer that is a stream, or JSON by the client's choice.
    pub(in crate::api::native) fn answers_with(
        mut self,
        status: u16,
        description: &'static str,
        contents: impl IntoIterator<Item = Content>,
    ) -> Self {
        self.answers.push(Success {
            status,
            description,
            contents: contents.into_iter().collect(),
        });
        self
    }

    /// With an error of its own.
    pub(in crate::api::native) fn fails(mut self, status: u16, when: &'static str) -> Self {
        self.errors.push((status, when));
        self
    }

    /// The names of the parameters of the query.
    pub(in crate::api::native) fn query_names(&self) -> impl Iterator<Item = &'static str> {
        let query = self.parameters.iter();
        let query = query.filter(|parameter| parameter.place == ParameterPlace::Query);
        query.map(|parameter| parameter.name)
    }

    /// The names of the parameters in the path.
    pub(in crate::api::native) fn path_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let parts = self.path.split('/');
        parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}
