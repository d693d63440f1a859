//! Installs published SDKs and vocabularies in pinned versions, each set into a folder of its own in the target
//! folder: once, and again when the list of them changes. Nothing else is fetched.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tool::{self, Failure};

pub(super) const FOLDER: &str = "target/clients";

/// The list that an installation was made from, as it was then.
const STAMP: &str = "installed.txt";

/// Where the SDKs are that tests start; what could not be installed is none.
#[derive(Debug, Default)]
pub(super) struct Installed {
    /// An interpreter with the SDKs whose models read what the codecs write.
    pub(super) models: Option<PathBuf>,
    /// An interpreter with the SDKs that talk to the server.
    pub(super) python: Option<PathBuf>,
    /// A folder with the SDKs for Node that talk to the server.
    pub(super) node: Option<PathBuf>,
    /// The codex command line.
    pub(super) codex: Option<PathBuf>,
    /// The Claude Code command line.
    pub(super) claude_code: Option<PathBuf>,
    /// The program with the async-openai crate.
    pub(super) async_openai: Option<PathBuf>,
}

impl Installed {
    /// The variables that tell tests where the SDKs are.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let all = [
            ("THROUGHLINE_PYTHON", &self.models),
            ("THROUGHLINE_CLIENTS_PYTHON", &self.python),
            ("THROUGHLINE_CLIENTS_NODE", &self.node),
            ("THROUGHLINE_CLIENTS_CODEX", &self.codex),
            ("THROUGHLINE_CLIENTS_CLAUDE_CODE", &self.claude_code),
            ("THROUGHLINE_CLIENTS_ASYNC_OPENAI", &self.async_openai),
        ];
        all.into_iter()
            .filter_map(|(name, place)| Some((name, place.as_deref()?)))
    }
}

/// The interpreter that has the vendors' models.
pub(crate) fn models() -> Result<PathBuf, Failure> {
    python("python", "tests/clients/python/requirements.txt")
}

/// The interpreter that has the SDKs which talk to the server.
pub(super) fn server_python() -> Result<PathBuf, Failure> {
    python(
        "server-python",
        "tests/clients/server-python/requirements.txt",
    )
}

fn python(name: &str, list: &str) -> Result<PathBuf, Failure> {
    let folder = tool::root().join(FOLDER).join(name);
    let python = folder.join("bin/python");
    let wanted = read(&tool::root().join(list))?;
    if is_current(&folder, &wanted) {
        return Ok(python);
    }
    eprintln!("installing the packages of {list}");
    let environment = ["-m", "venv", "--clear"];
    tool::run(tool::command("python3").args(environment).arg(&folder))?;
    let install = ["-m", "pip", "install", "--quiet", "--requirement"];
    tool::run(tool::command(&python).args(install).arg(list))?;
    note(&folder, &wanted)?;
    Ok(python)
}

/// The folder that has the SDKs for Node which talk to the server.
pub(super) fn server_node() -> Result<PathBuf, Failure> {
    node("server-node")
}

/// The codex command line. It is large, so it has a folder of its own.
pub(super) fn codex() -> Result<PathBuf, Failure> {
    node("codex").map(|folder| folder.join("node_modules/.bin/codex"))
}

/// The Claude Code command line, as large. The package for this system has the executable; it is linked
/// here, because the script that would do so does not run.
pub(super) fn claude_code() -> Result<PathBuf, Failure> {
    let folder = node("claude-code")?;
    let link = folder.join("claude");
    if link.is_file() {
        return Ok(link);
    }
    let packages = folder.join("node_modules/@anthropic-ai");
    let installed = fs::read_dir(&packages).into_iter().flatten().flatten();
    let mut binaries = installed.map(|package| package.path().join("claude"));
    let binary = binaries.find(|binary| binary.is_file()).ok_or_else(|| {
        let folder = packages.display();
        Failure::new(format!("there is no executable of Claude Code in {folder}"))
    })?;
    fs::hard_link(&binary, &link)
        .map_err(|error| Failure::new(format!("cannot link {}: {error}", link.display())))?;
    Ok(link)
}

/// The interpreter that has the vocabulary of Mistral, and Django with its translations.
pub(crate) fn tokens_python() -> Result<PathBuf, Failure> {
    python("tokens-python", "tests/tokens/python/requirements.txt")
}

/// The folder that has the other vocabularies, and the program that counts with them.
pub(crate) fn tokens_node() -> Result<PathBuf, Failure> {
    let folder = node_of("tokens-node", "tests/tokens/node")?;
    // Beside its packages, because Node looks for them from where a program is.
    let program = "tests/tokens/node/count.mjs";
    fs::copy(tool::root().join(program), folder.join("count.mjs"))
        .map_err(|error| Failure::new(format!("cannot copy {program}: {error}")))?;
    Ok(folder)
}

/// The program that compares units with tokens.
pub(crate) fn token_table() -> Result<PathBuf, Failure> {
    let folder = build("token-table", "tests/tokens/table/Cargo.toml")?;
    Ok(folder.join("release/throughline-token-table"))
}

fn node(name: &str) -> Result<PathBuf, Failure> {
    node_of(name, &format!("tests/clients/{name}"))
}

fn node_of(name: &str, list: &str) -> Result<PathBuf, Failure> {
    let folder = tool::root().join(FOLDER).join(name);
    let source = tool::root().join(list);
    let wanted = read(&source.join("package-lock.json"))?;
    if is_current(&folder, &wanted) {
        return Ok(folder);
    }
    eprintln!("installing the packages of {list}/package-lock.json");
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    for name in ["package.json", "package-lock.json"] {
        fs::copy(source.join(name), folder.join(name))
            .map_err(|error| Failure::new(format!("cannot copy {list}/{name}: {error}")))?;
    }
    let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    let level = ["--loglevel", "error"];
    let mut npm = tool::command("npm");
    tool::output(npm.args(install).args(level).current_dir(&folder))?;
    note(&folder, &wanted)?;
    Ok(folder)
}

/// The program with the async-openai crate.
pub(super) fn async_openai() -> Result<PathBuf, Failure> {
    let folder = build("async-openai", "tests/clients/async-openai/Cargo.toml")?;
    Ok(folder.join("release/throughline-async-openai"))
}

/// Builds a package with a lock file of its own here, so that the workspace has none of its
/// dependencies. Cargo knows whether it is current.
fn build(name: &str, manifest: &str) -> Result<PathBuf, Failure> {
    let folder = tool::root().join(FOLDER).join(name);
    let build = ["build", "--release", "--locked", "--quiet"];
    let mut cargo = tool::cargo();
    cargo.args(build).args(["--manifest-path", manifest]);
    tool::run(cargo.arg("--target-dir").arg(&folder))?;
    Ok(folder)
}

fn is_current(folder: &Path, wanted: &str) -> bool {
    fs::read_to_string(folder.join(STAMP)).is_ok_and(|installed| installed == wanted)
}

/// Last, so that an installation that was cut short is done again.
fn note(folder: &Path, wanted: &str) -> Result<(), Failure> {
    let stamp = folder.join(STAMP);
    fs::write(&stamp, wanted)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", stamp.display())))
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}
