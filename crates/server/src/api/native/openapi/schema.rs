//! Schemas of JSON values, as data: the document shows them, and request bodies are checked against
//! the same ones.

use throughline_model::json::{ArrayWriter, ObjectWriter, push_string};

/// The schema of a value.
#[derive(Clone, Debug)]
pub(in crate::api::native) struct Schema {
    pub(super) kind: SchemaKind,
    pub(super) description: &'static str,
    /// Whether `null` may stand there.
    pub(super) is_nullable: bool,
}

/// What a schema says of a value that is not null.
#[derive(Clone, Debug)]
pub(super) enum SchemaKind {
    /// Any value.
    Any,
    Text {
        least: usize,
        most: Option<usize>,
        /// For readers of the document; the handler parses the text.
        pattern: Option<&'static str>,
    },
    /// One of these texts.
    Word(Vec<&'static str>),
    Integer {
        least: u64,
        most: u64,
    },
    Flag,
    List {
        of: Box<Schema>,
        most: Option<usize>,
    },
    Object {
        members: Vec<SchemaMember>,
        others: OtherMembers,
    },
    /// A schema of the document's components.
    Named(&'static str),
}

/// A member of an object.
#[derive(Clone, Debug)]
pub(super) struct SchemaMember {
    pub(super) name: &'static str,
    pub(super) schema: Schema,
    pub(super) is_required: bool,
}

/// Members of an object that its schema does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherMembers {
    /// They are an error: a body that a client sends.
    Refused,
    /// There are none, but later versions may add some: an answer.
    Later,
    /// Any may stand there.
    Free,
}

/// The largest whole number that every JSON parser reads exactly.
pub(in crate::api::native) const LARGEST: u64 = (1 << 53) - 1;

const fn plain(kind: SchemaKind) -> Schema {
    Schema {
        kind,
        description: "",
        is_nullable: false,
    }
}

/// Any value.
pub(in crate::api::native) const fn any() -> Schema {
    plain(SchemaKind::Any)
}

/// Any text.
pub(in crate::api::native) const fn text() -> Schema {
    plain(SchemaKind::Text {
        least: 0,
        most: None,
        pattern: None,
    })
}

/// A text with so many characters.
pub(in crate::api::native) const fn text_of(least: usize, most: usize) -> Schema {
    plain(SchemaKind::Text {
        least,
        most: Some(most),
        pattern: None,
    })
}

/// A text that fits a regular expression.
pub(in crate::api::native) const fn pattern(pattern: &'static str) -> Schema {
    plain(SchemaKind::Text {
        least: 1,
        most: None,
        pattern: Some(pattern),
    })
}

/// One of some words.
pub(in crate::api::native) fn word(words: impl IntoIterator<Item = &'static str>) -> Schema {
    plain(SchemaKind::Word(words.into_iter().collect()))
}

/// A whole number.
pub(in crate::api::native) const fn integer() -> Schema {
    integer_of(0, u64::MAX)
}

/// A whole number in a range.
pub(in crate::api::native) const fn integer_of(least: u64, most: u64) -> Schema {
    plain(SchemaKind::Integer { least, most })
}

/// True or false.
pub(in crate::api::native) const fn flag() -> Schema {
    plain(SchemaKind::Flag)
}

/// An array.
pub(in crate::api::native) fn list(of: Schema) -> Schema {
    plain(SchemaKind::List {
        of: Box::new(of),
        most: None,
    })
}

/// An object that a client sends: these members and no other.
pub(in crate::api::native) fn object() -> Schema {
    plain(SchemaKind::Object {
        members: Vec::new(),
        others: OtherMembers::Refused,
    })
}

/// An object of an answer: these members, to which later versions may add.
pub(in crate::api::native) fn answer() -> Schema {
    plain(SchemaKind::Object {
        members: Vec::new(),
        others: OtherMembers::Later,
    })
}

/// An object with any members.
pub(in crate::api::native) fn free_object() -> Schema {
    plain(SchemaKind::Object {
        members: Vec::new(),
        others: OtherMembers::Free,
    })
}

/// A schema of the components.
pub(in crate::api::native) const fn named(name: &'static str) -> Schema {
    plain(SchemaKind::Named(name))
}

impl Schema {
    /// With a sentence about it.
    pub(in crate::api::native) const fn about(mut self, description: &'static str) -> Self {
        self.description = description;
        self
    }

