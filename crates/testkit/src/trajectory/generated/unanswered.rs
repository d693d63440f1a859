//! Calls that never got a result, got it late, or were refused: users interrupt.

use throughline_model::{Message, Outcome};

use super::super::maker::{Maker, object};
use super::source::SourceFile;

pub(super) fn session(seed: u64) -> Vec<Message> {
    let mut maker = Maker::new(seed);
    maker.user("Clean up the harbour's code. I will interrupt you now and then.");
    let mut files: Vec<SourceFile> = (0..20)
        .map(|place| SourceFile::new(&mut maker, place, 7))
        .collect();
    let mut read: Vec<usize> = Vec::new();
    for turn in 0..90 {
        let place = maker.rng.below(files.len());
        let file = &files[place];
        let (path, text) = (file.path.clone(), file.shown(0, file.len()));
        let arguments = object(&[("path", &path)]);
        match turn % 9 {
            // The user interrupts before there is a result.
            3 => {
                let call = maker.call("read_file", arguments);
                maker.asks("", vec![call]);
                let prose = maker.prose(6);
                maker.user(format!("Stop. First {prose}."));
            }
            // One of two calls is answered, the other only after the next message.
            6 => {
                let now = maker.call("read_file", arguments);
                let month = object(&[("month", maker.word())]);
                let late = maker.call("list_tides", month);
                maker.asks("Both at once.", vec![now.clone(), late.clone()]);
                maker.answers(&now, Outcome::Ok, text);
                read.push(place);
                maker.user("How far are you?");
                let output = format!("{} {}", maker.rare_word(), maker.rng.range(1_000..=9_999));
                maker.answers(&late, Outcome::Ok, output);
            }
            8 => {
                let output = "The user does not want this call.".to_owned();
                let command = object(&[("command", &format!("rm {path}"))]);
                maker.round("", vec![("bash", command, Outcome::Rejected, output)]);
                maker.user("No, keep it.");
            }
            _ => {
                maker.done("", "read_file", arguments, text);
                read.push(place);
            }
        }
        if turn % 2 == 1 && !read.is_empty() {
            let old = *maker.rng.pick(&read);
            let file = &mut files[old];
            let quote = file.quoted(&mut maker, 0, usize::MAX / 2);
            if quote.count > 0 {
                let arguments = file.edit(&mut maker, quote);
                maker.done("", "edit_file", arguments, "1 replacement".to_owned());
            }
            let name = maker.rng.pick(&files[old].names).clone();
            let command = format!("cargo check --example {name}");
            let arguments = object(&[("command", &command)]);
            if maker.rng.chance(0.4) {
                let line = maker.rng.range(1..=files[old].len());
                let output = format!(
                    "Exit code 101\n{}\nerror[E0425]: cannot find value `{name}` in this scope\n --> {}:{line}:9",
                    maker.prose(40),
                    files[old].path
                );
                maker.round("", vec![("bash", arguments, Outcome::Error, output)]);
            }
        }
    }
    maker.says("I stop here.");
    maker.messages
}
