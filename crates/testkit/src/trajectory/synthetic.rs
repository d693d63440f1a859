//! Synthetic sessions: generated, always the same.

use throughline_model::{Content, Message, Outcome, Role};

use super::Session;
use super::maker::{Maker, object};

/// Three sessions: an agent that works on code, one that serves customers, and one whose files are
/// written in Chinese and Russian.
pub fn synthetic() -> Vec<Session> {
    vec![
        coding("own-code", 1, 90),
        service("own-service", 2, 140),
        scripts("own-scripts", 3, 70),
    ]
}

/// A coding session of at least this many short messages.
pub fn long(messages: usize) -> Session {
    let mut maker = Maker::new(4);
    maker
        .messages
        .push(Message::user("Keep the tide tables in order."));
    while maker.messages.len() < messages {
        let path = format!("src/{}/{}.rs", maker.word(), maker.identifier());
        let names: Vec<String> = (0..4).map(|_| maker.identifier()).collect();
        let text = format!(
            "pub fn {}() {{\n    {}\n}}\n",
            names.join("();\n    "),
            maker.prose(20)
        );
        let read = ("read_file", object(&[("path", &path)]), Outcome::Ok, text);
        maker.round("", vec![read]);
    }
    Session::new("long", maker.messages)
}

struct File {
    path: String,
    names: Vec<String>,
    text: String,
}

fn file(maker: &mut Maker, place: usize) -> File {
    let path = format!("src/{}/{}_{place}.rs", maker.word(), maker.word());
    let names: Vec<String> = (0..maker.rng.range(3..=9))
        .map(|_| maker.identifier())
        .collect();
    let mut text = String::new();
    let mut number = 1;
    for name in &names {
        let body = maker.rng.range(6..=24);
        text.push_str(&format!(
            "{number:>6}\tpub fn {name}(level: f64) -> f64 {{\n"
        ));
        for line in 0..body {
            let (a, b) = (maker.word(), maker.word());
            text.push_str(&format!(
                "{:>6}\t    let {a} = {b} * {line}.5;\n",
                number + line + 1
            ));
        }
        number += body + 2;
        text.push_str(&format!("{:>6}\t}}\n", number - 1));
    }
    File { path, names, text }
}

fn coding(name: &str, seed: u64, turns: usize) -> Session {
    let mut maker = Maker::new(seed);
    maker.messages.push(Message::new(
        Role::System,
        vec![Content::text(
            "You are a careful engineer. Never touch vendor/generated.rs.",
        )],
    ));
    let files: Vec<File> = (0..40).map(|place| file(&mut maker, place)).collect();
    for turn in 0..turns {
        if turn % 9 == 0 {
            let wanted = maker.rng.pick(&files).path.clone();
            let prose = maker.prose(20);
            maker
                .messages
                .push(Message::user(format!("Change {wanted}: {prose}.")));
        }
        let place = maker.rng.below(files.len());
        let (path, text) = (&files[place].path, &files[place].text);
        let read = (
            "read_file",
            object(&[("path", path)]),
            Outcome::Ok,
            text.clone(),
        );
        maker.round("Let me look.", vec![read]);
        // A name from anywhere in the past, as often as one from the current file.
        let from = if maker.rng.bool() {
            place
        } else {
            maker.rng.below(files.len())
        };
        let wanted = maker.rng.pick(&files[from].names).clone();
        let hit = format!(
            "{}:12: pub fn {wanted}(level: f64) -> f64 {{",
            files[from].path
        );
        let search = ("grep", object(&[("pattern", &wanted)]), Outcome::Ok, hit);
        let edit = object(&[
            ("path", path),
            ("old_string", "let tide = berth * 3.5;"),
            ("new_string", "let tide = berth * 4.0;"),
        ]);
        let edited = ("edit_file", edit, Outcome::Ok, "1 replacement".to_owned());
        maker.round("Now the change.", vec![search, edited]);
        let command = format!("cargo test {wanted} -- --nocapture");
        let (outcome, output) = if maker.rng.chance(0.3) {
            let prose = maker.prose(60);
            let line = format!("error[E0308]: mismatched types in {wanted}\n --> {path}:12:9");
            (Outcome::Error, format!("{prose}\n{line}\nExit code 101"))
        } else {
            (
                Outcome::Ok,
                format!(
                    "running 4 tests\n{}\ntest result: ok. 4 passed",
                    maker.prose(80)
                ),
            )
        };
        maker.round(
            "",
            vec![("bash", object(&[("command", &command)]), outcome, output)],
        );
        if turn % 9 == 8 {
            maker.says("That is done; the tests say so.");
        }
    }
    maker.says("All changes are made.");
    Session::new(name, maker.messages)
}

