//! `[[upstream]]`, and the upstreams that the usual variables of the environment stand for.

use std::collections::BTreeMap;

use throughline::client::Secret;

use super::environment::origin;
use super::error::{ConfigError, Origin};
use super::sections::name;
use super::table::{Located, Table};
use super::types::{Credential, HistoryLocation, Kind, UpstreamConfig};

/// The address of OpenAI's own API.
const OPENAI: &str = "https://api.openai.com";

const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// Matches every model name.
const EVERYTHING: &str = "*";

/// The upstreams of a configuration, the built-in model last unless one of them is it.
pub(super) fn all<'a, 't: 'a>(
    tables: impl Iterator<Item = &'a Table<'t>>,
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
    let is_configured = !upstreams.is_empty();
    if !is_configured {
        let tables = usual(variables)?;
        let usual = tables.iter().map(|table| one(table, variables));
        upstreams = usual.collect::<Result<_, _>>()?;
    }
    // A single upstream takes every bare name; the built-in model beside it does not count.
    let others = |upstream: &&mut UpstreamConfig| upstream.kind != Kind::Demo;
    let mut real: Vec<&mut UpstreamConfig> = upstreams.iter_mut().filter(others).collect();
    if let [only] = real.as_mut_slice()
        && (is_configured || only.base_url.is_some())
    {
        only.models.push(EVERYTHING.to_owned());
    }
    if !upstreams.iter().any(|upstream| upstream.name == "demo") {
        upstreams.push(UpstreamConfig {
            name: "demo".to_owned(),
            kind: Kind::Demo,
            base_url: None,
            credential: Credential::None,
            models: vec!["demo".to_owned()],
            history: HistoryLocation::Local,
            window: None,
            origin: Origin::Default,
        });
    }
    Ok(upstreams)
}

fn one(
    table: &Table<'_>,
    variables: &BTreeMap<String, String>,
) -> Result<UpstreamConfig, ConfigError> {
    let name = name(table, "name")?;
    let kind: Kind = table.get("kind")?;
    match name.as_str() {
        "agent" => return Err(table.wrong("name", "\"agent\" stands before the names of agents")),
        "demo" if kind != Kind::Demo => {
            return Err(table.wrong("name", "\"demo\" is the built-in model; take another name"));
        }
        _ => {}
    }
    let base_url: Option<String> = table.find("base_url")?;
    match (&base_url, kind) {
        (Some(_), Kind::Demo) => {
            let problem = "the built-in model has no address; take it out";
            return Err(table.wrong("base_url", problem));
        }
        (None, Kind::Foundry) => {
            let problem = "is missing: the endpoint of the project, \
                           https://RESOURCE.services.ai.azure.com/api/projects/PROJECT";
            return Err(table.wrong("base_url", problem));
        }
        _ => {}
    }
    let credential = credential(table, kind, base_url.is_some(), variables)?;
    let mut models: Vec<String> = table.get("models")?;
    if models.iter().any(|model| model.trim().is_empty()) {
        return Err(table.wrong("models", "one of the names is empty"));
    }
    if name == "demo" && models.is_empty() {
        models.push(name.clone());
    }
    Ok(UpstreamConfig {
        history: table.get("history")?,
        window: table.find("window")?,
        name,
        kind,
        base_url,
        credential,
        models,
        origin: table.origin.clone(),
    })
}

fn credential(
    table: &Table<'_>,
    kind: Kind,
    has_base_url: bool,
    variables: &BTreeMap<String, String>,
) -> Result<Credential, ConfigError> {
    let variable: Option<String> = table.find("api_key_env")?;
    let command: Option<Vec<String>> = table.find("token_command")?;
    if kind == Kind::Demo && (variable.is_some() || command.is_some()) {
        let key = match variable {
            Some(_) => "api_key_env",
            None => "token_command",
        };
        return Err(table.wrong(key, "the built-in model needs no key; take it out"));
    }
    match (variable, command) {
        (Some(_), Some(_)) => Err(table.wrong(
            "token_command",
            "excludes api_key_env; take one of them out",
        )),
        (None, Some(command)) => Ok(Credential::Command(command)),
        (Some(variable), None) => match value(variables, &variable) {
            Some(key) => Ok(Credential::Key(Secret::new(key))),
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
        (None, None) if has_base_url => Ok(Credential::None),
        (None, None) => {
            let usual = kind.usual_keys().iter();
            let key = usual.clone().find_map(|name| value(variables, name));
            key.map(|key| Credential::Key(Secret::new(key)))
                .ok_or_else(|| {
                    let names = kind.usual_keys().join(" or ");
                    let problem =
                        format!("there is no key: set {names}, or name another variable here");
                    table.wrong("api_key_env", problem)
                })
        }
    }
}

/// The value of a variable that is set.
pub(super) fn value<'v>(
    variables: &'v BTreeMap<String, String>,
    variable: &str,
) -> Option<&'v str> {
    let value = variables.get(variable)?.trim();
    (!value.is_empty()).then_some(value)
}

/// The upstreams that the usual variables stand for.
fn usual(variables: &BTreeMap<String, String>) -> Result<Vec<Table<'_>>, ConfigError> {
    let base_url = value(variables, OPENAI_BASE_URL);
    if let Some(url) = base_url
        && !(url.starts_with("http://") || url.starts_with("https://"))
    {
        return Err(ConfigError::Wrong {
            origin: origin(OPENAI_BASE_URL),
            key: "upstream.openai.base_url".to_owned(),
            problem: "must start with http:// or https://".to_owned(),
        });
    }
    let base_url = base_url.filter(|url| !is_openai(url));
    let openai = match base_url {
        Some(_) => Kind::OpenAiChat,
        None => Kind::OpenAiResponses,
    };
    let usual = [
        ("openai", openai, "gpt-*,o*", base_url),
        ("anthropic", Kind::Anthropic, "claude-*", None),
        ("gemini", Kind::Gemini, "gemini-*", None),
    ];
    let tables = usual
        .into_iter()
        .filter_map(|(name, kind, models, base_url)| {
            let keys = kind.usual_keys();
            let key = keys.iter().find(|key| value(variables, key).is_some());
            let variable = match base_url {
                Some(_) => OPENAI_BASE_URL,
                None => key?,
            };
            let values = [
                ("kind", Some(kind.as_str())),
                ("models", Some(models)),
                ("base_url", base_url),
                ("api_key_env", key.copied()),
            ];
            let mut table = Table::new("upstream", Some(name.to_owned()), origin(variable));
            for (key, value) in values {
                if let Some(value) = value {
                    table
                        .values
                        .insert(key, Located::text(value, &table.origin));
                }
            }
            Some(table)
        });
    Ok(tables.collect())
}

fn is_openai(url: &str) -> bool {
    let rest = url.strip_prefix(OPENAI);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
