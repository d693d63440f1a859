//! Request bodies, both ways.

use throughline_model::json::{ArrayWriter, ObjectWriter, RawJson, Value};
use throughline_model::{
    Content, Family, Form, Message, Path, Request, Role, ToolDef, Vendor, Wire,
};

use super::translate::Speaker;
use super::{decode, encode, parts};
use crate::closed_schema::closed_schema;
use crate::foreign::{self, FunctionTool};
use crate::message_writer::array;
use crate::native;
use crate::read::{member, required_array, text_of};
use crate::template::Extractor;
use crate::template::{TemplateValue, restore};
use crate::{DecodeError, LossKind, Losses};

const SYSTEM: &str = "system";
const MESSAGES: &str = "messages";

/// The API refuses a request without a limit. Other vendors' limits mean other things, and most
/// requests have none, so a request of another vendor gets one that every model can take.
const MAX_TOKENS: u64 = 4096;

/// Read a request body.
pub(super) fn decode_request(body: &Value<'_>) -> Result<Request, DecodeError> {
    if body.as_object().is_none() {
        return Err(DecodeError::expected(&Path::Root, "a request", body));
    }
    let mut extractor = Extractor::new(body);
    let mut request = Request::default();
    if let Some(system) = member(body, SYSTEM) {
        let path = Path::Root.key(SYSTEM);
        if let Some(text) = extractor.text(system) {
            let vendor = Vendor::form(Wire::Anthropic, Form::Bare);
            request.system.push(Content::text(text).with_vendor(vendor));
        } else if let Some(blocks) = extractor.elements(system) {
            for (index, block) in blocks.iter().enumerate() {
                request
                    .system
                    .push(parts::decode(block, &path.index(index))?);
            }
        } else {
            let expected = "a string or an array of blocks";
            return Err(DecodeError::expected(&path, expected, system));
        }
    }
    let items = required_array(body, MESSAGES, &Path::Root)?;
    request.messages = decode::messages(items, &Path::Root.key(MESSAGES))?;
    if let Some(messages) = body.get(MESSAGES) {
        extractor.elements(messages);
    }
    request.tools = tools(body);
    request.vendor = Some(Vendor::item(Wire::Anthropic, extractor.into_template()));
    Ok(request)
}

fn tools(body: &Value<'_>) -> Vec<ToolDef> {
    let list = body.get("tools").and_then(Value::as_array);
    list.unwrap_or_default()
        .iter()
        .map(|tool| ToolDef {
            family: match text_of(tool, "type").as_deref() {
                None | Some("custom") => Family::FUNCTION,
                Some(found) => Family::named(found),
            },
            name: text_of(tool, "name").unwrap_or_default(),
            description: text_of(tool, "description"),
            parameters: member(tool, "input_schema").map(RawJson::of),
            ..ToolDef::default()
        })
        .collect()
}

/// Write a request body.
pub(super) fn encode_request(request: &Request, losses: &mut Losses) -> String {
    if let Some(body) = native::body(request.vendor.as_ref(), &Wire::Anthropic) {
        return encode_native_request(request, body, losses);
    }
    foreign::note_request_keys(request, losses);
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    object.number("max_tokens", MAX_TOKENS);
    // Other vendors have their system text at the head of the messages; here that is refused.
    let leading = request
        .messages
        .iter()
        .take_while(|message| is_system(message))
        .count();
    let system: Vec<Content> = request
        .system
        .iter()
        .chain(
            request
                .messages
                .iter()
                .take(leading)
                .flat_map(|message| &message.contents),
        )
        .cloned()
        .collect();
    // A block of this format may have a cache mark, which only blocks can have.
    let is_block = |content| native::part(content, &Wire::Anthropic).is_some();
    if system.iter().any(is_block) {
        let mut blocks = String::new();
        let path = Path::Root.key(SYSTEM);
        encode::parts(&mut blocks, &system, Speaker::System, &path, losses);
        object.raw(SYSTEM, &format!("[{blocks}]"));
    } else {
        let text = foreign::system_text(&system, losses);
        if !text.is_empty() {
            object.str(SYSTEM, &text);
        }
    }
    let messages = encode::messages(&request.messages, leading, losses);
    object.raw(MESSAGES, &array(&messages));
    foreign::write_tools(&mut object, &request.tools, functions, losses);
    object.end();
    out
}

/// Functions on offer, as an array.
pub(crate) fn functions(out: &mut String, tools: &[FunctionTool<'_>], losses: &mut Losses) {
    let root = Path::Root.key("tools");
    let mut list = ArrayWriter::new(out);
    for FunctionTool { index, tool } in tools {
        let path = root.index(*index);
        push_tool(list.slot(), tool, &path, losses);
    }
    list.end();
}

/// Put system text and messages back into a body that came from this format.
fn encode_native_request(request: &Request, body: &RawJson, losses: &mut Losses) -> String {
    let value = body.value();
    let mut fills: Vec<(&[&str], TemplateValue<'_>)> = Vec::new();
    let (mut system, mut system_array) = (String::new(), String::new());
    let path = Path::Root.key(SYSTEM);
    encode::parts(&mut system, &request.system, Speaker::System, &path, losses);
    let place = value.get(SYSTEM).map(Value::node);
    if let Some(what) = encode::content_value(place, &request.system, &system, &mut system_array) {
        fills.push((&[SYSTEM], what));
    }
    let messages = array(&encode::messages(&request.messages, 0, losses));
    if !request.messages.is_empty() {
        fills.push((&[MESSAGES], TemplateValue::Replace(&messages)));
    }
    let mut out = String::new();
    restore(&mut out, body, &fills);
    out
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// A function on offer. The schema must have the type `object`.
fn push_tool(out: &mut String, tool: &ToolDef, path: &Path<'_>, losses: &mut Losses) {
    let mut object = ObjectWriter::new(out);
    object.str("name", &tool.name);
    if let Some(description) = &tool.description {
        object.str("description", description);
    }
    let strict = tool.strict == Some(true);
    let closed = tool.parameters.as_ref().filter(|_| strict);
    let closed = closed
        .and_then(closed_schema)
        .and_then(|text| RawJson::new(&text).ok());
    match (strict, &closed) {
        (true, Some(_)) => drop(object.bool("strict", true)),
        (true, None) => {
            let detail =
                "a strict tool needs a schema whose objects allow no `additionalProperties`";
            losses.note(&path.key("strict"), LossKind::ToolDefinition, detail);
        }
        (false, _) => {}
    }
    let schema = closed.as_ref().or(tool.parameters.as_ref());
    match schema.filter(|schema| schema.value().as_object().is_some()) {
        Some(schema) => {
            let typed = schema.value().get("type").is_some();
            let schema = foreign::without_lone_surrogates(schema, path, losses);
            if typed {
                object.raw("input_schema", &schema);
            } else {
                let mut inner = ObjectWriter::new(object.key("input_schema"));
                inner.str("type", "object").members_of(&schema);
                inner.end();
            }
        }
        None => {
            object.raw("input_schema", r#"{"type":"object"}"#);
        }
    }
    object.end();
}
