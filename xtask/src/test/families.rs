//! `cargo xtask clients`: every outside client of the server, in full, family by family.
//!
//! A family is one SDK in one language; its program and the test that runs it are those of
//! `crates/server/tests/clients/sdks.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Instant;

use super::installed::{self, FOLDER, Installed};
use super::output::FEATURES;
use crate::json;
use crate::tool::{self, Failure};

/// What a family needs to be installed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Python,
    Node,
    Codex,
    ClaudeCode,
    AsyncOpenAi,
}

struct Family {
    name: &'static str,
    /// The test in the module `clients::sdks`.
    test: &'static str,
    needs: Needs,
}

const fn family(name: &'static str, test: &'static str, needs: Needs) -> Family {
    Family { name, test, needs }
}

const FAMILIES: &[Family] = &[
    family(
        "openai-python",
        "openai_for_python_is_served_on_every_vendor",
        Needs::Python,
    ),
    family(
        "openai-node",
        "openai_for_node_is_served_on_every_vendor",
        Needs::Node,
    ),
    family(
        "openai-agents-python",
        "openai_agents_is_served_on_every_vendor",
        Needs::Python,
    ),
    family(
        "openai-agents-js",
        "openai_agents_for_node_is_served_on_every_vendor",
        Needs::Node,
    ),
    family(
        "langchain",
        "langchain_openai_is_served_on_every_vendor",
        Needs::Python,
    ),
    family(
        "chat-python",
        "chat_completions_of_openai_for_python_are_served_on_every_vendor",
        Needs::Python,
    ),
    family(
        "chat-node",
        "chat_completions_of_openai_for_node_are_served_on_every_vendor",
        Needs::Node,
    ),
    family(
        "anthropic-python",
        "anthropic_for_python_is_served_on_every_vendor",
        Needs::Python,
    ),
    family(
        "anthropic-node",
        "anthropic_for_node_is_served_on_every_vendor",
        Needs::Node,
    ),
    family(
        "langchain-stateless",
        "langchain_without_state_is_served_on_every_vendor",
        Needs::Python,
    ),
    family("ai6", "ai_version_6_is_served_on_every_vendor", Needs::Node),
    family("ai7", "ai_version_7_is_served_on_every_vendor", Needs::Node),
    family(
        "agent-framework",
        "agent_framework_is_served_on_every_vendor",
        Needs::Python,
    ),
    family(
        "pydantic-ai",
        "pydantic_ai_is_served_on_every_vendor",
        Needs::Python,
    ),
    family(
        "async-openai",
        "async_openai_is_served_on_every_vendor",
        Needs::AsyncOpenAi,
    ),
    family(
        "claude-code",
        "claude_code_is_served_on_every_vendor",
        Needs::ClaudeCode,
    ),
    family("codex", "codex_is_served_on_every_vendor", Needs::Codex),
    family(
        "native-api",
        "the_native_api_keeps_to_its_document",
        Needs::Python,
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

pub(crate) fn main(arguments: &[String]) -> Result<ExitCode, Failure> {
    let mut form = Form::Text;
    let mut chosen: Vec<&Family> = Vec::new();
    for argument in arguments {
        match argument.as_str() {
            "--json" => form = Form::Json,
            "--list" => {
                FAMILIES
                    .iter()
                    .for_each(|family| println!("{}", family.name));
                return Ok(ExitCode::SUCCESS);
            }
            name => match FAMILIES.iter().find(|family| family.name == name) {
                Some(family) => chosen.push(family),
                None => {
                    return Err(Failure::new(format!(
                        "clients knows no {name}; --list names the families"
                    )));
                }
            },
        }
    }
    if chosen.is_empty() {
        chosen = FAMILIES.iter().collect();
    }
    let sdks = install(&chosen)?;
    let program = build()?;
    let mut failed: Vec<&str> = Vec::new();
    for family in &chosen {
        let ran = run(family, &program, &sdks)?;
        ran.print(form);
        if !ran.passed {
            failed.push(family.name);
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// What the families need. What cannot be installed ends the command: a family that did not run
/// must not look like one that passed.
fn install(chosen: &[&Family]) -> Result<Installed, Failure> {
    let is_needed = |needs: Needs| chosen.iter().any(|family| family.needs == needs);
    let mut sdks = Installed::default();
    // The programs for the command lines are in Python too.
    let lines = [Needs::Python, Needs::Codex, Needs::ClaudeCode];
    if lines.into_iter().any(is_needed) {
        sdks.python = Some(installed::server_python()?);
    }
    if is_needed(Needs::Node) {
        sdks.node = Some(installed::server_node()?);
    }
    if is_needed(Needs::ClaudeCode) {
        sdks.claude_code = Some(installed::claude_code()?);
    }
    if is_needed(Needs::Codex) {
        sdks.codex = Some(installed::codex()?);
    }
    if is_needed(Needs::AsyncOpenAi) {
        sdks.async_openai = Some(installed::async_openai()?);
    }
    Ok(sdks)
}

/// The test program, built with the features of the test command so that both share one build.
fn build() -> Result<PathBuf, Failure> {
    let arguments = [
        "test",
        "--no-run",
        "--workspace",
        "--features",
        FEATURES,
        "--locked",
        "--test",
        "server",
        "--message-format=json-render-diagnostics",
    ];
    let messages = tool::output(tool::cargo().args(arguments))?;
    let mut built = messages.lines().filter_map(|line| {
        let message = json::parse(line).ok()?;
        let path = message.get("executable")?.as_str()?;
        Some(PathBuf::from(path.as_ref()))
    });
    built
        .next()
        .ok_or_else(|| Failure::new("cargo names no test program of the clients"))
}

/// How a family came off.
struct Ran {
    family: &'static str,
    passed: bool,
    seconds: f64,
    /// What the test wrote about it; none if it did not come so far.
    report: Option<String>,
    output: Output,
}

fn run(family: &Family, program: &Path, sdks: &Installed) -> Result<Ran, Failure> {
    let folder = tool::root().join(FOLDER).join("reports");
    let report = folder.join(format!("{}.json", family.name));
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("cannot make {}: {error}", folder.display())))?;
    // One of an earlier run would be taken for one of this run. There may be none.
    let _ = fs::remove_file(&report);
    let started = Instant::now();
    let mut test = tool::command(program);
    test.args([
        "--exact",
        &format!("clients::sdks::{}", family.test),
        "--nocapture",
    ]);
    if std::env::var_os("THROUGHLINE_CLIENTS").is_none() {
        test.env("THROUGHLINE_CLIENTS", "full");
    }
    test.envs(sdks.variables());
    test.env("THROUGHLINE_CLIENTS_REPORT", &report);
    let output = captured(&mut test)?;
    let report = fs::read_to_string(&report).ok();
    Ok(Ran {
        family: family.name,
        // A test that does not exist passes as well, and writes no report.
        passed: output.status.success() && report.is_some(),
        seconds: started.elapsed().as_secs_f64(),
        report,
        output,
    })
}

fn captured(command: &mut Command) -> Result<Output, Failure> {
    let output = command.output();
    output.map_err(|error| Failure::new(format!("cannot start {}: {error}", tool::spell(command))))
}

impl Ran {
    fn print(&self, form: Form) {
        let said = String::from_utf8_lossy(&self.output.stdout);
        if !self.passed {
            eprint!("{said}{}", String::from_utf8_lossy(&self.output.stderr));
        }
        let (family, seconds) = (self.family, self.seconds);
        match form {
            Form::Json => {
                let report = self.report.as_deref().map(str::trim);
                let rest = report.and_then(|report| report.strip_prefix('{'));
                let rest = rest.map_or_else(|| format!("\"family\":\"{family}\"}}"), str::to_owned);
                println!("{{\"ok\":{},\"seconds\":{seconds:.1},{rest}", self.passed);
            }
            Form::Text => {
                // The line of the test: the SDK with its version, and the checks on each model.
                let line = said.lines().find_map(|line| {
                    let (_, rest) = line.split_once("campaign client ")?;
                    Some(rest)
                });
                let verdict = if self.passed { "ok" } else { "FAILED" };
                println!("{verdict:<6} {seconds:>6.1} s  {}", line.unwrap_or(family));
            }
        }
    }
}
