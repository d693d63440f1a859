//! One line for one call, by what its tool does.

use throughline_model::{Outcome, Output};

use super::digest_call::DigestCall;
use super::line::{Line, LineKind};
use super::outcome::CallEnd;
use super::{errors, result};
use crate::arguments::Args;
use crate::category::Category;
use crate::policy::Caps;
use crate::text;
use crate::trials::planted;

/// The line of a digest for a call, before names are chosen.
pub(crate) fn line(called: &DigestCall<'_>, args: &Args<'_>, caps: &Caps) -> Line {
    let output = called
        .result
        .map_or(std::borrow::Cow::Borrowed(""), |result| {
            text::of_output(&result.output)
        });
    let ended = CallEnd::of(called, &output);
    let mut line = Line::new(called.seq, LineKind::Call(called.category));
    line.ended = Some(ended);
    match called.category {
        Category::Read => read(&mut line, called, args, &output),
        Category::Write => write(&mut line, called, args),
        Category::Execute => execute(&mut line, called, args, caps),
        Category::Query => query(&mut line, called, args, &output),
        Category::Structured | Category::Plan | Category::Media | Category::Other => {
            other(&mut line, called, args, &output, caps);
        }
    }
    if !ended.is_ok() {
        // Counts of lines would be those of what was asked for, not of what was done.
        line.size = String::new();
        line.range = None;
        line.changed = (0, 0);
    }
    quote(&mut line, ended, &output, caps);
    line
}

/// What is quoted of the output.
fn quote(line: &mut Line, ended: CallEnd, output: &str, caps: &Caps) {
    if ended.failed() {
        let mut found = errors::lines(output, caps.error_lines, caps.error_line);
        if found.is_empty() {
            let first = output.lines().find(|one| !one.trim().is_empty());
            found.extend(first.map(|one| text::one_line(one, caps.error_line)));
        }
        if !found.is_empty() && !planted("compact-error-left-out") {
            line.rest = format!(": {}", found.join(" | "));
            line.errors = found.into_iter().take(1).collect();
        }
        return;
    }
    if ended.outcome == Some(Outcome::Rejected) {
        // A person may have given a reason.
        let reason = text::one_line(output, caps.other);
        if !reason.is_empty() {
            line.rest = format!(": {reason}");
        }
        return;
    }
    if ended.is_ok() && line.kind == LineKind::Call(Category::Execute) {
        // A line with nothing but the exit code is left out.
        let says = |one: &&str| !one.trim().is_empty() && errors::exit_code(one).is_none();
        let last = output.lines().rev().take(200).find(says);
        if let Some(last) = last {
            line.rest = format!(": {}", text::one_line(last, 80));
        }
    }
}

fn name(called: &DigestCall<'_>) -> String {
    let name = called.call.name.as_str();
    let name = if name.is_empty() {
        called.call.family.as_str()
    } else {
        name
    };
    text::one_line(name, 80)
}

fn read(line: &mut Line, called: &DigestCall<'_>, args: &Args<'_>, output: &str) {
    let path = args.path();
    let subject = match (args.pattern(), &path) {
        (Some(pattern), Some(path)) if !args.has("file_path") => {
            format!(
                "{} in {}",
                text::one_line(&pattern, 120),
                text::one_line(path, 200)
            )
        }
        (_, Some(path)) => text::one_line(path, 240),
        (Some(pattern), None) => text::one_line(&pattern, 200),
        (None, None) => format!("{}({})", name(called), args.short(120)),
    };
    line.key = Some(subject.as_str().into());
    let count = text::lines(output) as u64;
    line.range = range(args, count);
    line.head = format!("{} {subject}", line.verb("Read", "read"));
    line.size = match line.range {
        Some((from, to)) => format!(" lines {from}-{to} ({})", counted(to - from + 1)),
        None => format!(" ({})", counted(count)),
    };
}

/// Which lines a read asked for.
fn range(args: &Args<'_>, count: u64) -> Option<(u64, u64)> {
    if let Some([from, to]) = args
        .get("view_range")
        .or_else(|| args.get("lines"))
        .and_then(|range| range.as_array())
    {
        let (from, to) = (from.as_u64()?, to.as_u64()?);
        return (from <= to).then_some((from, to));
    }
    let from = args.number(&[
        "start_line",
        "startLine",
        "line_start",
        "offset",
        "start",
        "from",
    ]);
    let to = args.number(&["end_line", "endLine", "line_end", "end", "to"]);
    let limit = args.number(&["limit", "num_lines", "length", "max_lines"]);
    let from = match (from, to, limit) {
        (None, None, None) => return None,
        (from, _, _) => from.unwrap_or(1).max(1),
    };
    let to = match (to, limit) {
        (Some(to), _) => to,
        (None, Some(limit)) => from.saturating_add(limit).saturating_sub(1),
        (None, None) => from.saturating_add(count).saturating_sub(1),
    };
    (from <= to).then_some((from, to))
}

