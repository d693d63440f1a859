//! `docs/server.md` is a reference of every key.

use std::fmt::Write as _;

use throughline_server::{KEYS, Key, SECTIONS, SHORT, ValueType};

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn takes(key: &Key) -> String {
    match key.value {
        ValueType::Text => "text".to_owned(),
        ValueType::Number(least, most) if most > 1 << 60 => format!("number, at least {least}"),
        ValueType::Number(least, most) => format!("number, {least} to {most}"),
        ValueType::OneOf(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        ValueType::List => "list of texts".to_owned(),
        ValueType::Command => "program and arguments".to_owned(),
        ValueType::Map => "table of texts".to_owned(),
        ValueType::Unread => "".to_owned(),
    }
}

/// The tables of the page.
fn reference() -> String {
    let mut text = String::new();
    for section in SECTIONS {
        let head = match section {
            "upstream" | "agent" | "webhook" => format!("[[{section}]]"),
            "mcp" => "[mcp.LABEL]".to_owned(),
            section => format!("[{section}]"),
        };
        writeln!(text, "### `{head}`\n").unwrap();
        writeln!(text, "| key | takes | default | what it does | variable |").unwrap();
        writeln!(text, "| --- | --- | --- | --- | --- |").unwrap();
        for key in Key::of(section) {
            let short = SHORT
                .iter()
                .find(|(_, of, name)| *of == key.section && *name == key.name)
                .map(|(variable, ..)| format!("`{variable}`, "))
                .unwrap_or_default();
            let default = match key.default {
                "" => String::new(),
                plain if plain.contains('`') => plain.to_owned(),
                plain => format!("`{plain}`"),
            };
            let variable = match key.name {
                "*" | "name" | "id" => String::new(),
                _ => format!("{short}`{}`", key.variable()),
            };
            writeln!(
                text,
                "| `{}` | {} | {} | {} | {} |",
                key.name,
                cell(&takes(key)),
                cell(&default),
                cell(key.description),
                variable
            )
            .unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_reference_lists_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/server.md");
    let docs = std::fs::read_to_string(path).unwrap_or_default();
    let reference = reference();
    assert!(!KEYS.is_empty());
    assert!(
        docs.contains(reference.trim_end()),
        "docs/server.md wants these tables:\n{reference}"
    );
}
