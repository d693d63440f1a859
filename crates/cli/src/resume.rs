//! `throughline runs resume`: resume a run that was left, with the agents of the configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use throughline_model::json::ObjectWriter;
use throughline_server::{Config, ServeError, Server};
use throughline_store::{Authority, RunId};

use crate::args::Args;
use crate::failure::Failure;
use crate::store::check_exists;
use crate::{output, serve};

/// Resume a run, and wait for its end.
pub(crate) fn run(args: &Args, run: RunId, config: Option<&PathBuf>) -> Result<ExitCode, Failure> {
    let sources = serve::sources_of(args, config);
    let config = Config::load(&sources).map_err(|error| serve::config_failure(&error))?;
    let store = config.server.store.clone();
    check_exists(&store)?;
    let scope = Authority::assume().scope(args.tenant.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("the program cannot start: {error}")))?;
    let ended = runtime.block_on(Server::builder(config).resume(&scope, run));
    let stop = ended.map_err(|error| match &error {
        ServeError::Config(error) => serve::config_failure(error),
        ServeError::Store(_) => Failure::other(format!("{store}: {error}")),
        _ => Failure::other(error.to_string()),
    })?;
    match args.json {
        true => {
            let mut out = String::new();
            let mut object = ObjectWriter::new(&mut out);
            object
                .str("run", &run.to_string())
                .str("stop", stop.as_str());
            object.end();
            output::document(&out, false)?;
        }
        false => output::line(&format!("{run} is finished: {stop}"))?,
    }
    Ok(ExitCode::SUCCESS)
}
