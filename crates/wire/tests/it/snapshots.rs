//! Rendered histories as they were reviewed: each transcript for each target.
//!
//! `THROUGHLINE_BLESS=1` writes what is rendered now; read the difference before you keep it.

use std::path::PathBuf;

use throughline_model::json::{self, ArrayWriter, ObjectWriter};
use throughline_wire::render::{Options, Rendered, Target, render};
use throughline_wire::transcript::{self, Limits};
use throughline_wire::validate::{Profile, validate};
use throughline_wire::{Format, Wire};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn write(out: &mut String, rendered: &Rendered) {
    let mut object = ObjectWriter::new(out);
    if let Some(system) = &rendered.system {
        object.str("system", system);
    }
    let mut items = ArrayWriter::new(object.key("items"));
    for item in &rendered.items {
        items.raw(&item.json);
    }
    items.end();
    let mut losses = ArrayWriter::new(object.key("losses"));
    for loss in &rendered.losses {
        loss.write_json(losses.slot());
    }
    losses.end();
    let mut repairs = ArrayWriter::new(object.key("repairs"));
    for repair in &rendered.repairs {
        repair.write_json(repairs.slot());
    }
    repairs.end();
    object.end();
}

#[test]
fn transcripts_render_as_they_were_reviewed() {
    let bless = std::env::var_os("THROUGHLINE_BLESS").is_some();
    let mut names: Vec<_> = std::fs::read_dir(folder("transcripts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 25, "only {} transcripts", names.len());
    let mut differ = Vec::new();
    for name in &names {
        let format = match name.split('.').collect::<Vec<_>>()[..] {
            [_, format, _] => format.parse().unwrap(),
            _ => Format::Neutral,
        };
        let bytes = std::fs::read(folder("transcripts").join(name)).unwrap();
        let transcript = transcript::read(&bytes, &format, Limits::default()).unwrap();
        let mut text = String::new();
        let mut object = ObjectWriter::new(&mut text);
        for wire in Wire::KNOWN {
            let target = Target::newest(wire.clone());
            let rendered = render(&transcript.request.messages, &target, &Options::default());
            let array = rendered.array();
            let violations = validate(
                &json::parse(&array).unwrap(),
                &Profile::newest(wire.clone()),
            );
            // A type that is newer than our list goes back to the vendor that made it.
            let refused = violations.iter().find(|found| found.rule != "O-12");
            assert_eq!(refused, None, "{name} for {wire}: {array}");
            write(object.key(wire.as_str()), &rendered);
        }
        object.end();
        let text = json::pretty(&text).unwrap() + "\n";
        let path = folder("rendered").join(format!("{name}.txt"));
        if bless {
            std::fs::create_dir_all(folder("rendered")).unwrap();
            std::fs::write(path, text).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
            differ.push(name.clone());
        }
    }
    println!(
        "table {} transcripts x {} targets",
        names.len(),
        Wire::KNOWN.len()
    );
    assert!(
        differ.is_empty(),
        "not as reviewed: {differ:?}; THROUGHLINE_BLESS=1 rewrites, then read the difference"
    );
}
