//! Anthropic Messages.

use throughline_model::{AnswerShape, Effort};

use crate::anthropic::request;
use crate::compose::answer_schema;
use crate::compose::draft::{Choice, Continues, Draft};
use crate::compose::hosted::{
    Chosen, HostedTool, OfferedTool, is_code, is_plain_container, says_nothing,
};
use crate::members::Members;
use crate::openai::tool_definition;
use throughline_model::Family;
use throughline_model::json::{RawJson, Value};

/// The limit of tokens where the caller sets none: Anthropic refuses a request without one, and
/// thinking counts towards it.
const DEFAULT_MAX_TOKENS: u64 = 16_384;

/// The smallest budget for thinking.
const LEAST_BUDGET: u64 = 1024;

pub(crate) fn write(draft: &mut Draft<'_>) {
    let settings = draft.prompt.settings;
    let most = settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    draft.body.str("model", draft.prompt.model);
    draft.body.number("max_tokens", most);
    draft.said(Continues::Nothing);
    let thinking = thinking(draft, most);
    if let Some(choice) = draft.tools(request::functions) {
        tool_choice(draft, choice, thinking);
    }
    sampling(draft, thinking.is_on());
    if !settings.stop.is_empty() {
        draft.body.strings("stop_sequences", &settings.stop);
    }
    thinking.write(draft);
    output(draft);
    if let Some(user) = &settings.user {
        let mut metadata = Members::default();
        metadata.str("user_id", user);
        draft.body.object("metadata", metadata);
    }
    service_tier(draft);
    if settings.summary && thinking != Thinking::Adaptive {
        draft.lost(
            "summary",
            "there is a summary only where the model decides how much to think",
        );
    }
    draft.leave_out(&["summary", "user", "service_tier"]);
    if draft.is_streamed() {
        draft.body.bool("stream", true);
    }
}

/// What is said about thinking.
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

    fn write(self, draft: &mut Draft<'_>) {
        let mut thinking = Members::default();
        match self {
            Self::Unsaid => {}
            Self::Off => thinking.str("type", "disabled"),
            Self::Adaptive => {
                thinking.str("type", "adaptive");
                if draft.prompt.settings.summary {
                    thinking.str("display", "summarized");
                }
            }
            Self::Budget(tokens) => {
                thinking.str("type", "enabled");
                thinking.number("budget_tokens", tokens);
            }
        }
        draft.body.object("thinking", thinking);
    }
}

