//! What readers of runs receive.

use futures_util::{FutureExt, StreamExt};
use throughline::agent::{Run, RunError, RunStream};
use throughline::client::{ClientExt, Retry, RetryPolicy};
use throughline::model::{Content, Event, Place, Stop, VendorError, Wire};
use throughline::store::{Error, EventNo, RunId, RunState};
use throughline::{RunEvent, StopReason, Threads};
use throughline_testkit::engines::Fault;
use throughline_testkit::scripted::Step;
use throughline_testkit::stage::{Fake, How, everywhere, said};

use crate::threads::actions::{Gate, agent, client, journals, told};

/// All events of a run after a number.
async fn read(threads: &Threads, run: RunId, after: Option<EventNo>) -> Vec<(EventNo, RunEvent)> {
    let events = threads.attach(run, after);
    events.map(Result::unwrap).collect().await
}

/// The events of a run that is driven by its reader, or in a task.
fn streamed(run: Run, in_place: bool) -> RunStream {
    match in_place {
        true => run.in_place().stream(),
        false => run.stream(),
    }
}

/// Reads until the run has come to a gate; no event may arrive before.
async fn unheard_until(gate: &Gate, stream: &mut RunStream) {
    tokio::select! {
        biased;
        event = stream.next() => panic!("{event:?}"),
        () = gate.reached() => {}
    }
}

#[test]
fn b88_events_are_numbered_without_gap_and_the_end_comes_last_and_after_the_commit() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let tide = Fake::named("tide");
        let asked = client([Step::calls([("c1", "tide", "{}")]), Step::text("at four")]);
        let agent = agent(&process, &asked, &[&tide]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let gate = Gate::at(&process, "publish");
        let run = agent.run_on(&thread, "when?");
        let mut heard = Vec::new();
        let outcome = match how {
            How::Streamed => {
                let mut stream = run.stream();
                let mut numbers = Vec::new();
                // No event that is received before the commit is the end.
                loop {
                    let next = tokio::select! {
                        biased;
                        next = stream.next() => next.unwrap(),
                        () = gate.reached() => break,
                    };
                    heard.push(next);
                    numbers.push(stream.last_no().unwrap());
                }
                while let Some(Some(event)) = stream.next().now_or_never() {
                    heard.push(event);
                    numbers.push(stream.last_no().unwrap());
                }
                let ended = |event: &RunEvent| matches!(event, RunEvent::Ended { .. });
                assert!(!heard.iter().any(ended), "{}", told(&heard));
                assert_eq!(process.history(&id).await, "");
                gate.open();
                while let Some(event) = stream.next().await {
                    if ended(&event) {
                        assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
                    }
                    heard.push(event);
                    numbers.push(stream.last_no().unwrap());
                }
                let expected: Vec<EventNo> = (0..heard.len() as u64).collect();
                assert_eq!(numbers, expected);
                assert_eq!(heard.iter().filter(|event| ended(event)).count(), 1);
                assert!(ended(heard.last().unwrap()));
                stream.outcome().await.unwrap()
            }
            How::Whole => {
                gate.open();
                how.finish(run).await.unwrap()
            }
        };
        let stored = read(&process.threads(), outcome.run, None).await;
        let numbers: Vec<EventNo> = stored.iter().map(|(no, _)| *no).collect();
        let expected: Vec<EventNo> = (0..stored.len() as u64).collect();
        assert_eq!(numbers, expected);
        let stored: Vec<RunEvent> = stored.into_iter().map(|(_, event)| event).collect();
        let story = "started u asked0 content a dispatched:c1 result:c1 t asked1 text content a \
                     ended:done";
        match how {
            How::Streamed => {
                assert_eq!(stored, heard);
                assert_eq!(told(&stored), story);
            }
            // The run was not streamed: its events are derived from the record, which has no
            // dispatches.
            How::Whole => assert_eq!(told(&stored), story.replace(" dispatched:c1", "")),
        }
    });
}

#[test]
fn no_reader_hears_of_a_run_and_no_model_is_asked_before_its_begin_is_committed() {
    everywhere(async |stage, how| {
        if how == How::Whole {
            return;
        }
        let process = stage.process().await;
        let asked = client([Step::text("at four"), Step::text("at five")]);
        let agent = agent(&process, &asked, &[]);
        for in_place in [false, true] {
            let begin = Gate::at(&process, "begin");
            let thread = agent.new_thread();
            let run = agent.run_on(&thread, "when?");
            let mut stream = streamed(run, in_place);
            unheard_until(&begin, &mut stream).await;
            assert!(stream.next().now_or_never().is_none());
            assert_eq!(asked.calls(), usize::from(in_place));
            begin.open();
            let heard: Vec<RunEvent> = stream.collect().await;
            assert_eq!(told(&heard), "started u asked0 text content a ended:done");
        }
    });
}

