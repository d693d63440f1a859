//! Seven formats by seven formats, on transcripts that were written for this.
//!
//! Every transcript is first brought into every format. From each of them it goes through
//! `neutral` and comes back as it was; and it goes to each of the others without failing, with a
//! list of what did not come along. What is neither in the output nor in the list has vanished
//! silently, and that fails.

use std::collections::BTreeMap;
use std::path::PathBuf;

use throughline_model::json::{self, Node, RawJson, Value};
use throughline_model::{
    Arguments, Body, Content, MediaSource, Message, Output, Role, ToolCall, ToolResult,
};
use throughline_wire::render::RepairKind;
use throughline_wire::transcript::{self, Limits, Transcript};
use throughline_wire::validate::{Profile, validate};
use throughline_wire::{
    ConvertOptions, Converted, DecodeError, Format, Loss, LossKind, Repairing, Wire, codec, convert,
};

use crate::exact::compact;

fn formats() -> Vec<Format> {
    let vendors = Wire::KNOWN.into_iter().filter(|wire| codec(wire).is_some());
    let mut formats = vec![Format::Neutral];
    formats.extend(vendors.map(Format::Vendor));
    formats
}

/// A transcript as it was written: `NAME.json` is neutral, `NAME.FORMAT.json` is a vendor's, and
/// so is the captured stream `NAME.FORMAT.sse`.
struct Written {
    name: String,
    format: Format,
    file: Vec<u8>,
}

fn written() -> Vec<Written> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcripts");
    let mut found: Vec<Written> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let format = match name.split('.').collect::<Vec<_>>()[..] {
                [_, "json"] => Format::Neutral,
                [_, format, "json" | "sse"] => format.parse().unwrap(),
                _ => panic!("{name} is not the name of a transcript"),
            };
            let file = std::fs::read(path).unwrap();
            Written { name, format, file }
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() >= 20, "{} transcripts", found.len());
    found
}

fn converted(file: &[u8], from: &Format, to: &Format) -> Result<Converted, DecodeError> {
    convert(file, from, to, ConvertOptions::default())
}

fn read(file: &str, format: &Format) -> Result<Transcript, DecodeError> {
    transcript::read(file.as_bytes(), format, Limits::default())
}

/// Every transcript in every format: its name, the format and the text.
fn forms() -> Vec<(String, Format, String)> {
    let mut forms = Vec::new();
    for written in written() {
        for format in formats() {
            let form = converted(&written.file, &written.format, &format)
                .unwrap_or_else(|error| panic!("{} to {format}: {error}", written.name));
            forms.push((written.name.clone(), format, form.output));
        }
    }
    forms
}

#[test]
fn what_a_vendor_wrote_comes_back_as_it_was() {
    let mut survived = 0;
    for Written { name, format, file } in written() {
        let text = String::from_utf8(file).unwrap();
        // A response and a stream come back as their messages, ours with its version.
        if format == Format::Neutral || name.starts_with("response.") || name.ends_with(".sse") {
            continue;
        }
        let same = converted(text.as_bytes(), &format, &format).unwrap();
        assert_eq!(same.output, compact(&text), "{name}");
        assert!(same.losses.is_empty() && same.repairs.is_empty(), "{name}");
        survived += 1;
    }
    assert!(survived >= 10, "{survived} transcripts");
}

