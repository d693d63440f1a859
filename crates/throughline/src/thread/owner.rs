//! The owner of a thread's history, and the thread's other settings.

use throughline_compact::ViewSettings;
use throughline_model::Path;
use throughline_model::json::{self, ArrayWriter, ObjectWriter, RawJson};
use throughline_model::stored::{Fields, StoredError};

use super::policy::Persistence;

/// The owner of a thread's history. An explicit setting of the thread, never inferred from an id.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Owner {
    /// Our store.
    #[default]
    Local,
    /// The services of one or several upstreams. The ids that they issued, and how far each has
    /// been sent the conversation, are in the thread's state.
    Services(Services),
    /// A [`MessageStore`](crate::thread::MessageStore) of the application.
    External {
        /// The name of the store in the agent.
        store: String,
        /// The initial key; each append may return a new one.
        key: RawJson,
    },
}

impl Owner {
    /// The service of one upstream.
    pub fn service(upstream: impl Into<String>) -> Self {
        Self::Services(Services::new(upstream))
    }

    /// What kind of owner it is: `local`, `service` or `external`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Services(_) => "service",
            Self::External { .. } => "external",
        }
    }
}

/// The upstreams whose services keep a history: at least one, each once, in the order in which they
/// were added.
///
/// On its turn, a service is sent what it has not seen, also what others answered.
///
/// ```
/// use throughline::thread::Services;
///
/// let services = Services::new("openai").with("foundry").with("openai");
/// assert_eq!(services.iter().collect::<Vec<_>>(), ["openai", "foundry"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services(Vec<String>);

impl Services {
    /// One upstream.
    pub fn new(upstream: impl Into<String>) -> Self {
        Self(vec![upstream.into()])
    }

    /// Also another upstream.
    #[must_use]
    pub fn with(mut self, upstream: impl Into<String>) -> Self {
        let upstream = upstream.into();
        if !self.contains(&upstream) {
            self.0.push(upstream);
        }
        self
    }

    /// Whether an upstream is one of them.
    pub fn contains(&self, upstream: &str) -> bool {
        self.iter().any(|known| known == upstream)
    }

    /// The names of the upstreams.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl std::fmt::Display for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// The settings that are stored with a thread.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct ThreadSettings {
    pub(crate) owner: Owner,
    pub(crate) persistence: Option<Persistence>,
    pub(crate) view_settings: ViewSettings,
}

impl ThreadSettings {
    /// The stored form; `None` if all settings have their defaults.
    pub(crate) fn to_json(&self) -> Option<RawJson> {
        if *self == Self::default() {
            return None;
        }
        Some(RawJson::object(|object| {
            object.number("v", 1);
            match &self.owner {
                Owner::Local => {}
                Owner::Services(Services(upstreams)) => {
                    let mut owner = ObjectWriter::new(object.key("owner"));
                    owner.str("kind", "service");
                    match &upstreams[..] {
                        [upstream] => drop(owner.str("upstream", upstream)),
                        several => {
                            let mut list = ArrayWriter::new(owner.key("upstreams"));
                            for upstream in several {
                                json::push_string(list.slot(), upstream);
                            }
                            list.end();
                        }
                    }
                    owner.end();
                }
                Owner::External { store, key } => {
                    let mut owner = ObjectWriter::new(object.key("owner"));
                    owner.str("kind", "external").str("store", store);
                    owner.raw("key", key.get());
                    owner.end();
                }
            }
            if let Some(persistence) = self.persistence {
                object.str("persistence", persistence.as_str());
            }
            self.view_settings.write(object);
        }))
    }

    pub(crate) fn read(stored: Option<&RawJson>) -> Result<Self, StoredError> {
        let Some(stored) = stored else {
            return Ok(Self::default());
        };
        let value = json::parse(stored.get())?;
        let root = Path::Root;
        let mut fields = Fields::of(&value, &root)?;
        if let Some(version) = fields.number("v")?.filter(|version| *version > 1) {
            return Err(StoredError::Newer {
                path: "settings".into(),
                version,
            });
        }
        let owner = match fields.get("owner") {
            None => Owner::Local,
            Some(value) => {
                let path = root.key("owner");
                let mut fields = Fields::of(value, &path)?;
                match &*fields.required_str("kind")? {
                    "service" => Owner::Services(read_services(&mut fields)?),
                    "external" => Owner::External {
                        store: fields.required_str("store")?,
                        key: fields
                            .raw("key")
                            .ok_or_else(|| fields.missing("key", "a key"))?,
                    },
                    _ => return Err(fields.missing("kind", "service or external")),
                }
            }
        };
        let persistence = match fields.str("persistence")?.as_deref() {
            None => None,
            Some("per_call") => Some(Persistence::PerCall),
            Some("per_run") => Some(Persistence::PerRun),
            Some(_) => return Err(fields.missing("persistence", "per_run or per_call")),
        };
        Ok(Self {
            owner,
            persistence,
            view_settings: ViewSettings::of(Some(stored)),
        })
    }
}

/// One `upstream`, or a list of `upstreams`.
fn read_services(fields: &mut Fields<'_, '_>) -> Result<Services, StoredError> {
    let Some(listed) = fields.get("upstreams") else {
        return Ok(Services::new(fields.required_str("upstream")?));
    };
    let names = listed.as_array().unwrap_or_default().iter();
    let names: Option<Vec<String>> = names
        .map(|name| name.as_str().map(std::borrow::Cow::into_owned))
        .collect();
    let mut names = names.unwrap_or_default().into_iter();
    let first = names
        .next()
        .ok_or_else(|| fields.missing("upstreams", "names of upstreams"))?;
    Ok(names.fold(Services::new(first), Services::with))
}
