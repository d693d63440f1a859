//! Context providers: what they add, when they are called, and their state.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use throughline::agent::{
    Additions, AgentBuilder, BuildError, Completion, ContextProvider, Keep, Need, ProviderContext,
    ProviderError, ProviderScope, ProviderSpec, RunError, RunOptions, StateError,
};
use throughline::client::ErrorKind;
use throughline::model::{Message, Source};
use throughline::store::ThreadId;
use throughline::thread::Persistence;
use throughline::tool::{Approval, ToolOutput};
use throughline::{Agent, StopReason, Thread};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::{ScriptedClient, Step};
use throughline_testkit::stage::{Fake, Process, everywhere, short};

type Before =
    dyn Fn(&mut ProviderContext<'_>) -> Result<Additions, ProviderError> + Send + Sync + 'static;
type After = dyn Fn(&mut ProviderContext<'_>, &Completion<'_>) -> Result<(), ProviderError>
    + Send
    + Sync
    + 'static;

/// Log of events, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn say(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    /// Takes the events since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A scripted provider.
#[derive(Clone)]
pub(crate) struct Provider {
    spec: ProviderSpec,
    before: Arc<Before>,
    after: Arc<After>,
}

impl Provider {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            spec: ProviderSpec::named(name),
            before: Arc::new(|_| Ok(Additions::default())),
            after: Arc::new(|_, _| Ok(())),
        }
    }

    pub(crate) fn before(
        mut self,
        before: impl Fn(&mut ProviderContext<'_>) -> Result<Additions, ProviderError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.before = Arc::new(before);
        self
    }

    pub(crate) fn after(
        mut self,
        after: impl Fn(&mut ProviderContext<'_>, &Completion<'_>) -> Result<(), ProviderError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.after = Arc::new(after);
        self
    }

    fn each_call(mut self) -> Self {
        self.spec.scope = ProviderScope::Call;
        self
    }

    fn optional(mut self) -> Self {
        self.spec.need = Need::Optional;
        self
    }

    /// A provider that counts its calls in its state.
    pub(crate) fn counting(name: &str) -> Self {
        Self::named(name).before(|context| {
            let count = context.state.get::<u32>()?.unwrap_or(0);
            context.state.set(&(count + 1))?;
            Ok(Additions::default())
        })
    }

    /// A provider that logs its calls.
    fn logging(name: &str, log: &Log) -> Self {
        let (asked, told) = (log.clone(), log.clone());
        let (first, second) = (name.to_owned(), name.to_owned());
        Self::named(name)
            .before(move |_| {
                asked.say(format!("{first} asked"));
                Ok(Additions::default())
            })
            .after(move |context, how| {
                told.say(line(&second, context, how));
                Ok(())
            })
    }
}

/// What a provider is told, in short form.
fn line(name: &str, context: &ProviderContext<'_>, told: &Completion<'_>) -> String {
    let said = short(context.messages.iter().map(|message| &**message));
    let how = match (told.stop, told.error) {
        (_, Some(error)) => format!("{error}"),
        (Some(stop), None) => stop.as_str().to_owned(),
        (None, None) => "call".to_owned(),
    };
    format!("{name} told {how}: {said}")
}

#[async_trait]
impl ContextProvider for Provider {
    fn spec(&self) -> &ProviderSpec {
        &self.spec
    }

    async fn before(&self, context: &mut ProviderContext<'_>) -> Result<Additions, ProviderError> {
        (self.before)(context)
    }

    async fn after(
        &self,
        context: &mut ProviderContext<'_>,
        told: &Completion<'_>,
    ) -> Result<(), ProviderError> {
        (self.after)(context, told)
    }
}

fn client(steps: impl IntoIterator<Item = Step>) -> Arc<ScriptedClient> {
    Arc::new(ScriptedClient::new(steps))
}

fn agent(process: &Process, client: &Arc<ScriptedClient>) -> AgentBuilder {
    Agent::builder(Arc::clone(client)).store(&process.store)
}

