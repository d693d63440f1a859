//! The owner of a thread's history, and the thread's other settings.

use throughline_compact::ViewSettings;
use throughline_model::Path;
use throughline_model::json::{self, ObjectWriter, RawJson};
use throughline_model::stored::{Fields, StoredError};

use super::policy::Persistence;

/// The owner of a thread's history. An explicit setting of the thread, never inferred from an id.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Owner {
    /// Our store.
    #[default]
    Local,
    /// The service of an upstream. The id that it issued is in the thread's state.
    Service {
        /// The name of the upstream.
        upstream: String,
    },
    /// A [`MessageStore`](crate::thread::MessageStore) of the application.
    External {
        /// The name of the store in the agent.
        store: String,
        /// The initial key; each append may return a new one.
        key: RawJson,
    },
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
                Owner::Service { upstream } => {
                    let mut owner = ObjectWriter::new(object.key("owner"));
                    owner.str("kind", "service").str("upstream", upstream);
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
                    "service" => Owner::Service {
                        upstream: fields.required_str("upstream")?,
                    },
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
