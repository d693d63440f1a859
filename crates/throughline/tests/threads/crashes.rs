//! Crash, then resume.

use throughline::{Agent, StopReason};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, everywhere, said};

#[test]
fn b189_a_crash_before_dispatch_dispatches_each_call_once_without_a_second_model_call() {
    everywhere(async |stage, how| {
        let tool = Fake::named("tide");
        let first = stage.process().await;
        let client =
            ScriptedClient::new([Step::calls([("c1", "tide", "{}"), ("c2", "tide", "{}")])]);
        let agent = Agent::builder(client)
            .store(&first.store)
            .tool(tool.clone())
            .build()
            .unwrap();
        first.die_in("step", Fault::HangAfter);
        let mut thread = agent.new_thread();
        let id = thread.id().clone();
        let run = agent.run_on(&mut thread, "when?");
        tokio::spawn(async move { how.finish(run).await });
        first.died().await;
        assert_eq!(tool.runs(), 0);

        let second = stage.process().await;
        assert!(
            second
                .threads()
                .open(id.clone())
                .await
                .unwrap()
                .history()
                .is_empty()
        );
        let client = std::sync::Arc::new(ScriptedClient::new([Step::text("at four")]));
        let agent = Agent::builder(std::sync::Arc::clone(&client))
            .store(&second.store)
            .tool(tool.clone())
            .build()
            .unwrap();
        let mut thread = agent.open(id.clone()).await.unwrap();
        let outcome = how.finish(agent.resume(&mut thread)).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2) a");
        assert_eq!((tool.runs(), client.calls()), (2, 1));
        assert_eq!(second.history(&id).await, "u a(c1,c2) t(c1,c2) a");
    });
}