    /// `null` may stand there too.
    pub(in crate::api::native) const fn nullable(mut self) -> Self {
        self.is_nullable = true;
        self
    }

    /// At most so many values.
    pub(in crate::api::native) fn at_most(mut self, count: usize) -> Self {
        if let SchemaKind::List { most, .. } = &mut self.kind {
            *most = Some(count);
        }
        self
    }

    /// With a member that is always there.
    pub(in crate::api::native) fn with(self, name: &'static str, schema: Schema) -> Self {
        self.member(name, schema, true)
    }

    /// With a member that may be left out.
    pub(in crate::api::native) fn maybe(self, name: &'static str, schema: Schema) -> Self {
        self.member(name, schema, false)
    }

    fn member(mut self, name: &'static str, schema: Schema, is_required: bool) -> Self {
        if let SchemaKind::Object { members, .. } = &mut self.kind {
            members.push(SchemaMember {
                name,
                schema,
                is_required,
            });
        }
        self
    }

    /// The schema as JSON Schema.
    pub(super) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        if !self.description.is_empty() {
            object.str("description", self.description);
        }
        match &self.kind {
            SchemaKind::Any => {}
            SchemaKind::Named(name) => self.write_reference(&mut object, name),
            SchemaKind::Word(words) => {
                self.write_type(&mut object, "string");
                let mut list = ArrayWriter::new(object.key("enum"));
                words.iter().for_each(|word| push_string(list.slot(), word));
                if self.is_nullable {
                    list.raw("null");
                }
                list.end();
            }
            SchemaKind::Text {
                least,
                most,
                pattern,
            } => {
                self.write_type(&mut object, "string");
                if *least > 0 {
                    object.number("minLength", *least as u64);
                }
                if let Some(most) = most {
                    object.number("maxLength", *most as u64);
                }
                if let Some(pattern) = pattern {
                    object.str("pattern", pattern);
                }
            }
            SchemaKind::Integer { least, most } => {
                self.write_type(&mut object, "integer");
                object.number("minimum", *least);
                if *most < u64::MAX {
                    object.number("maximum", *most);
                }
            }
            SchemaKind::Flag => self.write_type(&mut object, "boolean"),
            SchemaKind::List { of, most } => {
                self.write_type(&mut object, "array");
                of.write(object.key("items"));
                if let Some(most) = most {
                    object.number("maxItems", *most as u64);
                }
            }
            SchemaKind::Object { members, others } => {
                self.write_type(&mut object, "object");
                write_members(&mut object, members);
                match others {
                    OtherMembers::Refused => drop(object.bool("additionalProperties", false)),
                    OtherMembers::Free => drop(object.bool("additionalProperties", true)),
                    OtherMembers::Later => {}
                }
            }
        }
        object.end();
    }

    fn write_type(&self, object: &mut ObjectWriter<'_>, word: &str) {
        match self.is_nullable {
            false => drop(object.str("type", word)),
            true => {
                let mut list = ArrayWriter::new(object.key("type"));
                push_string(list.slot(), word);
                push_string(list.slot(), "null");
                list.end();
            }
        }
    }

    fn write_reference(&self, object: &mut ObjectWriter<'_>, name: &str) {
        let target = format!("#/components/schemas/{name}");
        match self.is_nullable {
            // A reference may stand beside a description.
            false => drop(object.str("$ref", &target)),
            true => {
                let mut list = ArrayWriter::new(object.key("anyOf"));
                let mut one = ObjectWriter::new(list.slot());
                one.str("$ref", &target);
                one.end();
                list.raw("{\"type\":\"null\"}");
                list.end();
            }
        }
    }
}

fn write_members(object: &mut ObjectWriter<'_>, members: &[SchemaMember]) {
    if members.is_empty() {
        return;
    }
    let mut properties = ObjectWriter::new(object.key("properties"));
    for member in members {
        member.schema.write(properties.key(member.name));
    }
    properties.end();
    let required: Vec<&str> = members
        .iter()
        .filter(|member| member.is_required)
        .map(|member| member.name)
        .collect();
    if !required.is_empty() {
        let mut list = ArrayWriter::new(object.key("required"));
        required
            .iter()
            .for_each(|name| push_string(list.slot(), name));
        list.end();
    }
}
