//! Files of a generated project, which edits change.

use super::super::maker::{Maker, object};

/// A file of code.
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) names: Vec<String>,
    lines: Vec<String>,
}

impl SourceFile {
    /// A file of about this many functions.
    pub(super) fn new(maker: &mut Maker, place: usize, functions: usize) -> Self {
        let path = format!("src/{}/{}_{place}.rs", maker.word(), maker.word());
        let mut names = Vec::new();
        let mut lines = vec![format!("//! {}", maker.prose(8)), String::new()];
        for _ in 0..functions {
            let name = maker.identifier();
            lines.push(format!("pub fn {name}(level: u32) -> u32 {{"));
            for _ in 0..maker.rng.range(4..=14) {
                let (to, from) = (maker.identifier(), maker.word());
                let number = maker.rng.below(9_000);
                lines.push(format!("    let {to} = {from}(level + {number});"));
            }
            lines.extend(["    level".to_owned(), "}".to_owned(), String::new()]);
            names.push(name);
        }
        Self { path, names, lines }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// So many lines as a tool shows them, from a line counted from zero.
    pub(super) fn shown(&self, from: usize, count: usize) -> String {
        let lines = self.lines.iter().enumerate().skip(from).take(count);
        let lines = lines.map(|(at, line)| format!("{:>6}\t{line}\n", at + 1));
        lines.collect()
    }

    /// Lines of this range that an edit can quote: up to four, and where they begin.
    pub(super) fn quoted(&self, maker: &mut Maker, from: usize, count: usize) -> Quote {
        let end = (from + count).min(self.lines.len());
        let inner: Vec<usize> = (from..end)
            .filter(|at| self.lines[*at].contains("level + "))
            .collect();
        let Some(at) = (!inner.is_empty()).then(|| *maker.rng.pick(&inner)) else {
            return Quote { at: from, count: 0 };
        };
        let count = maker.rng.range(1..=4).min(end - at);
        Quote { at, count }
    }

    /// Replaces quoted lines; returns the arguments of the call that does it.
    pub(super) fn edit(&mut self, maker: &mut Maker, quote: Quote) -> String {
        let lines = &mut self.lines[quote.at..quote.at + quote.count];
        let old = lines.join("\n");
        for line in lines.iter_mut().filter(|line| line.contains("level + ")) {
            let number = maker.rng.below(9_000);
            let start = line.split("level + ").next().unwrap_or_default().to_owned();
            *line = format!("{start}level + {number});");
        }
        let new = lines.join("\n");
        object(&[
            ("path", &self.path),
            ("old_string", &old),
            ("new_string", &new),
        ])
    }
}

/// Lines of a file.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    at: usize,
    pub(super) count: usize,
}
