//! `[[upstream]]`, and the upstreams that the usual variables of the environment stand for.

use std::collections::BTreeMap;

use throughline::client::Secret;

use super::error::{ConfigError, Origin};
use super::keys::Section;
use super::read::Meaning::{Is, NotBuilt};
use super::sections::name;
use super::tree::Table;
use super::types::{Credential, Keeping, Kind, UpstreamConfig};

/// Where OpenAI itself is.
const OPENAI: &str = "https://api.openai.com";

/// Every bare name.
const EVERYTHING: &str = "*";

/// The upstreams of a configuration, the built-in model last unless one of them is it.
pub(super) fn all(
    tables: &[Table],
    variables: &BTreeMap<String, String>,
) -> Result<Vec<UpstreamConfig>, ConfigError> {
    let mut upstreams: Vec<UpstreamConfig> = Vec::new();
    for table in tables {
        let upstream = one(table, variables)?;
        if upstreams.iter().any(|known| known.name == upstream.name) {
            let problem = format!("there are two upstreams {:?}", upstream.name);
            return Err(table.wrong("name", problem));
        }
        upstreams.push(upstream);
    }
    match upstreams.is_empty() {
        true => upstreams = usual(variables)?,
        false => take_everything(&mut upstreams),
    }
    if !upstreams.iter().any(|upstream| upstream.name == "demo") {
        upstreams.push(demo());
    }
    Ok(upstreams)
}

/// A single upstream takes every bare name; the built-in model beside it does not count.
fn take_everything(upstreams: &mut [UpstreamConfig]) {
    let others = |upstream: &&mut UpstreamConfig| upstream.kind != Kind::Demo;
    let mut real: Vec<&mut UpstreamConfig> = upstreams.iter_mut().filter(others).collect();
    if let [only] = real.as_mut_slice() {
        only.models.push(EVERYTHING.to_owned());
    }
}

/// The model that always works.
fn demo() -> UpstreamConfig {
    UpstreamConfig {
        name: "demo".to_owned(),
        kind: Kind::Demo,
        base_url: None,
        credential: Credential::None,
        models: vec!["demo".to_owned()],
        history: Keeping::Local,
        window: None,
        origin: Origin::Default,
    }
}

fn one(table: &Table, variables: &BTreeMap<String, String>) -> Result<UpstreamConfig, ConfigError> {
    let name = name(table, "name")?;
    let kind = kind(table)?;
    match name.as_str() {
        "agent" => return Err(table.wrong("name", "\"agent\" stands before the names of agents")),
        "demo" if kind != Kind::Demo => {
            return Err(table.wrong("name", "\"demo\" is the built-in model; take another name"));
        }
        _ => {}
    }
    let base_url = base_url(table, kind)?;
    let credential = credential(table, kind, base_url.is_some(), variables)?;
    let keeping = [
        ("local", Is(Keeping::Local)),
        ("service", Is(Keeping::Service)),
    ];
    let mut models = table.list("models")?.unwrap_or_default();
    if models.iter().any(|model| model.trim().is_empty()) {
        return Err(table.wrong("models", "one of the names is empty"));
    }
    if name == "demo" && models.is_empty() {
        models.push(name.clone());
    }
    Ok(UpstreamConfig {
        history: table.word("history", &keeping)?.unwrap_or_default(),
        window: table.number("window")?,
        name,
        kind,
        base_url,
        credential,
        models,
        origin: table.origin.clone(),
    })
}

fn kind(table: &Table) -> Result<Kind, ConfigError> {
    let built = Kind::ALL.map(|kind| (kind.as_str(), Is(kind)));
    let mut words = built.to_vec();
    words.extend([
        (
            "foundry-classic",
            NotBuilt("a client for Foundry's classic agents"),
        ),
        ("a2a", NotBuilt("A2A")),
        ("copilot-studio", NotBuilt("Copilot Studio")),
    ]);
    let words: Vec<_> = words.into_iter().collect();
    table.word("kind", &words)?.ok_or_else(|| {
        let words = Kind::ALL.map(Kind::as_str).join(", ");
        table.wrong("kind", format!("is missing; it is one of {words}"))
    })
}

fn base_url(table: &Table, kind: Kind) -> Result<Option<String>, ConfigError> {
    let url = table.filled("base_url")?;
    match (&url, kind) {
        (Some(_), Kind::Demo) => {
            Err(table.wrong("base_url", "the built-in model has no address; take it out"))
        }
        (None, Kind::Foundry) => Err(table.wrong(
            "base_url",
            "is missing: the endpoint of the project, \
             https://RESOURCE.services.ai.azure.com/api/projects/PROJECT",
        )),
        _ => Ok(url),
    }
}

