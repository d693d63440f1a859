//! Composing: any settings around any history, for every format.

use std::collections::HashSet;

use throughline_model::json::{self, RawJson, Value};
use throughline_model::{
    AnswerShape, Effort, Family, Message, Settings, ToolChoice, ToolDef, Verbosity,
};
use throughline_testkit::generate::{self, Json};
use throughline_testkit::{Rng, property};
use throughline_wire::compose::{Delivery, Prompt, TokenLimit, compose};
use throughline_wire::render::{Chain, ChainAt, Options, Target, render};
use throughline_wire::validate::{Chained, Generation, Profile, validate};
use throughline_wire::{Losses, Wire, codec};

use crate::common::decode;
use crate::histories::Histories;

fn raw(text: &str) -> RawJson {
    RawJson::new(text).unwrap()
}

fn maybe<T>(rng: &mut Rng, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    rng.bool().then(|| make(rng))
}

fn number(rng: &mut Rng) -> f64 {
    *rng.pick(&[
        0.0,
        0.1,
        0.7,
        1.0,
        1.5,
        2.0,
        3.0,
        -1.0,
        1e-9,
        f64::NAN,
        f64::INFINITY,
    ])
}

fn settings(rng: &mut Rng) -> Settings {
    let efforts = [
        Effort::Off,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::ExtraHigh,
        Effort::Max,
    ];
    let schemas = [
        r#"{"type":"object","properties":{},"additionalProperties":false}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        "true",
    ];
    let extras = [
        r#"{"metadata":{"harbour":"Brest"}}"#,
        r#"{"temperature":0.25,"model":"another"}"#,
        r#"{"temperature":1,"temperature":0.75}"#,
        "[]",
    ];
    Settings {
        max_output_tokens: maybe(rng, |rng| *rng.pick(&[16, 1024, 1025, 4096, 64_000])),
        temperature: maybe(rng, number),
        top_p: maybe(rng, number),
        stop: (0..rng.below(7)).map(|_| generate::text(rng, 4)).collect(),
        effort: maybe(rng, |rng| *rng.pick(&efforts)),
        parallel_calls: maybe(rng, Rng::bool),
        answer: maybe(rng, |rng| AnswerShape {
            name: generate::text(rng, 8),
            schema: Some(raw(rng.pick::<&str>(&schemas))),
            strict: maybe(rng, Rng::bool),
            ..AnswerShape::default()
        }),
        summary: rng.bool(),
        verbosity: maybe(rng, |rng| *rng.pick(&Verbosity::ALL)),
        presence_penalty: maybe(rng, number),
        frequency_penalty: maybe(rng, number),
        user: maybe(rng, |rng| generate::text(rng, 8)),
        service_tier: maybe(rng, |rng| {
            rng.pick(&["auto", "default", "flex"]).to_string()
        }),
        cache_key: maybe(rng, |rng| generate::text(rng, 8)),
        cache_retention: maybe(rng, |_| "24h".to_owned()),
        betas: match rng.bool() {
            true => vec!["context-1".to_owned()],
            false => Vec::new(),
        },
        extra: maybe(rng, |rng| raw(rng.pick::<&str>(&extras))),
    }
}

fn tools(rng: &mut Rng) -> Vec<ToolDef> {
    let tool = |rng: &mut Rng, index: usize| ToolDef {
        family: Family::FUNCTION,
        name: format!("tool_{index}"),
        description: maybe(rng, |rng| generate::text(rng, 20)),
        parameters: Some(raw(&format!(
            r#"{{"type":"object","properties":{},"x":{}}}"#,
            Json::default().object(rng, 3),
            index
        ))),
        ..ToolDef::default()
    };
    (0..rng.below(4)).map(|index| tool(rng, index)).collect()
}

fn choice(rng: &mut Rng) -> ToolChoice {
    match rng.below(4) {
        0 => ToolChoice::Auto,
        1 => ToolChoice::None,
        2 => ToolChoice::Required,
        _ => ToolChoice::Named(format!("tool_{}", rng.below(4))),
    }
}

/// A target, and the profile of the same service.
fn target(wire: &Wire, rng: &mut Rng) -> (Target, Profile) {
    let chain = |at| Chain {
        at,
        calls: Chained::default(),
    };
    let response = || chain(ChainAt::Response("resp_1".into()));
    let conversation = || chain(ChainAt::Conversation("conv_1".into()));
    let chain = match wire {
        Wire::OpenAiResponses | Wire::Foundry => {
            let conversing = rng.bool();
            let make = |_: &mut Rng| {
                if conversing {
                    conversation()
                } else {
                    response()
                }
            };
            maybe(rng, make)
        }
        Wire::GeminiInteractions => maybe(rng, |_| response()),
        _ => None,
    };
    let target = Target {
        stored: rng.bool(),
        thinking: rng.bool(),
        generation: if rng.bool() {
            Generation::NEWEST
        } else {
            Generation::OLDER
        },
        container: maybe(rng, |_| "container_1".to_owned()),
        chain,
        ..Target::newest(wire.clone())
    };
    let profile = Profile {
        generation: target.generation,
        stored: target.stored,
        thinking: target.thinking,
        chained: target.chain.as_ref().map(|chain| chain.calls.clone()),
        ..Profile::newest(wire.clone())
    };
    (target, profile)
}