/// The state of a provider, as the store has it and as a handle read it.
async fn kept(process: &Process, thread: &Thread, name: &str) -> Option<String> {
    let stored = stored(process, thread.id(), name).await;
    let state = thread.state();
    let seen = state.provider(name).map(|state| state.get().to_owned());
    assert_eq!(seen, stored, "the handle has what the store has");
    stored
}

async fn stored(process: &Process, thread: &ThreadId, name: &str) -> Option<String> {
    let opened = process.threads().open(thread.clone()).await.unwrap();
    let state = opened.state();
    state.provider(name).map(|state| state.get().to_owned())
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text).collect()
}

fn adding(messages: &[&str]) -> Additions {
    Additions {
        messages: messages.iter().copied().map(Message::user).collect(),
        ..Additions::default()
    }
}

#[test]
fn b124_a_state_of_null_is_no_absent_state_and_another_type_is_an_error_that_leaves_it() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let log = Log::default();
        let seen = log.clone();
        let provider = Provider::named("memory").before(move |context| {
            let state = &mut *context.state;
            let json = state.json().map(|json| json.get().to_owned());
            seen.say(json.unwrap_or_else(|| "absent".to_owned()));
            match seen.0.lock().unwrap().len() {
                1 => state.set(&())?,
                2 => {
                    assert_eq!(state.get::<Option<u32>>(), Ok(Some(None)));
                    state.set(&vec![1, 2])?;
                }
                3 => {
                    let error = state.get::<String>().unwrap_err();
                    let StateError { found, wanted, .. } = &error;
                    assert_eq!((*found, *wanted), ("an array", "alloc::string::String"));
                    let text = error.to_string();
                    assert!(text.contains(found) && text.contains(wanted), "{text}");
                    assert_eq!(state.get::<Vec<u32>>(), Ok(Some(vec![1, 2])));
                }
                4 => {
                    assert_eq!(state.get::<Vec<u32>>(), Ok(Some(vec![1, 2])));
                    state.clear();
                    assert_eq!((state.json(), state.get::<u32>()), (None, Ok(None)));
                }
                _ => assert_eq!(state.get::<Option<u32>>(), Ok(None)),
            }
            Ok(Additions::default())
        });
        let client = client((0..5).map(|_| Step::text("yes")));
        let agent = agent(&process, &client).provider(provider).build().unwrap();
        let thread = agent.new_thread();
        let mut states = Vec::new();
        for _ in 0..5 {
            how.finish(agent.run_on(&thread, "go on")).await.unwrap();
            states.push(kept(&process, &thread, "memory").await);
        }
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            states,
            [some("null"), some("[1,2]"), some("[1,2]"), None, None]
        );
        assert_eq!(log.take(), ["absent", "null", "[1,2]", "[1,2]", "absent"]);
    });
}

#[test]
fn b125_two_providers_with_one_state_are_refused_and_one_may_stand_in_for_another() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let twice = Agent::builder(ScriptedClient::new([]))
            .provider(Provider::named("memory"))
            .provider(Provider::named("notes"))
            .provider(Provider::named("memory").each_call())
            .build();
        let clash = BuildError::ProviderClash {
            name: "memory".to_owned(),
        };
        assert_eq!(twice.unwrap_err(), clash);
        for name in ["", "throughline.key"] {
            let built = Agent::builder(ScriptedClient::new([]))
                .provider(Provider::named(name))
                .build();
            let name = name.to_owned();
            assert_eq!(built.unwrap_err(), BuildError::ProviderName { name });
        }

        let client = client([Step::text("one"), Step::text("two"), Step::text("three")]);
        let agent = agent(&process, &client)
            .provider(Provider::counting("memory"))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "one?")).await.unwrap();
        // For one run, with the state of the provider that it replaces.
        let tens = Provider::named("memory").before(|context| {
            let count = context.state.get::<u32>()?.unwrap_or(0);
            context.state.set(&(count + 10))?;
            Ok(adding(&["ten more"]))
        });
        let options = RunOptions {
            providers: vec![Arc::new(tens)],
            ..RunOptions::default()
        };
        let run = agent.run_on(&thread, "two?").options(&options);
        how.finish(run).await.unwrap();
        assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "11");
        how.finish(agent.run_on(&thread, "three?")).await.unwrap();
        assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "12");
        let asked = client.asked();
        assert_eq!(
            texts(&asked[1].messages),
            ["one?", "one", "ten more", "two?"]
        );
        assert_eq!(
            texts(&asked[2].messages),
            ["one?", "one", "two?", "two", "three?"]
        );

        // Duplicate or unknown names are refused for a run, too.
        let refused = async |names: &[&str], thread: &Thread| {
            let providers = names.iter().map(|name| Provider::named(name));
            let options = RunOptions {
                providers: providers.map(|one| Arc::new(one) as _).collect(),
                ..RunOptions::default()
            };
            let run = agent.run_on(thread, "four?").options(&options);
            match how.finish(run).await.unwrap_err().source {
                RunError::Providers(error) => error,
                other => panic!("{other}"),
            }
        };
        assert_eq!(refused(&["memory", "memory"], &thread).await, clash);
        let name = "throughline.key".to_owned();
        assert_eq!(
            refused(&["throughline.key"], &thread).await,
            BuildError::ProviderName { name }
        );
        assert_eq!(client.calls(), 3);
    });
}

