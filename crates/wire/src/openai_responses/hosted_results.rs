//! Results of other vendors that answer calls which only this vendor makes. The item of a result
//! belongs to that of its call: the output of a function does not answer a shell.

use throughline_model::json::{self, ArrayWriter, ObjectWriter};
use throughline_model::{
    Body, Content, Family, Media, MediaKind, MediaSource, Origin, Outcome, Output, Path, ToolResult,
};

use super::Flavour;
use crate::foreign;
use crate::openai::media_url;
use crate::{LossKind, Losses};

/// The item for a result, if its family has one of its own that can express it.
pub(super) fn translate(
    flavour: Flavour,
    result: &ToolResult,
    id: &str,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Option<String> {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let failed = result.outcome != Outcome::Ok;
    if result.family == Family::SHELL {
        object.str("type", "shell_call_output").str("call_id", id);
        let mut list = ArrayWriter::new(object.key("output"));
        let mut chunk = ObjectWriter::new(list.slot());
        chunk
            .str("stdout", &text(result, path, losses))
            .str("stderr", "");
        let mut outcome = ObjectWriter::new(chunk.key("outcome"));
        outcome
            .str("type", "exit")
            .number("exit_code", u64::from(failed));
        outcome.end();
        chunk.end();
        list.end();
    } else if result.family == Family::APPLY_PATCH {
        object
            .str("type", "apply_patch_call_output")
            .str("call_id", id)
            .str("status", if failed { "failed" } else { "completed" })
            .str("output", &text(result, path, losses));
    } else if result.family == Family::LOCAL_SHELL {
        note_failure(result, path, losses);
        object.str("type", "local_shell_call_output").str("id", id);
        // OpenAI pairs by `call_id`, though the published type has nothing but `id`.
        if flavour == Flavour::OpenAi {
            object.str("call_id", id);
        }
        object.str("output", &text(result, path, losses));
    } else if result.family == Family::TOOL_SEARCH {
        note_failure(result, path, losses);
        object.str("type", "tool_search_output");
        // A call that came without an id is answered without one.
        match result.call().origin() {
            Origin::Minted => object.raw("call_id", "null"),
            Origin::Natural | Origin::Item => object.str("call_id", id),
        };
        object
            .str("execution", "client")
            .raw("tools", &tools(result, path, losses))
            .str("status", "completed");
    } else if result.family == Family::COMPUTER {
        let Some(image) = screenshot(&result.output) else {
            let detail = "only a picture answers a computer call";
            losses.note(path, LossKind::HostedTool, detail);
            return None;
        };
        note_failure(result, path, losses);
        object
            .str("type", "computer_call_output")
            .str("call_id", id);
        let mut output = ObjectWriter::new(object.key("output"));
        output.str("type", "computer_screenshot");
        match &image.source {
            MediaSource::File(file) => output.str("file_id", file),
            MediaSource::Uri(_) | MediaSource::Data(_) => {
                output.str("image_url", &media_url(image))
            }
        };
        output.end();
    } else {
        return None;
    }
    object.end();
    Some(out)
}

fn note_failure(result: &ToolResult, path: &Path<'_>, losses: &mut Losses) {
    if result.outcome == Outcome::Error {
        losses.note(path, LossKind::Outcome, "there is no failure mark here");
    }
}

/// What a tool gave back, as text.
fn text(result: &ToolResult, path: &Path<'_>, losses: &mut Losses) -> String {
    match &result.output {
        Output::None => String::new(),
        Output::Text(text) => text.clone(),
        Output::Json(json) => json.get().to_owned(),
        Output::Parts(contents) => {
            let path = path.key("output");
            let mut texts = Vec::new();
            for (index, content) in contents.iter().enumerate() {
                match &content.body {
                    Body::Text(text) => texts.push(text.text.as_str()),
                    Body::Media(_) => {
                        losses.note(&path.index(index), LossKind::Media, "only text fits here");
                    }
                    _ => {
                        let detail = "only text fits here";
                        losses.note(&path.index(index), LossKind::VendorItem, detail);
                    }
                }
            }
            texts.join("\n")
        }
    }
}

/// The tools that a search found, as a JSON array.
fn tools(result: &ToolResult, path: &Path<'_>, losses: &mut Losses) -> String {
    let is_list = |text: &str| {
        json::parse(text).is_ok_and(|value| {
            let list = value.as_array();
            list.is_some_and(|list| list.iter().all(|tool| tool.as_object().is_some()))
        })
    };
    match &result.output {
        Output::None => {}
        Output::Json(json) if is_list(json.get()) => {
            return foreign::without_lone_surrogates(json, path, losses).into_owned();
        }
        Output::Text(text) if is_list(text) => return text.clone(),
        Output::Text(text) if text.is_empty() => {}
        Output::Text(_) | Output::Json(_) | Output::Parts(_) => {
            let detail = "a search gives back nothing but tools here";
            losses.note(path, LossKind::VendorFields, detail);
        }
    }
    "[]".to_owned()
}

/// The first picture of an output.
fn screenshot(output: &Output) -> Option<&Media> {
    let Output::Parts(contents) = output else {
        return None;
    };
    contents
        .iter()
        .find_map(|content: &Content| match &content.body {
            Body::Media(media) if media.kind == MediaKind::Image => Some(media),
            _ => None,
        })
}
