//! Compares units with the tokens of published vocabularies.
//!
//! `cargo xtask units` writes the texts, has the vocabularies count them, and starts this. The
//! last line says how fast units are counted. With `--fit` it prints weights and factors that are
//! fitted to one half of the texts.

mod fit;
mod texts;

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use throughline_compact::tokens::{Family, text_units};

use texts::{Half, Text};

/// In percent: how far units may be from the tokens of a row.
const LIMIT: f64 = 12.0;

const NAMES: [&str; 5] = ["openai", "anthropic", "gemini", "llama", "mistral"];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, fitting) = match arguments.as_slice() {
        [folder] => (folder, false),
        [folder, option] if option == "--fit" => (folder, true),
        _ => return Err("name the folder with the texts; see `cargo xtask help`".into()),
    };
    let texts = texts::read(Path::new(folder))?;
    if fitting {
        fit::print(&texts);
        return Ok(ExitCode::SUCCESS);
    }
    let over = print_table(&texts);
    print_speed(&texts);
    if over == 0 {
        println!("every limited figure is within {LIMIT} %");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{over} limited figures are over {LIMIT} %");
    Ok(ExitCode::FAILURE)
}

/// Prints the errors of every row, and returns how many are over the limit.
fn print_table(texts: &[Text]) -> usize {
    let mut rows: Vec<&str> = Vec::new();
    for text in texts {
        if !rows.contains(&text.row.as_str()) {
            rows.push(&text.row);
        }
    }
    println!(
        "Estimated tokens against counted tokens, in percent: of the half that weights are fitted to, and of the other half."
    );
    print!("{:<15}", "");
    NAMES.iter().for_each(|name| print!("{name:>16}"));
    println!("   {:>8}", "tokens");
    let mut over = 0;
    for row in rows {
        let of_row: Vec<&Text> = texts.iter().filter(|text| text.row == row).collect();
        let limited = of_row.iter().all(|text| text.is_limited());
        print!("{row:<15}");
        let mut broken = 0;
        for family in 0..Family::ALL.len() {
            let errors = [Half::Fit, Half::Check].map(|half| error(&of_row, half, family));
            broken += errors.iter().filter(|error| error.abs() > LIMIT).count();
            print!("{:>8.1}{:>8.1}", errors[0], errors[1]);
        }
        let tokens: f64 = of_row.iter().map(|text| text.tokens[0]).sum();
        let verdict = match (limited, broken) {
            (true, 0) => "ok",
            (true, _) => "OVER",
            (false, _) => "no limit",
        };
        println!("   {tokens:>8}  {verdict}");
        if limited {
            over += broken;
        }
    }
    over
}

/// How much more is estimated for a row than a vocabulary counts, in percent.
fn error(texts: &[&Text], half: Half, family: usize) -> f64 {
    let (mut estimated, mut counted) = (0.0, 0.0);
    for text in texts.iter().filter(|text| text.half == half) {
        let units = text.units();
        let factors =
            throughline_compact::tokens::Class::ALL.map(|class| Family::ALL[family].factor(class));
        estimated += units
            .iter()
            .zip(factors)
            .map(|(units, factor)| units * factor)
            .sum::<f64>();
        counted += text.tokens[family];
    }
    (estimated / counted - 1.0) * 100.0
}

fn print_speed(texts: &[Text]) {
    let code = ["English", "Python", "JavaScript", "HTML and CSS", "JSON"];
    let parts = [("English, code and JSON", true), ("everything else", false)];
    for (name, wanted) in parts {
        let some = texts
            .iter()
            .filter(|text| code.contains(&text.row.as_str()) == wanted);
        let some: Vec<&str> = some.map(|text| text.text.as_str()).collect();
        let bytes: usize = some.iter().map(|text| text.len()).sum();
        let mut best = f64::INFINITY;
        for _ in 0..20 {
            let start = Instant::now();
            for text in &some {
                black_box(text_units(black_box(text)));
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{name}: {:.0} MB/s", bytes as f64 / best / 1e6);
    }
}