fn counted(lines: u64) -> String {
    match lines {
        1 => "1 line".to_owned(),
        many => format!("{many} lines"),
    }
}

fn write(line: &mut Line, called: &DigestCall<'_>, args: &Args<'_>) {
    let patch = args.str("patch").or_else(|| args.str("diff"));
    let patch = patch.or_else(|| args.str("input").filter(|text| text.contains("***")));
    let patch = match (patch, args.free()) {
        (None, free) if !free.is_empty() => Some(std::borrow::Cow::Borrowed(free)),
        (patch, _) => patch,
    };
    let path = args
        .path()
        .map(|path| text::one_line(&path, 240))
        .or_else(|| patch.as_deref().and_then(patched));
    let old = ["old_string", "oldText", "old_str", "oldString"];
    let new = [
        "new_string",
        "newText",
        "new_str",
        "newString",
        "content",
        "contents",
        "file_text",
    ];
    let count = |keys: &[&str]| {
        let found = keys.iter().find_map(|key| args.str(key));
        found.map(|text| text::lines(&text) as u64)
    };
    let (removed, added) = match &patch {
        Some(patch) => (signed(patch, b'-'), signed(patch, b'+')),
        None => (count(&old).unwrap_or(0), count(&new).unwrap_or(0)),
    };
    line.changed = (added, removed);
    let subject = path.unwrap_or_else(|| format!("by {}({})", name(called), args.short(160)));
    line.key = Some(subject.as_str().into());
    line.head = format!("{} {subject}", line.verb("Edited", "edit"));
    line.size = changed(line.changed);
}

/// How many lines a write added and took away.
pub(crate) fn changed((added, removed): (u64, u64)) -> String {
    match added + removed {
        0 => String::new(),
        _ => format!(" +{added}/-{removed} lines"),
    }
}

/// The files that a patch names.
fn patched(patch: &str) -> Option<String> {
    const MARKS: &[&str] = &[
        "*** Update File: ",
        "*** Add File: ",
        "*** Delete File: ",
        "+++ b/",
        "+++ ",
    ];
    let mut files: Vec<String> = Vec::new();
    for line in patch.lines() {
        let file = MARKS.iter().find_map(|mark| line.strip_prefix(mark));
        if let Some(file) = file.map(|file| text::one_line(file, 200))
            && files.len() < 12
            && !files.contains(&file)
        {
            files.push(file);
        }
    }
    (!files.is_empty()).then(|| files.join(", "))
}

/// Lines of a patch that begin with a sign, its file marks left out.
fn signed(patch: &str, sign: u8) -> u64 {
    let triple = [sign; 3];
    let lines = patch.lines().map(str::as_bytes);
    lines
        .filter(|line| line.first() == Some(&sign) && !line.starts_with(&triple))
        .count() as u64
}

fn execute(line: &mut Line, called: &DigestCall<'_>, args: &Args<'_>, caps: &Caps) {
    let command = match args.command() {
        Some(command) => text::one_line(&command, caps.command),
        None => format!("{}({})", name(called), args.short(caps.command)),
    };
    line.key = Some(command.as_str().into());
    line.head = format!("{} {command}", line.verb("Ran", "run"));
}

fn query(line: &mut Line, called: &DigestCall<'_>, args: &Args<'_>, output: &str) {
    let pattern = match args.pattern() {
        Some(pattern) => text::one_line(&pattern, 200),
        None => format!("{}({})", name(called), args.short(160)),
    };
    let within = match args.path() {
        Some(path) => format!("{pattern} in {}", text::one_line(&path, 200)),
        None => pattern,
    };
    line.key = Some(within.as_str().into());
    line.head = format!("{} {within}", line.verb("Searched", "search"));
    line.size = format!(" → {}", counted(text::lines(output) as u64));
}

fn other(line: &mut Line, called: &DigestCall<'_>, args: &Args<'_>, output: &str, caps: &Caps) {
    let verb = line.verb("Called", "call");
    let subject = format!("{}({})", name(called), args.short(200));
    line.head = format!("{verb} {subject}");
    line.key = Some(subject.into());
    if called.category == Category::Plan {
        // A plan is sent whole again, or the state of one of its parts is.
        let part = args.part().unwrap_or_default();
        line.key = Some(format!("{} {part}", name(called)).into());
    }
    if !line.is_ok() || line.failed() {
        return;
    }
    let json = called
        .result
        .is_some_and(|result| matches!(result.output, Output::Json(_)));
    let structured =
        (json || called.category == Category::Structured || output.starts_with(['{', '[']))
            .then(|| result::scalars(output, caps.structured))
            .flatten();
    let output = match structured {
        Some(scalars) => scalars,
        None if called.category == Category::Plan => text::one_line(output, caps.structured),
        None => text::one_line(output, caps.other),
    };
    if !output.is_empty() {
        line.rest = format!(" → {output}");
    }
}
