//! Writes random conversations through a codec, for the models of the vendors' SDKs to parse.
//!
//! `worker sdk-samples --wire NAME --count N --seed S` writes one line of JSON for each history,
//! `{"kind":"messages","value":[…]}`, and for every third of them also one of kind `request`,
//! `response` and `stream`. None of it came from the format itself: the histories are neutral, or
//! were written and read by the codec of another vendor, including that vendor's examples of the
//! wire catalogue. A format without a codec ends the program with code 3. `--list` prints the names
//! of all formats.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{
    Content, Family, Message, Request, Response, Role, Stop, ToolDef, Usage, VendorError,
};
use throughline_testkit::generate::Json;
use throughline_testkit::{Rng, messages};
use throughline_wire::{Codec, Losses, Wire, codec};

const CATALOGUE: &str = include_str!("../../../../wire/tests/fixtures/catalogue/examples.json");

/// The code of a format that has no codec.
const NO_CODEC: u8 = 3;

/// The most messages in a history, more or less.
const LARGEST: usize = 10;

/// One history in this many also makes a request, a response and a stream.
const BODIES_EVERY: u64 = 3;

struct SampleOptions {
    wire: Wire,
    count: u64,
    seed: u64,
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program says what it was asked, and why it stops"
)]
pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = crate::arguments().collect();
    if arguments == ["--list"] {
        Wire::KNOWN.iter().for_each(|wire| println!("{wire}"));
        return ExitCode::SUCCESS;
    }
    let settings = match settings(&arguments) {
        Ok(settings) => settings,
        Err(complaint) => {
            eprintln!("{complaint}");
            eprintln!("usage: worker sdk-samples --wire NAME --count N --seed S | --list");
            return ExitCode::from(2);
        }
    };
    let Some(target) = codec(&settings.wire) else {
        eprintln!("there is no codec for {}", settings.wire);
        return ExitCode::from(NO_CODEC);
    };
    match write_all(target, &settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

fn settings(arguments: &[String]) -> Result<SampleOptions, String> {
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1))
            .ok_or_else(|| format!("{name} is missing"))
    };
    let number = |name: &str| {
        let text = value(name)?;
        let number = match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        };
        number.ok_or_else(|| format!("{name} {text} is not a number"))
    };
    Ok(SampleOptions {
        wire: Wire::named(value("--wire")?),
        count: number("--count")?,
        seed: number("--seed")?,
    })
}

