//! A checker of streams: the grammar, numbers, and that deltas add up. It knows nothing of the code
//! that makes streams, only what readers count on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use throughline_server::api::openai::items::{ItemId, ItemPlace};
use throughline_server::api::openai::responses::wire::Frame;

/// What a checker knows of one item.
#[derive(Debug, Default)]
struct Item {
    added: Value,
    done: Option<Value>,
    /// Parts by where they stand (`content`, `summary`) and number.
    parts: BTreeMap<(&'static str, u64), Part>,
    arguments: Option<String>,
    arguments_done: bool,
    progress: Vec<String>,
    annotations: u64,
}

#[derive(Debug, Default)]
struct Part {
    text: String,
    text_done: bool,
    done: bool,
}

/// What a stream came to.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The response of its last event.
    pub(crate) response: Value,
    /// How many events of each kind it had.
    pub(crate) kinds: BTreeMap<&'static str, usize>,
}

/// Check a whole stream.
pub(crate) fn check(frames: &[Frame]) -> Result<Checked, String> {
    let mut items: Vec<Item> = Vec::new();
    let mut kinds = BTreeMap::new();
    let mut last: Option<Value> = None;
    for (number, frame) in frames.iter().enumerate() {
        let event = data(frame, number as u64)?;
        *kinds.entry(frame.kind).or_default() += 1;
        if last.is_some() {
            return Err(format!("{} after the end", frame.kind));
        }
        match (number, frame.kind) {
            (0, "response.created") | (1, "response.in_progress") => {
                let response = &event["response"];
                if response["status"] != "in_progress" || response["output"] != Value::Array(vec![])
                {
                    return Err(format!("{}: {response}", frame.kind));
                }
            }
            (0 | 1, kind) => return Err(format!("{kind} at {number}")),
            (_, "response.completed" | "response.incomplete" | "response.failed") => {
                last = Some(event["response"].clone());
            }
            (_, "error") => {
                if frames.len() != number + 2 || event["error"]["message"] != event["message"] {
                    return Err(format!("an error in the midst: {event}"));
                }
            }
            (_, kind) => {
                step(&mut items, kind, &event).map_err(|why| format!("{number} {kind}: {why}"))?;
            }
        }
    }
    let response = last.ok_or("no end")?;
    end(
        &items,
        &response,
        frames.last().map_or("", |frame| frame.kind),
    )?;
    Ok(Checked { response, kinds })
}

/// The event of a frame, whose outer form is checked.
fn data(frame: &Frame, number: u64) -> Result<Value, String> {
    let text = std::str::from_utf8(&frame.bytes).map_err(|error| error.to_string())?;
    let inner = text
        .strip_prefix(&format!("event: {}\ndata: ", frame.kind))
        .and_then(|rest| rest.strip_suffix("\n\n"))
        .ok_or_else(|| format!("no frame: {text:?}"))?;
    if inner.contains('\n') || inner.contains('\r') {
        return Err(format!("more than one line: {inner:?}"));
    }
    let event: Value = serde_json::from_str(inner).map_err(|error| format!("{error}: {inner}"))?;
    if event["type"] != frame.kind || event["sequence_number"] != number || frame.number != number {
        return Err(format!("type or number of {event}"));
    }
    Ok(event)
}

fn text(event: &Value, key: &str) -> Result<String, String> {
    let text = event[key].as_str();
    text.map(str::to_owned)
        .ok_or_else(|| format!("no {key} in {event}"))
}

fn step(items: &mut Vec<Item>, kind: &str, event: &Value) -> Result<(), String> {
    let index = event["output_index"].as_u64().ok_or("no output_index")? as usize;
    if kind == "response.output_item.added" {
        return added(items, index, &event["item"]);
    }
    let item = items.get_mut(index).ok_or("before its item")?;
    if item.done.is_some() {
        return Err("after its item was done".to_owned());
    }
    if kind == "response.output_item.done" {
        return item.finish(&event["item"]);
    }
    if event["item_id"] != item.added["id"] {
        return Err(format!("another item id: {event}"));
    }
    item.event(kind, event)
}

fn added(items: &mut Vec<Item>, index: usize, item: &Value) -> Result<(), String> {
    if index != items.len() {
        return Err(format!("output_index {index}, expected {}", items.len()));
    }
    if items.iter().any(|known| known.added["id"] == item["id"]) {
        return Err(format!("{} a second time", item["id"]));
    }
    let status = &item["status"];
    if !status.is_null() && status != "in_progress" {
        return Err(format!("added as {status}"));
    }
    for key in ["content", "summary", "tools"] {
        if item["type"] != "compaction" && item[key].as_array().is_some_and(|list| !list.is_empty())
        {
            return Err(format!("added with {key}"));
        }
    }
    let tag = item["type"].as_str().unwrap_or_default();
    if matches!(tag, "function_call" | "mcp_call") && item["arguments"] != "" {
        return Err("added with arguments".to_owned());
    }
    items.push(Item {
        added: item.clone(),
        ..Item::default()
    });
    Ok(())
}

