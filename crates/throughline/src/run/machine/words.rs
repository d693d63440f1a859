//! What a model reads where a tool has nothing to say.

use throughline_model::Outcome;

/// The text of a result that was closed without having run to its end.
pub(crate) fn closed(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "done",
        Outcome::Error => "the tool failed",
        Outcome::Rejected => "not run: the call was rejected",
        Outcome::Expired => "not run: nobody approved the call in time",
        Outcome::Withdrawn => "not run: the call was withdrawn because the conversation went on",
        Outcome::Limit => "not run: a limit of this run was reached",
        Outcome::Terminated => "not run: the run was ended before this call",
        Outcome::Cancelled => "not run: the run was cancelled",
        Outcome::Unknown => {
            "started, but the result was lost; it may or may not have had its effect"
        }
    }
}

/// What a person said who does not allow a call.
pub(crate) fn rejected(reason: Option<&str>) -> String {
    match reason.map(str::trim) {
        None | Some("") => closed(Outcome::Rejected).to_owned(),
        Some(reason) => format!("{}: {reason}", closed(Outcome::Rejected)),
    }
}

/// A call whose arguments were being written when the output limit ended the answer.
pub(crate) fn cut_off(name: &str) -> String {
    format!(
        "not run: the output limit cut the arguments of this call of {name:?} off; \
         call it again with shorter arguments, or in several calls"
    )
}

/// A tool that is not there.
pub(crate) fn unknown_tool(name: &str, known: &[String]) -> String {
    match known {
        [] => format!("there is no tool called {name:?}; no tools are available"),
        names => format!(
            "there is no tool called {name:?}; available: {}",
            names.join(", ")
        ),
    }
}

/// A tool that was there when somebody was asked, and is not any more.
pub(crate) fn gone(name: &str) -> String {
    format!("the tool {name:?} is no longer available")
}
