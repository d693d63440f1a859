//! Users who paste logs and documents, one of them larger than most budgets, and huge results.

use throughline_model::Message;

use super::super::maker::{Maker, object};

pub(super) fn session(seed: u64) -> Vec<Message> {
    let mut maker = Maker::new(seed);
    maker.system("You help to run a harbour. Say which line of a log you speak of.");
    let mut ids: Vec<String> = Vec::new();
    for paste in 0..8 {
        // Lines of about thirty tokens.
        let lines = match paste {
            3 => 1_500,
            _ => maker.rng.range(60..=400),
        };
        let log = pasted(&mut maker, lines, &mut ids);
        let question = maker.prose(9);
        maker.user(format!("{question}?\n\n{log}\n\nWhat went wrong there?"));
        for _ in 0..12 {
            let id = maker.rng.pick(&ids).clone();
            let arguments = object(&[("ship_id", &id)]);
            let (berth, depth) = (maker.rare_word(), maker.rng.range(100..=9_999));
            let notes = maker.prose(60);
            let output = format!(
                "{{\"ship\":\"{id}\",\"berth\":\"{berth}\",\"depth\":{depth},\"notes\":\"{notes}\"}}"
            );
            maker.done("", "find_ship", arguments, output);
        }
        if paste % 3 == 1 {
            let dump = pasted(&mut maker, 500, &mut ids).replace('\n', "; ");
            maker.done("", "dump_registry", "{}".to_owned(), dump);
        }
        let id = maker.rng.pick(&ids).clone();
        maker.says(format!("{id} was late, and the lock was closed."));
    }
    maker.messages
}

fn pasted(maker: &mut Maker, lines: usize, ids: &mut Vec<String>) -> String {
    let mut out = Vec::with_capacity(lines);
    for line in 0..lines {
        let id = format!("SH{:06}", maker.rng.below(1_000_000));
        let level = if maker.rng.chance(0.02) {
            "ERROR"
        } else {
            "INFO"
        };
        out.push(format!("{line:05} {level} {id} {}", maker.prose(9)));
        if line % 40 == 7 {
            ids.push(id);
        }
    }
    out.join("\n")
}
