//! The Response object.

use throughline::StopReason;
use throughline::compact::{NarrativeOutcome, Report, UnchangedReason};
use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson};
use throughline_model::{Stop, Usage};

use super::context::{Ending, ResponseContext};
use super::echo;
use super::ignored::Ignored;
use crate::config::Dialect;

/// The codes that the error of a response may have.
const CODES: [&str; 20] = [
    "server_error",
    "rate_limit_exceeded",
    "invalid_prompt",
    "data_residency_mismatch",
    "bio_policy",
    "vector_store_timeout",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
];

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Completed,
    Incomplete(&'static str),
    Cancelled,
    Failed,
}

impl Status {
    /// What the end of a run means for its response.
    pub(super) fn of(ending: &Ending) -> Self {
        match ending.stop {
            StopReason::Cancelled => return Self::Cancelled,
            StopReason::Failed => return Self::Failed,
            StopReason::Done
            | StopReason::Parked
            | StopReason::RoundLimit
            | StopReason::ErrorLimit
            | StopReason::Budget
            | StopReason::Terminated => {}
        }
        match ending.finish {
            Some(Stop::Length) => Self::Incomplete("max_output_tokens"),
            // The vendor stopped it for safety. A model that declines in words ends like any other.
            Some(Stop::ContentFilter | Stop::Refusal) => Self::Incomplete("content_filter"),
            _ => Self::Completed,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete(_) => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

/// Tokens of all model calls of a response. Nothing is zero here: one specification wants the member
/// in every response, the other wants it to be an object where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::api::openai::responses) struct UsageTotal {
    input: u64,
    output: u64,
    total: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
}

impl UsageTotal {
    /// Count the tokens of one more model call.
    pub(super) fn add(&mut self, usage: &Usage) {
        let add = |sum: &mut u64, more: Option<u64>| *sum = sum.saturating_add(more.unwrap_or(0));
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        add(&mut self.input, usage.input);
        add(&mut self.output, usage.output);
        let total = usage.total.unwrap_or_else(|| input.saturating_add(output));
        add(&mut self.total, Some(total));
        add(&mut self.cache_read, usage.cache_read);
        add(&mut self.cache_write, usage.cache_write);
        add(&mut self.reasoning, usage.reasoning);
    }

    /// Write it as `usage`.
    pub(in crate::api::openai::responses) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        object.number("input_tokens", self.input);
        let mut details = ObjectWriter::new(object.key("input_tokens_details"));
        details.number("cached_tokens", self.cache_read);
        // OpenAI requires it; the other specification allows what it does not name.
        details.number("cache_write_tokens", self.cache_write);
        details.end();
        object.number("output_tokens", self.output);
        let mut details = ObjectWriter::new(object.key("output_tokens_details"));
        details.number("reasoning_tokens", self.reasoning);
        details.end();
        object.number("total_tokens", self.total);
        object.end();
    }
}

/// The Response object of one run: what never changes is written once.
#[derive(Clone, Debug)]
pub(super) struct ResponseObject {
    id: String,
    created: u64,
    previous: Option<String>,
    conversation: Option<String>,
    echo: RawJson,
    /// The first members of our own object; none in a dialect without it.
    throughline: Option<String>,
    /// What was done to what the model was shown, last.
    compacted: Option<Report>,
    /// What is not carried out, as far as it was known at the beginning.
    ignored: Vec<Ignored>,
}

impl ResponseObject {
    pub(super) fn new(context: &ResponseContext) -> Self {
        let throughline = (context.dialect == Dialect::OpenAi).then(|| {
            let mut text = String::with_capacity(128);
            let mut object = ObjectWriter::new(&mut text);
            match &context.thread {
                Some(thread) => object.str("thread", thread.as_str()),
                None => object.raw("thread", "null"),
            };
            object.str("run", &context.run.to_string());
            text
        });
        Self {
            id: format!("resp_{}", context.run.to_hex()),
            created: context.created / 1_000,
            previous: context.previous.map(|run| format!("resp_{}", run.to_hex())),
            conversation: context.conversation.clone(),
            echo: echo::members(&context.request, context.dialect, &context.ignored),
            throughline,
            compacted: None,
            ignored: context.ignored.clone(),
        }
    }

