//! Notes and code comments in scripts that need more tokens for each character, or fewer.

use throughline_model::{Message, Outcome};

use super::super::maker::{Maker, object};

/// Sentences of a harbour in Chinese, Russian, Arabic, Japanese, Hindi and Greek.
const PHRASES: [&str; 12] = [
    "潮汐在十点转向，船只返回港口。",
    "引水员登船之前，请确认吃水深度与泊位编号。",
    "Прилив начинается в десять часов утра.",
    "Лоцман поднимается на борт у второго буя.",
    "تدخل السفينة الميناء عند المد العالي.",
    "يفتح القفل بعد إشارة المرشد.",
    "満潮は午前十時、水門は九時に開きます。",
    "水先人は二番目の浮標で乗船します。",
    "ज्वार दस बजे शुरू होता है।",
    "नाव घाट संख्या सात पर लौटती है।",
    "Η παλίρροια αρχίζει στις δέκα το πρωί.",
    "Ο πλοηγός ανεβαίνει στη δεύτερη σημαδούρα.",
];

/// A note: its path, its name and its lines.
struct Note {
    path: String,
    name: String,
    lines: Vec<String>,
}

pub(super) fn session(seed: u64) -> Vec<Message> {
    let mut maker = Maker::new(seed);
    let mut notes: Vec<Note> = Vec::new();
    for turn in 0..80 {
        if turn % 16 == 0 {
            let phrase = *maker.rng.pick::<&str>(&PHRASES);
            maker.user(format!("请继续整理港口的记录。{phrase}"));
        }
        let note = note(&mut maker, turn);
        let text = format!("# {}\n{}", note.name, note.lines.join("\n"));
        let arguments = object(&[("path", &note.path)]);
        maker.done("我先看一下。", "read_file", arguments, text);
        notes.push(note);
        let old = maker.rng.below(notes.len());
        match turn % 4 {
            0 => {
                let arguments = object(&[("query", &notes[old].name)]);
                let hit = format!("{}: {}", notes[old].path, notes[old].name);
                maker.done("", "search", arguments, hit);
            }
            1 => edit(&mut maker, &mut notes[old]),
            2 => check(&mut maker, &notes[old]),
            _ => {
                let Note { path, name, .. } = &notes[old];
                maker.says(format!("{path} 里的 {name} 还要再核对一遍。"));
                maker.user("好的。");
            }
        }
    }
    maker.says("记录已经整理完毕。");
    maker.messages
}

fn note(maker: &mut Maker, turn: usize) -> Note {
    let path = format!("记录/{}_{turn}.md", maker.identifier());
    let name = maker.identifier();
    let count = maker.rng.range(8..=40);
    let lines = (0..count).map(|_| {
        let phrase = *maker.rng.pick::<&str>(&PHRASES);
        format!("{phrase} {}", maker.rng.below(9_000))
    });
    let lines = lines.collect();
    Note { path, name, lines }
}

fn edit(maker: &mut Maker, note: &mut Note) {
    let at = maker.rng.below(note.lines.len());
    let old = note.lines[at].clone();
    note.lines[at] = format!(
        "{} {}",
        maker.rng.pick::<&str>(&PHRASES),
        maker.rng.below(9_000)
    );
    let new = note.lines[at].clone();
    let arguments = object(&[
        ("path", &note.path),
        ("old_string", &old),
        ("new_string", &new),
    ]);
    maker.done("", "edit_file", arguments, "已替换一处".to_owned());
}

fn check(maker: &mut Maker, note: &Note) {
    let command = format!("lint-notes {}", note.path);
    let arguments = object(&[("command", &command)]);
    if maker.rng.bool() {
        maker.done("", "bash", arguments, "没有问题".to_owned());
        return;
    }
    let line = maker.rng.range(1..=note.lines.len());
    let phrase = *maker.rng.pick::<&str>(&PHRASES);
    let output = format!(
        "Exit code 1\n{phrase}\n{}:{line}: error: 潮位 {} 超出范围",
        note.path, note.name
    );
    maker.round("", vec![("bash", arguments, Outcome::Error, output)]);
}
