//! Fits weights and factors to one half of the texts.

use std::collections::BTreeMap;

use throughline_compact::tokens::{Class, Family};

use crate::texts::{Half, Text};

/// How much errors of rows without a limit count, beside those of others: of prose, and of the rest.
const PROSE: f64 = 0.6;
const UNLIMITED: f64 = 0.35;

/// How much it costs to leave what a number was before, as a share of it, beside a row.
const INERTIA: f64 = 0.02;

const ROUNDS: usize = 20_000;

/// Prints the tables of `weights.rs` in the model crate and of `family.rs` in the compact crate.
pub(crate) fn print(texts: &[Text]) {
    let texts: Vec<&Text> = texts.iter().filter(|text| text.half == Half::Fit).collect();
    let importance = importance(&texts);
    let mut before: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for text in &texts {
        for (class, part, _, weight) in text.pieces.counts() {
            before.insert((class.index(), part), weight);
        }
    }
    let keys: Vec<(usize, usize)> = before.keys().copied().collect();
    let rows: Vec<Vec<f64>> = texts.iter().map(|text| counts(text, &keys)).collect();
    let before: Vec<f64> = before.into_values().collect();
    let weights = solve(&rows, &tokens(&texts, 0), &importance, &before);

    println!("weights.rs, in thousandths:");
    for class in Class::ALL {
        let of_class = keys
            .iter()
            .zip(&weights)
            .filter(|((index, _), _)| *index == class.index());
        let mut parts = [
            "0".to_owned(),
            "0".into(),
            "0".into(),
            "0".into(),
            "0".into(),
            "0".into(),
        ];
        for ((_, part), weight) in of_class {
            parts[*part] = thousandths(*weight);
        }
        println!("    /* {class:?} */ [{}],", parts.join(", "));
    }

    let units: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| by_class(row, &keys, &weights))
        .collect();
    let columns: Vec<Vec<f64>> = (1..Family::ALL.len())
        .map(|family| {
            let before = Class::ALL.map(|class| Family::ALL[family].factor(class));
            solve(&units, &tokens(&texts, family), &importance, &before)
        })
        .collect();
    println!("family.rs, in thousandths:");
    for class in Class::ALL {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| thousandths(column[class.index()]))
            .collect();
        println!("    /* {class:?} */ [{}],", cells.join(", "));
    }
}

fn tokens(texts: &[&Text], family: usize) -> Vec<f64> {
    texts.iter().map(|text| text.tokens[family]).collect()
}

/// How much a text counts: every limited row as much as any other, whatever it has in texts.
fn importance(texts: &[&Text]) -> Vec<f64> {
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for text in texts {
        *totals.entry(&text.row).or_default() += text.tokens[0];
    }
    let of_text = |text: &&Text| {
        let row = match (text.is_limited(), text.is_prose()) {
            (true, _) => 1.0,
            (false, true) => PROSE * PROSE,
            (false, false) => UNLIMITED * UNLIMITED,
        };
        row / (text.tokens[0] * totals[text.row.as_str()])
    };
    texts.iter().map(of_text).collect()
}

fn counts(text: &Text, keys: &[(usize, usize)]) -> Vec<f64> {
    let mut row = vec![0.0; keys.len()];
    for (class, part, count, _) in text.pieces.counts() {
        if let Ok(place) = keys.binary_search(&(class.index(), part)) {
            row[place] = count;
        }
    }
    row
}

fn by_class(row: &[f64], keys: &[(usize, usize)], weights: &[f64]) -> Vec<f64> {
    let mut units = vec![0.0; Class::ALL.len()];
    for ((count, (class, _)), weight) in row.iter().zip(keys).zip(weights) {
        units[*class] += count * weight;
    }
    units
}

/// Least squares, each error weighed, no solution below zero, and close to what it was before. One
/// number after the other is set to its best value, until that changes nothing.
fn solve(rows: &[Vec<f64>], wanted: &[f64], importance: &[f64], before: &[f64]) -> Vec<f64> {
    let size = before.len();
    let mut squares = vec![vec![0.0; size]; size];
    let mut sums = vec![0.0; size];
    for ((row, wanted), importance) in rows.iter().zip(wanted).zip(importance) {
        for one in 0..size {
            sums[one] += importance * row[one] * wanted;
            for other in 0..size {
                squares[one][other] += importance * row[one] * row[other];
            }
        }
    }
    for (place, before) in before.iter().enumerate() {
        let inertia = INERTIA / before.max(0.1).powi(2);
        squares[place][place] += inertia;
        sums[place] += inertia * before;
    }
    let mut found = before.to_vec();
    for _ in 0..ROUNDS {
        for place in 0..size {
            let estimated: f64 = squares[place]
                .iter()
                .zip(&found)
                .map(|(square, value)| square * value)
                .sum();
            let change = (sums[place] - estimated) / squares[place][place];
            found[place] = (found[place] + change).max(0.01);
        }
    }
    found
}

/// As it is written in the source.
fn thousandths(value: f64) -> String {
    let value = (value * 1_000.0).round() as u64;
    match value {
        0..1_000 => value.to_string(),
        _ => format!("{}_{:03}", value / 1_000, value % 1_000),
    }
}