#[test]
fn b126_state_becomes_visible_with_the_publish_and_not_otherwise() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let other = Arc::new(stage.process().await);
        // What other readers see during the run.
        let look = {
            let other = Arc::clone(&other);
            Fake::doing("look", move |_, context| {
                let other = Arc::clone(&other);
                async move {
                    let seen = stored(&other, &context.thread, "memory").await;
                    Ok(ToolOutput::text(seen.unwrap_or_else(|| "absent".into())))
                }
            })
        };
        let ask = Fake::named("ask").with(|spec| spec.approval = Approval::Always);
        let client = client([
            Step::calls([("c1", "look", "{}")]),
            Step::text("published"),
            Step::calls([("c2", "look", "{}")]),
            Step::fails(ErrorKind::Invalid),
        ]);
        let agent = agent(&process, &client)
            .tool(look.clone())
            .tool(ask.clone())
            .provider(Provider::counting("memory"))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let outcome = how.finish(agent.run_on(&thread, "one?")).await.unwrap();
        let result = |messages: &[Message], call: &str| {
            throughline_testkit::stage::result_text(messages, call)
        };
        assert_eq!(result(&outcome.messages, "c1"), "absent");
        assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "1");

        // A run that fails.
        let failed = how.finish(agent.run_on(&thread, "two?")).await;
        let failed = failed.unwrap_err();
        assert_eq!(result(&failed.outcome().messages, "c2"), "1");
        assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "1");

        // A run that is parked, and then discarded.
        client.push(Step::calls([("c3", "ask", "{}")]));
        let parked = how.finish(agent.run_on(&thread, "three?")).await;
        let parked = parked.unwrap();
        assert_eq!(parked.stop, StopReason::Parked);
        assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "1");
        let discarded = thread.discard().await.unwrap().unwrap();
        assert_eq!(discarded.run, parked.run);
        assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "1");
        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");

        // A run whose process dies before the publish: unchanged until it is published.
        client.push(Step::text("almost"));
        process.die_in("publish", Fault::HangBefore);
        let run = agent.run_on(&thread, "four?");
        tokio::spawn(async move { how.finish(run).await });
        process.died().await;
        other.live().await;
        assert_eq!(stored(&other, &id, "memory").await.unwrap(), "1");
        client.push(Step::text("at last"));
        let agent = self::agent(&other, &client)
            .tool(look)
            .tool(ask)
            .provider(Provider::counting("memory"))
            .build()
            .unwrap();
        let thread = agent.open(id).await.unwrap();
        how.finish(agent.resume(&thread)).await.unwrap();
        assert_eq!(kept(&other, &thread, "memory").await.unwrap(), "2");
    });
}

