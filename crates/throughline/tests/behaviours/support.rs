//! Shared by these tests: a scripted agent on an in-memory thread, and a clock that advances when
//! all tasks wait.

use std::sync::Arc;

use throughline::agent::AgentBuilder;
use throughline::{Agent, Outcome, Thread};
use throughline_testkit::scripted::{ScriptedClient, Step};

pub(crate) use throughline_testkit::stage::{Fake, How, result_text, said, short};

/// Runs a test whole and streamed, on a clock that advances only when all tasks wait.
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

    /// Runs the agent with an input.
    pub(crate) async fn run(&self, input: &str) -> Outcome {
        let run = self.agent.run_on(&self.thread, input);
        self.how
            .finish(run)
            .await
            .expect("a run that does not fail")
    }

    /// The history in short form.
    pub(crate) fn history(&self) -> String {
        short(self.thread.history().iter().map(|message| &**message))
    }
}
