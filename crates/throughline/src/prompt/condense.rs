//! Condenses a conversation into one text, for callers that carry it elsewhere.
//!
//! This is not a view of a thread, and nothing is stored. Messages of users and instructions are
//! not in the text, because the caller has them in full; everything else becomes one text.

use std::sync::Arc;

use throughline_compact::tokens::{text_units, units};
use throughline_compact::{
    Call, Caps, Group, Planned, Policy, Report, ToolHistory, Trigger, UnchangedReason,
};
use throughline_model::json::Value;
use throughline_model::{Arguments, Body, Message, Outcome, Output, Role, Source};

/// Replaces lines that no longer fit.
const LEFT_OUT: &str = "[Older lines are left out.]";

/// The text for a conversation in which only users have spoken.
const NOTHING: &str = "Nothing else was said or done before this.";

/// Characters of one text in a conversation that is shorter than its digest would be.
const LONGEST: usize = 4_000;

/// Characters of the model's text that a digest repeats.
const PROSE: usize = 1_200;

/// A condensed conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condensed {
    /// The conversation without the messages of users and instructions. Never empty.
    pub text: String,
    /// The sources of the condensed messages, in the words of [`Source`].
    pub sources: Vec<String>,
    /// How many messages the text stands for. The messages after them have calls that wait, and
    /// remain as they are.
    pub covers: usize,
    /// Tokens before and after, and what was kept.
    pub report: Report,
}

/// Condenses a conversation into one text, without the messages of users and instructions. Earlier
/// summaries are kept as they are, before the new text, so that condensing twice changes nothing.
/// The text is at most as large as the policy's budget.
///
/// ```
/// use std::sync::Arc;
/// use throughline::agent::condense;
/// use throughline::compact::Policy;
/// use throughline::model::{Content, Message, Role};
///
/// let asked = Message::user("When is high water?");
/// let answered = Message::new(Role::Assistant, vec![Content::text("At ten.")]);
/// let said = [asked, answered].map(Arc::new);
/// let short = condense(&said, &Policy::default());
/// assert!(short.text.contains("At ten."));
/// assert!(!short.text.contains("high water"));
/// ```
pub fn condense(messages: &[Arc<Message>], policy: &Policy) -> Condensed {
    let room = policy
        .effective_budget()
        .unwrap_or(Policy::LARGEST_FROM_WINDOW);
    let covers = waiting(messages);
    let messages = &messages[..covers];
    let old: Vec<&Arc<Message>> = messages.iter().filter(|one| is_summary(one)).collect();
    let said: Vec<&Arc<Message>> = messages.iter().filter(|one| !is_summary(one)).collect();
    let (new, mut report) = match said.iter().all(|one| stays(one)) {
        true => (None, Report::default()),
        false => digest(&said, policy, room),
    };
    let mut texts: Vec<String> = old.iter().map(|message| message.text()).collect();
    texts.extend(new);
    let text = match texts.is_empty() {
        true => NOTHING.to_owned(),
        false => bounded(texts.join("\n\n"), room),
    };
    let size = |message: &Arc<Message>| u64::from(units(message));
    let beside = said.iter().filter(|one| stays(one)).map(|one| size(one));
    report.tokens_before = messages.iter().map(size).sum();
    report.tokens_after = beside.sum::<u64>() + u64::from(text_units(&text)) + 4;
    report.trigger = Some(Trigger::Asked);
    if said.iter().all(|one| stays(one)) {
        report.stayed = Some(UnchangedReason::NothingOlder);
    }
    Condensed {
        text,
        sources: sources(messages),
        covers,
        report,
    }
}

/// Whether a message is a summary.
fn is_summary(message: &Message) -> bool {
    message.source == Some(Source::Summary)
}

/// Whether the caller keeps the message in full.
fn stays(message: &Message) -> bool {
    match message.role {
        Role::User | Role::System | Role::Developer => true,
        Role::Assistant | Role::Tool | Role::Other(_) => false,
    }
}

/// The number of messages before the first one whose calls wait.
fn waiting(messages: &[Arc<Message>]) -> usize {
    let mut history = ToolHistory::new(Policy::default());
    for (seq, message) in (1..).zip(messages) {
        history.push(seq, Arc::clone(message));
    }
    let newest = messages.iter().rposition(|one| one.role == Role::User);
    let waits = history.groups().iter().find(|group| {
        // Calls before the newest user message are not waited for.
        group.unanswered > 0 && newest.is_none_or(|newest| group.first() > newest)
    });
    waits.map_or(messages.len(), Group::first)
}