#[test]
fn the_state_of_a_published_call_stands_when_the_run_fails_later() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let client = client([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Invalid),
        ]);
        let agent = agent(&process, &client)
            .persistence(Persistence::PerCall)
            .tool(Fake::named("tide"))
            .provider(Provider::counting("memory").each_call())
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let failed = how.finish(agent.run_on(&thread, "when?")).await;
        assert!(matches!(failed.unwrap_err().source, RunError::Client(_)));
        // The provider was called for two calls, and the first of them is history.
        assert_eq!(process.history(thread.id()).await, "u a(c1)");
        assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "1");
    });
}

#[test]
fn b127_one_agent_on_a_hundred_threads_mixes_nothing() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        // A tool that is offered to the run that added it only.
        let open = Fake::doing("open", |_, context| async move {
            let own = format!("own_{}", context.thread.as_str());
            context.add_tools([Arc::new(Fake::named(&own)) as _])?;
            Ok(ToolOutput::text(own))
        });
        let provider = Provider::counting("memory").after(|context, _| {
            // Its messages belong to its own thread.
            let own = context.thread.as_str();
            let all = context.history.iter().chain(context.messages);
            let asks = all.filter(|message| message.source == Some(Source::Caller));
            asks.for_each(|message| assert_eq!(message.text(), own));
            Ok(())
        });
        let client = Arc::new(ScriptedClient::answering(|asked| {
            let own = asked.messages[0].text();
            let mine = format!("own_{own}");
            let callers = |message: &&Message| message.source == Some(Source::Caller);
            for message in asked.messages.iter().filter(callers) {
                assert_eq!(message.text(), own);
            }
            let last = short(asked.messages.last());
            match (last.as_str(), asked.tools.contains(&mine)) {
                ("u", false) => Step::calls([("c1", "open", "{}")]),
                ("t(c1)", true) => {
                    assert_eq!(asked.tools, ["open", &mine]);
                    Step::calls([("c2", &*mine, "{}")])
                }
                ("t(c2)", true) => Step::text(own),
                other => panic!("{own}: {other:?}, {:?}", asked.tools),
            }
        }));
        let agent = agent(&process, &client)
            .tool(open)
            .provider(provider)
            .build()
            .unwrap();
        let mut runs = tokio::task::JoinSet::new();
        for n in 0..100 {
            let agent = agent.clone();
            let threads = process.threads();
            runs.spawn(async move {
                let id = ThreadId::new(&format!("t{n}")).unwrap();
                let new = throughline::store::NewThread::new(id);
                let thread = threads.open_or_create(new).await.unwrap();
                for _ in 0..2 {
                    let run = agent.run_on(&thread, format!("t{n}"));
                    let outcome = how.finish(run).await.unwrap();
                    assert_eq!(outcome.text(), format!("t{n}"));
                }
                thread
            });
        }
        while let Some(thread) = runs.join_next().await {
            let thread = thread.unwrap();
            assert_eq!(kept(&process, &thread, "memory").await.unwrap(), "2");
            let turn = "u a(c1) t(c1) a(c2) t(c2) a";
            assert_eq!(process.history(thread.id()).await, format!("{turn} {turn}"));
        }
        assert_eq!(client.calls(), 600);
    });
}