fn write_all(target: &Codec, settings: &SampleOptions) -> Result<(), String> {
    let others = others(target)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut rng = Rng::new(settings.seed);
    for case in 0..settings.count {
        let mut rng = rng.fork();
        // Sizes grow, so that the first refused sample tends to be small.
        let grown = (case as usize).saturating_mul(LARGEST) / settings.count.max(1) as usize;
        let size = rng.range(1..=grown.max(1));
        let samples = Samples {
            target,
            others: &others,
            rng: &mut rng,
            size,
        };
        for (kind, value) in samples.make(case % BODIES_EVERY == 0)? {
            // A line break can only stand between tokens, where a space means the same.
            let value = value.replace('\n', " ");
            writeln!(out, r#"{{"kind":"{kind}","value":{value}}}"#)
                .map_err(|error| error.to_string())?;
        }
    }
    out.flush().map_err(|error| error.to_string())
}

/// Another vendor: its codec, and its examples of the catalogue as messages.
struct Other {
    codec: &'static Codec,
    examples: Vec<Vec<Message>>,
}

fn others(target: &Codec) -> Result<Vec<Other>, String> {
    let catalogue = json::parse(CATALOGUE).map_err(|error| error.to_string())?;
    let rows = catalogue.as_array().unwrap_or_default();
    let mut others = Vec::new();
    for codec in Wire::KNOWN.iter().filter_map(codec) {
        if codec.wire() == target.wire() {
            continue;
        }
        let mut examples = Vec::new();
        for row in rows.iter().filter(|row| wire_of(row) == codec.wire()) {
            if let Some(example) = row.get("example") {
                let wrapped = wrap(&codec.wire(), text(row, "tag"), example);
                examples.push(read(codec, &format!("[{wrapped}]"))?);
            }
        }
        others.push(Other { codec, examples });
    }
    Ok(others)
}

fn text<'v>(row: &'v Value<'_>, key: &str) -> &'v str {
    row.get(key)
        .and_then(Value::as_text)
        .map_or("", |text| text.token().trim_matches('"'))
}

fn wire_of(row: &Value<'_>) -> Wire {
    match (text(row, "provider"), text(row, "api")) {
        ("openai", "chat") => Wire::OpenAiChat,
        ("openai", _) => Wire::OpenAiResponses,
        ("gemini", "interactions") => Wire::GeminiInteractions,
        (provider, _) => Wire::named(provider),
    }
}

/// An example of the catalogue in a minimal message.
fn wrap(wire: &Wire, tag: &str, example: &Value<'_>) -> String {
    let example = RawJson::of(example);
    match (wire, tag) {
        (Wire::OpenAiChat, "function" | "custom") => {
            format!(r#"{{"role":"assistant","content":null,"tool_calls":[{example}]}}"#)
        }
        (Wire::Anthropic, tag) => {
            let role = match tag {
                "tool_result" => "user",
                "tool_addition" => "system",
                _ => "assistant",
            };
            format!(r#"{{"role":"{role}","content":[{example}]}}"#)
        }
        (Wire::Gemini, tag) => {
            let role = match tag {
                "functionResponse" => "user",
                _ => "model",
            };
            format!(r#"{{"role":"{role}","parts":[{example}]}}"#)
        }
        _ => example.to_string(),
    }
}

fn read(codec: &Codec, array: &str) -> Result<Vec<Message>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}: {array}", codec.wire());
    let value = json::parse(array).map_err(|error| failed(&error))?;
    codec
        .decode_messages(value.as_array().unwrap_or_default())
        .map_err(|error| failed(&error))
}

/// The samples of one history.
struct Samples<'s> {
    target: &'s Codec,
    others: &'s [Other],
    rng: &'s mut Rng,
    size: usize,
}

impl Samples<'_> {
    fn make(mut self, with_bodies: bool) -> Result<Vec<(&'static str, String)>, String> {
        let mut losses = Losses::default();
        let history = self.history()?;
        let mut made = vec![(
            "messages",
            self.target.encode_messages(&history, &mut losses),
        )];
        if with_bodies {
            let request = self.request(history);
            made.push(("request", self.target.encode_request(&request, &mut losses)));
            let response = self.response()?;
            made.push((
                "response",
                self.target.encode_response(&response, &mut losses),
            ));
            let frames = self.target.encode_stream(&response, &mut losses);
            // A stream also has frames that are not events, such as its end mark.
            let events: Vec<&str> = frames
                .iter()
                .map(|frame| frame.data.as_str())
                .filter(|data| json::parse(data).is_ok())
                .collect();
            made.push(("stream", format!("[{}]", events.join(","))));
        }
        Ok(made)
    }

    fn history(&mut self) -> Result<Vec<Message>, String> {
        let own = match self.rng.below(4) {
            0 => messages::plain_history(self.rng, self.size),
            1 | 2 => messages::history(self.rng, self.size),
            _ => (0..self.size)
                .map(|_| messages::anything(self.rng, 6))
                .collect(),
        };
        if self.others.is_empty() || self.rng.chance(0.4) {
            return Ok(own);
        }
        let other = self.rng.pick(self.others);
        if other.examples.is_empty() || self.rng.bool() {
            let written = other.codec.encode_messages(&own, &mut Losses::default());
            return read(other.codec, &written);
        }
        let count = self.rng.range(1..=self.size);
        let picked = (0..count).map(|_| self.rng.pick(&other.examples).clone());
        Ok(picked.flatten().collect())
    }

    fn request(&mut self, history: Vec<Message>) -> Request {
        let schema = RawJson::object(|object| {
            object.str("type", "object").raw("properties", "{}");
        });
        let tools = (0..self.rng.below(3)).map(|number| ToolDef {
            family: match self.rng.below(6) {
                0 => Family::CUSTOM,
                1 => Family::named("web-search"),
                _ => Family::FUNCTION,
            },
            name: format!("tool_{number}"),
            description: self.rng.bool().then(|| "Looks up the tide.".to_owned()),
            parameters: self.rng.bool().then(|| schema.clone()),
            ..ToolDef::default()
        });
        let tools = tools.collect();
        let system = if self.rng.bool() {
            vec![Content::text("Answer in one sentence.")]
        } else {
            Vec::new()
        };
        Request {
            system,
            messages: history,
            tools,
            vendor: None,
        }
    }

    /// A response with one message of a model, ours or another vendor's.
    fn response(&mut self) -> Result<Response, String> {
        let mut contents: Vec<Content> = self
            .history()?
            .into_iter()
            .filter(|message| message.role == Role::Assistant)
            .flat_map(|message| message.contents)
            .collect();
        if contents.is_empty() && self.rng.bool() {
            contents.push(Content::text("Low water is at 10:42."));
        }
        let stop = match self.rng.below(STOPS.len() + 1) {
            0 => Stop::Other("odd".into()),
            index => STOPS[index - 1].clone(),
        };
        let error = (stop == Stop::Failed).then(|| VendorError {
            wire: Wire::Other("some-new-wire".into()),
            message: "the model fell over".to_owned(),
            kind: self.rng.bool().then(|| "overloaded_error".to_owned()),
            code: self.rng.bool().then(|| {
                let code = *self
                    .rng
                    .pick(&["server_error", "rate_limit_exceeded", "ebb"]);
                code.to_owned()
            }),
            param: None,
            retry_after_ms: None,
            body: None,
        });
        let response = Response {
            id: self.rng.bool().then(|| "resp_1".to_owned()),
            model: self.rng.bool().then(|| "some-model".to_owned()),
            messages: vec![Message::new(Role::Assistant, contents)],
            usage: self.usage(),
            stop,
            error,
            vendor: None,
            service: None,
        };
        if self.others.is_empty() || self.rng.bool() {
            return Ok(response);
        }
        let other = self.rng.pick(self.others).codec;
        let body = other.encode_response(&response, &mut Losses::default());
        let value = json::parse(&body).map_err(|error| format!("{error}: {body}"))?;
        other
            .decode_response(&value)
            .map_err(|error| format!("{}: {error}: {body}", other.wire()))
    }

    fn usage(&mut self) -> Option<Usage> {
        let mut count = || self.rng.bool().then(|| self.rng.below(100_000) as u64);
        let usage = Usage {
            input: count(),
            output: count(),
            total: count(),
            cache_read: count(),
            cache_write: count(),
            reasoning: count(),
            ..Usage::default()
        };
        let vendor = Json::default().object(self.rng, 3);
        self.rng.bool().then(|| Usage {
            vendor: RawJson::new(&vendor).ok(),
            ..usage
        })
    }
}

const STOPS: [Stop; 10] = [
    Stop::Done,
    Stop::ToolCalls,
    Stop::Length,
    Stop::ContentFilter,
    Stop::Refusal,
    Stop::Paused,
    Stop::Cancelled,
    Stop::Failed,
    Stop::InProgress,
    Stop::Cut,
];
