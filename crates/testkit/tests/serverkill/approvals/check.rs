//! Invariants of responses, approvals and requests, by the position of each call.

use serde_json::Value;
use throughline_model::json::RawJson;
use throughline_store::{Approval, ApprovalState};
use throughline_testkit::upstream::Entry;

use super::case::{Answer, Case, Channel};
use super::charge_server::Charge;

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran, in this execution.
    Ran(Charge),
    /// It was dispatched before a kill, and its result is lost.
    Unknown,
    /// It was denied.
    Rejected,
    /// It was withdrawn.
    Withdrawn,
}

/// The response that took the calls over, and the outcome of each.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    pub(crate) id: String,
    pub(crate) outcomes: Vec<Outcome>,
    /// The calls in the output of the response.
    pub(crate) items: Vec<Value>,
}

/// A request of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The request of the answering create.
    Answer,
    /// The request of the turn after it.
    Next,
}

/// Checks that each call has an approval request at its own position, in the response and in the
/// store.
pub(crate) fn questions(
    case: &Case,
    response: &Value,
    approvals: &[Approval],
) -> Result<(), String> {
    let items = items(response, "mcp_approval_request");
    let count = case.calls.len();
    if response["status"] != "completed" || items.len() != count || approvals.len() != count {
        return Err(format!("{count} questions were to be asked: {response}"));
    }
    for (place, call) in case.calls.iter().enumerate() {
        let (item, approval) = (items[place], &approvals[place]);
        let wanted = call.arguments(&case.code);
        let id = approval.id.to_string();
        if item["id"] != *id || parsed(&item["arguments"]) != wanted {
            return Err(format!(
                "question {place} is about {wanted} as {id}, and shows {item} of {response}"
            ));
        }
        shown(place, &wanted, approval)?;
        if approval.state != ApprovalState::Waiting {
            return Err(format!("nothing was answered, and {approval:?}"));
        }
    }
    Ok(())
}

/// Checks that an approval shows the call at its position.
fn shown(place: usize, wanted: &Value, approval: &Approval) -> Result<(), String> {
    let arguments = detail(approval, "arguments");
    let found: Value = serde_json::from_str(&arguments).unwrap_or_default();
    match approval.call.position as usize == place && found == *wanted {
        true => Ok(()),
        false => Err(format!(
            "approval {place} is about {wanted}, and {approval:?}"
        )),
    }
}

/// A member of what an approval shows.
fn detail(approval: &Approval, key: &str) -> String {
    let shown = approval.detail.as_ref().map(RawJson::get);
    let shown: Value = serde_json::from_str(shown.unwrap_or("{}")).unwrap_or_default();
    shown[key].as_str().unwrap_or_default().to_owned()
}

/// Which calls have no answer.
fn missing<'c>(case: &'c Case, answers: &'c [Answer]) -> impl Fn(usize) -> bool + 'c {
    |place: usize| {
        let call = &case.calls[place];
        let elsewhere = call.channel == Channel::Store && call.answer != Answer::Missing;
        answers[place] == Answer::Missing && !elsewhere
    }
}

/// Checks that a refusal names the unanswered calls only: by the approval request, or by the call
/// if that is unambiguous.
pub(crate) fn named(
    case: &Case,
    answers: &[Answer],
    message: &str,
    approvals: &[Approval],
) -> Result<(), String> {
    let missing = missing(case, answers);
    let calls: Vec<String> = approvals.iter().map(|one| detail(one, "call")).collect();
    let is_unique = |id: &String| calls.iter().filter(|other| *other == id).count() == 1;
    for (place, approval) in approvals.iter().enumerate() {
        let by_question = message.contains(&approval.id.to_string());
        let by_call = is_unique(&calls[place]) && message.contains(&calls[place]);
        if missing(place) != (by_question || by_call) {
            return Err(format!(
                "of {answers:?} the missing ones are to be named ({place} is {}): {message}",
                approval.id
            ));
        }
    }
    Ok(())
}

/// Checks that a refusal used no approval, and recorded no answer for another call.
pub(crate) fn untouched(
    case: &Case,
    answers: &[Answer],
    approvals: &[Approval],
) -> Result<(), String> {
    let missing = missing(case, answers);
    for (place, approval) in approvals.iter().enumerate() {
        shown(place, &case.calls[place].arguments(&case.code), approval)?;
        let call = &case.calls[place];
        let answer = match call.channel {
            Channel::Store if call.answer != Answer::Missing => call.answer,
            _ => answers[place],
        };
        let allowed = match (approval.state, answer) {
            // A refused create may have recorded its answers or not.
            (ApprovalState::Waiting, _) => true,
            (ApprovalState::Approved, Answer::Yes) | (ApprovalState::Denied, Answer::No) => true,
            _ => false,
        };
        if !allowed || (missing(place) && approval.state != ApprovalState::Waiting) {
            return Err(format!(
                "{answers:?} was refused, and {place} is {approval:?}"
            ));
        }
    }
    Ok(())
}

