//! A context window, and how much of a prompt the vendor has seen before.

use throughline_model::Wire;
use throughline_model::json::{self, Value};

use super::vendor::{Refusal, Vendor, family};

/// The bytes of a token: fewer than with any real vocabulary, so that this vendor is the strictest.
const BYTES: usize = 3;

/// The counts of one conversation's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompts {
    /// Requests that were larger than the window.
    pub overflows: usize,
    /// Requests that began, byte for byte, with the whole previous one.
    pub continued: usize,
    /// Requests that did not, so that no cache could be used.
    pub restarted: usize,
    /// Tokens of the largest request.
    pub largest: u64,
}

/// A window, and its last prompt.
#[derive(Debug)]
pub(super) struct Window {
    holds: u64,
    last: Option<String>,
    pub(super) prompts: Prompts,
}

impl Window {
    pub(super) fn new(tokens: u64) -> Self {
        Self {
            holds: tokens,
            last: None,
            prompts: Prompts::default(),
        }
    }

    /// Counts the tokens of a request, or returns the vendor's error if it is too large.
    pub(super) fn take(&mut self, wire: &Wire, body: &[u8]) -> Result<u64, Refusal> {
        let tokens = body.len().div_ceil(BYTES) as u64;
        self.prompts.largest = self.prompts.largest.max(tokens);
        if tokens > self.holds {
            self.prompts.overflows += 1;
            return Err(too_long(wire, tokens, self.holds));
        }
        let prompt = std::str::from_utf8(body).ok().and_then(prompt);
        if let (Some(last), Some(prompt)) = (&self.last, &prompt) {
            match prompt.starts_with(last) {
                true => self.prompts.continued += 1,
                false => self.prompts.restarted += 1,
            }
        }
        self.last = prompt;
        Ok(tokens)
    }
}

/// The input of the model, in order and as written: instructions, tools, and messages, without the
/// closing brackets.
fn prompt(text: &str) -> Option<String> {
    let body = json::parse(text).ok()?;
    let mut prompt = String::new();
    for key in ["instructions", "system", "systemInstruction", "tools"] {
        prompt.push_str(body.get(key).map_or("", Value::raw));
        prompt.push('\n');
    }
    let said = ["messages", "input", "contents"];
    let said = said.iter().find_map(|key| body.get(key))?;
    prompt.push_str(said.raw().trim_end_matches(']'));
    Some(prompt)
}

fn too_long(wire: &Wire, tokens: u64, holds: u64) -> Refusal {
    match (family(wire), wire) {
        (Vendor::OpenAi, Wire::OpenAiChat) => Refusal::new(
            wire,
            400,
            format!(
                "This model's maximum context length is {holds} tokens. However, your messages \
                 resulted in {tokens} tokens. Please reduce the length of the messages."
            ),
        )
        .code("context_length_exceeded")
        .param("messages"),
        (Vendor::OpenAi, _) => Refusal::new(
            wire,
            400,
            "Your input exceeds the context window of this model. Please adjust your input and \
             try again.",
        )
        .code("context_length_exceeded")
        .param("input"),
        (Vendor::Anthropic, _) => Refusal::new(
            wire,
            400,
            format!("prompt is too long: {tokens} tokens > {holds} maximum"),
        ),
        (Vendor::Google, _) => Refusal::new(
            wire,
            400,
            format!(
                "The input token count ({tokens}) exceeds the maximum number of tokens allowed \
                 ({holds})."
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{Prompts, Window};
    use throughline_model::Wire;

    #[test]
    fn prompts_that_go_on_are_told_from_those_that_start_again() {
        let mut window = Window::new(40);
        let mut say = |messages: &str| {
            let body = format!(r#"{{"model":"m","messages":[{messages}],"stream":true}}"#);
            window.take(&Wire::OpenAiChat, body.as_bytes()).is_ok()
        };
        assert!(say("{\"a\":1}"));
        assert!(say("{\"a\":1},{\"b\":2}"));
        assert!(say("{\"c\":1},{\"b\":2}"));
        assert!(say("{\"c\":1},{\"b\":2},{\"d\":3}"));
        assert!(!say(&"{},".repeat(60)));
        let seen = window.prompts;
        assert_eq!(
            seen,
            Prompts {
                overflows: 1,
                continued: 2,
                restarted: 1,
                largest: seen.largest
            }
        );
    }
}