impl Item {
    fn tag(&self) -> &str {
        self.added["type"].as_str().unwrap_or_default()
    }

    fn event(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let name = kind.strip_prefix("response.").unwrap_or(kind);
        match name {
            "content_part.added" => self.open("content", event),
            "reasoning_summary_part.added" => self.open("summary", event),
            "output_text.delta" | "refusal.delta" | "reasoning_text.delta" | "reasoning.delta" => {
                self.grow("content", event)
            }
            "reasoning_summary_text.delta" => self.grow("summary", event),
            "output_text.done" | "reasoning_text.done" | "reasoning.done" => {
                self.whole("content", event, "text")
            }
            "refusal.done" => self.whole("content", event, "refusal"),
            "reasoning_summary_text.done" => self.whole("summary", event, "text"),
            "content_part.done" => self.close("content", event),
            "reasoning_summary_part.done" => self.close("summary", event),
            "output_text.annotation.added" => {
                let number = event["annotation_index"].as_u64();
                let expected = self.annotations;
                self.annotations += 1;
                (number == Some(expected))
                    .then_some(())
                    .ok_or_else(|| "annotation_index".to_owned())
            }
            "function_call_arguments.delta"
            | "custom_tool_call_input.delta"
            | "mcp_call_arguments.delta"
            | "code_interpreter_call_code.delta" => {
                if self.arguments_done {
                    return Err("arguments after they were done".to_owned());
                }
                let more = text(event, "delta")?;
                self.arguments.get_or_insert_default().push_str(&more);
                Ok(())
            }
            "function_call_arguments.done" => {
                if !event["name"].is_null() && event["name"] != self.added["name"] {
                    return Err("without the name".to_owned());
                }
                self.arguments_whole(event, "arguments")
            }
            "mcp_call_arguments.done" => self.arguments_whole(event, "arguments"),
            "custom_tool_call_input.done" => self.arguments_whole(event, "input"),
            "code_interpreter_call_code.done" => self.arguments_whole(event, "code"),
            other => {
                let (tag, progress) = other.split_once('.').ok_or("unknown")?;
                if tag != self.tag() {
                    return Err(format!("in a {}", self.tag()));
                }
                self.progress.push(progress.to_owned());
                Ok(())
            }
        }
    }

    fn arguments_whole(&mut self, event: &Value, key: &str) -> Result<(), String> {
        let whole = text(event, key)?;
        if self.arguments_done || self.arguments.clone().unwrap_or_default() != whole {
            return Err(format!("{:?} is not {whole:?}", self.arguments));
        }
        self.arguments_done = true;
        Ok(())
    }

    fn number(place: &str, event: &Value) -> Result<u64, String> {
        let key = format!("{place}_index");
        event[&key].as_u64().ok_or_else(|| format!("no {key}"))
    }

    fn open(&mut self, place: &'static str, event: &Value) -> Result<(), String> {
        let number = Self::number(place, event)?;
        let known = self
            .parts
            .keys()
            .filter(|(known, _)| *known == place)
            .count() as u64;
        let part = &event["part"];
        let empty = part["text"] == "" || part["refusal"] == "";
        if number != known || !empty {
            return Err(format!("part {number} of {known}, {part}"));
        }
        let before = self.parts.iter().filter(|((known, _), _)| *known == place);
        if before.into_iter().any(|(_, part)| !part.done) {
            return Err("the part before it is open".to_owned());
        }
        self.parts.insert((place, number), Part::default());
        Ok(())
    }

    fn part(&mut self, place: &'static str, event: &Value) -> Result<&mut Part, String> {
        let number = Self::number(place, event)?;
        let part = self.parts.get_mut(&(place, number));
        part.filter(|part| !part.done)
            .ok_or_else(|| "no such part is open".to_owned())
    }

    fn grow(&mut self, place: &'static str, event: &Value) -> Result<(), String> {
        let more = text(event, "delta")?;
        let part = self.part(place, event)?;
        if part.text_done || more.is_empty() {
            return Err("nothing, or after the text was done".to_owned());
        }
        part.text.push_str(&more);
        Ok(())
    }

    fn whole(&mut self, place: &'static str, event: &Value, key: &str) -> Result<(), String> {
        let whole = text(event, key)?;
        let part = self.part(place, event)?;
        if part.text_done || part.text != whole {
            return Err(format!("{:?} is not {whole:?}", part.text));
        }
        part.text_done = true;
        Ok(())
    }

    fn close(&mut self, place: &'static str, event: &Value) -> Result<(), String> {
        let shown = event["part"].clone();
        let part = self.part(place, event)?;
        let text = shown["text"].as_str().or_else(|| shown["refusal"].as_str());
        if !part.text_done || text != Some(&part.text) {
            return Err(format!("{shown} is not {:?}", part.text));
        }
        part.done = true;
        Ok(())
    }

