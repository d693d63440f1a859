//! Arguments that arrive as values at JSON paths (Vertex, `streamFunctionCallArguments`).

use throughline_model::Path;
use throughline_model::json::{ArrayWriter, ObjectWriter, Value, push_compact};

use crate::google::{either_member, either_string};
use crate::{DecodeError, Problem};

use super::types::WILL_CONTINUE;

/// Steps of one path. Writing and reading the tree is recursive, so its depth is bounded.
const DEEPEST: usize = 64;

/// The arguments so far.
#[derive(Debug, Default)]
pub(super) struct PartialArgs {
    root: Vec<(String, ArgNode)>,
}

#[derive(Debug)]
enum ArgNode {
    /// A string between its quotes; further fragments append while it is open.
    Text {
        token: String,
        open: bool,
    },
    /// Any other value, as JSON text.
    Value(String),
    Object(Vec<(String, ArgNode)>),
    Array(Vec<ArgNode>),
}

#[derive(Debug, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

impl PartialArgs {
    /// The arguments that were given whole.
    pub(super) fn of(args: &Value<'_>) -> Self {
        let members = args.members().iter().map(|member| {
            let mut text = String::new();
            push_compact(&mut text, &member.value);
            (member.key.to_str().into_owned(), ArgNode::Value(text))
        });
        Self {
            root: members.collect(),
        }
    }

    /// Take the fragments of one `partialArgs`.
    pub(super) fn apply(
        &mut self,
        fragments: &Value<'_>,
        path: &Path<'_>,
    ) -> Result<(), DecodeError> {
        let Some(list) = fragments.as_array() else {
            return Err(DecodeError::expected(path, "an array", fragments));
        };
        for (index, fragment) in list.iter().enumerate() {
            self.fragment(fragment, &path.index(index))?;
        }
        Ok(())
    }

    fn fragment(&mut self, fragment: &Value<'_>, path: &Path<'_>) -> Result<(), DecodeError> {
        let Some(at) = either_string(fragment, ("jsonPath", "json_path")) else {
            return Err(DecodeError::missing(&path.key("jsonPath"), "a JSON path"));
        };
        let unreadable = || {
            DecodeError::new(
                &path.key("jsonPath"),
                Problem::Expected {
                    expected: "a path such as $.a.b[0]",
                    found: at.clone(),
                },
            )
        };
        let steps = parse_path(&at).ok_or_else(unreadable)?;
        let open = either_member(fragment, WILL_CONTINUE)
            .is_some_and(|(_, it)| it.as_bool() == Some(true));
        let leaf = if let Some((_, text)) = either_member(fragment, ("stringValue", "string_value"))
        {
            let Some(text) = text.as_text() else {
                return Err(DecodeError::expected(
                    &path.key("stringValue"),
                    "a string",
                    text,
                ));
            };
            ArgNode::Text {
                token: text.token().to_owned(),
                open,
            }
        } else if let Some((_, value)) = either_member(fragment, ("numberValue", "number_value"))
            .or_else(|| either_member(fragment, ("boolValue", "bool_value")))
        {
            let mut text = String::new();
            push_compact(&mut text, value);
            ArgNode::Value(text)
        } else if fragment.get("nullValue").is_some() || fragment.get("null_value").is_some() {
            ArgNode::Value("null".to_owned())
        } else {
            // A path that is announced without a value yet.
            return Ok(());
        };
        self.set(&steps, leaf).ok_or_else(unreadable)
    }

    fn set(&mut self, steps: &[PathStep], leaf: ArgNode) -> Option<()> {
        let (PathStep::Key(first), rest) = steps.split_first()? else {
            return None;
        };
        set_at(entry(&mut self.root, first), rest, leaf)
    }

    /// The arguments as a JSON object.
    pub(super) fn to_json(&self) -> String {
        let mut out = String::new();
        write_object(&mut out, &self.root);
        out
    }
}

/// The place of a member; a new one holds nothing yet.
fn entry<'n>(members: &'n mut Vec<(String, ArgNode)>, key: &str) -> &'n mut ArgNode {
    let place = match members.iter().position(|(found, _)| found == key) {
        Some(place) => place,
        None => {
            members.push((key.to_owned(), ArgNode::Value("null".to_owned())));
            members.len() - 1
        }
    };
    &mut members[place].1
}

