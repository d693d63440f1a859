//! Bodies of create requests: whatever they are, they are read or refused with a reason, and what is
//! kept of them is stable.
//!
//! The server's own source files stand here, not its crate: the rest of it would bring HTTP, TLS and
//! SQLite into an instrumented build.

use throughline_model::json;

#[path = "../../crates/server/src/error.rs"]
#[allow(dead_code)]
mod error;

mod wire;

pub(crate) use error::ApiError;
use wire::{CreateRequest, parts};

/// A body as a client sends it.
pub(crate) fn run(data: &[u8]) {
    let request = match CreateRequest::parse(data) {
        Ok(request) => request,
        Err(error) => {
            assert!(
                matches!(error.status, 400 | 501),
                "refused with {}",
                error.status
            );
            assert!(!error.message.is_empty(), "refused without a reason");
            json::parse(error.body().get()).expect("the body of an error is JSON");
            return;
        }
    };
    let stored = request.stored_body();
    let again = CreateRequest::from_stored(&stored).expect("a stored body can be read");
    assert_eq!(
        again.stored_body(),
        stored,
        "a stored body changes when it is read"
    );
    assert_eq!(again.model(), request.model());
    assert_eq!(again.instructions(), request.instructions());
    assert_eq!(again.metadata(), request.metadata());
    assert_eq!(again.tools(), request.tools());
    assert_eq!(again.settings(), request.settings());
    assert!(again.input().is_empty() && !again.stream());
    assert_eq!(
        again.extra_for_responses(true),
        request.extra_for_responses(true)
    );
    let items = request.input().items();
    let all: Vec<_> = items.iter().collect();
    let read = parts(&all).expect("it was read before");
    assert_eq!(read.len(), request.input().parts().len());
    let some: Vec<_> = items.iter().filter(|item| item.index % 2 == 0).collect();
    parts(&some).expect("some of the items can be read when all can");
}
