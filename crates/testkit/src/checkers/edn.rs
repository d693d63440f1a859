//! Histories for external checkers: one operation per line, in the form of list-append checkers.

use std::fmt::Write;

use super::append_log::{History, Outcome};

/// The history as EDN: an `:invoke` and a completion for each operation, by time.
///
/// ```
/// use throughline_testkit::checkers::append_log::{Append, History, Outcome};
/// use throughline_testkit::checkers::edn::edn;
///
/// let append = Append { id: 7, run: 1, process: 3, begun: 10, ended: Some(12), outcome: Outcome::Acknowledged };
/// let history = History { appends: vec![append], ..History::default() };
/// let text = edn(&[("t1", &history)]);
/// assert_eq!(text.lines().count(), 2);
/// assert!(text.starts_with("{:type :invoke, :f :txn, :process 3, :time 10, :value [[:append \"t1\" 7]]}"));
/// ```
pub fn edn(logs: &[(&str, &History)]) -> String {
    let mut lines: Vec<(u64, u8, String)> = Vec::new();
    let mut add = |time: u64, kind: &str, process: u64, value: &str| {
        let mut line = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            line,
            "{{:type :{kind}, :f :txn, :process {process}, :time {time}, :value [{value}]}}"
        );
        lines.push((time, u8::from(kind != "invoke"), line));
    };
    for (log, history) in logs {
        for append in &history.appends {
            let value = format!("[:append {log:?} {}]", append.id);
            add(append.begun, "invoke", append.process, &value);
            let kind = match append.outcome {
                Outcome::Acknowledged => "ok",
                Outcome::Refused => "fail",
                Outcome::Unknown => "info",
            };
            add(
                append.ended.unwrap_or(u64::MAX),
                kind,
                append.process,
                &value,
            );
        }
        for read in &history.reads {
            let asked = format!("[:r {log:?} nil]");
            add(read.begun, "invoke", read.process, &asked);
            let ids: Vec<String> = read.ids.iter().map(u64::to_string).collect();
            let seen = format!("[:r {log:?} [{}]]", ids.join(" "));
            add(read.ended, "ok", read.process, &seen);
        }
    }
    lines.sort();
    let mut out = String::new();
    for (_, _, line) in lines {
        out.push_str(&line);
        out.push('\n');
    }
    out
}