#[test]
fn b89_a_second_reader_gets_exactly_what_comes_after_its_number() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let other = stage.process().await;
        let asked = client([Step::text("high water is at four in the afternoon")]);
        let agent = agent(&process, &asked, &[]);
        let thread = agent.new_thread();
        let gate = Gate::at(&process, "publish");
        let run = agent.run_on(&thread, "when?");
        let (run, heard) = match how {
            How::Streamed => {
                let mut stream = run.stream();
                let Some(RunEvent::Started { run, .. }) = stream.next().await else {
                    panic!("a run starts");
                };
                gate.reached().await;
                // A reader that leaves in the middle changes nothing.
                let mut leaves = other.threads().attach(run, None);
                leaves.next().await.unwrap().unwrap();
                drop(leaves);
                // A reader that joins during the run.
                let live = tokio::spawn({
                    let threads = other.threads();
                    async move { read(&threads, run, Some(0)).await }
                });
                gate.open();
                let mut heard = Vec::new();
                while let Some(event) = stream.next().await {
                    heard.push((stream.last_no().unwrap(), event));
                }
                assert_eq!(live.await.unwrap(), heard);
                assert_eq!(said(&stream.outcome().await.unwrap()), "u a");
                (run, heard)
            }
            How::Whole => {
                gate.open();
                let outcome = how.finish(run).await.unwrap();
                let all = read(&process.threads(), outcome.run, Some(0)).await;
                (outcome.run, all)
            }
        };
        // And afterwards, after every number, in any process.
        for threads in [process.threads(), other.threads()] {
            for after in 0..heard.len() + 1 {
                let rest = read(&threads, run, Some(after as u64)).await;
                assert_eq!(rest, heard[after..]);
            }
        }
        assert_eq!(asked.calls(), 1);
    });
}

/// An answer that fails with a vendor's error after some text.
fn fails_after(text: &str) -> Step {
    let at = Place::new(0, 0, 0);
    Step::events([
        Event::Opened {
            at,
            content: Content::text(""),
        },
        Event::Delta {
            at,
            text: text.to_owned(),
        },
        Event::Finished {
            stop: Stop::Failed,
            usage: None,
            error: Some(VendorError {
                wire: Wire::OpenAiResponses,
                message: "overloaded".into(),
                kind: None,
                code: None,
                param: None,
                retry_after_ms: None,
                body: None,
            }),
            service: None,
            vendor: None,
        },
    ])
}

#[test]
fn b92_half_an_answer_is_never_stored_and_its_repetition_is_another_item() {
    everywhere(async |stage, how| {
        type Half = fn(&str) -> Step;
        let halves: [Half; 2] = [|text| Step::cut_after(text), fails_after];
        for half in halves {
            let process = stage.process().await;
            let tide = Fake::named("tide");
            let asked = client([Step::calls([("c1", "tide", "{}")]), half("at the thi")]);
            // A text that readers have received is not sent twice in one call, whatever layers the
            // client has.
            let retrying = std::sync::Arc::clone(&asked).layer(Retry::new(RetryPolicy::default()));
            let agent = throughline::Agent::builder(retrying)
                .store(&process.store)
                .tool(tide.clone())
                .build()
                .unwrap();
            let thread = agent.new_thread();
            let id = thread.id().clone();
            let (events, failed) = how.events(agent.run_on(&thread, "when?")).await;
            let failed = failed.unwrap_err();
            assert!(matches!(failed.source, RunError::Client(_)));
            assert_eq!(asked.calls(), 2);
            assert_eq!(
                told(&events),
                "started u asked0 content a dispatched:c1 result:c1 t asked1 text incomplete1 \
                 ended:failed"
            );
            assert_eq!(said(failed.outcome()), "u a(c1) t(c1)");
            assert_eq!(process.history(&id).await, "");

            // The repeated call is another item, and the first one does not change.
            asked.push(Step::text("at four"));
            let (events, outcome) = how.events(agent.resume(&thread)).await;
            let outcome = outcome.unwrap();
            assert_ne!(outcome.run, failed.outcome().run);
            assert_eq!(outcome.text(), "at four");
            let texts: Vec<&str> = events.iter().filter_map(RunEvent::text).collect();
            assert_eq!(texts.concat(), "at four");
            assert_eq!(process.history(&id).await, "u a(c1) t(c1) a");
            assert_eq!(tide.runs(), 1);
            let found = journals(&process, &id).await;
            for journal in &found {
                let messages = journal.entries.iter().map(|entry| entry.message.text());
                assert!(!messages.collect::<String>().contains("at the thi"));
            }
        }
    });
}

