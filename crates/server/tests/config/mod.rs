//! The configuration: every key does something, and whatever is wrong is named.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod docs;
mod errors;
mod keys;
mod places;

use std::collections::BTreeMap;
use std::sync::Arc;

use throughline_server::{Config, ConfigError, Flags, Origin, Sources};
use throughline_testkit::Scratch;

/// What a file, the environment and the command line say together.
fn load_with(file: &str, variables: &[(&str, &str)], flags: Flags) -> Result<Config, ConfigError> {
    let folder = Scratch::new("config");
    let path = folder.path().join("throughline.toml");
    std::fs::write(&path, file).unwrap();
    let environment: BTreeMap<String, String> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Config::load(&Sources {
        file: Some(path),
        environment,
        flags,
    })
}

fn load(file: &str) -> Result<Config, ConfigError> {
    load_with(file, &[], Flags::default())
}

fn from_environment(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
    load_with(file, variables, Flags::default())
}

/// A configuration without the places in which it was written.
fn bare(mut config: Config) -> Config {
    for upstream in &mut config.upstreams {
        upstream.origin = Origin::Default;
    }
    for agent in &mut config.agents {
        Arc::make_mut(agent).origin = Origin::Default;
    }
    for webhook in &mut config.webhooks {
        webhook.origin = Origin::Default;
    }
    // They say where a key stands.
    config.warnings.clear();
    config
}