#[test]
fn b128_a_request_has_instructions_history_what_providers_add_and_the_input_in_this_order() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let log = Log::default();
        let seeing = |name: &str| {
            let (log, name) = (log.clone(), name.to_owned());
            Provider::named(&name.clone()).before(move |context| {
                let added = context.added;
                log.say(format!(
                    "{name} sees {:?} {:?} {:?}, history {}, said {}",
                    added.instructions,
                    texts(&added.messages),
                    added
                        .tools
                        .iter()
                        .map(|tool| &tool.spec().name)
                        .collect::<Vec<_>>(),
                    short(context.history.iter().map(|message| &**message)),
                    short(context.messages.iter().map(|message| &**message)),
                ));
                Ok(Additions {
                    instructions: vec![format!("{name} says")],
                    messages: vec![Message::user(format!("of {name}"))],
                    keep: Keep::No,
                    tools: vec![Arc::new(Fake::named(&format!("tool_{name}")))],
                })
            })
        };
        let client = client([Step::text("one"), Step::text("two")]);
        let agent = agent(&process, &client)
            .instructions("You know the harbour.")
            .provider(seeing("a"))
            .provider(seeing("c").each_call())
            .provider(seeing("b"))
            .build()
            .unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "one?")).await.unwrap();
        log.take();
        how.finish(agent.run_on(&thread, "two?")).await.unwrap();
        assert_eq!(
            log.take(),
            [
                "a sees [] [] [], history u a, said u",
                r#"b sees ["a says"] ["of a"] ["tool_a"], history u a, said u"#,
                r#"c sees ["a says", "b says"] ["of a", "of b"] ["tool_a", "tool_b"], history u a, said u"#,
            ]
        );
        let asked = client.last_asked().unwrap();
        assert_eq!(
            asked.instructions.unwrap(),
            "You know the harbour.\n\na says\n\nb says\n\nc says"
        );
        assert_eq!(
            texts(&asked.messages),
            ["one?", "one", "of a", "of b", "of c", "two?"]
        );
        assert_eq!(asked.tools, ["tool_a", "tool_b", "tool_c"]);
    });
}

#[test]
fn b129_what_a_provider_adds_is_for_the_run_only_unless_it_asks_for_storing() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let passing = Provider::named("passing").before(|_| {
            Ok(Additions {
                instructions: vec!["be brief".to_owned()],
                tools: vec![Arc::new(Fake::named("lookup"))],
                ..adding(&["it rains"])
            })
        });
        let storing = Provider::named("diary").before(|context| {
            let mut added = adding(&[&format!("entry {}", context.history.len())]);
            // Whatever source they claim.
            added.messages[0].source = Some(Source::Model);
            added.messages[0].author = Some("somebody else".to_owned());
            added.keep = Keep::Yes;
            Ok(added)
        });
        // A later provider is shown both.
        let watching = Provider::named("watching").before(|context| {
            let mut shown = texts(&context.added.messages);
            shown.sort_unstable();
            assert_eq!(shown, ["entry 0", "it rains"]);
            Ok(Additions::default())
        });
        let client = client([
            Step::calls([("c1", "lookup", "{}")]),
            Step::text("one"),
            Step::text("two"),
        ]);
        let with = agent(&process, &client)
            .provider(passing)
            .provider(storing)
            .provider(watching)
            .build()
            .unwrap();
        let thread = with.new_thread();
        let outcome = how.finish(with.run_on(&thread, "one?")).await.unwrap();
        assert_eq!(short(&outcome.messages), "u u a(c1) t(c1) a");
        for asked in client.asked() {
            assert_eq!(asked.instructions.as_deref(), Some("be brief"));
            assert_eq!(asked.tools, ["lookup"]);
            assert_eq!(texts(&asked.messages)[..3], ["it rains", "entry 0", "one?"]);
        }
        let other = stage.process().await;
        let opened = other.threads().open(thread.id().clone()).await.unwrap();
        let history: Vec<Message> = opened.history().iter().map(|one| (**one).clone()).collect();
        assert_eq!(
            texts(&history),
            ["entry 0", "one?", "", "", "one"],
            "stored once, in its place"
        );
        let entry = &history[0];
        assert_eq!(
            (entry.source.clone(), entry.author.as_deref()),
            (Some(Source::ContextProvider), Some("diary"))
        );
        // The next run, of an agent without providers, has the stored messages and nothing else.
        let without = agent(&process, &client).build().unwrap();
        how.finish(without.run_on(&thread, "two?")).await.unwrap();
        let asked = client.last_asked().unwrap();
        assert_eq!((asked.instructions, asked.tools), (None, vec![]));
        assert_eq!(
            texts(&asked.messages),
            ["entry 0", "one?", "", "", "one", "two?"]
        );
    });
}