#[test]
fn through_neutral_and_back_nothing_changes() {
    let mut trips = 0;
    let mut wrong = Vec::new();
    for (name, format, form) in forms() {
        let there = converted(form.as_bytes(), &format, &Format::Neutral).unwrap();
        let back = converted(there.output.as_bytes(), &Format::Neutral, &format).unwrap();
        trips += 1;
        if back.output != form {
            wrong.push(format!(
                "{name} as {format}:\n{form}\nbecame\n{}",
                back.output
            ));
        }
        for Converted {
            losses, repairs, ..
        } in [there, back]
        {
            if !losses.is_empty() || !repairs.is_empty() {
                wrong.push(format!("{name} as {format}: {losses:?} {repairs:?}"));
            }
        }
    }
    println!(
        "table matrix through neutral: trips={trips} wrong={}",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[derive(Default)]
struct Row {
    transcripts: usize,
    losses: usize,
    repairs: usize,
}

#[test]
fn every_format_goes_to_every_other_and_nothing_vanishes_silently() {
    let formats = formats();
    let mut table: BTreeMap<(usize, usize), Row> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, from, form) in forms() {
        let source = read(&form, &from).unwrap();
        let row = formats.iter().position(|format| *format == from).unwrap();
        for (column, to) in formats.iter().enumerate() {
            let what = format!("{name}: {from} -> {to}");
            match checked(&source, &form, &from, to) {
                Ok(found) => {
                    let cell = table.entry((row, column)).or_default();
                    cell.transcripts += 1;
                    cell.losses += found.losses.len();
                    cell.repairs += found.repairs.len();
                }
                Err(error) => wrong.push(format!("{what}: {error}")),
            }
        }
    }
    for ((row, column), cell) in &table {
        let (from, to) = (&formats[*row], &formats[*column]);
        println!(
            "table matrix {from} -> {to}: transcripts={} losses={} repairs={}",
            cell.transcripts, cell.losses, cell.repairs
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(table.len(), formats.len() * formats.len());
}

/// Rules that rendering breaks, known and counted.
const KNOWN: [(&str, &str); 1] = [(
    "O-12",
    "an item of a type that is newer than we are goes back to the vendor that made it",
)];

#[test]
fn what_is_rendered_is_accepted() {
    let options = ConvertOptions {
        repairing: Repairing::Always,
        ..ConvertOptions::default()
    };
    let (mut checked, mut known, mut wrong) = (0, 0, Vec::new());
    for (name, from, form) in forms() {
        for to in formats() {
            let Format::Vendor(wire) = &to else { continue };
            let found = convert(form.as_bytes(), &from, &to, options).unwrap();
            let request = json::parse(&found.output).unwrap();
            let mut violations = validate(&request, &Profile::newest(wire.clone()));
            let all = violations.len();
            violations.retain(|found| KNOWN.iter().all(|(rule, _)| *rule != found.rule));
            known += all - violations.len();
            checked += 1;
            if !violations.is_empty() {
                let output = &found.output;
                wrong.push(format!(
                    "{name}: {from} -> {to}: {violations:#?}\n{form}\nbecame\n{output}"
                ));
            }
        }
    }
    println!(
        "table matrix accepted: checked={checked} known={known} refused={}",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn what_vanishes_silently_is_seen() {
    let history = [
        r#"{"role":"user","contents":[{"kind":"text","text":"Aye."}]}"#,
        r#"{"role":"user","contents":[{"kind":"text","text":"Aye."},{"kind":"media","media":"image","data":"iVBORw0KGgo="}]}"#,
        r#"{"role":"assistant","contents":[{"kind":"reasoning","sealed":true},{"kind":"tool_call","call":"c","origin":"natural","family":"function","name":"moor","arguments":"{\"berth\": 4}"}]}"#,
        r#"{"role":"tool","contents":[{"kind":"tool_result","call":"c","origin":"natural","family":"function","outcome":"ok","json":{"moored":[true]}}]}"#,
    ];
    let source = read(&format!("[{}]", history.join(",")), &Format::Neutral).unwrap();
    let to = Format::Vendor(Wire::OpenAiChat);
    let missed = |output: &str, losses: Vec<Loss>| {
        let output = output.to_owned();
        let repairs = Vec::new();
        let found = Converted {
            output,
            losses,
            repairs,
        };
        let paths = vanished(&source, &found, &to).into_iter();
        let paths = paths.map(|found| found.split(": ").next().unwrap().to_owned());
        paths.collect::<Vec<_>>()
    };
    let loss = |path: &str, kind| Loss {
        path: path.to_owned(),
        kind,
        detail: String::new(),
        sent: None,
    };
    let all = [
        "messages[0].contents[0]",
        "messages[1].contents[0]",
        "messages[1].contents[1]",
        "messages[2].contents[0]",
        "messages[2].contents[1]",
        "messages[3].contents[0]",
    ];
    assert_eq!(missed("[]", Vec::new()), all);
    // Said once of two times; with other arguments; with less of the result.
    let less = r#"["Aye.","moor","{\"berth\":5}","{\"moored\":[]}"]"#;
    assert_eq!(missed(less, Vec::new()), all[1..]);
    let whole =
        r#"["Aye. Aye.","moor",{"berth":4},"x {\"moored\":[true]}","data:;base64,iVBORw0KGgo="]"#;
    assert_eq!(missed(whole, Vec::new()), [all[3]]);
    // A list excuses what it names, and text only where it says that text is gone.
    let reasoning = || loss(all[3], LossKind::Reasoning);
    assert!(missed(whole, vec![reasoning()]).is_empty());
    let excuses = vec![
        loss(all[0], LossKind::Citations),
        loss(all[1], LossKind::SystemText),
        loss("messages[1].contents[1].x", LossKind::Media),
        loss("messages[2]", LossKind::HostedTool),
        loss("messages[3].contents[01]", LossKind::Outcome),
    ];
    assert_eq!(missed("[]", excuses), [all[0], all[5]]);
}

/// Convert, and see whether the result is whole.
fn checked(
    source: &Transcript,
    form: &str,
    from: &Format,
    to: &Format,
) -> Result<Converted, String> {
    let found = converted(form.as_bytes(), from, to).map_err(|error| error.to_string())?;
    let output = &found.output;
    json::parse(output).map_err(|error| format!("{error} in {output}"))?;
    let again = read(output, to).map_err(|error| format!("{error} in {output}"))?;
    if again.shape != source.shape {
        return Err(format!("{:?} became {:?}", source.shape, again.shape));
    }
    let silent = vanished(source, &found, to);
    if !silent.is_empty() {
        let losses: Vec<_> = found.losses.iter().map(ToString::to_string).collect();
        let repairs: Vec<_> = found.repairs.iter().map(|r| format!("{r:?}")).collect();
        return Err(format!(
            "vanished {silent:#?}\nlosses {losses:#?}\nrepairs {repairs:#?}\n{form}\nbecame\n{output}"
        ));
    }
    Ok(found)
}

/// What of a transcript is neither in the output nor listed.
fn vanished(source: &Transcript, found: &Converted, to: &Format) -> Vec<String> {
    let said = Said::of(&found.output);
    let listed = Listed(found);
    let mut missing = Vec::new();
    // Texts that are said twice must be there twice.
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    let mut look = |content: &Content, path: &str, is_system: bool| {
        let missed = match text_of(content) {
            Some(text) if text.trim().is_empty() => false,
            Some(text) => {
                let count = wanted.entry(text.to_owned()).or_default();
                *count += 1;
                said.times(text) < *count && {
                    *count -= 1;
                    !listed.text(path, is_system)
                }
            }
            None => !said.content(content, to) && !listed.any(path),
        };
        if missed {
            missing.push(format!("{path}: {:?}", content.body));
        }
    };
    for (place, content) in source.request.system.iter().enumerate() {
        look(content, &format!("system[{place}]"), true);
    }
    for (index, message) in source.request.messages.iter().enumerate() {
        for (place, content) in message.contents.iter().enumerate() {
            let path = format!("messages[{index}].contents[{place}]");
            look(content, &path, is_system(message));
        }
    }
    missing
}

fn is_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// What a person or a model said.
fn text_of(content: &Content) -> Option<&str> {
    match &content.body {
        Body::Text(text) | Body::Refusal(text) => Some(&text.text),
        Body::Error(fault) => Some(&fault.message),
        _ => None,
    }
}

/// The lists beside an output.
struct Listed<'c>(&'c Converted);

impl Listed<'_> {
    /// Whether a loss says that a text did not come along. Most kinds are about what stood beside
    /// the text, and do not excuse that it is missing.
    fn text(&self, path: &str, is_system: bool) -> bool {
        self.0.losses.iter().any(|loss| match loss.kind {
            LossKind::SystemText => names(&loss.path, path) || (is_system && loss.path == "system"),
            LossKind::LoneSurrogate => names(&loss.path, path),
            _ => false,
        })
    }

    /// Whether a loss or a repair names a content, or something in it.
    fn any(&self, path: &str) -> bool {
        let losses = self.0.losses.iter().map(|loss| (&loss.path, true));
        let repairs = self.0.repairs.iter().map(|repair| {
            // These say that something was put in or moved, not that it is gone.
            let gone = !matches!(
                repair.kind,
                RepairKind::LeadingUser | RepairKind::TrailingUser | RepairKind::BetweenModels
            );
            (&repair.path, gone)
        });
        losses
            .chain(repairs)
            .any(|(named, gone)| gone && names(named, path))
    }
}

/// Whether a listed path is that of a content, of something in it, or of its message.
fn names(listed: &str, path: &str) -> bool {
    let inside = listed
        .strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
    let message = path
        .split_once(".contents[")
        .map_or("", |(message, _)| message);
    inside || listed == message
}

/// What an output says: its strings, and its JSON, also where that stands in a string.
struct Said {
    strings: Vec<String>,
    json: Vec<String>,
}

impl Said {
    fn of(output: &str) -> Self {
        let value = json::parse(output).unwrap();
        let mut said = Self {
            strings: Vec::new(),
            json: vec![RawJson::of(&value).get().to_owned()],
        };
        said.gather(&value);
        said
    }

    fn gather(&mut self, value: &Value<'_>) {
        match value.node() {
            Node::String(_) => {
                let text = value.as_str().unwrap();
                if let Ok(inner) = RawJson::new(&text) {
                    self.json.push(inner.get().to_owned());
                }
                self.strings.push(text.into_owned());
            }
            Node::Array(values) => values.iter().for_each(|value| self.gather(value)),
            Node::Object(members) => {
                for member in members {
                    self.strings.push(member.key.to_str().into_owned());
                    self.gather(&member.value);
                }
            }
            Node::Null | Node::Bool(_) | Node::Number => {}
        }
    }

    fn times(&self, text: &str) -> usize {
        let counts = self.strings.iter().map(|found| found.matches(text).count());
        counts.sum()
    }

    fn has(&self, text: &str) -> bool {
        self.strings.iter().any(|found| found.contains(text))
    }

    fn has_json(&self, text: &str) -> bool {
        self.has(text) || self.json.iter().any(|found| found.contains(text))
    }

    /// Whether what a content is about is there.
    fn content(&self, content: &Content, to: &Format) -> bool {
        let own = matches!((&content.vendor, to), (Some(vendor), Format::Vendor(wire)) if vendor.wire == *wire);
        match &content.body {
            Body::Text(_) | Body::Refusal(_) | Body::Error(_) => {
                self.has(text_of(content).unwrap_or_default())
            }
            Body::Media(media) => {
                let words = media.transcript.as_deref();
                self.source(&media.source) && words.is_none_or(|words| self.has(words))
            }
            Body::ToolCall(call) => self.call(call),
            Body::ToolResult(result) => self.result(result, to),
            Body::Reasoning(reasoning) => {
                let mut texts = reasoning.text.iter().chain(&reasoning.summary);
                let seen = own || *to == Format::Neutral || !reasoning.sealed;
                seen && texts.all(|text| self.has(text))
            }
            Body::ApprovalRequest(request) => {
                self.has(request.request.value()) && self.has(&request.name)
            }
            Body::ApprovalResponse(response) => {
                let reason = response.reason.as_deref().unwrap_or_default();
                self.has(response.request.value()) && self.has(reason)
            }
            Body::Opaque(opaque) => own || *to == Format::Neutral || self.has(&opaque.tag),
            Body::Unknown(raw) => self.has_json(raw.get()),
        }
    }

    fn call(&self, call: &ToolCall) -> bool {
        let named = if call.name.is_empty() {
            call.family.as_str()
        } else {
            &call.name
        };
        let arguments = match &call.arguments {
            Arguments::None => true,
            Arguments::Free(text) => self.has(text),
            Arguments::Json(raw) => raw.value().is_null() || self.has_json(raw.get()),
            Arguments::Text(text) => match RawJson::new(text) {
                Ok(raw) => self.has_json(raw.get()) || self.has(text),
                Err(_) => self.has(text.trim()),
            },
        };
        arguments && (self.has(named) || call.name.is_empty())
    }

    fn result(&self, result: &ToolResult, to: &Format) -> bool {
        match &result.output {
            Output::None => true,
            Output::Text(text) => self.has(text),
            Output::Json(raw) => self.has_json(raw.get()),
            Output::Parts(parts) => parts.iter().all(|part| self.content(part, to)),
        }
    }

    /// Whether the bytes of media are there, or where they are.
    fn source(&self, source: &MediaSource) -> bool {
        match source {
            MediaSource::Uri(uri) => match uri.split_once(";base64,") {
                Some((_, data)) => self.bytes(data),
                None => self.has(uri),
            },
            MediaSource::File(file) => self.has(file),
            MediaSource::Data(data) => self.bytes(data),
        }
    }

    /// Some targets take text as text.
    fn bytes(&self, data: &str) -> bool {
        self.has(data) || plain(data).is_some_and(|text| self.has(&text))
    }
}

/// The text that stands in base 64.
fn plain(data: &str) -> Option<String> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = data.trim_end_matches('=').chars();
    let bits: String = digits
        .map(|digit| DIGITS.find(digit).map(|value| format!("{value:06b}")))
        .collect::<Option<_>>()?;
    let bytes = bits.as_bytes().chunks_exact(8).map(|byte| {
        let byte = std::str::from_utf8(byte).ok()?;
        u8::from_str_radix(byte, 2).ok()
    });
    String::from_utf8(bytes.collect::<Option<_>>()?).ok()
}
