//! Reads the input of commands.

use std::io::Read as _;
use std::path::Path;

use crate::failure::Failure;

/// The file or standard input, never more than one byte beyond the limit.
pub(crate) fn read(file: Option<&Path>, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = (limit as u64).saturating_add(1);
    let done = match file {
        Some(path) if path != Path::new("-") => {
            std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
        }
        _ => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
    };
    match done {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::unreadable(file, &error)),
    }
}