/// The outcomes of the calls, from the items of the response and the log of the tool. After a kill
/// a result may be lost, and nothing else.
pub(crate) fn response(
    case: &Case,
    answers: &[Answer],
    (response, questions): (&Value, &[String]),
    charges: &[Charge],
    killed: bool,
) -> Result<Settled, String> {
    let wrong = |why: String| format!("{why}; {answers:?}, {charges:?}, {response}");
    if response["status"] != "completed" {
        return Err(wrong("the response is not completed".to_owned()));
    }
    let mut items = items(response, "mcp_call");
    items.retain(|item| item["status"] != "incomplete");
    // Withdrawn calls without any answer may have no items.
    let unanswered = answers.iter().all(|answer| *answer == Answer::Missing);
    if unanswered && items.is_empty() && charges.is_empty() {
        let outcomes = vec![Outcome::Withdrawn; answers.len()];
        return ended(case, response, outcomes).map_err(wrong);
    }
    if items.len() != case.calls.len() {
        return Err(wrong("there is one item for each call".to_owned()));
    }
    let mut left = charges.to_vec();
    let mut outcomes = Vec::new();
    for (place, call) in case.calls.iter().enumerate() {
        let item = items[place];
        if parsed(&item["arguments"]) != call.arguments(&case.code) {
            return Err(wrong(format!("item {place} is about another call")));
        }
        let asked = &item["approval_request_id"];
        if !asked.is_null() && *asked != *questions[place] {
            return Err(wrong(format!("item {place} names another question")));
        }
        let output = item["output"].as_str();
        let error = item["error"]["content"][0]["text"].as_str();
        let (output, error) = (output.unwrap_or_default(), error.unwrap_or_default());
        let ran = left
            .iter()
            .position(|one| one.amount == call.amount && one.output() == output);
        let outcome = match (answers[place], ran) {
            (Answer::Yes, Some(one)) => Outcome::Ran(left.swap_remove(one)),
            (Answer::Yes, None) if killed && is_lost(error) => Outcome::Unknown,
            (Answer::No, None) if is_rejected(call.reason.as_deref(), error) => Outcome::Rejected,
            (Answer::Missing, None) if is_withdrawn(error) => Outcome::Withdrawn,
            _ => return Err(wrong(format!("item {place} shows another outcome"))),
        };
        let state = match outcome {
            Outcome::Ran(_) => "completed",
            Outcome::Unknown | Outcome::Rejected | Outcome::Withdrawn => "failed",
        };
        let one_of_two = item["output"].is_null() != item["error"].is_null();
        if item["status"] != state || !one_of_two {
            return Err(wrong(format!("item {place} is not {state}")));
        }
        outcomes.push(outcome);
    }
    // The remaining calls ran, and their results were lost.
    let places = || case.calls.iter().zip(&outcomes);
    for charge in &left {
        let same = |(call, outcome): &(&super::case::Call, &Outcome)| {
            call.amount == charge.amount && **outcome == Outcome::Unknown
        };
        let lost = places().filter(same).count();
        let more = left.iter().filter(|one| one.amount == charge.amount);
        if more.count() > lost {
            return Err(wrong(format!("{charge:?} was not to run, or not again")));
        }
    }
    let mut keys: Vec<&str> = charges.iter().map(|one| one.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.len() != charges.len() || keys.contains(&"") {
        return Err(wrong("each call has a key of its own".to_owned()));
    }
    ended(case, response, outcomes).map_err(wrong)
}

/// Checks that the last item is the answer of the model.
fn ended(case: &Case, response: &Value, outcomes: Vec<Outcome>) -> Result<Settled, String> {
    let done = format!("[[done {}/", case.code);
    let last = response["output"]
        .as_array()
        .and_then(|output| output.last());
    let text = last.and_then(|last| last["content"][0]["text"].as_str());
    if !text.is_some_and(|text| text.starts_with(&done)) {
        return Err("the model answers last".to_owned());
    }
    Ok(Settled {
        id: response["id"].as_str().unwrap_or_default().to_owned(),
        outcomes,
        items: items(response, "mcp_call").into_iter().cloned().collect(),
    })
}

/// Checks that the approvals of the calls are at the positions of the calls.
pub(crate) fn approvals(
    case: &Case,
    outcomes: &[Outcome],
    approvals: &[Approval],
) -> Result<(), String> {
    for (place, (outcome, approval)) in outcomes.iter().zip(approvals).enumerate() {
        let call = &case.calls[place];
        shown(place, &call.arguments(&case.code), approval)?;
        let (state, reason) = match outcome {
            Outcome::Ran(_) | Outcome::Unknown => (ApprovalState::Used, None),
            Outcome::Rejected => (ApprovalState::Denied, call.reason.as_deref()),
            Outcome::Withdrawn => (ApprovalState::Withdrawn, None),
        };
        if approval.state != state || approval.reason.as_deref() != reason {
            return Err(format!("call {place} is {outcome:?}, and {approval:?}"));
        }
    }
    Ok(())
}

/// Checks that a request has each call with its own result, then the later messages.
pub(crate) fn request(
    case: &Case,
    settled: &Settled,
    entries: &[Entry],
    turn: Turn,
) -> Result<(), String> {
    let wrong = |why: &str| format!("{why}; {:?}, {entries:?}", settled.outcomes);
    let is_call = |entry: &Entry| matches!(entry, Entry::Call { .. });
    let is_result = |entry: &Entry| matches!(entry, Entry::Result { .. });
    let count = case.calls.len();
    let first = entries.iter().position(is_call).unwrap_or_default();
    let (round, tail) = entries[first..].split_at((2 * count).min(entries.len() - first));
    let (calls, results) = round.split_at(count.min(round.len()));
    if !calls.iter().all(is_call) || results.len() != count || !results.iter().all(is_result) {
        return Err(wrong("the calls come first, then their results"));
    }
    for (place, call) in case.calls.iter().enumerate() {
        let Entry::Call { id, arguments } = &calls[place] else {
            continue;
        };
        if *arguments != call.arguments(&case.code) {
            return Err(wrong(&format!("call {place} has other arguments")));
        }
        // Without unique ids, the order says which result belongs to which call.
        let same = |entry: &&Entry| matches!(entry, Entry::Call { id: other, .. } if other == id);
        let before = calls[..place].iter().filter(same).count();
        let mut own = results.iter().filter_map(|entry| match entry {
            Entry::Result { id: of, text } if of == id => Some(text),
            _ => None,
        });
        let Some(text) = own.nth(before) else {
            return Err(wrong(&format!("call {place} has no result")));
        };
        let holds = match &settled.outcomes[place] {
            Outcome::Ran(charge) => text.contains(&charge.output()),
            Outcome::Unknown => is_lost(text),
            Outcome::Rejected => is_rejected(call.reason.as_deref(), text),
            Outcome::Withdrawn => is_withdrawn(text),
        };
        if !holds {
            return Err(wrong(&format!("call {place} has another result")));
        }
    }
    let mut expected = Vec::new();
    if case.input.is_some() {
        expected.push("user And be quick.".to_owned());
    }
    if turn == Turn::Next {
        expected.push(format!("assistant [[done {}/", case.code));
        expected.push("user Thank you.".to_owned());
    }
    let holds = tail.len() == expected.len()
        && tail.iter().zip(&expected).all(|(entry, expected)| {
            let (who, text) = expected.split_once(' ').unwrap_or_default();
            match entry {
                Entry::User(said) => who == "user" && said.contains(text),
                Entry::Assistant(said) => who == "assistant" && said.contains(text),
                Entry::Call { .. } | Entry::Result { .. } => false,
            }
        });
    match holds {
        true => Ok(()),
        false => Err(wrong(&format!("{expected:?} comes after the results"))),
    }
}

/// Checks that the input items of the next turn show approval requests and calls as the responses
/// did.
pub(crate) fn listed(
    case: &Case,
    settled: &Settled,
    questions: &[String],
    listed: &Value,
) -> Result<(), String> {
    let list = listed["data"].as_array().into_iter().flatten();
    let of = |kind: &'static str| list.clone().filter(move |item| item["type"] == kind);
    // An answered approval request need not be listed.
    for item in of("mcp_approval_request") {
        let place = questions.iter().position(|id| item["id"] == **id);
        let own = place.map(|place| case.calls[place].arguments(&case.code));
        if own != Some(parsed(&item["arguments"])) {
            return Err(format!("{questions:?} are listed as {item}"));
        }
    }
    let said = |item: &Value| {
        (
            parsed(&item["arguments"]),
            item["output"].clone(),
            item["error"].clone(),
        )
    };
    let mut left: Vec<_> = settled.items.iter().map(said).collect();
    for item in of("mcp_call") {
        match left.iter().position(|one| *one == said(item)) {
            Some(place) => drop(left.swap_remove(place)),
            None => return Err(format!("{:?} are listed as {item}", settled.items)),
        }
    }
    // Calls that did not run need not be listed.
    match left.iter().all(|(_, output, _)| output.is_null()) {
        true => Ok(()),
        false => Err(format!("{left:?} are not listed: {listed}")),
    }
}

/// The items of a type.
fn items<'r>(response: &'r Value, kind: &str) -> Vec<&'r Value> {
    let output = response["output"].as_array().into_iter().flatten();
    output.filter(|item| item["type"] == kind).collect()
}

/// The arguments of an item, parsed.
fn parsed(arguments: &Value) -> Value {
    serde_json::from_str(arguments.as_str().unwrap_or_default()).unwrap_or_default()
}

fn is_lost(text: &str) -> bool {
    text.contains("the result was lost") && !text.contains("receipt")
}

fn is_rejected(reason: Option<&str>, text: &str) -> bool {
    text.contains(reason.unwrap_or("rejected")) && !text.contains("receipt")
}

fn is_withdrawn(text: &str) -> bool {
    text.contains("not run") && !text.contains("receipt")
}
