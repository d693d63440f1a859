//! The one place where tool calls and their results become something a model reads.

use throughline_model::{Content, Message, Role, ToolCall};

use super::markers::Markers;
use super::placeholder_text;

/// One call of a round and what became of it.
#[derive(Clone, Debug)]
pub struct ToolEntry {
    /// The call of the entry.
    pub call: ToolCall,
    /// The content with its result, as it is to be shown; a made-up one if there was none.
    pub result: Content,
}

/// How tool history reaches a model.
///
/// Everything that shows a call or a result of the application to a model goes through here. The same
/// round must always give the same messages: prompt caches depend on it.
pub trait ToolHistoryStrategy: Send + Sync {
    /// Whether calls stay in the model's messages.
    fn keeps_calls(&self) -> bool;

    /// The results of one round as messages, in the order of the calls.
    fn entry(&self, round: Vec<ToolEntry>) -> Vec<Message>;

    /// A summary of older rounds as a message.
    fn summary(&self, text: &str) -> Message;
}

/// Calls and results as the vendor's own items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

/// Results as marked user text, each with the name of its tool and what that was given. There are no
/// calls, so that the model does not imitate them; pictures and the like follow in a message behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextEmbed {
    markers: Markers,
}

impl TextEmbed {
    /// With other markers around results.
    pub fn with_markers(markers: Markers) -> Self {
        Self { markers }
    }
}

impl ToolHistoryStrategy for Native {
    fn keeps_calls(&self) -> bool {
        true
    }

    fn entry(&self, round: Vec<ToolEntry>) -> Vec<Message> {
        let results = round.into_iter().map(|entry| entry.result).collect();
        vec![Message::new(Role::Tool, results)]
    }

    fn summary(&self, text: &str) -> Message {
        Message::user(text)
    }
}

impl ToolHistoryStrategy for TextEmbed {
    fn keeps_calls(&self) -> bool {
        false
    }

    fn entry(&self, round: Vec<ToolEntry>) -> Vec<Message> {
        let texts: Vec<String> = round
            .iter()
            .map(|entry| match entry.result.as_tool_result() {
                Some(result) => {
                    let tool = placeholder_text::asked(&entry.call, result.outcome);
                    let text = placeholder_text::output(&result.output);
                    self.markers.around(&tool, &text)
                }
                None => String::new(),
            })
            .collect();
        vec![Message::user(texts.join("\n\n"))]
    }

    fn summary(&self, text: &str) -> Message {
        Message::user(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{TextEmbed, ToolEntry, ToolHistoryStrategy};
    use throughline_model::{CallId, Content, Outcome, Output, ToolCall};

    #[test]
    fn b249_results_as_text_name_their_outcome() {
        let call = |id: &str| {
            let id = CallId::natural(id).unwrap();
            ToolCall::function(id, "edit_file", r#"{"path":"/etc/passwd"}"#)
        };
        let entry = |outcome: Outcome| {
            let call = call(outcome.as_str());
            let result = call.answer(outcome, Output::from("4 lines"));
            ToolEntry {
                call,
                result: Content::from(result),
            }
        };
        let shown = TextEmbed::default().entry(Outcome::ALL.map(entry).into());
        let text = shown[0].text();
        let heads: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("edit_file"))
            .collect();
        assert_eq!(heads.len(), Outcome::ALL.len(), "{text}");
        for (outcome, head) in Outcome::ALL.into_iter().zip(heads) {
            let mark = format!("({})", outcome.as_str());
            assert_eq!(head.contains(&mark), outcome != Outcome::Ok, "{head}");
        }
    }
}
