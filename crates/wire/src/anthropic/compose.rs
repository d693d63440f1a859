//! Anthropic Messages.

use throughline_model::{AnswerShape, Effort};

use crate::anthropic::request;
use crate::compose::answer_schema;
use crate::compose::body_builder::{BodyBuilder, Continuation, ToolSelection};
use crate::compose::hosted::{
    HostedTool, OfferedTool, SelectedBy, is_automatic_container, is_empty_option, runs_code,
};
use crate::object_builder::ObjectBuilder;
use crate::openai::tool_definition;
use throughline_model::Family;
use throughline_model::json::{RawJson, Value};

/// The limit of tokens where the caller sets none: Anthropic refuses a request without one, and
/// thinking counts towards it.
const DEFAULT_MAX_TOKENS: u64 = 16_384;

/// The smallest budget for thinking.
const LEAST_BUDGET: u64 = 1024;

pub(crate) fn write(builder: &mut BodyBuilder<'_>) {
    let settings = builder.prompt.settings;
    let most = settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    builder.body.str("model", builder.prompt.model);
    builder.body.number("max_tokens", most);
    builder.add_input(Continuation::Nothing);
    let thinking = thinking(builder, most);
    if let Some(choice) = builder.add_tools(request::functions) {
        tool_choice(builder, choice, thinking);
    }
    sampling(builder, thinking.is_on());
    if !settings.stop.is_empty() {
        builder.body.strings("stop_sequences", &settings.stop);
    }
    thinking.write(builder);
    output(builder);
    if let Some(user) = &settings.user {
        let mut metadata = ObjectBuilder::default();
        metadata.str("user_id", user);
        builder.body.object("metadata", metadata);
    }
    service_tier(builder);
    if settings.summary && thinking != Thinking::Adaptive {
        builder.note_loss(
            "summary",
            "there is a summary only where the model decides how much to think",
        );
    }
    builder.note_unsupported(&["summary", "user", "service_tier", "betas"]);
    if builder.is_streamed() {
        builder.body.bool("stream", true);
    }
}

/// How a request sets thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinking {
    /// Nothing; the model does what it does.
    Unsaid,
    Off,
    Adaptive,
    /// As many tokens at most.
    Budget(u64),
}

impl Thinking {
    fn is_on(self) -> bool {
        match self {
            Self::Unsaid | Self::Off => false,
            Self::Adaptive | Self::Budget(_) => true,
        }
    }

    fn write(self, builder: &mut BodyBuilder<'_>) {
        let mut thinking = ObjectBuilder::default();
        match self {
            Self::Unsaid => {}
            Self::Off => thinking.str("type", "disabled"),
            Self::Adaptive => {
                thinking.str("type", "adaptive");
                if builder.prompt.settings.summary {
                    thinking.str("display", "summarized");
                }
            }
            Self::Budget(tokens) => {
                thinking.str("type", "enabled");
                thinking.number("budget_tokens", tokens);
            }
        }
        builder.body.object("thinking", thinking);
    }
}

fn thinking(builder: &mut BodyBuilder<'_>, most: u64) -> Thinking {
    let (target, settings) = (builder.prompt.target, builder.prompt.settings);
    let wanted = match settings.effort {
        // A summary is one of thoughts.
        None if settings.summary && target.generation.thinking_levels => return Thinking::Adaptive,
        None if !target.thinking => return Thinking::Unsaid,
        Some(Effort::Off) if target.generation.thinking_levels => {
            builder.note_loss(
                "effort",
                "thinking is left to the model; it cannot be switched off",
            );
            return Thinking::Unsaid;
        }
        Some(Effort::Off) => return Thinking::Off,
        _ if target.generation.thinking_levels => return Thinking::Adaptive,
        // A history that was rendered without thinking is refused with it.
        Some(_) if !target.thinking => {
            builder.note_loss("effort", "the target does not think");
            return Thinking::Unsaid;
        }
        Some(Effort::Minimal) => LEAST_BUDGET,
        Some(Effort::Low) => 2048,
        None | Some(Effort::Medium) => 8192,
        Some(Effort::High) => 24_576,
        Some(Effort::ExtraHigh) => 32_768,
        Some(Effort::Max) => 49_152,
    };
    // A quarter is left for the answer, if that leaves enough to think.
    let budget = wanted.min(most / 4 * 3).max(LEAST_BUDGET);
    if budget >= most {
        let detail = format!("thinking needs a limit of more than {LEAST_BUDGET} tokens");
        builder.note_loss("effort", detail);
        return Thinking::Unsaid;
    }
    Thinking::Budget(budget)
}

fn tool_choice(builder: &mut BodyBuilder<'_>, choice: ToolSelection<'_>, thinking: Thinking) {
    let choice = match thinking {
        Thinking::Budget(_) if choice.is_forced() => {
            builder.note_choice_loss("no call can be demanded of a model with a thinking budget");
            ToolSelection::Auto
        }
        _ => choice,
    };
    let one = builder.prompt.settings.parallel_calls == Some(false);
    let mut tool_choice = ObjectBuilder::default();
    match &choice {
        ToolSelection::Auto if !one => {}
        ToolSelection::Auto => tool_choice.str("type", "auto"),
        ToolSelection::None => tool_choice.str("type", "none"),
        ToolSelection::Required => tool_choice.str("type", "any"),
        ToolSelection::Function(name) => {
            tool_choice.str("type", "tool");
            tool_choice.str("name", name);
        }
        // Tools of this vendor have names.
        ToolSelection::Type(tag, _) => {
            tool_choice.str("type", "tool");
            tool_choice.str("name", tag);
        }
    }
    if one && choice != ToolSelection::None {
        tool_choice.bool("disable_parallel_tool_use", true);
    }
    builder.body.object("tool_choice", tool_choice);
}