#[test]
fn what_a_provider_stored_is_there_once_when_a_failed_run_is_gone_on_with() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let storing = Provider::named("diary").before(|_| {
            Ok(Additions {
                keep: Keep::Yes,
                ..adding(&["entry"])
            })
        });
        let client = client([
            Step::calls([("c1", "tide", "{}")]),
            Step::fails(ErrorKind::Invalid),
            Step::text("at four"),
        ]);
        let agent = agent(&process, &client)
            .tool(Fake::named("tide"))
            .provider(storing)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        how.finish(agent.run_on(&thread, "when?"))
            .await
            .unwrap_err();
        how.finish(agent.resume(&thread)).await.unwrap();
        let history = thread.history();
        let texts: Vec<String> = history.iter().map(|message| message.text()).collect();
        assert_eq!(texts, ["entry", "when?", "", "", "at four"]);
        assert_eq!(process.history(thread.id()).await, "u u a(c1) t(c1) a");
    });
}

#[test]
fn b130_providers_are_asked_once_and_told_once_in_a_run_or_for_every_call() {
    everywhere(async |stage, how| {
        for mode in [Persistence::PerRun, Persistence::PerCall] {
            let process = stage.process().await;
            let log = Log::default();
            let client = client([
                Step::calls([("c1", "tide", "{}")]),
                Step::calls([("c2", "ask", "{}")]),
                Step::text("at four"),
            ]);
            let agent = agent(&process, &client)
                .persistence(mode)
                .tool(Fake::named("tide"))
                .tool(Fake::named("ask").with(|spec| spec.approval = Approval::Always))
                .provider(Provider::logging("run", &log))
                .provider(Provider::logging("call", &log).each_call())
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let parked = how.finish(agent.run_on(&thread, "when?")).await;
            let parked = parked.unwrap();
            assert_eq!(
                log.take(),
                [
                    "run asked",
                    "call asked",
                    "call told call: u a(c1)",
                    "call asked",
                    "call told call: u a(c1) t(c1) a(c2)",
                ],
                "{mode:?}"
            );
            // A resumed run is the same run: the additions are made again, and it ends once.
            let call = &parked.pending[0];
            let run = agent.resume(&thread).approve(call);
            how.finish(run).await.unwrap();
            let said = "u a(c1) t(c1) a(c2) t(c2) a";
            assert_eq!(
                log.take(),
                [
                    "run asked".to_owned(),
                    "call asked".to_owned(),
                    format!("call told call: {said}"),
                    format!("run told done: {said}"),
                ],
                "{mode:?}"
            );
            assert_eq!(client.calls(), 3);
        }
    });
}

#[test]
fn a_provider_of_each_call_hears_of_the_call_in_which_a_run_is_cancelled() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let log = Log::default();
        let client = client([Step::hang_after("at fo")]);
        let agent = agent(&process, &client)
            .provider(Provider::logging("run", &log))
            .provider(Provider::logging("call", &log).each_call())
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let cancel = tokio_util::sync::CancellationToken::new();
        let run = agent.run_on(&thread, "when?").cancelled_by(cancel.clone());
        let ending = tokio::spawn(async move { how.finish(run).await });
        client.begun(1).await;
        cancel.cancel();
        let outcome = ending.await.unwrap().unwrap();
        assert_eq!(outcome.stop, StopReason::Cancelled);
        let said = short(&outcome.messages);
        assert_eq!(
            log.take(),
            [
                "run asked".to_owned(),
                "call asked".to_owned(),
                format!("run told cancelled: {said}"),
                format!("call told cancelled: {said}"),
            ]
        );
    });
}

#[test]
fn tools_that_a_provider_adds_for_a_call_are_there_for_that_call() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let provider = Provider::named("tools").each_call().before(|context| {
            // A different tool for each call, and one that is made anew each time.
            let count = context.state.get::<u32>()?.unwrap_or(0);
            context.state.set(&(count + 1))?;
            let tools = [format!("tool_{count}"), "again".to_owned()];
            Ok(Additions {
                tools: tools.map(|name| Arc::new(Fake::named(&name)) as _).into(),
                ..Additions::default()
            })
        });
        let client = client([
            Step::calls([("c1", "tool_0", "{}")]),
            Step::calls([("c2", "again", "{}")]),
            Step::text("done"),
        ]);
        let agent = agent(&process, &client).provider(provider).build().unwrap();
        let thread = agent.new_thread();
        let outcome = how.finish(agent.run_on(&thread, "go")).await.unwrap();
        assert_eq!(short(&outcome.messages), "u a(c1) t(c1) a(c2) t(c2) a");
        let offered: Vec<Vec<String>> = client.asked().into_iter().map(|one| one.tools).collect();
        assert_eq!(
            offered,
            [
                ["tool_0", "again"],
                ["tool_1", "again"],
                ["tool_2", "again"]
            ]
        );
    });
}

