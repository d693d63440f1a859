//! Commands that work on a store.

mod approval_call;
mod approvals;
mod configuration;
mod hand_over;
mod json_form;
mod maintenance;
mod redact;
mod runs;
mod settle;
mod show;
mod text;
mod threads;
mod transfer;
mod tree;
mod view;
mod view_settings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use throughline_server::Config;
use throughline_store::{At, Authority, Error, ErrorKind, Opened, Store, TenantScope};

use crate::args::{Approvals, Args, Command, Runs, Threads};
use crate::failure::Failure;

/// What the commands share.
struct Context<'a> {
    /// The URL of the store.
    url: &'a str,
    scope: TenantScope,
    json: bool,
    /// For commands that ask vendors.
    config: Option<Config>,
}

/// What a command does if the store does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfMissing {
    Create,
    Fail,
}

/// Run a command.
pub(crate) fn run(args: &Args, command: &Command) -> Result<ExitCode, Failure> {
    let config = configuration::of(args, command)?;
    let store = config.as_ref().map(|config| config.server.store.clone());
    let context = Context {
        url: store.as_deref().unwrap_or_else(|| args.store()),
        // The process has the permissions of its user, so file permissions decide what is allowed.
        scope: Authority::assume().scope(args.tenant.clone()),
        json: args.json,
        config,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("the program cannot start: {error}")))?;
    runtime.block_on(context.command(command))
}

/// The file of a store, if it is one.
fn file_of(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    Some(Path::new(path).to_owned()).filter(|path| !path.as_os_str().is_empty())
}

/// Fail if the store does not exist, so that reading does not create it.
pub(crate) fn check_exists(url: &str) -> Result<(), Failure> {
    match file_of(url) {
        Some(file) if !file.exists() => Err(Failure::other(format!(
            "there is no store {}; name one with --store sqlite://PATH, or make one with \
             'throughline threads import' or 'throughline restore'",
            file.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

impl Context<'_> {
    async fn command(&self, command: &Command) -> Result<ExitCode, Failure> {
        match command {
            Command::Threads(threads) => match threads {
                Threads::List(args) => threads::list(self, args).await,
                Threads::Show(args) => show::show(self, args).await,
                Threads::Tree(args) => tree::tree(self, args).await,
                Threads::Export(args) => transfer::export(self, args).await,
                Threads::Import(args) => transfer::import(self, args).await,
                Threads::Fork(args) => threads::fork(self, args).await,
                Threads::Uncompact(args) => view_settings::uncompact(self, args).await,
                Threads::Pin(args) => view_settings::pin(self, args).await,
                Threads::HandOver(args) => hand_over::hand_over(self, args).await,
                Threads::Redact(args) => redact::redact(self, args).await,
                Threads::Delete(args) => threads::delete(self, args).await,
            },
            Command::Runs(runs) => match runs {
                Runs::List(args) => runs::list(self, args).await,
                Runs::Show { run } => runs::show(self, *run).await,
                Runs::Publish { run } => settle::publish(self, *run).await,
                Runs::Discard { run } => settle::discard(self, *run).await,
                // It has a server's runtime, see `resume`.
                Runs::Resume { .. } => Ok(ExitCode::SUCCESS),
                Runs::NotImplemented(words) => Err(Failure::not_implemented("runs", words)),
            },
            Command::Approvals(approvals) => match approvals {
                Approvals::List(args) => approvals::list(self, args).await,
                Approvals::Answer(args) => approvals::answer(self, args).await,
            },
            Command::View(args) => view::show(self, args).await,
            Command::Fsck => maintenance::fsck(self).await,
            Command::Backup(args) => maintenance::backup(self, args).await,
            Command::Restore(args) => maintenance::restore(self, args),
            Command::Migrate => maintenance::migrate(self),
            Command::Doctor => maintenance::doctor(self).await,
            Command::Serve(_)
            | Command::Convert(_)
            | Command::Validate(_)
            | Command::Compact(_)
            | Command::Completions(_)
            | Command::NotImplemented(_) => Err(Failure::usage("this command needs no store")),
        }
    }

    /// Open the store.
    async fn open(&self, missing: IfMissing) -> Result<Store, Failure> {
        if missing == IfMissing::Fail {
            check_exists(self.url)?;
        }
        Store::open(self.url)
            .await
            .map_err(|error| self.failure(&error))
    }

    /// The file of the store, if it is one.
    fn file(&self) -> Option<PathBuf> {
        file_of(self.url)
    }

    /// Open the thread that a name stands for, with the last messages of its branch.
    async fn find(
        &self,
        store: &Store,
        name: &str,
        window: usize,
    ) -> Result<(At, Opened), Failure> {
        let mut missing = None;
        for at in At::named(name) {
            match store.open(&self.scope, &at, window).await {
                Ok(opened) => return Ok((at, opened)),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    missing = missing.or(Some(error));
                }
                Err(error) => return Err(self.failure(&error)),
            }
        }
        Err(match missing {
            Some(error) => self.failure(&error),
            None => Failure::usage(format!(
                "{name:?} names no thread; give a thread id (1 to 128 visible ASCII characters), \
                 KIND:NAME, run_…, resp_… or node_…"
            )),
        })
    }

    /// Open the thread that a name stands for, to do something with all of it: not at a run or a
    /// node.
    async fn find_whole(&self, store: &Store, name: &str, to: &str) -> Result<Opened, Failure> {
        let (at, opened) = self.find(store, name, 0).await?;
        match at {
            At::Node(_) => Err(Failure::usage(format!(
                "{name} is a run or a node of thread {}; name the thread to {to} it",
                opened.thread.id
            ))),
            At::Thread(_) | At::Alias(_) => Ok(opened),
        }
    }

    /// The message for an error of the store: what, where, and what to do.
    fn failure(&self, error: &Error) -> Failure {
        let (url, tenant) = (self.url, self.scope.tenant());
        match error {
            Error::NotFound { what, .. } => {
                let list = match *what {
                    "run" | "node" => "throughline runs list",
                    "approval" => "throughline approvals list --all",
                    _ => "throughline threads list",
                };
                Failure::other(format!(
                    "{error} for tenant {tenant} in {url}; '{list}' shows what is there"
                ))
            }
            Error::Busy { run, .. } => Failure::other(format!(
                "{error}; wait for it, or settle it with 'throughline runs publish {run}' or \
                 'discard'"
            )),
            Error::Locked => Failure::other(format!("{url}: {error}; try again")),
            Error::Io { .. } | Error::Full | Error::Corrupt { .. } | Error::Newer { .. } => {
                Failure::other(format!("{url}: {error}"))
            }
            Error::Url { .. } => Failure::usage(error.to_string()),
            _ => Failure::other(error.to_string()),
        }
    }
}
