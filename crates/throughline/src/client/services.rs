//! Which services store conversations, and under which ids.

use super::StoresHistory;

/// How a service keeps the messages of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceStorage {
    /// The service.
    pub service: &'static str,
    /// The id that it issues, if any.
    pub id: &'static str,
    /// Whether all responses of a thread share that id.
    pub stable: Stability,
    /// Where the messages are stored.
    pub stored_by: &'static str,
    /// What a client for this service declares.
    pub declares: StoresHistory,
    /// What happens to the vendor's copy when a thread is deleted in our store, and how to delete it.
    pub deleting: &'static str,
}

/// Whether all responses of a conversation share its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// The same for all responses.
    Stable,
    /// A new id with each response.
    PerAnswer,
    /// The service has ids of both kinds.
    Either,
    /// The service issues no id.
    NoId,
    /// It depends on the service behind the client.
    Unknown,
}

impl Stability {
    /// The text that `docs/services.md` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "yes",
            Self::PerAnswer => "no, a new one per response",
            Self::Either => "conversation yes, response no",
            Self::NoId => "-",
            Self::Unknown => "depends on the service",
        }
    }
}

impl StoresHistory {
    /// The text that `docs/services.md` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Optional => "optional",
            Self::Always => "always",
        }
    }
}

const NO_COPY: &str = "none";

/// Every kind of service that can own a thread. `docs/services.md` has the same table.
///
/// ```
/// use throughline::client::{SERVICE_STORAGE, StoresHistory};
///
/// let always = SERVICE_STORAGE.iter().filter(|row| row.declares == StoresHistory::Always);
/// assert!(always.count() > 0);
/// ```
pub const SERVICE_STORAGE: &[ServiceStorage] = &[
    ServiceStorage {
        service: "Foundry agents (classic)",
        id: "thread `thread_…`",
        stable: Stability::Stable,
        stored_by: "the service",
        declares: StoresHistory::Always,
        deleting: "remains; `DELETE /threads/{id}`",
    },
    ServiceStorage {
        service: "Foundry agents (new)",
        id: "conversation `conv_…` or response `resp_…`",
        stable: Stability::Either,
        stored_by: "the service, unless told not to",
        declares: StoresHistory::Optional,
        deleting: "remains; `DELETE /conversations/{id}` or each `DELETE /responses/{id}`",
    },
    ServiceStorage {
        service: "OpenAI Assistants (gone since 2026-08-26)",
        id: "thread `thread_…`",
        stable: Stability::Stable,
        stored_by: "the service",
        declares: StoresHistory::Always,
        deleting: "unreachable; exported threads can be imported",
    },
    ServiceStorage {
        service: "OpenAI Responses, `store: true`",
        id: "response `resp_…` or conversation `conv_…`",
        stable: Stability::Either,
        stored_by: "the service",
        declares: StoresHistory::Optional,
        deleting: "remains, a response for 30 days; each `DELETE /responses/{id}`, or \
                   `DELETE /conversations/{id}`",
    },
    ServiceStorage {
        service: "OpenAI Responses, `store: false`",
        id: "none that can be continued",
        stable: Stability::NoId,
        stored_by: "our store",
        declares: StoresHistory::Optional,
        deleting: NO_COPY,
    },
    ServiceStorage {
        service: "Chat Completions, Anthropic Messages, Gemini `generateContent`, local models",
        id: "none",
        stable: Stability::NoId,
        stored_by: "our store",
        declares: StoresHistory::Never,
        deleting: NO_COPY,
    },
    ServiceStorage {
        service: "Gemini Interactions, `store: true`",
        id: "interaction",
        stable: Stability::PerAnswer,
        stored_by: "the service",
        declares: StoresHistory::Optional,
        deleting: "remains until it expires; each `DELETE /v1beta/interactions/{id}`",
    },
    ServiceStorage {
        service: "Gemini Interactions, `store: false`",
        id: "none that can be continued",
        stable: Stability::NoId,
        stored_by: "our store",
        declares: StoresHistory::Optional,
        deleting: NO_COPY,
    },
    ServiceStorage {
        service: "OpenAI Agents sessions",
        id: "session",
        stable: Stability::Stable,
        stored_by: "the service",
        declares: StoresHistory::Always,
        deleting: "remains; the vendor's own tools delete it",
    },
    ServiceStorage {
        service: "A2A",
        id: "`contextId` (and the `taskId` of an open task)",
        stable: Stability::Stable,
        stored_by: "the remote agent",
        declares: StoresHistory::Always,
        deleting: "remains; the protocol has no way to delete it",
    },
    ServiceStorage {
        service: "Copilot Studio",
        id: "conversation",
        stable: Stability::Stable,
        stored_by: "the service",
        declares: StoresHistory::Always,
        deleting: "remains; the vendor's own tools delete it",
    },
    ServiceStorage {
        service: "a custom client",
        id: "what it sets in `Response::service`",
        stable: Stability::Unknown,
        stored_by: "as it declares",
        declares: StoresHistory::Never,
        deleting: "depends on the service; nothing is deleted there",
    },
];

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::SERVICE_STORAGE;

    /// The table of `docs/services.md`.
    fn table() -> String {
        let mut table = String::from(
            "| service | id that it issues | id stays the same | stored by | client declares | the vendor's copy when a thread is deleted |\n\
             | --- | --- | --- | --- | --- | --- |\n",
        );
        for row in SERVICE_STORAGE {
            writeln!(
                table,
                "| {} | {} | {} | {} | `{}` | {} |",
                row.service,
                row.id,
                row.stable.as_str(),
                row.stored_by,
                row.declares.as_str(),
                row.deleting
            )
            .unwrap();
        }
        table
    }

    #[test]
    fn the_docs_have_the_table_of_services() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/services.md");
        let docs = std::fs::read_to_string(path).unwrap();
        let table = table();
        assert!(
            docs.contains(&table),
            "docs/services.md wants this table:\n{table}"
        );
    }

    #[cfg(feature = "http")]
    #[test]
    fn the_clients_declare_what_the_table_says() {
        use crate::client::vendor::{Anthropic, Foundry, Gemini, OpenAi};

        let clients = [
            ("Foundry agents (new)", Foundry::new("https://h/p", "m")),
            ("OpenAI Responses, `store: true`", OpenAi::responses("m")),
            ("OpenAI Responses, `store: false`", OpenAi::responses("m")),
            ("Chat Completions", OpenAi::chat("m")),
            ("Chat Completions", Anthropic::new("m")),
            ("Chat Completions", Gemini::new("m")),
            (
                "Gemini Interactions, `store: true`",
                Gemini::interactions("m"),
            ),
        ];
        for (service, client) in clients {
            let row = SERVICE_STORAGE
                .iter()
                .find(|row| row.service.starts_with(service))
                .unwrap();
            let client = client.api_key("k").build().unwrap();
            assert_eq!(client.abilities().stores_history, row.declares, "{service}");
        }
    }
}