/// OpenAI's words for the class of service in Anthropic's.
fn service_tier(builder: &mut BodyBuilder<'_>) {
    match builder.prompt.settings.service_tier.as_deref() {
        None => {}
        Some("auto" | "priority") => builder.body.str("service_tier", "auto"),
        Some("default" | "standard") => builder.body.str("service_tier", "standard_only"),
        Some(tier) => builder.note_loss("service_tier", format!("there is no class '{tier}'")),
    }
}

/// Temperature or share of words: older models take one of them, and none while they think.
fn sampling(builder: &mut BodyBuilder<'_>, thinking: bool) {
    let settings = builder.prompt.settings;
    let refused = if !builder.prompt.target.generation.sampling {
        Some("the newest models choose words by themselves")
    } else if thinking {
        Some("not while the model thinks")
    } else {
        None
    };
    if let Some(why) = refused {
        if settings.temperature.is_some() {
            builder.note_loss("temperature", why);
        }
        if settings.top_p.is_some() {
            builder.note_loss("top_p", why);
        }
        return;
    }
    let temperature = builder.temperature(1.0);
    match temperature {
        Some(_) if settings.top_p.is_some() => {
            builder.note_loss("top_p", "not together with a temperature");
        }
        Some(_) => {}
        None => {
            if let Some(share) = builder.top_p() {
                builder.body.raw("top_p", share);
            }
        }
    }
    if let Some(temperature) = temperature {
        builder.body.raw("temperature", temperature);
    }
}

/// Effort and the shape of the answer.
fn output(builder: &mut BodyBuilder<'_>) {
    let settings = builder.prompt.settings;
    let mut output = ObjectBuilder::default();
    let levels = builder.prompt.target.generation.thinking_levels;
    match settings.effort.filter(|_| levels) {
        None | Some(Effort::Off) => {}
        Some(Effort::Minimal) => {
            builder.note_replaced("effort", "low is the least, and was sent", "\"low\"");
            output.str("effort", "low");
        }
        Some(effort) => output.str("effort", effort.as_str()),
    }
    match &settings.answer {
        None => {}
        Some(AnswerShape { schema: None, .. }) => {
            builder.note_loss("answer", "an answer in JSON needs a schema");
        }
        Some(AnswerShape {
            schema: Some(_), ..
        }) => {
            if let Some(schema) = answer_schema::closed(builder) {
                let mut format = ObjectBuilder::default();
                format.str("type", "json_schema");
                format.raw("schema", schema);
                output.object("format", format);
            }
        }
    }
    builder.body.object("output_config", output);
}

/// Web search and code execution, with the options that Anthropic has for them.
pub(crate) fn hosted_tool<'p>(
    builder: &mut BodyBuilder<'p>,
    offered: &OfferedTool<'p>,
) -> Option<HostedTool<'p>> {
    let tool = offered.tool;
    let mut json = ObjectBuilder::default();
    let name = match &tool.family {
        family if *family == Family::WEB_SEARCH => {
            json.str("type", "web_search_20250305");
            json.str("name", "web_search");
            "web_search"
        }
        family if runs_code(family) => {
            json.str("type", "code_execution_20250825");
            json.str("name", "code_execution");
            "code_execution"
        }
        _ => return None,
    };
    if let Some(options) = tool_definition(tool) {
        let value = options.value();
        for member in value.members() {
            let key = member.key.to_str();
            match &*key {
                "type" | "name" => {}
                "filters" => {
                    for filter in member.value.members() {
                        match &*filter.key.to_str() {
                            "allowed_domains" => {
                                json.raw("allowed_domains", filter.value.raw().to_owned());
                            }
                            "blocked_domains" => {
                                json.raw("blocked_domains", filter.value.raw().to_owned());
                            }
                            other => {
                                let key = format!("filters.{other}");
                                offered.note_loss(
                                    builder,
                                    Some(&key),
                                    "the search has no such filter",
                                );
                            }
                        }
                    }
                }
                "user_location" if !member.value.is_null() => {
                    json.raw("user_location", approximate(&member.value));
                }
                other
                    if is_empty_option(&member.value)
                        || is_automatic_container(other, &member.value) => {}
                other => {
                    offered.note_loss(builder, Some(other), "the tool has no such option here");
                }
            }
        }
    }
    Some(HostedTool {
        name: &tool.name,
        selected_by: SelectedBy::Name(name),
        json: json.into_text(),
    })
}

/// A place as Anthropic wants it: with its type.
fn approximate(value: &Value<'_>) -> String {
    RawJson::object(|object| {
        object.str("type", "approximate");
        for member in value.members() {
            let key = member.key.to_str();
            if key != "type" && !member.value.is_null() {
                object.raw(&key, member.value.raw());
            }
        }
    })
    .get()
    .to_owned()
}