/// Whether a key stands twice in an object, or in one that it holds.
fn twice(value: &Value<'_>) -> Option<String> {
    let mut seen = HashSet::new();
    let again = value
        .members()
        .iter()
        .map(|member| member.key.to_str().into_owned())
        .find(|key| !seen.insert(key.clone()));
    let inner = value.members().iter().map(|member| &member.value);
    let inner = inner.chain(value.as_array().unwrap_or_default());
    again.or_else(|| inner.filter_map(twice).next())
}

/// What is said, without the items, which hold what vendors wrote.
fn around(body: &Value<'_>) -> String {
    let text = RawJson::of(body);
    let items = ["input", "messages", "contents", "tools"];
    text.without(|key| items.contains(&key)).get().to_owned()
}

fn check(
    wire: &Wire,
    history: &[Message],
    (target, profile): &(Target, Profile),
    rng: &mut Rng,
) -> Result<(), String> {
    let rendered = render(history, target, &Options::default());
    let items = rendered.array();
    let (tools, choice, settings) = (tools(rng), choice(rng), settings(rng));
    let instructions = maybe(rng, |rng| format!("Mind {}", generate::text(rng, 10)));
    let prompt = Prompt {
        instructions: instructions.as_deref(),
        system: rendered.system.as_deref(),
        tools: &tools,
        choice: &choice,
        settings: &settings,
        delivery: *rng.pick(&[Delivery::Whole, Delivery::Streamed]),
        limit: *rng.pick(&[TokenLimit::MaxCompletionTokens, TokenLimit::MaxTokens]),
        ..Prompt::new(target, "some-model", &items)
    };
    let mut losses = Losses::default();
    let body = compose(&prompt, &mut losses);
    let failed = |what: String| format!("{what}\n{prompt:?}\n{body}");
    let value = json::parse(&body).map_err(|error| failed(error.to_string()))?;
    if let Some(violation) = validate(&value, profile).first() {
        return Err(failed(format!("{violation:?}")));
    }
    let kept = around(&value);
    if let Some(key) = twice(&json::parse(&kept).map_err(|error| error.to_string())?) {
        return Err(failed(format!("{key} stands twice")));
    }
    let mut keys = HashSet::new();
    let mut members = value.members().iter();
    if let Some(member) = members.find(|member| !keys.insert(member.key.to_str())) {
        return Err(failed(format!("{:?} stands twice", member.key)));
    }
    let codec = codec(wire).unwrap();
    let request = codec
        .decode_request(&value)
        .map_err(|error| failed(error.to_string()))?;
    if request.tools != tools {
        return Err(failed(format!("other tools: {:?}", request.tools)));
    }
    let instructed = *wire == Wire::OpenAiChat && instructions.is_some();
    let expected = decode(codec, &items).map_err(|error| failed(error.to_string()))?;
    if request.messages.len() != expected.len() + usize::from(instructed) {
        return Err(failed(format!("{} messages", request.messages.len())));
    }
    if tools.is_empty()
        && ["tools", "tool_choice", "toolConfig"]
            .iter()
            .any(|key| value.get(key).is_some())
    {
        return Err(failed("tools although there are none".to_owned()));
    }
    Ok(())
}

fn composes_for(wire: &Wire) {
    let histories = Histories::new();
    property(&format!("composed for {wire}"), 1_000, |rng, size| {
        let history = histories.any(rng, size, wire);
        let whom = target(wire, rng);
        check(wire, &history, &whom, rng)
    });
}

#[test]
fn composed_for_openai_responses() {
    composes_for(&Wire::OpenAiResponses);
}

#[test]
fn composed_for_openai_chat() {
    composes_for(&Wire::OpenAiChat);
}

#[test]
fn composed_for_anthropic() {
    composes_for(&Wire::Anthropic);
}

#[test]
fn composed_for_gemini() {
    composes_for(&Wire::Gemini);
}

#[test]
fn composed_for_gemini_interactions() {
    composes_for(&Wire::GeminiInteractions);
}

#[test]
fn composed_for_foundry() {
    composes_for(&Wire::Foundry);
}
