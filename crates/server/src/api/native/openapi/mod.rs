//! The OpenAPI document of the native API, made of the operations that its router serves.

mod check;
mod components;
mod operation;
mod schema;

use throughline_model::json::{ArrayWriter, ObjectWriter};

pub(super) use check::{check, check_parameter};
pub(super) use components::ERROR;
pub(super) use operation::{Content, Operation, RequestBody, Verb};
pub(super) use schema::{
    LARGEST, Schema, answer, flag, free_object, integer, integer_of, list, named, object, pattern,
    text, text_of, word,
};

use operation::{Parameter, ParameterPlace, Success};
use schema::any;

/// Errors that every operation can answer with.
const COMMON_ERRORS: [(u16, &str); 7] = [
    (400, "A parameter or the body is wrong; `param` says where."),
    (403, "A web page from elsewhere sent the request."),
    (408, "The body did not come in time."),
    (413, "The body is too large."),
    (415, "The body is compressed in an unknown way."),
    (
        503,
        "The server is stopping, overloaded, or its store does not answer.",
    ),
    (507, "The store has no space left."),
];

/// The name of every other error among the components.
const OTHER_ERROR: &str = "OtherError";

/// The document of these operations.
pub(super) fn document(operations: &[&Operation]) -> String {
    let mut out = String::new();
    let mut root = ObjectWriter::new(&mut out);
    root.str("openapi", "3.1.0");
    let mut info = ObjectWriter::new(root.key("info"));
    info.str("title", "Throughline").str("version", "1").str(
        "description",
        "The native API: threads, runs and approvals of the caller's tenant. What belongs to \
             another tenant is answered like what does not exist. Members may be added to answers.",
    );
    info.end();
    let mut paths = ObjectWriter::new(root.key("paths"));
    let mut written: Vec<&str> = Vec::new();
    for operation in operations {
        if written.contains(&operation.path) {
            continue;
        }
        written.push(operation.path);
        let mut path = ObjectWriter::new(paths.key(operation.path));
        let same = operations.iter().filter(|one| one.path == operation.path);
        for operation in same {
            write_operation(path.key(operation.verb.as_str()), operation);
        }
        path.end();
    }
    paths.end();
    let mut parts = ObjectWriter::new(root.key("components"));
    let mut schemas = ObjectWriter::new(parts.key("schemas"));
    for (name, schema) in components::all() {
        schema.write(schemas.key(name));
    }
    schemas.end();
    let mut errors = ObjectWriter::new(parts.key("responses"));
    for (status, when) in COMMON_ERRORS {
        write_error(errors.key(&error_name(status)), when);
    }
    write_error(errors.key(OTHER_ERROR), "Another error of the server.");
    errors.end();
    parts.end();
    root.end();
    out
}

fn write_operation(out: &mut String, operation: &Operation) {
    let mut object = ObjectWriter::new(out);
    object
        .str("operationId", operation.id)
        .str("summary", operation.summary);
    if !operation.description.is_empty() {
        object.str("description", operation.description);
    }
    let mut parameters = ArrayWriter::new(object.key("parameters"));
    for name in operation.path_names() {
        let mut parameter = ObjectWriter::new(parameters.slot());
        parameter
            .str("name", name)
            .str("in", "path")
            .bool("required", true);
        components::path_parameter(name).write(parameter.key("schema"));
        parameter.end();
    }
    for parameter in &operation.parameters {
        write_parameter(parameters.slot(), parameter);
    }
    parameters.end();
    write_body(&mut object, &operation.body);
    let mut answers = ObjectWriter::new(object.key("responses"));
    for answer in &operation.answers {
        write_success(answers.key(&answer.status.to_string()), answer);
    }
    let own = |status: u16| operation.errors.iter().any(|(known, _)| *known == status);
    let mut errors: Vec<(u16, Option<&str>)> = COMMON_ERRORS
        .iter()
        .filter(|(status, _)| !own(*status))
        .map(|(status, _)| (*status, None))
        .collect();
    let of_operation = operation.errors.iter();
    errors.extend(of_operation.map(|(status, when)| (*status, Some(*when))));
    errors.sort_unstable();
    for (status, when) in errors {
        let out = answers.key(&status.to_string());
        match when {
            Some(when) => write_error(out, when),
            None => write_common_error(out, &error_name(status)),
        }
    }
    write_common_error(answers.key("default"), OTHER_ERROR);
    answers.end();
    object.end();
}

fn write_parameter(out: &mut String, parameter: &Parameter) {
    let mut object = ObjectWriter::new(out);
    object.str("name", parameter.name);
    match parameter.place {
        ParameterPlace::Query => object.str("in", "query"),
        ParameterPlace::Header => object.str("in", "header"),
    };
    parameter.schema.write(object.key("schema"));
    object.end();
}

fn write_body(object: &mut ObjectWriter<'_>, body: &RequestBody) {
    let (is_required, contents): (bool, Vec<(&str, Schema)>) = match body {
        RequestBody::None => return,
        RequestBody::Json {
            schema,
            is_required,
        } => (*is_required, vec![("application/json", schema.clone())]),
        RequestBody::Stream(types) => (
            true,
            types.iter().map(|kind| (*kind, stream_of(kind))).collect(),
        ),
    };
    let mut body = ObjectWriter::new(object.key("requestBody"));
    body.bool("required", is_required);
    let mut content = ObjectWriter::new(body.key("content"));
    for (kind, schema) in contents {
        write_media(content.key(kind), &schema);
    }
    content.end();
    body.end();
}

/// The schema of what a stream holds: of event streams each event, of others all of it.
fn stream_of(kind: &str) -> Schema {
    match kind {
        "application/json" => any(),
        "text/event-stream" => answer()
            .about("Each event of the stream; `data` is JSON.")
            .with("event", text())
            .maybe("id", text())
            .with("data", text()),
        _ => text(),
    }
}

fn write_success(out: &mut String, answer: &Success) {
    let mut object = ObjectWriter::new(out);
    object.str("description", answer.description);
    let mut content = ObjectWriter::new(object.key("content"));
    for one in &answer.contents {
        match one {
            Content::Json(schema) => write_media(content.key("application/json"), schema),
            Content::Stream(kind) => write_media(content.key(kind), &stream_of(kind)),
        }
    }
    content.end();
    object.end();
}

/// The name of a common error among the components.
fn error_name(status: u16) -> String {
    format!("Error{status}")
}

fn write_common_error(out: &mut String, name: &str) {
    let mut object = ObjectWriter::new(out);
    object.str("$ref", &format!("#/components/responses/{name}"));
    object.end();
}

fn write_error(out: &mut String, when: &str) {
    let mut object = ObjectWriter::new(out);
    object.str("description", when);
    let mut content = ObjectWriter::new(object.key("content"));
    write_media(content.key("application/json"), &named(ERROR));
    content.end();
    object.end();
}

fn write_media(out: &mut String, schema: &Schema) {
    let mut object = ObjectWriter::new(out);
    schema.write(object.key("schema"));
    object.end();
}
