use futures_util::StreamExt;
use throughline::agent::order::Order;
use throughline::agent::{Run, RunFailed};
use throughline::{Outcome, RunEvent};

/// How a run is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Awaited.
    Whole,
    /// As a stream of events.
    Streamed,
}

impl How {
    /// Both ways.
    pub const ALL: [Self; 2] = [Self::Whole, Self::Streamed];

    /// Reads a run to its end.
    pub async fn finish(self, run: Run<impl Order>) -> Result<Outcome, RunFailed> {
        match self {
            Self::Whole => run.await,
            Self::Streamed => self.events(run).await.1,
        }
    }

    /// Reads a run to its end, with its events.
    ///
    /// # Panics
    ///
    /// When the last event, and no other, is not the end.
    pub async fn events(self, run: Run<impl Order>) -> (Vec<RunEvent>, Result<Outcome, RunFailed>) {
        let mut stream = run.stream();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        let ends = |event: &RunEvent| matches!(event, RunEvent::Ended { .. });
        assert_eq!(events.iter().filter(|event| ends(event)).count(), 1);
        assert!(events.last().is_some_and(ends), "the end comes last");
        (events, stream.outcome().await)
    }
}
