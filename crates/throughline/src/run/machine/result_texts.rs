//! Texts that a model reads as the result of a call whose tool gave none.

use throughline_model::Outcome;

/// The text of a result that was closed without having run to its end.
pub(crate) fn closed_text(outcome: Outcome) -> &'static str {
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

/// The text of a rejected call, with the reason if one was given.
pub(crate) fn rejected(reason: Option<&str>) -> String {
    match reason.map(str::trim) {
        None | Some("") => closed_text(Outcome::Rejected).to_owned(),
        Some(reason) => format!("{}: {reason}", closed_text(Outcome::Rejected)),
    }
}

/// The text of a call whose arguments the output limit cut off.
pub(crate) fn cut_off(name: &str) -> String {
    format!(
        "not run: the output limit cut the arguments of this call of {name:?} off; \
         call it again with shorter arguments, or in several calls"
    )
}

/// The text of a call to a tool that does not exist.
pub(crate) fn unknown_tool(name: &str, known: &[String]) -> String {
    match known {
        [] => format!("there is no tool called {name:?}; no tools are available"),
        names => format!(
            "there is no tool called {name:?}; available: {}",
            names.join(", ")
        ),
    }
}

/// The text of an approved call whose tool has been removed since.
pub(crate) fn gone(name: &str) -> String {
    format!("the tool {name:?} is no longer available")
}