    /// What the model was shown became smaller.
    pub(super) fn set_compacted(&mut self, report: &Report) {
        let before = self.compacted.take().and_then(|before| before.narrative);
        self.compacted = Some(Report {
            narrative: report.narrative.or(before),
            ..report.clone()
        });
    }

    /// A model was asked for a summary.
    pub(super) fn set_narrative(&mut self, narrated: NarrativeOutcome) {
        let report = self.compacted.get_or_insert_with(|| Report {
            // Nothing became smaller for it.
            stayed: Some(UnchangedReason::Within),
            ..Report::default()
        });
        report.narrative = Some(narrated);
    }

    /// The object with its output so far, each item as JSON.
    pub(super) fn write<'i>(
        &self,
        ending: Option<&Ending>,
        output: impl Iterator<Item = &'i str> + Clone,
        usage: &UsageTotal,
    ) -> RawJson {
        let status = ending.map(Status::of);
        let items: usize = output.clone().map(str::len).sum();
        let room = items + self.echo.get().len() + 1024;
        RawJson::object_of(room, |object| {
            object
                .str("id", &self.id)
                .str("object", "response")
                .number("created_at", self.created)
                .str("status", status.map_or("in_progress", Status::as_str));
            match (status, ending) {
                (Some(Status::Completed), Some(ending)) => {
                    object.number("completed_at", (ending.at / 1_000).max(self.created))
                }
                _ => object.raw("completed_at", "null"),
            };
            match (status, ending) {
                (Some(Status::Failed), Some(ending)) => failure(object.key("error"), ending),
                _ => object.key("error").push_str("null"),
            }
            match status {
                Some(Status::Incomplete(reason)) => {
                    let mut details = ObjectWriter::new(object.key("incomplete_details"));
                    details.str("reason", reason);
                    details.end();
                }
                _ => drop(object.raw("incomplete_details", "null")),
            }
            match &self.previous {
                Some(id) => object.str("previous_response_id", id),
                None => object.raw("previous_response_id", "null"),
            };
            if let Some(id) = &self.conversation {
                let mut conversation = ObjectWriter::new(object.key("conversation"));
                conversation.str("id", id);
                conversation.end();
            }
            let mut list = ArrayWriter::new(object.key("output"));
            for item in output {
                list.raw(item);
            }
            list.end();
            usage.write(object.key("usage"));
            object.members_of(self.echo.get());
            if let Some(throughline) = &self.throughline {
                let out = object.key("throughline");
                out.push_str(throughline);
                out.push_str(",\"stop_reason\":");
                match ending {
                    Some(ending) => json::push_string(out, ending.stop.as_str()),
                    None => out.push_str("null"),
                }
                let found = ending.map(|ending| ending.ignored.as_slice());
                let mut ignored = self
                    .ignored
                    .iter()
                    .chain(found.unwrap_or_default())
                    .peekable();
                if ignored.peek().is_some() {
                    out.push_str(",\"ignored\":");
                    Ignored::write_all(ignored, out);
                }
                if let Some(report) = &self.compacted {
                    out.push_str(",\"compaction\":");
                    out.push_str(&report.to_json());
                }
                out.push('}');
            }
        })
    }
}

fn failure(out: &mut String, ending: &Ending) {
    let (code, message) = match &ending.error {
        Some((code, message)) => (code.as_str(), message.as_str()),
        None => ("server_error", "The response failed."),
    };
    let known = CODES.iter().find(|known| **known == code);
    let mut object = ObjectWriter::new(out);
    object
        .str("code", known.copied().unwrap_or("server_error"))
        .str("message", message);
    object.end();
}
