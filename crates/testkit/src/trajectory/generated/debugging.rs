//! A long hunt for errors: files are read once and edited much later, tests fail and pass again.

use throughline_model::{Message, Outcome};

use super::super::maker::{Maker, object};
use super::source::SourceFile;

/// What the agent has learnt and uses later.
struct Project {
    files: Vec<SourceFile>,
    /// Parts of files that were shown: file, first line, count.
    read: Vec<(usize, usize, usize)>,
    ports: Vec<usize>,
    labels: Vec<String>,
}

pub(super) fn session(seed: u64) -> Vec<Message> {
    let mut maker = Maker::new(seed);
    maker.system("You are a careful engineer. Never touch vendor/generated.rs.");
    let mut project = Project {
        files: (0..24)
            .map(|place| {
                let functions = maker.rng.range(4..=10);
                SourceFile::new(&mut maker, place, functions)
            })
            .collect(),
        read: Vec::new(),
        ports: Vec::new(),
        labels: Vec::new(),
    };
    for turn in 0..60 {
        if turn % 12 == 0 {
            let path = maker.rng.pick(&project.files).path.clone();
            let prose = maker.prose(25);
            maker.user(format!("The tests of {path} fail: {prose}. Find out why."));
        }
        look(&mut maker, &mut project);
        change(&mut maker, &mut project);
        if maker.rng.chance(0.3) {
            use_old_values(&mut maker, &project);
        }
    }
    maker.says("All tests pass now.");
    maker.messages
}

/// Reads a file, or a part of it, and searches for a name.
fn look(maker: &mut Maker, project: &mut Project) {
    let place = maker.rng.below(project.files.len());
    let file = &project.files[place];
    let (from, count) = match maker.rng.chance(0.6) {
        true => (0, file.len()),
        false => (maker.rng.below(file.len()), 40),
    };
    let (offset, limit) = (from.to_string(), count.to_string());
    let arguments = object(&[("path", &file.path), ("offset", &offset), ("limit", &limit)]);
    maker.done(
        "Let me look.",
        "read_file",
        arguments,
        file.shown(from, count),
    );
    project.read.push((place, from, count));
    let name = maker.rng.pick(&project.files[place].names).clone();
    let hits: Vec<String> = (0..maker.rng.range(1..=8))
        .map(|_| {
            let path = &maker.rng.pick(&project.files).path.clone();
            let caller = maker.identifier();
            format!("{path}:{}: {caller}({name}(3))", maker.rng.below(200))
        })
        .collect();
    let arguments = object(&[("pattern", &name)]);
    maker.done("", "grep", arguments, hits.join("\n"));
}

/// Runs a test, edits a file that was read, often long ago, and runs the test again.
fn change(maker: &mut Maker, project: &mut Project) {
    let recent = project.read.len().saturating_sub(2);
    let (place, from, count) = match maker.rng.chance(0.4) {
        true => project.read[maker.rng.range(recent..=project.read.len() - 1)],
        false => *maker.rng.pick(&project.read),
    };
    let file = &mut project.files[place];
    let name = maker.rng.pick(&file.names).clone();
    let command = format!("cargo test --lib {name}");
    let test = object(&[("command", &command)]);
    if maker.rng.chance(0.6) {
        let (port, label) = (maker.rng.range(10_000..=60_000), maker.rare_word());
        let log = log(maker, 60);
        let (left, right) = (maker.rng.below(900), maker.rng.below(900));
        let line = maker.rng.range(1..=file.len());
        let output = format!(
            "Exit code 101\nserving fixture {label} on port {port}\n{log}\nthread '{name}' panicked at {}:{line}:9: assertion failed: left {left}, right {right}\n{}",
            file.path,
            maker.prose(30)
        );
        project.ports.push(port);
        project.labels.push(label);
        maker.round("", vec![("bash", test.clone(), Outcome::Error, output)]);
    }
    let quote = file.quoted(maker, from, count);
    if quote.count > 0 {
        if maker.rng.chance(0.08) {
            let wrong = object(&[
                ("path", &file.path),
                ("old_string", "let nothing"),
                ("new_string", ""),
            ]);
            let output = "Error: the text to replace was not found".to_owned();
            maker.round("", vec![("edit_file", wrong, Outcome::Error, output)]);
        }
        let arguments = file.edit(maker, quote);
        maker.done(
            "Now the change.",
            "edit_file",
            arguments,
            "1 replacement".to_owned(),
        );
    }
    if maker.rng.chance(0.6) {
        let log = log(maker, 25);
        maker.done(
            "",
            "bash",
            test,
            format!("{log}\ntest result: ok. 4 passed"),
        );
    }
}

/// Calls and texts that use something from long ago.
fn use_old_values(maker: &mut Maker, project: &Project) {
    if let (Some(_), Some(_)) = (project.ports.first(), project.labels.first()) {
        let port = *maker.rng.pick(&project.ports);
        let label = maker.rng.pick(&project.labels).clone();
        let command = format!("curl -s localhost:{port} --data {label}");
        let output = format!("{{\"state\":\"{}\"}}", maker.word());
        maker.done("", "bash", object(&[("command", &command)]), output);
    }
    let (place, _, _) = *maker.rng.pick(&project.read);
    let file = &project.files[place];
    let (path, name) = (&file.path, maker.rng.pick(&file.names).clone());
    maker.says(format!("What {name} does in {path} explains part of it."));
    maker.user("Go on.");
}

fn log(maker: &mut Maker, lines: usize) -> String {
    let lines: Vec<String> = (0..lines)
        .map(|_| format!("[{:>6}] {}", maker.rng.below(900_000), maker.prose(7)))
        .collect();
    lines.join("\n")
}