#[test]
fn b131_a_provider_that_fails_fails_the_run_and_every_provider_is_told() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let log = Log::default();
        let failing = |name: &str, log: &Log| {
            let log = log.clone();
            let told = name.to_owned();
            Provider::named(name)
                .before(|_| Err("no network".into()))
                .after(move |context, how| {
                    log.say(line(&told, context, how));
                    Err("still no network".into())
                })
        };
        // Before the run.
        let client = client([]);
        let first = agent(&process, &client)
            .provider(Provider::logging("one", &log))
            .provider(failing("two", &log))
            .provider(Provider::logging("three", &log).each_call())
            .build()
            .unwrap();
        let thread = first.new_thread();
        let failed = how.finish(first.run_on(&thread, "when?")).await;
        let failed = failed.unwrap_err();
        assert_eq!(failed.outcome().stop, StopReason::Failed);
        match &failed.source {
            RunError::Provider { name, source } => {
                assert_eq!(
                    (name.as_str(), source.to_string()),
                    ("two", "no network".into())
                );
            }
            other => panic!("{other}"),
        }
        let why = "the context provider two failed: u";
        assert_eq!(
            log.take(),
            [
                "one asked".to_owned(),
                format!("one told {why}"),
                format!("two told {why}"),
                format!("three told {why}"),
            ]
        );
        assert_eq!((client.calls(), thread.history().len()), (0, 0));

        // An optional provider.
        client.push(Step::text("at four"));
        let second = agent(&process, &client)
            .provider(failing("two", &log).optional())
            .provider(Provider::logging("one", &log))
            .build()
            .unwrap();
        let thread = second.new_thread();
        let outcome = how.finish(second.run_on(&thread, "when?")).await;
        assert_eq!(outcome.unwrap().stop, StopReason::Done);
        assert_eq!(
            log.take(),
            ["one asked", "two told done: u a", "one told done: u a"]
        );

        // The model fails after a round: every provider is told the finished part, also after one
        // that fails.
        client.push(Step::calls([("c1", "tide", "{}")]));
        client.push(Step::fails(ErrorKind::Invalid));
        let third = agent(&process, &client)
            .tool(Fake::named("tide"))
            .provider(Provider::named("two").after({
                let log = log.clone();
                move |context, how| {
                    log.say(line("two", context, how));
                    Err("no network".into())
                }
            }))
            .provider(Provider::logging("one", &log))
            .provider(Provider::logging("call", &log).each_call())
            .build()
            .unwrap();
        let thread = third.new_thread();
        let failed = how.finish(third.run_on(&thread, "when?")).await;
        assert!(matches!(failed.unwrap_err().source, RunError::Client(_)));
        let why = "the model call failed: u a(c1) t(c1)";
        assert_eq!(
            log.take(),
            [
                "one asked".to_owned(),
                "call asked".to_owned(),
                "call told call: u a(c1)".to_owned(),
                "call asked".to_owned(),
                format!("two told {why}"),
                format!("one told {why}"),
                format!("call told {why}"),
            ]
        );

        // The store refuses the run after providers were called.
        process.faulty.always("begin", Fault::Before);
        let thread = second.new_thread();
        let failed = how.finish(second.run_on(&thread, "when?")).await;
        assert!(matches!(failed.unwrap_err().source, RunError::Store(_)));
        let why = "the store did not take it: u";
        assert_eq!(
            log.take(),
            [
                "one asked".to_owned(),
                format!("two told {why}"),
                format!("one told {why}"),
            ]
        );
    });
}
