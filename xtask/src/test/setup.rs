//! Finding the tools the steps need, and installing what is missing.

use super::Outcome;
use super::output::Runner;
use crate::tool;

/// Which tools there are. What is missing makes its step a skip.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tools {
    fmt: bool,
    clippy: bool,
    cxx: bool,
    python: bool,
    node: bool,
    nextest: bool,
}

impl Tools {
    /// Looks for every tool, tries to install those that are missing, and says what came of it.
    pub(super) fn provide() -> Self {
        let found = Self {
            fmt: component("rustfmt", "fmt"),
            clippy: component("clippy", "clippy"),
            cxx: cxx(),
            python: python(),
            node: node(),
            nextest: tool::works(tool::cargo().args(["nextest", "--version"])),
        };
        let say = |there: bool| if there { "yes" } else { "NO" };
        println!(
            "rustfmt {}, clippy {}, C++ compiler {}, Python {}, Node {}, tests run by {}",
            say(found.fmt),
            say(found.clippy),
            say(found.cxx),
            say(found.python),
            say(found.node),
            if found.nextest {
                "cargo nextest"
            } else {
                "cargo test"
            }
        );
        found
    }

    pub(super) fn runner(self) -> Runner {
        if self.nextest {
            Runner::Nextest
        } else {
            Runner::CargoTest
        }
    }

    pub(super) fn with_fmt(self, work: impl FnOnce() -> Outcome) -> Outcome {
        if self.fmt { work() } else { missing("rustfmt") }
    }

    pub(super) fn with_clippy(self, work: impl FnOnce() -> Outcome) -> Outcome {
        if self.clippy {
            work()
        } else {
            missing("clippy")
        }
    }

    pub(super) fn with_cxx(self, work: impl FnOnce() -> Outcome) -> Outcome {
        if self.cxx {
            work()
        } else {
            missing("a C++ compiler")
        }
    }

    pub(super) fn with_python(self, work: impl FnOnce() -> Outcome) -> Outcome {
        if self.python {
            work()
        } else {
            missing("Python")
        }
    }

    pub(super) fn with_node(self, work: impl FnOnce() -> Outcome) -> Outcome {
        if self.node { work() } else { missing("Node") }
    }
}

fn missing(what: &str) -> Outcome {
    println!("skipped: {what} is missing and could not be installed");
    Outcome::Skipped(format!("{what} is missing"))
}

fn component(name: &str, command: &str) -> bool {
    let works = || tool::works(tool::cargo().args([command, "--version"]));
    if works() {
        return true;
    }
    println!("installing {name}");
    // Whether it worked is asked of the tool itself.
    let _ = tool::run(tool::command("rustup").args(["component", "add", name]));
    works()
}

/// libFuzzer is C++ and comes as source.
fn cxx() -> bool {
    let works = || tool::works(tool::command("c++").arg("--version"));
    if works() {
        return true;
    }
    println!("installing a C++ compiler");
    install(&["g++"]);
    works()
}

/// The vendors' SDKs are Python packages, which go into an environment of their own.
fn python() -> bool {
    let works = || tool::works(tool::command("python3").args(["-c", "import venv, ensurepip"]));
    if works() {
        return true;
    }
    println!("installing Python");
    install(&["python3", "python3-venv"]);
    works()
}

/// Some SDKs are packages for Node.
fn node() -> bool {
    let works = || {
        let there = |program: &str| tool::works(tool::command(program).arg("--version"));
        there("node") && there("npm")
    };
    if works() {
        return true;
    }
    println!("installing Node");
    install(&["nodejs", "npm"]);
    works()
}

/// Installs packages of the system. Whether it worked is asked of the tool itself.
fn install(packages: &[&str]) {
    let root = tool::output(tool::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    for arguments in [&["update"][..], &[&["install", "-y"], packages].concat()] {
        let mut install = if root {
            tool::command("apt-get")
        } else {
            let mut sudo = tool::command("sudo");
            // Never wait for a password: a run in CI has no terminal.
            sudo.args(["-n", "apt-get"]);
            sudo
        };
        if let Err(failure) = tool::run(
            install
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        ) {
            println!("{failure}");
        }
    }
}
