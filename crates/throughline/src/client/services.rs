//! Which services store conversations, and under which ids.

use super::StoresHistory;

/// How a service keeps the messages of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceStorage {
    /// The service.
    pub service: &'static str,
    /// The id that it hands out, if it hands out one.
    pub id: &'static str,
    /// Whether the id stays the same over the thread.
    pub stable: Stability,
    /// Who stores the messages.
    pub stored_by: &'static str,
    /// What a client for it declares.
    pub declares: StoresHistory,
    /// What becomes of the vendor's copy when a thread is deleted here, and how it is deleted.
    pub deleting: &'static str,
}

/// Whether the id of a conversation stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// It does.
    Stable,
    /// Every answer has another.
    PerAnswer,
    /// The service has both sorts.
    Either,
    /// There is none.
    NoId,
    /// It depends on the service behind the client.
    Unknown,
}

impl Stability {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "yes",
            Self::PerAnswer => "no, one for each answer",
            Self::Either => "conversation yes, response no",
            Self::NoId => "-",
            Self::Unknown => "as the service has it",
        }
    }
}

impl StoresHistory {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Optional => "optional",
            Self::Always => "always",
        }
    }
}

const NOTHING_THERE: &str = "nothing is kept there";

/// Every kind of service that a thread can be bound to. `docs/services.md` is made from it.
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
        deleting: "stays there; `DELETE /threads/{id}`",
    },
    ServiceStorage {
        service: "Foundry agents (new)",
        id: "conversation `conv_…` or response `resp_…`",
        stable: Stability::Either,
        stored_by: "the service, unless told not to",
        declares: StoresHistory::Optional,
        deleting: "stays there; `DELETE /conversations/{id}` or each `DELETE /responses/{id}`",
    },
    ServiceStorage {
        service: "OpenAI Assistants (gone since 2026-08-26)",
        id: "thread `thread_…`",
        stable: Stability::Stable,
        stored_by: "the service",
        declares: StoresHistory::Always,
        deleting: "cannot be reached any more; exported threads can be imported",
    },
    ServiceStorage {
        service: "OpenAI Responses, `store: true`",
        id: "response `resp_…` or conversation `conv_…`",
        stable: Stability::Either,
        stored_by: "the service",
        declares: StoresHistory::Optional,
        deleting: "stays there, a response for 30 days; each `DELETE /responses/{id}`, or \
                   `DELETE /conversations/{id}`",
    },
    ServiceStorage {
        service: "OpenAI Responses, `store: false`",
        id: "none that can be continued",
        stable: Stability::NoId,
        stored_by: "we do",
        declares: StoresHistory::Optional,
        deleting: NOTHING_THERE,
    },
    ServiceStorage {
        service: "Chat Completions, Anthropic Messages, Gemini `generateContent`, local models",
        id: "none",
        stable: Stability::NoId,
        stored_by: "we do",
        declares: StoresHistory::Never,
        deleting: NOTHING_THERE,
    },
    ServiceStorage {
        service: "Gemini Interactions, `store: true`",
        id: "interaction",
        stable: Stability::PerAnswer,
        stored_by: "the service",
        declares: StoresHistory::Optional,
        deleting: "stays there until its time is over; each `DELETE /v1beta/interactions/{id}`",
    },
    ServiceStorage {
        service: "Gemini Interactions, `store: false`",
        id: "none that can be continued",
        stable: Stability::NoId,
        stored_by: "we do",
        declares: StoresHistory::Optional,
        deleting: NOTHING_THERE,
    },
    ServiceStorage {
        service: "OpenAI Agents sessions",
        id: "session",
        stable: Stability::Stable,
        stored_by: "the service",
        declares: StoresHistory::Always,
        deleting: "stays there; by the vendor's own means",
    },
    ServiceStorage {
        service: "A2A",
        id: "`contextId` (and the `taskId` of an open task)",
        stable: Stability::Stable,
        stored_by: "the remote agent",
        declares: StoresHistory::Always,
        deleting: "stays there; the protocol has no way to delete it",
    },
    ServiceStorage {
        service: "Copilot Studio",
        id: "conversation",
        stable: Stability::Stable,
        stored_by: "the service",
        declares: StoresHistory::Always,
        deleting: "stays there; by the vendor's own means",
    },
    ServiceStorage {
        service: "a client of one's own",
        id: "whatever it sets in `Response::service`",
        stable: Stability::Unknown,
        stored_by: "as it declares",
        declares: StoresHistory::Never,
        deleting: "as the service has it; we delete nothing there",
    },
];

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::SERVICE_STORAGE;

    /// The table of `docs/services.md`.
    fn table() -> String {
        let mut table = String::from(
            "| service | id that it hands out | stable over the thread | who stores | client declares | the vendor's copy when a thread is deleted |\n\
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
    fn the_docs_say_who_stores() {
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
