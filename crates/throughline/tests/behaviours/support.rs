//! What the behaviours share: a scripted agent on a thread in memory, and a clock that moves when
//! everything waits.

use std::sync::Arc;

use throughline::agent::AgentBuilder;
use throughline::{Agent, Outcome, Thread};
use throughline_testkit::scripted::{ScriptedClient, Step};

pub(crate) use throughline_testkit::stage::{Fake, How, result_text, said, short};

/// Run a test whole and streamed, on a clock that moves only when everything waits.
pub(crate) fn both(test: impl AsyncFn(How)) {
    for how in How::ALL {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(test(how));
    }
}

/// An agent with a script, and a thread.
pub(crate) struct Rig {
    pub(crate) client: Arc<ScriptedClient>,
    pub(crate) agent: Agent,
    pub(crate) thread: Thread,
    pub(crate) how: How,
}

impl Rig {
    pub(crate) fn new(
        how: How,
        steps: impl IntoIterator<Item = Step>,
        build: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        Self::of(how, ScriptedClient::new(steps), build)
    }

    pub(crate) fn of(
        how: How,
        client: ScriptedClient,
        build: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let client = Arc::new(client);
        let builder = build(Agent::builder(Arc::clone(&client)));
        Self {
            client,
            agent: builder.build().expect("an agent"),
            thread: Thread::new(),
            how,
        }
    }

    /// Run with an input.
    pub(crate) async fn run(&self, input: &str) -> Outcome {
        let run = self.agent.run_on(&self.thread, input);
        self.how
            .finish(run)
            .await
            .expect("a run that does not fail")
    }

    /// The history in short.
    pub(crate) fn history(&self) -> String {
        short(self.thread.history().iter().map(|message| &**message))
    }
}
