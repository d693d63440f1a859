//! The bills of a session's calls.

use std::sync::Arc;

use throughline_model::Message;

use super::Session;

/// A model call and its bill.
#[derive(Clone, Debug)]
pub struct Billed {
    /// The request, without instructions and tools, which were not recorded.
    pub sent: Vec<Arc<Message>>,
    /// Tokens of the input, including those read from a cache.
    pub tokens: u64,
}

/// The calls of a session that have a bill, in order.
pub fn billed(session: &Session) -> Vec<Billed> {
    let mut found = Vec::new();
    for at in session.model_calls() {
        let Some(usage) = &session.messages[at].usage else {
            continue;
        };
        let parts = [usage.input, usage.cache_read, usage.cache_write];
        let tokens = parts.into_iter().flatten().sum();
        let summary = session.summaries.iter().rfind(|(place, _)| *place <= at);
        let (from, summary) = match summary {
            Some((place, summary)) => (*place, Some(Arc::clone(summary))),
            None => (0, None),
        };
        let rest = session.messages[from..at].iter().cloned();
        found.push(Billed {
            sent: summary.into_iter().chain(rest).collect(),
            tokens,
        });
    }
    found
}