fn thinking(draft: &mut Draft<'_>, most: u64) -> Thinking {
    let (target, settings) = (draft.prompt.target, draft.prompt.settings);
    let wanted = match settings.effort {
        // A summary is one of thoughts.
        None if settings.summary && target.generation.thinking_levels => return Thinking::Adaptive,
        None if !target.thinking => return Thinking::Unsaid,
        Some(Effort::Off) if target.generation.thinking_levels => {
            draft.lost(
                "effort",
                "thinking is left to the model; it cannot be switched off",
            );
            return Thinking::Unsaid;
        }
        Some(Effort::Off) => return Thinking::Off,
        _ if target.generation.thinking_levels => return Thinking::Adaptive,
        // A history that was rendered without thinking is refused with it.
        Some(_) if !target.thinking => {
            draft.lost("effort", "the target does not think");
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
        draft.lost("effort", detail);
        return Thinking::Unsaid;
    }
    Thinking::Budget(budget)
}

fn tool_choice(draft: &mut Draft<'_>, choice: Choice<'_>, thinking: Thinking) {
    let choice = match thinking {
        Thinking::Budget(_) if choice.is_forced() => {
            draft.choice_lost("no call can be demanded of a model with a thinking budget");
            Choice::Auto
        }
        _ => choice,
    };
    let one = draft.prompt.settings.parallel_calls == Some(false);
    let mut said = Members::default();
    match &choice {
        Choice::Auto if !one => {}
        Choice::Auto => said.str("type", "auto"),
        Choice::None => said.str("type", "none"),
        Choice::Required => said.str("type", "any"),
        Choice::Function(name) => {
            said.str("type", "tool");
            said.str("name", name);
        }
        // Tools of this vendor have names.
        Choice::Type(tag, _) => {
            said.str("type", "tool");
            said.str("name", tag);
        }
    }
    if one && choice != Choice::None {
        said.bool("disable_parallel_tool_use", true);
    }
    draft.body.object("tool_choice", said);
}

/// OpenAI's words for the class of service in Anthropic's.
fn service_tier(draft: &mut Draft<'_>) {
    match draft.prompt.settings.service_tier.as_deref() {
        None => {}
        Some("auto" | "priority") => draft.body.str("service_tier", "auto"),
        Some("default" | "standard") => draft.body.str("service_tier", "standard_only"),
        Some(tier) => draft.lost("service_tier", format!("there is no class '{tier}'")),
    }
}

/// Temperature or share of words: older models take one of them, and none while they think.
fn sampling(draft: &mut Draft<'_>, thinking: bool) {
    let settings = draft.prompt.settings;
    let refused = if !draft.prompt.target.generation.sampling {
        Some("the newest models choose words by themselves")
    } else if thinking {
        Some("not while the model thinks")
    } else {
        None
    };
    if let Some(why) = refused {
        if settings.temperature.is_some() {
            draft.lost("temperature", why);
        }
        if settings.top_p.is_some() {
            draft.lost("top_p", why);
        }
        return;
    }
    let temperature = draft.temperature(1.0);
    match temperature {
        Some(_) if settings.top_p.is_some() => {
            draft.lost("top_p", "not together with a temperature");
        }
        Some(_) => {}
        None => {
            if let Some(share) = draft.top_p() {
                draft.body.raw("top_p", share);
            }
        }
    }
    if let Some(temperature) = temperature {
        draft.body.raw("temperature", temperature);
    }
}

/// Effort and the shape of the answer.
fn output(draft: &mut Draft<'_>) {
    let settings = draft.prompt.settings;
    let mut output = Members::default();
    let levels = draft.prompt.target.generation.thinking_levels;
    match settings.effort.filter(|_| levels) {
        None | Some(Effort::Off) => {}
        Some(Effort::Minimal) => {
            draft.replaced("effort", "low is the least, and was sent", "\"low\"");
            output.str("effort", "low");
        }
        Some(effort) => output.str("effort", effort.as_str()),
    }
    match &settings.answer {
        None => {}
        Some(AnswerShape { schema: None, .. }) => {
            draft.lost("answer", "an answer in JSON needs a schema");
        }
        Some(AnswerShape {
            schema: Some(_), ..
        }) => {
            if let Some(schema) = answer_schema::closed(draft) {
                let mut format = Members::default();
                format.str("type", "json_schema");
                format.raw("schema", schema);
                output.object("format", format);
            }
        }
    }
    draft.body.object("output_config", output);
}

/// Web search and code execution, with the options that Anthropic has for them.
pub(crate) fn hosted_tool<'p>(
    draft: &mut Draft<'p>,
    offered: &OfferedTool<'p>,
) -> Option<HostedTool<'p>> {
    let tool = offered.tool;
    let mut json = Members::default();
    let name = match &tool.family {
        family if *family == Family::WEB_SEARCH => {
            json.str("type", "web_search_20250305");
            json.str("name", "web_search");
            "web_search"
        }
        family if is_code(family) => {
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
                                offered.lost(draft, Some(&key), "the search has no such filter");
                            }
                        }
                    }
                }
                "user_location" if !member.value.is_null() => {
                    json.raw("user_location", approximate(&member.value));
                }
                other
                    if says_nothing(&member.value) || is_plain_container(other, &member.value) => {}
                other => offered.lost(draft, Some(other), "the tool has no such option here"),
            }
        }
    }
    Some(HostedTool {
        name: &tool.name,
        chosen: Chosen::Name(name),
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
