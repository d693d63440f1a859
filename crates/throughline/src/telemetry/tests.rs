use std::fmt;

use throughline_model::{Outcome, ToolCall};
use throughline_store::{Clock, Effect, Ids, SystemClock};

use super::tool::ToolEnd;
use super::{Metrics, Recording, Telemetry};

fn ids() -> Ids {
    let clock: std::sync::Arc<dyn Clock> = std::sync::Arc::new(SystemClock);
    Ids::new(clock)
}

fn call() -> ToolCall {
    let id = throughline_model::CallId::natural("c1").expect("an id");
    ToolCall::function(id, "tide", "{}")
}

/// A value that must not be formatted.
struct Untold;

impl fmt::Display for Untold {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("nobody listens, so nothing is formatted")
    }
}

#[tokio::test]
async fn without_a_subscriber_no_clock_is_read_and_no_text_is_formatted() {
    // Content was requested, but there is no subscriber.
    let telemetry = Telemetry::of("harbour", Recording::Content, None);
    let watch = telemetry.tool(ids().run(), &call(), "{}", Effect::Once);
    assert!(watch.notes_nothing());
    let text = || Some(Untold.to_string());
    let done = watch.over(async { 4 }, |_, tell| {
        tell(ToolEnd {
            outcome: Outcome::Error,
            error: Some("failed"),
            output: None,
            text: &text,
        });
    });
    assert_eq!(done.await, 4);
}

#[tokio::test]
async fn with_metrics_alone_times_are_taken_and_no_text_is_formatted() {
    let metrics = Metrics::new();
    let telemetry = Telemetry::of("harbour", Recording::Content, Some(metrics.clone()));
    let watch = telemetry.tool(ids().run(), &call(), "{}", Effect::Once);
    assert!(!watch.notes_nothing());
    let text = || Some(Untold.to_string());
    watch
        .over(async {}, |(), tell| {
            tell(ToolEnd {
                outcome: Outcome::Error,
                error: Some("failed"),
                output: None,
                text: &text,
            });
        })
        .await;
    let counted = metrics.snapshot();
    assert_eq!(counted.count(super::Instrument::ToolCalls, &[]), 1);
}