fn service(name: &str, seed: u64, turns: usize) -> Session {
    let mut maker = Maker::new(seed);
    maker.messages.push(Message::new(
        Role::System,
        vec![Content::text(
            "You are an agent of a ferry line. Refunds need a reason.",
        )],
    ));
    let mut bookings: Vec<String> = Vec::new();
    for turn in 0..turns {
        let customer = format!(
            "{}_{}_{:04}",
            maker.word(),
            maker.word(),
            maker.rng.below(10_000)
        );
        if turn % 4 == 0 {
            maker.messages.push(Message::user(format!(
                "I am {customer}. What of my bookings?"
            )));
        }
        let booking = format!("BK{:06}", maker.rng.below(1_000_000));
        bookings.push(booking.clone());
        let legs: Vec<_> = (0..maker.rng.range(2..=8))
            .map(|leg| {
                serde_json::json!({
                    "leg": leg, "from": maker.word(), "to": maker.word(),
                    "ferry": format!("FR{:03}", maker.rng.below(1000)), "price": maker.rng.below(500),
                    "note": maker.prose(18),
                })
            })
            .collect();
        let answer = serde_json::json!({"booking": booking, "customer": customer, "legs": legs});
        let arguments = object(&[("customer_id", &customer)]);
        maker.round(
            "",
            vec![("find_booking", arguments, Outcome::Ok, answer.to_string())],
        );
        if turn % 2 == 1 {
            let old = maker.rng.pick(&bookings).clone();
            let arguments = object(&[("booking_id", &old), ("reason", "the customer asked")]);
            let answer = format!("{{\"booking\":\"{old}\",\"state\":\"refunded\"}}");
            maker.round("", vec![("refund_booking", arguments, Outcome::Ok, answer)]);
        }
        if turn % 4 == 3 {
            maker.says("Here is what I found.");
        }
    }
    maker.says("Is there anything else?");
    Session::new(name, maker.messages)
}

fn scripts(name: &str, seed: u64, turns: usize) -> Session {
    const PHRASES: [&str; 6] = [
        "潮汐在十点转向，船只返回港口。",
        "灯塔的光照亮了整个海湾，渔民们正在收网。",
        "Прилив начинается в десять часов утра.",
        "Маяк освещает весь залив, рыбаки выбирают сети.",
        "引水员登船之前，请确认吃水深度与泊位编号。",
        "Лоцман поднимается на борт у второго буя.",
    ];
    let mut maker = Maker::new(seed);
    let mut notes: Vec<String> = Vec::new();
    for turn in 0..turns {
        if turn % 10 == 0 {
            maker.messages.push(Message::user("请继续整理港口的记录。"));
        }
        let path = format!("记录/{}_{turn}.md", maker.identifier());
        let count = maker.rng.range(12..=50);
        let lines: Vec<&str> = (0..count)
            .map(|_| *maker.rng.pick::<&str>(&PHRASES))
            .collect();
        let note = maker.identifier();
        let text = format!("# {note}\n{}", lines.join("\n"));
        notes.push(note);
        let arguments = object(&[("path", &path)]);
        maker.round(
            "我先看一下。",
            vec![("read_file", arguments, Outcome::Ok, text)],
        );
        let old = maker.rng.pick(&notes).clone();
        let arguments = object(&[("query", &old)]);
        maker.round(
            "",
            vec![("search", arguments, Outcome::Ok, "1 match".to_owned())],
        );
    }
    maker.says("记录已经整理完毕。");
    Session::new(name, maker.messages)
}

#[cfg(test)]
mod tests {
    use super::synthetic;
    use crate::trajectory::{FactKind, Origin, facts, needs};

    #[test]
    fn generated_sessions_are_the_same_each_time_and_have_needs_of_all_kinds() {
        let (once, again) = (synthetic(), synthetic());
        for (one, two) in once.iter().zip(&again) {
            assert_eq!(one.messages, two.messages);
        }
        let needs: Vec<_> = once.iter().flat_map(needs).collect();
        let of = |origin| needs.iter().filter(|need| need.origin == origin).count();
        assert!(of(Origin::Result) > 50 && of(Origin::User) > 3, "{needs:?}");
        let facts: Vec<_> = once.iter().flat_map(facts).collect();
        for kind in [
            FactKind::Written,
            FactKind::Failed,
            FactKind::ErrorLine,
            FactKind::Request,
        ] {
            assert!(facts.iter().any(|fact| fact.kind == kind), "{kind:?}");
        }
    }
}