    fn finish(&mut self, item: &Value) -> Result<(), String> {
        for key in ["type", "id", "call_id"] {
            if item[key] != self.added[key] {
                return Err(format!(
                    "{key} was {} and is {}",
                    self.added[key], item[key]
                ));
            }
        }
        if item["status"] == "in_progress" {
            return Err("done in progress".to_owned());
        }
        for (place, key) in [("content", "content"), ("summary", "summary")] {
            let shown: Vec<&Part> = self
                .parts
                .iter()
                .filter(|((known, _), _)| *known == place)
                .map(|(_, part)| part)
                .collect();
            let parts = item[key].as_array().cloned().unwrap_or_default();
            let grows = matches!(self.tag(), "message" | "reasoning");
            if grows && (shown.len() != parts.len() || shown.iter().any(|part| !part.done)) {
                return Err(format!("{} parts were shown of {item}", shown.len()));
            }
            for (part, shown) in parts.iter().zip(shown) {
                let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
                if text != Some(&shown.text) {
                    return Err(format!("{part} is not {:?}", shown.text));
                }
            }
        }
        let annotations = item["content"][0]["annotations"]
            .as_array()
            .map_or(0, Vec::len);
        if annotations as u64 != self.annotations {
            return Err(format!("{} annotations of {annotations}", self.annotations));
        }
        let arguments = match self.tag() {
            "function_call" | "mcp_call" => Some(&item["arguments"]),
            "custom_tool_call" => Some(&item["input"]),
            _ => None,
        };
        if let Some(arguments) = arguments {
            let shown = self.arguments.clone().unwrap_or_default();
            if !self.arguments_done || *arguments != shown {
                return Err(format!("{arguments} is not {shown:?}"));
            }
        }
        self.progressed(item)?;
        self.done = Some(item.clone());
        Ok(())
    }

    fn progressed(&self, item: &Value) -> Result<(), String> {
        let progress: Vec<&str> = self.progress.iter().map(String::as_str).collect();
        let fine = match self.tag() {
            "mcp_call" => match item["status"].as_str() {
                Some("completed") => progress == ["in_progress", "completed"],
                Some("failed") => progress == ["in_progress", "failed"],
                // It was never answered, or it was and its answer broke off afterwards.
                _ => progress.starts_with(&["in_progress"]),
            },
            "mcp_list_tools" => progress == ["in_progress", "completed"],
            "web_search_call" | "file_search_call" => {
                progress == ["in_progress", "searching", "completed"]
            }
            "image_generation_call" => progress == ["in_progress", "generating", "completed"],
            "code_interpreter_call" => progress == ["in_progress", "interpreting", "completed"],
            _ => progress.is_empty(),
        };
        fine.then_some(())
            .ok_or_else(|| format!("{progress:?} for {item}"))
    }
}

/// Whether an item is of a model call that was made again.
pub(crate) fn is_again(item: &Value) -> bool {
    let id = item["id"].as_str().and_then(|id| id.parse::<ItemId>().ok());
    let place = id.map(|id| id.place);
    matches!(place, Some(ItemPlace::Output { again, .. }) if again > 0)
}

/// The response at the end holds exactly what was shown.
fn end(items: &[Item], response: &Value, kind: &str) -> Result<(), String> {
    let output = response["output"].as_array().ok_or("no output")?;
    if output.len() != items.len() {
        return Err(format!(
            "{} items were shown, {} are there",
            items.len(),
            output.len()
        ));
    }
    let mut ids = BTreeSet::new();
    for (item, last) in items.iter().zip(output) {
        let done = item
            .done
            .as_ref()
            .ok_or_else(|| format!("{} was never done", item.added))?;
        let mut expected = done.clone();
        // An item of an answer that broke off later is incomplete in the end.
        let word = last["status"].as_str().unwrap_or_default();
        if matches!(word, "incomplete" | "failed") && !expected["status"].is_null() {
            expected["status"] = word.into();
        }
        if *last != expected {
            return Err(format!("{last} at the end was {done}"));
        }
        if !ids.insert(last["id"].to_string()) {
            return Err(format!("two items are {}", last["id"]));
        }
    }
    let status = response["status"].as_str().unwrap_or_default();
    let expected: &[&str] = match kind {
        "response.completed" => &["completed"],
        "response.incomplete" => &["incomplete", "cancelled"],
        _ => &["failed"],
    };
    if !expected.contains(&status) {
        return Err(format!("{kind} says {status}"));
    }
    let redone = output.iter().any(is_again);
    let cut = output.iter().filter(|item| item["status"] == "incomplete");
    if !redone && status == "completed" && cut.count() > 0 {
        return Err("an item of a completed response is incomplete".to_owned());
    }
    Ok(())
}
