//! Many small reads, several at once, and edits of what they showed.

use throughline_model::{Message, Outcome};

use super::super::maker::{Maker, object};
use super::source::SourceFile;

pub(super) fn session(seed: u64) -> Vec<Message> {
    let mut maker = Maker::new(seed);
    maker.user("Rename what is named badly, file by file.");
    let mut files: Vec<SourceFile> = (0..40)
        .map(|place| SourceFile::new(&mut maker, place, 8))
        .collect();
    let mut read: Vec<(usize, usize)> = Vec::new();
    for turn in 0..110 {
        if turn % 25 == 24 {
            let prose = maker.prose(12);
            maker.user(format!("Also mind this: {prose}."));
        }
        let mut calls = Vec::new();
        for _ in 0..maker.rng.range(1..=4) {
            let place = maker.rng.below(files.len());
            let file = &files[place];
            let from = maker.rng.below(file.len());
            let offset = from.to_string();
            let arguments = object(&[("path", &file.path), ("offset", &offset), ("limit", "24")]);
            calls.push(("read_file", arguments, Outcome::Ok, file.shown(from, 24)));
            read.push((place, from));
        }
        maker.round("", calls);
        let (place, from) = *maker.rng.pick(&read);
        let name = maker.rng.pick(&files[place].names).clone();
        let hit = format!("{}:{}: fn {name}", files[place].path, from + 1);
        match turn % 3 {
            0 => maker.done("", "grep", object(&[("pattern", &name)]), hit),
            1 => {
                let file = &mut files[place];
                let quote = file.quoted(&mut maker, from, 24);
                if quote.count > 0 {
                    let arguments = file.edit(&mut maker, quote);
                    maker.done("", "edit_file", arguments, "1 replacement".to_owned());
                }
            }
            _ => {}
        }
    }
    maker.says("The names are better now.");
    maker.messages
}