/// Digests the messages that the caller does not keep.
fn digest(said: &[&Arc<Message>], policy: &Policy, room: u64) -> (Option<String>, Report) {
    let mut pins = Vec::new();
    let mut beside = 0;
    for (seq, message) in (1..).zip(said) {
        if stays(message) {
            pins.push(seq);
            beside += u64::from(units(message));
        }
    }
    let policy = Policy {
        // Messages that are kept must not reduce the budget of the digest.
        budget: Some(room + beside + u64::from(units(&Message::user("")))),
        recent_calls: 0,
        tail_share: 0,
        min_gain: 0,
        strict: false,
        pins,
        caps: Caps {
            prose: policy.caps.prose.max(PROSE),
            ..policy.caps
        },
        ..policy.clone()
    };
    let mut history = ToolHistory::new(policy);
    for (seq, message) in (1..).zip(said) {
        history.push(seq, Arc::clone(message));
    }
    // An empty request at the end, so that all messages are older than the newest request.
    history.push(said.len() as u64 + 1, Message::user(""));
    match history.plan_now(&Call::default()) {
        Ok(Planned::Epoch(epoch, report)) => {
            let texts: Vec<&str> = epoch
                .blocks
                .iter()
                .map(|block| block.text.as_str())
                .filter(|text| !text.is_empty())
                .collect();
            match texts.is_empty() {
                true => (Some(plain(said)), report),
                false => (Some(texts.join("\n\n")), report),
            }
        }
        // A digest would be longer than the messages.
        Ok(Planned::Unchanged(_)) | Err(_) => (Some(plain(said)), Report::default()),
    }
}

/// All messages that the caller does not keep, one line for each content. A call line says that the
/// call was asked for; the outcome is in the line of its result.
fn plain(said: &[&Arc<Message>]) -> String {
    let mut lines = Vec::new();
    for message in said.iter().filter(|one| !stays(one)) {
        for content in &message.contents {
            match &content.body {
                Body::Text(text) | Body::Refusal(text) => {
                    lines.push(format!("[Earlier: Answered] {}", cut(&text.text)));
                }
                Body::ToolCall(call) => {
                    let given = match &call.arguments {
                        Arguments::None => "",
                        Arguments::Text(text) | Arguments::Free(text) => text,
                        Arguments::Json(json) => json.get(),
                    };
                    let name = match call.name.as_str() {
                        "" => call.family.as_str(),
                        name => name,
                    };
                    lines.push(match given {
                        "" => format!("[Earlier: Asked for {name}]"),
                        given => format!("[Earlier: Asked for {name} with {}]", cut(given)),
                    });
                }
                Body::ToolResult(result) => {
                    let name = result.name.as_deref().unwrap_or(result.family.as_str());
                    let ended = match result.outcome {
                        Outcome::Ok => String::new(),
                        other => format!(" ({})", other.as_str()),
                    };
                    let said = cut(&shown(&result.output));
                    lines.push(format!("[Earlier: Result of {name}{ended}] {said}"));
                }
                _ => {}
            }
        }
    }
    lines.join("\n")
}

