//! Questions about a session whose answers stand in one of its results.

use std::collections::{BTreeSet, HashMap};

use throughline_model::{Outcome, ToolCall};

use super::Session;
use super::atoms::{atoms, stands_in};
use super::facts::{command, error_line, failed, folded, output};
use super::text::argument_strings;

/// Longer answers are not typed in full by any model.
const LONGEST_ANSWER: usize = 160;
/// Longer commands are quoted in part.
const QUOTED: usize = 200;
/// Values that are asked for of one result.
const VALUES: usize = 2;

/// A question with a known answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What the model is asked.
    pub text: String,
    /// What its answer must contain.
    pub answer: String,
    /// The index of the message with the result in which the answer stands.
    pub source: usize,
}

impl Question {
    /// Whether a reply has the answer: white space and case do not count, but half a number is
    /// wrong.
    pub fn is_answered_by(&self, reply: &str) -> bool {
        let plain = |text: &str| folded(text).replace(['`', '*'], "").to_lowercase();
        stands_in(&plain(reply), &plain(&self.answer))
    }
}

/// The questions about a session, in the order of their results.
///
/// They ask for the first error line and the exit code of a command that failed, for values in the
/// results of calls, and for the one file in which a name was shown. A question is left out when two
/// results would answer it differently.
pub fn questions(session: &Session) -> Vec<Question> {
    let mut found: Vec<Question> = Vec::new();
    let mut names = NamesOfFiles::default();
    for (at, call, result) in session.answered_calls() {
        let text = output(result);
        let wrong = failed(result, &text);
        if let Some(command) = command(call).filter(|_| wrong) {
            found.extend(of_failure(&quoted(&command), &text, at));
        } else if result.outcome == Outcome::Ok {
            found.extend(of_values(call, &text, at));
            names.learn(call, &text, at);
        }
    }
    found.extend(names.questions());
    found.sort_by_key(|question| question.source);
    let asked = |text: &str| {
        found
            .iter()
            .filter(|question| question.text == text)
            .count()
    };
    let once: Vec<bool> = found
        .iter()
        .map(|question| asked(&question.text) == 1)
        .collect();
    let mut once = once.into_iter();
    found.retain(|_| once.next().unwrap_or(false));
    found
}

/// Which names were shown of which files.
#[derive(Default)]
struct NamesOfFiles {
    /// The files of each name; a result without a file counts as one of its own.
    files: HashMap<String, BTreeSet<String>>,
    /// The results of files, with their names in order.
    results: Vec<(usize, String, Vec<String>)>,
}

impl NamesOfFiles {
    fn learn(&mut self, call: &ToolCall, output: &str, at: usize) {
        let arguments = argument_strings(&call.arguments);
        let path = arguments.iter().find_map(|(key, value)| {
            let named = key.to_ascii_lowercase().contains("path");
            atoms(value).into_iter().next().filter(|_| named)
        });
        // What has no extension is a folder that was searched.
        let file = path.filter(|path| path.contains('.'));
        let names = atoms(output);
        for name in &names {
            let files = self.files.entry(name.clone()).or_default();
            files.insert(file.clone().unwrap_or_else(|| at.to_string()));
        }
        self.results.extend(file.map(|file| (at, file, names)));
    }

    /// One question for each result, about a name that no other file has.
    fn questions(&self) -> impl Iterator<Item = Question> {
        self.results.iter().filter_map(|(at, file, names)| {
            let is_telling = |name: &&String| {
                let plain = !name.contains(['/', '.']) && !file.contains(name.as_str());
                plain && self.files.get(*name).is_some_and(|files| files.len() == 1)
            };
            let name = names.iter().find(is_telling)?;
            Some(Question {
                text: format!("Which file that was read contains `{name}`? Answer with its path."),
                answer: file.clone(),
                source: *at,
            })
        })
    }
}