#[test]
fn b92_a_stream_that_is_cut_before_the_first_content_is_repeated_unseen() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let started = Event::Started {
            id: Some("resp_1".into()),
            model: None,
        };
        let asked = client([Step::events([started]), Step::text("at four")]);
        let policy = RetryPolicy {
            base: std::time::Duration::ZERO,
            ..RetryPolicy::default()
        };
        let retrying = std::sync::Arc::clone(&asked).layer(Retry::new(policy));
        let agent = throughline::Agent::builder(retrying)
            .store(&process.store)
            .build()
            .unwrap();
        let thread = agent.new_thread();
        let (events, outcome) = how.events(agent.run_on(&thread, "when?")).await;
        assert_eq!(said(&outcome.unwrap()), "u a");
        assert_eq!(told(&events), "started u asked0 text content a ended:done");
        assert_eq!(asked.calls(), 2);
        assert_eq!(process.history(thread.id()).await, "u a");
    });
}

#[test]
fn b93_a_stream_that_is_read_to_its_end_is_published_without_its_outcome() {
    everywhere(async |stage, _| {
        let process = stage.process().await;
        let asked = client([Step::text("at four")]);
        let agent = agent(&process, &asked, &[]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        let mut stream = agent.run_on(&thread, "when?").stream();
        while stream.next().await.is_some() {}
        drop(stream);
        assert_eq!(process.history(&id).await, "u a");
        let found = journals(&process, &id).await;
        assert_eq!(found[0].run.state, RunState::Committed);
    });
}

#[test]
fn b94_a_reader_that_stops_reading_delays_neither_the_run_nor_other_readers() {
    everywhere(async |stage, _| {
        let process = stage.process().await;
        let text = "high water is at four in the afternoon. ".repeat(500);
        let asked = client([Step::text(&text)]);
        let agent = agent(&process, &asked, &[]);
        let thread = agent.new_thread();
        let id = thread.id().clone();
        // The caller reads one event and then stops.
        let mut stopped = agent.run_on(&thread, "when?").stream();
        let Some(RunEvent::Started { run, .. }) = stopped.next().await else {
            panic!("a run starts");
        };
        // Another reader stops as well.
        let mut also = process.threads().attach(run, None);
        also.next().await.unwrap().unwrap();
        let all = read(&process.threads(), run, None).await;
        let texts: String = all.iter().filter_map(|(_, event)| event.text()).collect();
        assert_eq!(texts, text);
        let stop = StopReason::Done;
        assert_eq!(all.last().unwrap().1, RunEvent::Ended { stop });
        assert_eq!(process.history(&id).await, "u a");
        // The readers that stopped have missed nothing.
        let rest: Vec<RunEvent> = stopped.collect().await;
        let rest_also: Vec<RunEvent> = also.map(|event| event.unwrap().1).collect().await;
        let expected: Vec<RunEvent> = all.into_iter().skip(1).map(|(_, event)| event).collect();
        assert_eq!((rest, rest_also), (expected.clone(), expected));
    });
}

#[test]
fn b149_a_publish_that_the_store_refuses_is_an_error_and_no_success() {
    everywhere(async |stage, how| {
        let process = stage.process().await;
        let other = stage.process().await;
        // Refused for good: another process took the run over.
        let asked = client([Step::text("at four")]);
        let here = agent(&process, &asked, &[]);
        let thread = here.new_thread();
        let id = thread.id().clone();
        let gate = Gate::at(&process, "publish");
        let run = here.run_on(&thread, "when?");
        let task = tokio::spawn(async move { how.events(run).await });
        gate.reached().await;
        stage.clock.advance(std::time::Duration::from_secs(11));
        other.live().await;
        let theirs = agent(&other, &client([Step::text("theirs")]), &[]);
        let same = theirs.open(id.clone()).await.unwrap();
        how.finish(theirs.resume(&same)).await.unwrap();
        gate.open();
        let (events, failed) = task.await.unwrap();
        let failed = failed.unwrap_err();
        assert!(matches!(
            failed.source,
            RunError::Store(Error::Fenced { .. })
        ));
        let stop = StopReason::Failed;
        assert_eq!(events.last(), Some(&RunEvent::Ended { stop }));
        assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1);
        // The error has the transcript.
        assert_eq!(said(failed.outcome()), "u a");
        assert_eq!(failed.outcome().text(), "at four");
        assert_eq!(other.history(&id).await, "u a");

        // A transient failure: the error says so, and the store has no end of the run.
        process.live().await;
        asked.push(Step::text("sure"));
        process.faulty.always("publish", Fault::Before);
        let thread = here.open(id.clone()).await.unwrap();
        let (events, failed) = how.events(here.run_on(&thread, "sure?")).await;
        let failed = failed.unwrap_err();
        assert!(matches!(failed.source, RunError::Store(Error::Io { .. })));
        assert_eq!(events.iter().filter(|event| is_end(event)).count(), 1);
        assert_eq!(events.last(), Some(&RunEvent::Ended { stop }));
        let found = journals(&process, &id).await;
        assert_eq!(found[0].run.state, RunState::Running);
        assert_eq!(process.history(&id).await, "u a");
    });
}

fn is_end(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Ended { .. })
}