fn shown(output: &Output) -> String {
    match output {
        Output::None => String::new(),
        Output::Text(text) => text.clone(),
        Output::Json(json) => json.get().to_owned(),
        Output::Parts(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.as_text()).collect();
            texts.join("\n")
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text without its oldest lines, if it is larger than a number of tokens.
fn bounded(text: String, room: u64) -> String {
    let mut short = text;
    let mut left = room.saturating_sub(u64::from(text_units(LEFT_OUT)) + 1);
    loop {
        // Lines together may weigh more than one by one, if they are in several languages.
        let over = u64::from(text_units(&short)).saturating_sub(room);
        if over == 0 || short == LEFT_OUT {
            return short;
        }
        short = newest_lines(&short, left);
        left = left.saturating_sub(over.min(left / 16 + 1));
    }
}

/// The newest lines that come to a number of tokens, after a note that others are left out.
fn newest_lines(text: &str, mut left: u64) -> String {
    let mut lines = Vec::new();
    for line in text.lines().rev().filter(|line| *line != LEFT_OUT) {
        let size = u64::from(text_units(line)) + 1;
        if size > left {
            break;
        }
        left -= size;
        lines.push(line);
    }
    lines.push(LEFT_OUT);
    lines.reverse();
    lines.join("\n")
}

/// The sources of messages, including those that earlier summaries list.
fn sources(messages: &[Arc<Message>]) -> Vec<String> {
    let mut sources = Vec::new();
    for message in messages {
        match &message.source {
            Some(Source::Summary) => {
                let meta = message.meta.as_ref().map(|meta| meta.value());
                let summary = meta.as_ref().and_then(|meta| meta.get("summary"));
                let known = summary.and_then(|summary| summary.get("sources"));
                let known = known.and_then(Value::as_array).unwrap_or_default().iter();
                sources.extend(known.filter_map(|word| Some(word.as_str()?.into_owned())));
            }
            Some(source) if !stays(message) => sources.push(source.as_str().to_owned()),
            Some(_) => {}
            None if stays(message) => {}
            // A message that was never in a thread was passed in by the caller.
            None => sources.push(Source::Caller.as_str().to_owned()),
        }
    }
    sources.sort_unstable();
    sources.dedup();
    sources
}

#[cfg(test)]
mod tests {
    use super::{Arc, Message, Policy, Role, Source, condense, text_units};
    use throughline_model::{CallId, Content, Outcome, Output, ToolCall};

    /// A session of rounds, each with a call and a result of a given length.
    fn session(rounds: usize, lines: usize) -> Vec<Arc<Message>> {
        let mut said = vec![Message::user("mend the pier")];
        for round in 0..rounds {
            let id = CallId::natural(&format!("call_{round}")).unwrap();
            let path = format!("{{\"path\":\"/src/pier_{round}.rs\"}}");
            let call = ToolCall::function(id, "read_file", path);
            let output: String = (0..lines)
                .map(|line| format!("fn plank_{round}_{line}() {{ nail({line}); }}\n"))
                .collect();
            let result = call.answer(Outcome::Ok, Output::Text(output));
            said.push(Message::new(Role::Assistant, vec![Content::from(call)]));
            said.push(Message::new(Role::Tool, vec![Content::from(result)]));
        }
        let text = Content::text("The pier stands.");
        said.push(Message::new(Role::Assistant, vec![text]));
        said.into_iter().map(Arc::new).collect()
    }

    fn summary(text: &str) -> Arc<Message> {
        let mut message = Message::user(text);
        message.source = Some(Source::Summary);
        Arc::new(message)
    }

    #[test]
    fn a_long_session_becomes_much_shorter_and_keeps_its_files() {
        let said = session(40, 60);
        let short = condense(&said, &Policy::with_budget(16_000));
        assert_eq!(short.covers, said.len());
        assert!(short.text.contains("/src/pier_0.rs"), "{}", short.text);
        assert!(short.text.contains("/src/pier_39.rs"));
        assert!(short.text.contains("The pier stands."));
        assert!(!short.text.contains("mend the pier"));
        assert!(text_units(&short.text) <= 16_000);
        assert!(short.report.tokens_after * 2 < short.report.tokens_before);
    }

    #[test]
    fn what_is_short_already_changes_nothing_more() {
        for (rounds, lines) in [(0, 0), (2, 3), (40, 60)] {
            let said = session(rounds, lines);
            let policy = Policy::with_budget(16_000);
            let once = condense(&said, &policy);
            let again = [Arc::clone(&said[0]), summary(&once.text)];
            assert_eq!(condense(&again, &policy).text, once.text);
        }
        let only = [Arc::new(Message::user("hello"))];
        let once = condense(&only, &Policy::default());
        let again = [Arc::clone(&only[0]), summary(&once.text)];
        assert_eq!(condense(&again, &Policy::default()).text, once.text);
    }

    #[test]
    fn b249_a_conversation_in_short_names_every_outcome() {
        for (outcome, lines) in Outcome::ALL
            .into_iter()
            .flat_map(|one| [(one, 0), (one, 400)])
        {
            let mut said = vec![Arc::new(Message::user("mend the pier"))];
            for round in 0..2 {
                let id = CallId::natural(&format!("call_{round}")).unwrap();
                let edit = format!(
                    "{{\"path\":\"/etc/passwd\",\"content\":\"{}\"}}",
                    "x\\n".repeat(lines)
                );
                let call = ToolCall::function(id, "edit_file", edit);
                let result = call.answer(outcome, Output::None);
                said.push(Arc::new(Message::new(Role::Assistant, vec![call.into()])));
                said.push(Arc::new(Message::new(Role::Tool, vec![result.into()])));
            }
            let short = condense(&said, &Policy::default()).text;
            let word = outcome.as_str();
            match outcome {
                Outcome::Ok => assert!(!short.contains("Asked to edit"), "{short}"),
                _ => {
                    assert!(short.contains(word), "{word}: {short}");
                    assert!(!short.contains("Edited"), "{word}: {short}");
                    assert!(!short.contains("Called"), "{word}: {short}");
                }
            }
        }
    }

    #[test]
    fn calls_that_wait_are_left_out_of_it() {
        let mut said = session(3, 2);
        let id = CallId::natural("call_open").unwrap();
        let call = ToolCall::function(id, "place_order", "{}");
        let open = Message::new(Role::Assistant, vec![Content::from(call)]);
        said.push(Arc::new(open));
        let short = condense(&said, &Policy::default());
        assert_eq!(short.covers, said.len() - 1);
        assert!(!short.text.contains("place_order"));
        said.push(Arc::new(Message::user("never mind")));
        assert_eq!(condense(&said, &Policy::default()).covers, said.len());
    }

    #[test]
    fn the_text_is_bounded_whatever_was_carried() {
        let lines: Vec<String> = (0..20_000).map(|line| format!("line {line}")).collect();
        let policy = Policy::with_budget(2_000);
        let once = condense(&[summary(&lines.join("\n"))], &policy).text;
        assert!(text_units(&once) <= 2_000);
        assert!(once.ends_with("line 19999"));
        assert_eq!(condense(&[summary(&once)], &policy).text, once);
    }
}
