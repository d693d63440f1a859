//! Starting other programs, and where the workspace lies.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a chore could not go on.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// The folder that holds the workspace.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().map(Path::to_path_buf).unwrap_or(here)
}

/// A command that runs in the workspace folder and reads nothing from the terminal.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// The cargo that started this chore.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // These describe the package of this program; build scripts that watch them would run again and again.
    for (key, _) in std::env::vars_os() {
        let text = key.to_string_lossy();
        if text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
            || text == "CARGO_BIN_NAME"
        {
            cargo.env_remove(&key);
        }
    }
    cargo
}

/// Runs a command with its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|error| Failure::new(format!("cannot start {}: {error}", spell(command))))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} ended with {status}",
        spell(command)
    )))
}

/// Runs a command and gives what it wrote to standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| Failure::new(format!("cannot start {}: {error}", spell(command))))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        return Err(Failure::new(format!(
            "{} ended with {status}: {}",
            spell(command),
            complaint.trim()
        )));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure::new(format!("{} did not write text", spell(command))))
}

/// Whether a command can be started and ends well.
pub(crate) fn works(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it.
pub(crate) fn spell(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The platform that the compiler builds for when it is told nothing.
pub(crate) fn host() -> Result<String, Failure> {
    let text = output(command("rustc").arg("-vV"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| Failure::new("rustc -vV names no host"))
}