/// Put a leaf below a node. What stands in the way of the path gives way.
fn set_at(node: &mut ArgNode, steps: &[PathStep], leaf: ArgNode) -> Option<()> {
    let Some((step, rest)) = steps.split_first() else {
        match (&mut *node, leaf) {
            (ArgNode::Text { token, open: true }, ArgNode::Text { token: more, open }) => {
                token.push_str(&more);
                *node = ArgNode::Text {
                    token: std::mem::take(token),
                    open,
                };
            }
            (node, leaf) => *node = leaf,
        }
        return Some(());
    };
    match step {
        PathStep::Key(key) => {
            if !matches!(node, ArgNode::Object(_)) {
                *node = ArgNode::Object(Vec::new());
            }
            let ArgNode::Object(members) = node else {
                return None;
            };
            set_at(entry(members, key), rest, leaf)
        }
        PathStep::Index(index) => {
            if !matches!(node, ArgNode::Array(_)) {
                *node = ArgNode::Array(Vec::new());
            }
            let ArgNode::Array(values) = node else {
                return None;
            };
            // Values come in order; a gap would let a short text ask for endless memory.
            if *index == values.len() {
                values.push(ArgNode::Value("null".to_owned()));
            }
            set_at(values.get_mut(*index)?, rest, leaf)
        }
    }
}

fn write(out: &mut String, node: &ArgNode) {
    match node {
        ArgNode::Text { token, .. } => {
            out.push('"');
            out.push_str(token);
            out.push('"');
        }
        ArgNode::Value(json) => out.push_str(json),
        ArgNode::Object(members) => write_object(out, members),
        ArgNode::Array(values) => {
            let mut array = ArrayWriter::new(out);
            for value in values {
                write(array.slot(), value);
            }
            array.end();
        }
    }
}

fn write_object(out: &mut String, members: &[(String, ArgNode)]) {
    let mut object = ObjectWriter::new(out);
    for (key, node) in members {
        write(object.key(key), node);
    }
    object.end();
}

/// The steps of `$.a.b[0]['c d']`.
fn parse_path(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == DEEPEST {
            return None;
        }
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (key, tail) = after.split_at(end);
            if key.is_empty() {
                return None;
            }
            steps.push(PathStep::Key(key.to_owned()));
            rest = tail;
            continue;
        }
        let after = rest.strip_prefix('[')?;
        let quote = after.chars().next().filter(|it| matches!(it, '\'' | '"'));
        if let Some(quote) = quote {
            let (key, tail) = after[1..].split_once(quote)?;
            steps.push(PathStep::Key(key.to_owned()));
            rest = tail.strip_prefix(']')?;
        } else {
            let (index, tail) = after.split_once(']')?;
            steps.push(PathStep::Index(index.parse().ok()?));
            rest = tail;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use throughline_model::Path;
    use throughline_model::json;

    use super::{DEEPEST, PartialArgs};

    fn applied(fragments: &str) -> Result<String, String> {
        let value = json::parse(fragments).unwrap();
        let mut args = PartialArgs::default();
        args.apply(&value, &Path::Root)
            .map_err(|error| error.to_string())?;
        Ok(args.to_json())
    }

    #[test]
    fn values_land_at_their_paths() {
        let fragments = r#"[
            {"jsonPath":"$.port","stringValue":"Bre","willContinue":true},
            {"jsonPath":"$.port","stringValue":"st"},
            {"jsonPath":"$.days","numberValue":2.50},
            {"jsonPath":"$.legs[0].name","stringValue":"a\u00e9"},
            {"jsonPath":"$.legs[1]['far off']","boolValue":true},
            {"jsonPath":"$.none","nullValue":"NULL_VALUE"},
            {"jsonPath":"$.later","willContinue":true}
        ]"#;
        assert_eq!(
            applied(fragments).unwrap(),
            r#"{"port":"Brest","days":2.50,"legs":[{"name":"a\u00e9"},{"far off":true}],"none":null}"#
        );
    }

    #[test]
    fn a_closed_text_is_replaced_not_continued() {
        let fragments =
            r#"[{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"y"}]"#;
        assert_eq!(applied(fragments).unwrap(), r#"{"a":"y"}"#);
    }

    #[test]
    fn odd_paths_are_errors_and_never_ask_for_memory() {
        let deep = format!("$.a{}", "[0]".repeat(DEEPEST));
        for path in [
            "", "$", "a", "$.", "$..a", "$[0]", "$.a[", "$.a[x]", "$.a[1]", "$['a'", &deep,
        ] {
            let mut fragment = String::from(r#"[{"jsonPath":"#);
            json::push_string(&mut fragment, path);
            fragment.push_str(r#","numberValue":1}]"#);
            assert!(applied(&fragment).is_err(), "{path}");
        }
    }
}