fn of_failure(command: &str, output: &str, source: usize) -> Vec<Question> {
    let mut found = Vec::new();
    let line = error_line(output).map(folded);
    if let Some(answer) = line.filter(|line| line.len() <= LONGEST_ANSWER) {
        found.push(Question {
            text: format!(
                "The command `{command}` failed. Quote the first line of its output that reports an error."
            ),
            answer,
            source,
        });
    }
    let code = output.lines().find_map(|line| {
        let line = line.to_ascii_lowercase();
        let (_, rest) = line
            .split_once("exit code ")
            .or_else(|| line.split_once("exited with code "))?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        (!digits.is_empty()).then(|| digits.to_owned())
    });
    found.extend(code.map(|answer| Question {
        text: format!("What was the exit code of the command `{command}`? Answer with the number."),
        answer,
        source,
    }));
    found
}

/// Scalars of a JSON result, or lines `key = value` and `key: value` of any other.
fn of_values(call: &ToolCall, output: &str, source: usize) -> Vec<Question> {
    let arguments = argument_strings(&call.arguments);
    let values: Vec<&str> = arguments.iter().map(|(_, value)| value.as_str()).collect();
    let made = format!("{}({})", call.name, quoted(&values.join(", ")));
    let pairs = match output.trim_start().starts_with('{') {
        true => argument_strings(&throughline_model::Arguments::Text(output.to_owned())),
        false => output.lines().filter_map(pair).collect(),
    };
    let unique = |key: &str| pairs.iter().filter(|(other, _)| other == key).count() == 1;
    let telling = pairs.iter().filter(|(key, value)| {
        let digits = value.bytes().any(|byte| byte.is_ascii_digit());
        let short = (2..=40).contains(&value.len());
        // A value that the call itself names is no memory.
        digits && short && unique(key) && !values.contains(&value.as_str())
    });
    let asked = telling.take(VALUES).map(|(key, value)| Question {
        text: format!(
            "In the result of {made}, what is the value of `{key}`? Answer with the value."
        ),
        answer: value.clone(),
        source,
    });
    asked.collect()
}

fn pair(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_end_matches([';', ',']);
    let (key, value) = line.split_once(" = ").or_else(|| line.split_once(": "))?;
    let key = key.split_whitespace().next_back()?;
    let plain = |text: &str| {
        text.chars()
            .all(|c| c.is_alphanumeric() || "_.-".contains(c))
    };
    (key.len() >= 3 && plain(key) && plain(value)).then(|| (key.to_owned(), value.to_owned()))
}

fn quoted(text: &str) -> String {
    let text = folded(text);
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use throughline_model::Outcome;

    use super::questions;
    use crate::trajectory::Session;
    use crate::trajectory::maker::Maker;

    #[test]
    fn questions_ask_for_errors_codes_and_values_that_one_result_has() {
        let mut made = Maker::new(0);
        made.user("look");
        let mut round = |arguments: &str, outcome, output: &str| {
            made.called("Bash", arguments, outcome, output);
        };
        let failed = "Exit code 101\nerror: no tide";
        round(r#"{"command":"make tide"}"#, Outcome::Error, failed);
        round(
            r#"{"ship":"SH1"}"#,
            Outcome::Ok,
            r#"{"ship":"SH1","depth":412}"#,
        );
        round(r#"{"file":"a"}"#, Outcome::Ok, "level = 17;");
        round(r#"{"file":"a"}"#, Outcome::Ok, "level = 18;");
        round(
            r#"{"path":"/p/src/a.rs"}"#,
            Outcome::Ok,
            "fn low_tide() {} fn both_of()",
        );
        round(r#"{"path":"/p/src/b.rs"}"#, Outcome::Ok, "fn both_of()");
        let found = questions(&Session::new("s", made.messages));
        let answers: Vec<_> = found
            .iter()
            .map(|question| (question.answer.as_str(), question.source))
            .collect();
        assert_eq!(
            answers,
            [
                ("error: no tide", 2),
                ("101", 2),
                ("412", 4),
                ("src/a.rs", 10)
            ]
        );
        assert!(found[0].is_answered_by("It says:\n`Error:  no tide`."));
        assert!(found[2].is_answered_by("412") && !found[2].is_answered_by("4123"));
    }
}