fn credential(
    table: &Table,
    kind: Kind,
    elsewhere: bool,
    variables: &BTreeMap<String, String>,
) -> Result<Credential, ConfigError> {
    let variable = table.filled("api_key_env")?;
    let command = table.command("token_command")?;
    if kind == Kind::Demo && (variable.is_some() || command.is_some()) {
        let key = if variable.is_some() {
            "api_key_env"
        } else {
            "token_command"
        };
        return Err(table.wrong(key, "the built-in model needs no key; take it out"));
    }
    match (variable, command) {
        (Some(_), Some(_)) => Err(table.wrong(
            "token_command",
            "excludes api_key_env; take one of them out",
        )),
        (None, Some(command)) => Ok(Credential::Command(command)),
        (Some(variable), None) => match set(variables, &variable) {
            Some(key) => Ok(Credential::Key(key)),
            None => Err(table.wrong(
                "api_key_env",
                format!("the variable {variable} is not set; set it to the key"),
            )),
        },
        (None, None) if kind == Kind::Demo => Ok(Credential::None),
        (None, None) if kind == Kind::Foundry => Err(table.wrong(
            "token_command",
            "is missing: a command that prints a token, or api_key_env with a bearer token",
        )),
        // A key for the vendor must not be sent to another host.
        (None, None) if elsewhere => Ok(Credential::None),
        (None, None) => {
            let usual = kind.usual_keys();
            match usual.iter().find_map(|variable| set(variables, variable)) {
                Some(key) => Ok(Credential::Key(key)),
                None => Err(table.wrong(
                    "api_key_env",
                    format!(
                        "there is no key: set {}, or name another variable here",
                        usual.join(" or ")
                    ),
                )),
            }
        }
    }
}

fn set(variables: &BTreeMap<String, String>, variable: &str) -> Option<Secret> {
    let value = variables.get(variable)?.trim();
    (!value.is_empty()).then(|| Secret::new(value))
}

/// The upstreams that the usual variables stand for.
fn usual(variables: &BTreeMap<String, String>) -> Result<Vec<UpstreamConfig>, ConfigError> {
    let mut upstreams = Vec::new();
    let mut add = |name: &str, kind: Kind, base_url: Option<String>, globs: &[&str]| {
        let usual = kind.usual_keys();
        let key = usual.iter().find_map(|variable| set(variables, variable));
        if key.is_none() && base_url.is_none() {
            return;
        }
        let variable = match &base_url {
            Some(_) => "OPENAI_BASE_URL",
            None => usual.first().copied().unwrap_or_default(),
        };
        upstreams.push(UpstreamConfig {
            name: name.to_owned(),
            kind,
            base_url,
            credential: key.map_or(Credential::None, Credential::Key),
            models: globs.iter().map(|glob| (*glob).to_owned()).collect(),
            history: Keeping::Local,
            window: None,
            origin: Origin::Environment {
                variable: variable.to_owned(),
            },
        });
    };
    let base = variables
        .get("OPENAI_BASE_URL")
        .map(|url| url.trim().to_owned())
        .filter(|url| !url.is_empty());
    if let Some(url) = &base
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        return Err(ConfigError::Wrong {
            origin: Origin::Environment {
                variable: "OPENAI_BASE_URL".to_owned(),
            },
            key: format!("{}.openai.base_url", Section::Upstream.name()),
            problem: "must start with http:// or https://".to_owned(),
        });
    }
    let elsewhere = base.filter(|url| !at_openai(url));
    match elsewhere {
        Some(url) => add("openai", Kind::OpenAiChat, Some(url), &["gpt-*", "o*"]),
        None => add("openai", Kind::OpenAiResponses, None, &["gpt-*", "o*"]),
    }
    add("anthropic", Kind::Anthropic, None, &["claude-*"]);
    add("gemini", Kind::Gemini, None, &["gemini-*"]);
    // A self-hosted server may have models of any name, and no other upstream has them.
    if let [only] = upstreams.as_mut_slice()
        && only.base_url.is_some()
    {
        only.models.push(EVERYTHING.to_owned());
    }
    Ok(upstreams)
}

fn at_openai(url: &str) -> bool {
    let rest = url.strip_prefix(OPENAI);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
