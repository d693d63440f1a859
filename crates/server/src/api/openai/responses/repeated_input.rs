//! Input that the history has already. Some clients send the whole of a turn with each of its steps,
//! without ids, although they name the conversation: the model must not see it twice.

use std::sync::Arc;

use throughline_model::{Content, Message, Role, ToolResult};

/// How many calls of an id have no result, in the newest message that has such calls.
pub(super) fn unanswered_calls(history: &[Arc<Message>], id: &str) -> usize {
    let mut results = 0;
    for message in history.iter().rev() {
        let contents = message.contents.iter();
        let calls = contents.clone().filter_map(Content::as_tool_call);
        let calls = calls.filter(|one| one.call.value() == id).count();
        let found = contents.filter_map(Content::as_tool_result);
        results += found.filter(|one| one.call().value() == id).count();
        if calls > 0 {
            return calls.saturating_sub(results);
        }
    }
    0
}

/// Take out of an input what the history has: results of calls that have the same result there, and
/// then what was said at the beginning of the turn, if what follows it are results of that turn. Input
/// of which nothing would be left stays as it is.
pub(super) fn remove_repeated(messages: &mut Vec<Message>, history: &[Arc<Message>]) {
    let called: Vec<String> = messages
        .iter()
        .flat_map(|message| &message.contents)
        .filter_map(|content| Some(content.as_tool_call()?.call.value().to_owned()))
        .collect();
    let is_repeated = |content: &Content| {
        content.as_tool_result().is_some_and(|result| {
            let id = result.call().value();
            !called.iter().any(|call| call == id) && has_result(history, result)
        })
    };
    let mut contents = messages.iter().flat_map(|message| &message.contents);
    if contents.any(|content| !is_repeated(content)) {
        messages.retain_mut(|message| {
            let had = message.contents.len();
            message.contents.retain(|content| !is_repeated(content));
            had == 0 || !message.contents.is_empty()
        });
    }
    let is_result = |message: &Message| message.role == Role::Tool;
    if let Some(said) = messages.iter().position(is_result)
        && begins_turn(&messages[..said], history)
    {
        messages.drain(..said);
    }
}

/// Whether the newest call of a result's id has this result already.
fn has_result(history: &[Arc<Message>], result: &ToolResult) -> bool {
    let id = result.call().value();
    let results = history.iter().flat_map(|message| &message.contents);
    let mut results = results.filter_map(Content::as_tool_result);
    unanswered_calls(history, id) == 0
        && results.any(|known| {
            known.call().value() == id
                && known.output == result.output
                && known.outcome == result.outcome
        })
}

/// Whether messages are what was said last before the calls and results at the end of a history.
fn begins_turn(said: &[Message], history: &[Arc<Message>]) -> bool {
    let is_step = |message: &Arc<Message>| matches!(message.role, Role::Assistant | Role::Tool);
    let end = history.iter().rposition(|message| !is_step(message));
    let turn = &history[..end.map_or(0, |end| end + 1)];
    let start = turn.iter().rposition(is_step).map_or(0, |step| step + 1);
    let turn = &turn[start..];
    let same = |(one, other): (&Message, &Arc<Message>)| {
        let bodies = one.contents.iter().map(|content| &content.body);
        one.role == other.role && bodies.eq(other.contents.iter().map(|content| &content.body))
    };
    !said.is_empty()
        && said.len() <= turn.len()
        && said.iter().zip(&turn[turn.len() - said.len()..]).all(same)
}

#[cfg(test)]
mod tests {
    use throughline_model::{CallId, Outcome, Output, ToolCall};

    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall::function(CallId::natural(id).unwrap(), "look", "{}")
    }

    fn calls(id: &str) -> Message {
        Message::new(Role::Assistant, vec![Content::from(call(id))])
    }

    fn gave(id: &str, output: &str) -> Message {
        let result = call(id).answer(Outcome::Ok, Output::from(output));
        Message::new(Role::Tool, vec![Content::from(result)])
    }

    fn left(input: &[Message], history: &[Message]) -> Vec<Message> {
        let history: Vec<Arc<Message>> = history.iter().cloned().map(Arc::new).collect();
        let mut messages = input.to_vec();
        remove_repeated(&mut messages, &history);
        messages
    }

    #[test]
    fn a_turn_that_is_sent_whole_with_each_step_is_in_the_history_once() {
        let user = Message::user("go");
        let history = [user.clone(), calls("a")];
        assert_eq!(
            left(&[user.clone(), gave("a", "1")], &history),
            [gave("a", "1")]
        );
        let history = [user.clone(), calls("a"), gave("a", "1"), calls("b")];
        let input = [user.clone(), gave("a", "1"), gave("b", "2")];
        assert_eq!(left(&input, &history), [gave("b", "2")]);
    }

    #[test]
    fn what_is_new_stays() {
        let (user, more) = (Message::user("go"), Message::user("and?"));
        let history = [user.clone(), calls("a")];
        let input = [gave("a", "1"), user.clone()];
        assert_eq!(left(&input, &history), input);
        let input = [more.clone(), gave("a", "1")];
        assert_eq!(left(&input, &history), input);
        // The same words again are a new turn.
        assert_eq!(
            left(std::slice::from_ref(&user), &history),
            std::slice::from_ref(&user)
        );
        // Another result of a call that has one is refused later.
        let history = [user.clone(), calls("a"), gave("a", "1")];
        let input = [gave("a", "other"), more.clone()];
        assert_eq!(left(&input, &history), input);
        // Nothing would be left.
        assert_eq!(left(&[gave("a", "1")], &history), [gave("a", "1")]);
        // The same id is called once more.
        let history = [user, calls("a"), gave("a", "1"), more, calls("a")];
        assert_eq!(left(&[gave("a", "1")], &history), [gave("a", "1")]);
    }
}
