//! `throughline serve`: read the configuration, start, print the address, and wait for the end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use throughline_model::json::{ArrayWriter, ObjectWriter};
use throughline_server::{
    Config, ConfigError, Flags, ServeError, Server, Signals, Sources, log_to_stderr, serve,
};

use crate::args::{Args, Serve};
use crate::failure::Failure;
use crate::{allocator, output};

/// The configuration that is read if none is named.
const FILE: &str = "throughline.toml";

/// The variable that names another.
const FILE_VARIABLE: &str = "THROUGHLINE_CONFIG";

/// Serve until a signal. `given` is what follows the command, if it was written.
pub(crate) fn run(args: &Args, given: Option<&Serve>) -> Result<ExitCode, Failure> {
    if args.tenant.as_str() != "local" {
        let text = "a server that is open to all serves the tenant local; leave --tenant out";
        return Err(Failure::usage(text));
    }
    let sources = sources(args, given);
    let config = Config::load(&sources).map_err(|error| config_failure(&error))?;
    allocator::purge_freed_memory_at_once();
    log_to_stderr(&config.server.log, config.server.log_format)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let store = config.server.store.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("the program cannot start: {error}")))?;
    runtime.block_on(async {
        // A process that reads the banner may send a signal at once.
        let signals = Signals::listen().map_err(|error| {
            Failure::other(format!("signal handlers cannot be installed: {error}"))
        })?;
        let server = serve(config).await.map_err(|error| match &error {
            ServeError::Config(error) => config_failure(error),
            ServeError::Store(_) => Failure::other(format!("{store}: {error}")),
            _ => Failure::other(error.to_string()),
        })?;
        let banner = Banner {
            server: &server,
            file: sources.file.as_deref(),
            store: &store,
        };
        match args.json {
            true => output::document(&banner.json(), false)?,
            false => output::note(&banner.text()),
        }
        server.run_until(signals).await;
        Ok::<(), Failure>(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The configuration of a command that takes only its file.
pub(crate) fn sources_of(args: &Args, config: Option<&PathBuf>) -> Sources {
    let given = Serve {
        config: config.cloned(),
        listen: None,
    };
    sources(args, Some(&given))
}

fn sources(args: &Args, given: Option<&Serve>) -> Sources {
    let of_process = Sources::of_process();
    let first = |pick: fn(&Serve) -> Option<String>| {
        let after = given.and_then(pick);
        after.or_else(|| pick(&args.serve))
    };
    let named = given
        .and_then(|serve| serve.config.clone())
        .or_else(|| args.serve.config.clone())
        .or_else(|| {
            let named = of_process.environment.get(FILE_VARIABLE)?;
            (!named.is_empty()).then(|| PathBuf::from(named))
        });
    let usual = || Some(PathBuf::from(FILE)).filter(|file| file.is_file());
    Sources {
        file: named.or_else(usual),
        flags: Flags {
            listen: first(|serve| serve.listen.clone()),
            store: args.store.clone(),
        },
        ..of_process
    }
}

pub(crate) fn config_failure(error: &ConfigError) -> Failure {
    let key = error.key().unwrap_or_default();
    Failure::configuration(error.to_string(), key, error.line())
}

/// What is printed when the server has started.
struct Banner<'s> {
    server: &'s Server,
    file: Option<&'s Path>,
    store: &'s str,
}

impl Banner<'_> {
    fn json(&self) -> String {
        let app = self.server.app();
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object
            .str("address", &self.server.address.to_string())
            .str("url", &format!("http://{}/v1", self.server.address))
            .str("store", self.store)
            .str("engine", app.profile.engine)
            .str("durability", app.durability());
        match self.file {
            Some(file) => object.str("config", &file.display().to_string()),
            None => object.raw("config", "null"),
        };
        let mut upstreams = ArrayWriter::new(object.key("upstreams"));
        for upstream in app.upstreams.all() {
            let mut entry = ObjectWriter::new(upstreams.slot());
            entry
                .str("name", &upstream.name)
                .str("kind", upstream.kind.as_str())
                .str("history", upstream.history.as_str());
            entry.end();
        }
        upstreams.end();
        object.end();
        out
    }

    fn text(&self) -> String {
        let app = self.server.app();
        let address = self.server.address;
        let config = match self.file {
            Some(file) => file.display().to_string(),
            None => "none; docs/server.md says what can be set".to_owned(),
        };
        let upstreams: Vec<String> = app
            .upstreams
            .all()
            .iter()
            .map(|upstream| match upstream.models.as_slice() {
                [] => format!("{} ({}/…)", upstream.name, upstream.name),
                models => format!("{} ({})", upstream.name, models.join(", ")),
            })
            .collect();
        let model = match app.config.agents.first() {
            Some(agent) => format!("agent/{}", agent.id),
            None => "demo".to_owned(),
        };
        format!(
            "throughline {} listens on http://{address}\n\
             \x20 store      {} ({})\n\
             \x20 config     {config}\n\
             \x20 upstreams  {}\n\
             \x20 try        curl http://{address}/v1/responses -H 'content-type: application/json' \
             -d '{{\"model\":\"{model}\",\"input\":\"Hello\"}}'",
            env!("CARGO_PKG_VERSION"),
            self.store,
            app.durability(),
            upstreams.join(", "),
        )
    }
}
