//! What a model and a service are sent of approvals.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use throughline::client::{
    Abilities, ChatRequest, ClientError, EventStream, HistoryOwner, StoresHistory,
};
use throughline::model::{Body, Message, Response};
use throughline::store::Decision;
use throughline::thread::Owner;
use throughline::{Agent, ChatClient, StopReason};
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{everywhere, said, short};

use super::{agent, approve, decide, go_on, guarded, id, model, parked, records, waiting};

/// A service that stores conversations, and records the ids that it was asked to continue.
struct Service {
    script: ScriptedClient,
    ids: Mutex<Vec<Option<String>>>,
}

impl Service {
    fn new(steps: impl IntoIterator<Item = Step>) -> Arc<Self> {
        let mut abilities = Abilities::of("harbour");
        abilities.stores_history = StoresHistory::Always;
        Arc::new(Self {
            script: ScriptedClient::new(steps).with_abilities(abilities),
            ids: Mutex::default(),
        })
    }

    #[expect(clippy::panic, reason = "helpers of tests are tests")]
    fn note(&self, request: &ChatRequest<'_>) {
        let id = match request.history_owner {
            HistoryOwner::Caller => panic!("the service keeps it"),
            HistoryOwner::Service { id } => id.map(str::to_owned),
        };
        self.ids.lock().unwrap().push(id);
    }
}

#[async_trait]
impl ChatClient for Service {
    fn abilities(&self) -> &Abilities {
        self.script.abilities()
    }

    async fn respond(&self, request: &ChatRequest<'_>) -> Result<Response, ClientError> {
        self.note(request);
        self.script.respond(request).await
    }

    async fn stream(&self, request: &ChatRequest<'_>) -> Result<EventStream, ClientError> {
        self.note(request);
        self.script.stream(request).await
    }
}

/// An answer that the service stored under an id.
fn kept(id: &str, contents: Vec<throughline::model::Content>) -> Step {
    let waits = contents.iter().any(|one| one.as_tool_call().is_some());
    Step::response(Response {
        id: Some(id.to_owned()),
        model: None,
        messages: vec![Message::new(throughline::model::Role::Assistant, contents)],
        usage: None,
        stop: match waits {
            true => throughline::model::Stop::ToolCalls,
            false => throughline::model::Stop::Done,
        },
        error: None,
        vendor: None,
        service: Some(id.to_owned()),
    })
}

fn call(value: &str, tool: &str) -> throughline::model::Content {
    throughline::model::ToolCall::function(id(value), tool, "{}").into()
}

#[test]
fn b76_a_resume_where_the_service_keeps_the_history_sends_the_results_alone() {
    everywhere(async |stage, how| {
        let (pay, look) = (
            guarded("pay"),
            throughline_testkit::stage::Fake::named("look"),
        );
        let first = stage.process().await;
        let asked_first = Service::new([
            kept("conv_1", vec![throughline::model::Content::text("hello")]),
            kept("conv_2", vec![call("c1", "pay"), call("c2", "look")]),
        ]);
        let make = |process: &throughline_testkit::stage::Process, service: &Arc<Service>| {
            Agent::builder(Arc::clone(service))
                .store(&process.store)
                .tool(pay.clone())
                .tool(look.clone())
                .build()
                .unwrap()
        };
        let here = make(&first, &asked_first);
        let thread = here.new_thread();
        let id_of = thread.id().clone();
        let owner = Owner::service("harbour");
        thread.set_owner(owner).await.unwrap();
        how.finish(here.run_on(&thread, "hi")).await.unwrap();
        parked(how, &here, &thread).await;
        first.kill();

        let second = stage.process().await;
        let record = waiting(&second, &id_of).await.remove(0);
        approve(&second, &record).await;
        let asked_second = Service::new([kept(
            "conv_3",
            vec![throughline::model::Content::text("done")],
        )]);
        let there = make(&second, &asked_second);
        let thread = there.open(id_of.clone()).await.unwrap();
        let outcome = go_on(how, &there, &thread, |run, _| run).await.unwrap();
        assert_eq!(outcome.stop, StopReason::Done);
        // The transcript has the calls; the service has them already.
        assert_eq!(said(&outcome), "u a(c1,c2) t(c1,c2) a");
        let asked = asked_second.script.asked();
        let sent: Vec<String> = asked.iter().map(|one| short(&one.messages)).collect();
        assert_eq!(sent, ["t(c1,c2)"]);
        assert_eq!(
            *asked_second.ids.lock().unwrap(),
            [Some("conv_2".to_owned())]
        );
        assert_eq!((pay.runs(), look.runs()), (1, 1));
        assert_eq!(second.history(&id_of).await, "u a u a(c1,c2) t(c1,c2) a");
    });
}

#[test]
fn b77_approvals_are_control_data_that_no_model_is_shown() {
    everywhere(async |stage, how| {
        let pay = guarded("pay");
        let process = stage.process().await;
        let model = model([
            Step::calls([("c1", "pay", "{}"), ("c2", "pay", "{}")]),
            Step::text("done"),
            Step::text("and again"),
        ]);
        let agent = agent(stage, &process, &model, &[&pay]);
        let thread = agent.new_thread();
        parked(how, &agent, &thread).await;
        let [one, two] = waiting(&process, thread.id()).await.try_into().unwrap();
        approve(&process, &one).await;
        decide(&process, &two, Decision::Denied).await.unwrap();
        go_on(how, &agent, &thread, |run, _| run).await.unwrap();
        how.finish(agent.run_on(&thread, "more")).await.unwrap();
        let asked = model.asked();
        assert_eq!(asked.len(), 3);
        for asked in &asked {
            for content in asked.messages.iter().flat_map(|one| &one.contents) {
                assert!(
                    !matches!(
                        content.body,
                        Body::ApprovalRequest(_) | Body::ApprovalResponse(_)
                    ),
                    "{content:?}"
                );
            }
            let whole: Vec<String> = asked.messages.iter().map(Message::to_json).collect();
            for record in records(&process, thread.id()).await {
                // Ids are hexadecimal, and may have the letters of the name.
                let known = [record.id.to_string(), "\"ada".to_owned()];
                for word in known {
                    assert!(whole.iter().all(|text| !text.contains(&word)), "{whole:?}");
                }
            }
        }
        let shown: Vec<String> = asked.iter().map(|one| short(&one.messages)).collect();
        assert_eq!(
            shown,
            [
                "u",
                "u a(c1,c2) t(c1,c2:rejected)",
                "u a(c1,c2) t(c1,c2:rejected) a u",
            ]
        );
    });
}
