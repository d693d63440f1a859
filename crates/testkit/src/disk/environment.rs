//! A disk whose power cut is planned by the environment.
//!
//! | variable | meaning |
//! |---|---|
//! | `THROUGHLINE_DISK` | `cut@N`: at the N-th write or sync the files become the image of a power
//! cut, and the process aborts |
//! | `THROUGHLINE_DISK_SEED` | the seed that decides which unsynced writes survive; 0 when absent |

use std::path::Path;

use super::Disk;
use super::state::AtCut;

/// Puts all files of this process on a disk, if the environment says so. The disk lives as long as
/// the returned value.
///
/// # Errors
///
/// When a variable cannot be read, so that a cut that never happens cannot pass for one that was
/// survived.
pub fn from_environment() -> Result<Option<Disk>, String> {
    let read = |key: &str| std::env::var(key).ok().filter(|text| !text.is_empty());
    let Some(plan) = read("THROUGHLINE_DISK") else {
        return Ok(None);
    };
    let seed = read("THROUGHLINE_DISK_SEED").unwrap_or_else(|| "0".to_owned());
    let (at, seed) = parse(&plan, &seed)?;
    let disk = Disk::new(Path::new("/"), AtCut::Abort);
    disk.cut_at(at, seed);
    Ok(Some(disk))
}

pub(super) fn parse(plan: &str, seed: &str) -> Result<(u64, u64), String> {
    let at = plan.strip_prefix("cut@").and_then(|n| n.parse().ok());
    let at = at
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("THROUGHLINE_DISK={plan} is not cut@N"))?;
    let seed = seed
        .parse()
        .map_err(|_| format!("THROUGHLINE_DISK_SEED={seed} is not a number"))?;
    Ok((at, seed))
}
