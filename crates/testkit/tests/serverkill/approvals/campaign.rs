//! One case, from the request for approval to the turn after the answers.

use std::sync::mpsc::{Receiver, Sender};

use serde_json::{Value, json};
use throughline_store::{Approval, Decision};
use throughline_testkit::Scratch;
use throughline_testkit::serverkill::{Exchange, Guard, Request};

use super::case::{Answer, Case, Channel, Extra, Kill, OnMissing, Trigger};
use super::charge_server::{ChargeServer, Signal};
use super::check::{self, Settled};
use super::client::{Received, follow, send};
use super::counts::Counts;
use super::model::{Models, Opening};
use super::server::{Server, upstream};

/// How often a create may be interrupted.
const PATIENCE: u32 = 20;

/// The server, its peers, and the counts.
pub(crate) struct Campaign {
    pub(crate) charge_server: ChargeServer,
    pub(crate) models: Models,
    pub(crate) server: Server,
    pub(crate) signal: Sender<Signal>,
    pub(crate) signals: Receiver<Signal>,
    pub(crate) counts: Counts,
    /// An approval request of another response.
    pub(crate) foreign: Option<String>,
    /// The number of answering creates so far.
    pub(crate) creates: u64,
    pub(crate) _scratch: Scratch,
}

/// A response that waits, and its approvals by call.
struct Asked {
    response: Value,
    approvals: Vec<Approval>,
}

impl Asked {
    fn id(&self) -> &str {
        self.response["id"].as_str().unwrap_or_default()
    }

    fn approval(&self, place: usize) -> String {
        self.approvals[place].id.to_string()
    }

    fn questions(&self) -> Vec<String> {
        let approvals = self.approvals.iter();
        approvals.map(|approval| approval.id.to_string()).collect()
    }
}

/// An answering create.
struct Answering {
    request: Request,
    /// The answer to each call, in this create or in the store.
    answers: Vec<Answer>,
    /// Whether it has `on_open_calls: "close"`.
    close: bool,
    /// The idempotency key, if it has one.
    key: String,
}

impl Campaign {
    /// Runs a case; the error names a violation.
    pub(crate) fn run(&mut self, case: &Case) -> Result<(), String> {
        self.counts.begin(case);
        let asked = self.ask(case)?;
        if case.kill == Kill::Between {
            self.counts.between += 1;
            self.server.restart("")?;
            let read = self.server.read(asked.id())?;
            if read != asked.response {
                return Err(format!(
                    "{} was acknowledged, and is {read}",
                    asked.response
                ));
            }
            check::questions(case, &asked.response, &self.server.approvals(asked.id())?)?;
        }
        self.answer_in_store(case, &asked)?;
        if case.extra == Extra::Foreign {
            self.answer_foreign_question(case, &asked)?;
        }
        let settled = self.answer(case, &asked)?;
        self.counts.settled(&settled);
        self.answer_too_late(case, &asked, &settled)?;
        if case.continues {
            self.continue_chain(case, &asked, &settled)?;
        }
        self.models.forget(&case.code);
        self.foreign = Some(asked.approval(0));
        Ok(())
    }

    /// The model makes the calls, and the response ends with an approval request for each.
    fn ask(&mut self, case: &Case) -> Result<Asked, String> {
        let calls = case.calls.iter();
        let calls = calls.map(|call| (call.id.clone(), call.arguments(&case.code).to_string()));
        self.models.expect(
            &case.code,
            Opening {
                text: case.text,
                calls: calls.collect(),
            },
        );
        let mut body = create(case, &json!(format!("[[case {}]] Charge them.", case.code)));
        body["stream"] = json!(case.asks_streamed);
        let request = Request::post("/v1/responses", body.to_string());
        let response = match send(&self.server.address, &request, || {})? {
            Received::Response(response) => response,
            other => return Err(format!("the ask ended with {other:?}")),
        };
        let id = response["id"].as_str().unwrap_or_default();
        let approvals = self.server.approvals(id)?;
        check::questions(case, &response, &approvals)?;
        self.nothing_ran(case, "before anything was answered")?;
        Ok(Asked {
            response,
            approvals,
        })
    }

    /// Answers some approvals in the store, which runs nothing.
    fn answer_in_store(&mut self, case: &Case, asked: &Asked) -> Result<(), String> {
        for (call, approval) in case.calls.iter().zip(&asked.approvals) {
            let decision = match (call.channel, call.answer) {
                (Channel::Create, _) | (_, Answer::Missing) => continue,
                (Channel::Store, Answer::Yes) => Decision::Approved,
                (Channel::Store, Answer::No) => Decision::Denied,
            };
            let reason = call.reason.clone().filter(|_| decision == Decision::Denied);
            self.server.answer(approval, decision, reason)?;
            self.counts.in_store += 1;
        }
        self.nothing_ran(case, "when approvals were answered in the store")
    }

    /// Answers an approval request of another response: the create is refused.
    fn answer_foreign_question(&mut self, case: &Case, asked: &Asked) -> Result<(), String> {
        let Some(foreign) = self.foreign.clone() else {
            return Ok(());
        };
        let answers = case.first();
        let mut body = body(case, asked, &answers, false);
        let stranger = json!({"type": "mcp_approval_response", "approve": true,
            "approval_request_id": foreign});
        if let Some(input) = body["input"].as_array_mut() {
            input.push(stranger);
        }
        let request = Request::post("/v1/responses", body.to_string());
        match send(&self.server.address, &request, || {})? {
            Received::Error(400, ..) => self.counts.foreign += 1,
            other => {
                return Err(format!(
                    "an answer to a foreign question ended with {other:?}"
                ));
            }
        }
        self.nothing_ran(case, "when an answer named another response's question")
    }

    /// Answers, in one create or several.
    fn answer(&mut self, case: &Case, asked: &Asked) -> Result<Settled, String> {
        let close = case.on_missing == OnMissing::Close;
        let first = self.answering(case, asked, &case.first(), close);
        if matches!(case.extra, Extra::SameRace | Extra::OtherRace) {
            return self.race(case, asked, first);
        }
        let received = self.send_until_answered(case, &first, case.kill)?;
        if !case.is_partial() || close {
            return self.settle(case, asked, &first, received);
        }
        self.check_refusal(case, asked, &first.answers, &received)?;
        let last = case.last();
        let mut next = match case.on_missing {
            OnMissing::SendMissing => {
                let answers = first.answers.iter().zip(&last);
                let only = answers.map(|(first, last)| match first {
                    Answer::Missing => *last,
                    Answer::Yes | Answer::No => Answer::Missing,
                });
                only.collect()
            }
            OnMissing::Close | OnMissing::SendAll | OnMissing::ChangeOne => last.clone(),
        };
        if let (OnMissing::ChangeOne, Some(changed)) = (case.on_missing, case.changed(&last)) {
            let answering = self.answering(case, asked, &changed, false);
            match self.send_until_answered(case, &answering, Kill::Never)? {
                // The refused create recorded nothing.
                received @ Received::Response(_) => {
                    return self.settle(case, asked, &answering, received);
                }
                // The first answer stands.
                received if received.code() == "approval_already_answered" => {
                    self.counts.changed += 1;
                    self.nothing_ran(case, "when an answer was changed")?;
                }
                other => return Err(format!("a changed answer ended with {other:?}")),
            }
            next = last.clone();
        }
        let mut answering = self.answering(case, asked, &next, false);
        let mut received = self.send_until_answered(case, &answering, Kill::Never)?;
        if case.on_missing == OnMissing::SendMissing && matches!(received, Received::Error(400, ..))
        {
            // Nothing of the refused create counted: all answers are sent again.
            self.check_refusal(case, asked, &next, &received)?;
            answering = self.answering(case, asked, &last, false);
            received = self.send_until_answered(case, &answering, Kill::Never)?;
        }
        answering.answers = last;
        self.counts.several += 1;
        self.settle(case, asked, &answering, received)
    }

    /// Answers are missing: the create is refused with the open requests, and nothing runs.
    fn check_refusal(
        &mut self,
        case: &Case,
        asked: &Asked,
        answers: &[Answer],
        received: &Received,
    ) -> Result<(), String> {
        let Received::Error(400, body, _) = received else {
            return Err(format!(
                "answers are missing, and the create ended with {received:?}"
            ));
        };
        let message = body["error"]["message"].as_str().unwrap_or_default();
        let now = self.server.approvals(asked.id())?;
        check::named(case, answers, message, &now)?;
        check::untouched(case, answers, &now)?;
        self.counts.partial += 1;
        self.nothing_ran(case, "when answers were missing")
    }

    /// Two branches answer concurrently: one wins, and only its answers take effect.
    fn race(&mut self, case: &Case, asked: &Asked, first: Answering) -> Result<Settled, String> {
        let answers = match case.extra {
            Extra::OtherRace => case.changed(&first.answers),
            Extra::Nothing | Extra::Foreign | Extra::SameRace => None,
        };
        let answers = answers.unwrap_or_else(|| first.answers.clone());
        let second = self.answering(case, asked, &answers, first.close);
        let address = self.server.address.clone();
        let (one, two) = std::thread::scope(|scope| {
            let one = scope.spawn(|| send(&address, &first.request, || {}));
            let two = send(&address, &second.request, || {});
            let one = one.join();
            (
                one.unwrap_or_else(|_| Err("a client panicked".to_owned())),
                two,
            )
        });
        let (one, two) = (one?, two?);
        let (winner, received, loser) = match (&one, &two) {
            (Received::Response(_), Received::Error(..)) => (first, one, two),
            (Received::Error(..), Received::Response(_)) => (second, two, one),
            both => {
                return Err(format!(
                    "two branches that answered at once ended with {both:?}"
                ));
            }
        };
        self.counts.raced += 1;
        let settled = self.settle(case, asked, &winner, received)?;
        let named = match &loser {
            Received::Error(409, body, _) if loser.code() == "approval_already_answered" => {
                body["error"]["response_id"].as_str().map(str::to_owned)
            }
            other => return Err(format!("the losing branch ended with {other:?}")),
        };
        // Until the winner has begun, there is no response to name.
        match named {
            Some(named) if named != settled.id => Err(format!(
                "{named} is named as the winner, which is {}",
                settled.id
            )),
            _ => Ok(settled),
        }
    }

    /// Sends a create, and repeats it after each kill until it is answered.
    fn send_until_answered(
        &mut self,
        case: &Case,
        answering: &Answering,
        kill: Kill,
    ) -> Result<Received, String> {
        if let Kill::At(point, pass) = kill {
            self.server.restart(&format!("{point}=kill@{pass}"))?;
        }
        let mut known: Option<String> = None;
        let mut deaths = 0;
        for attempt in 0..PATIENCE {
            let request = guarded(answering, case.guard, attempt);
            let received = match (attempt, kill) {
                (0, Kill::On(trigger, moments)) => {
                    self.send_and_kill(case, &request, trigger, moments)?
                }
                _ => send(&self.server.address, &request, || {})?,
            };
            let received = match received {
                Received::Disconnected(response) => {
                    if !self.server.is_gone() && kill == Kill::Never {
                        return Err("the connection broke off".to_owned());
                    }
                    known = response.or(known);
                    self.restart_after_death(case, &mut deaths)?;
                    continue;
                }
                Received::Error(409, _, Some(id)) if is_in_progress(&received) => {
                    // Reading the stream waits for its end.
                    if let Received::Disconnected(_) = follow(&self.server.address, &id)? {
                        self.restart_after_death(case, &mut deaths)?;
                    }
                    continue;
                }
                Received::Error(409, ref body, _)
                    if attempt > 0
                        && case.guard == Guard::None
                        && received.code() == "approval_already_answered" =>
                {
                    let winner = body["error"]["response_id"].as_str().map(str::to_owned);
                    let winner = winner.ok_or_else(|| format!("no winner is named: {body}"))?;
                    match follow(&self.server.address, &winner)? {
                        Received::Disconnected(_) => {
                            self.restart_after_death(case, &mut deaths)?;
                            continue;
                        }
                        received => received,
                    }
                }
                received => received,
            };
            if matches!(kill, Kill::At(..) | Kill::On(..)) {
                self.counts.killed(kill, case.guard, deaths);
                // Its faults must not affect the next case.
                self.server.restart("")?;
            }
            return match (&received, known) {
                (Received::Response(response), Some(known)) if response["id"] != *known => {
                    Err(format!("{known} was begun, and {response} answers"))
                }
                _ => Ok(received),
            };
        }
        Err(format!("the create is not answered; {known:?} was begun"))
    }

    /// Starts the next server after one has died.
    fn restart_after_death(&mut self, case: &Case, deaths: &mut u64) -> Result<(), String> {
        let again = case.again.filter(|_| *deaths == 0);
        *deaths += 1;
        let faults = again.map(|point| format!("{point}=kill@1"));
        self.server.restart(&faults.unwrap_or_default())
    }

    /// Sends a create, and kills the server at a trigger.
    fn send_and_kill(
        &mut self,
        case: &Case,
        request: &Request,
        trigger: Trigger,
        moments: usize,
    ) -> Result<Received, String> {
        while self.signals.try_recv().is_ok() {}
        let address = self.server.address.clone();
        let wait = || (0..moments).for_each(|_| std::thread::yield_now());
        if trigger == Trigger::Sent {
            let sent = Exchange::send(&address, request);
            wait();
            self.server.kill();
            drop(sent);
            return Ok(Received::Disconnected(None));
        }
        let signal = self.signal.clone();
        std::thread::scope(|scope| {
            let client = scope.spawn(move || {
                let on_event = || {
                    let _ = signal.send(Signal::Event);
                };
                let received = send(&address, request, on_event);
                let _ = signal.send(Signal::Over);
                received
            });
            let (mut charged, mut events) = (0, 0);
            loop {
                let happened = match self.signals.recv() {
                    Ok(Signal::Charged(code)) if code == case.code => {
                        charged += 1;
                        trigger == Trigger::Charged(charged)
                    }
                    Ok(Signal::Asked(code)) => code == case.code && trigger == Trigger::Asked,
                    Ok(Signal::Event) => {
                        events += 1;
                        trigger == Trigger::Event(events)
                    }
                    Ok(Signal::Charged(_)) => false,
                    Ok(Signal::Over) | Err(_) => break,
                };
                if happened {
                    wait();
                    self.server.kill();
                    break;
                }
            }
            let received = client.join();
            received.unwrap_or_else(|_| Err("the client panicked".to_owned()))
        })
    }

    /// Checks the response that took the calls over.
    fn settle(
        &mut self,
        case: &Case,
        asked: &Asked,
        answering: &Answering,
        received: Received,
    ) -> Result<Settled, String> {
        let Received::Response(response) = received else {
            return Err(format!("{:?} ended with {received:?}", answering.answers));
        };
        let read = self
            .server
            .read(response["id"].as_str().unwrap_or_default())?;
        if read != response {
            return Err(format!("{response} was acknowledged, and is {read}"));
        }
        if response["previous_response_id"] != asked.response["id"] {
            return Err(format!("{} goes on from another: {response}", case.code));
        }
        let charges = self.charge_server.charges(&case.code)?;
        let killed = matches!(case.kill, Kill::At(..) | Kill::On(..));
        let questions = asked.questions();
        let shown = (&response, &questions[..]);
        let settled = check::response(case, &answering.answers, shown, &charges, killed)?;
        check::approvals(case, &settled.outcomes, &self.server.approvals(asked.id())?)?;
        let requests = self.models.requests(&case.code);
        let most = if killed { 4 } else { 1 };
        if requests.is_empty() || requests.len() > most {
            return Err(format!("the upstream was asked {} times", requests.len()));
        }
        for entries in &requests {
            check::request(case, &settled, entries, check::Turn::Answer)?;
        }
        self.counts.requests += requests.len() as u64;
        Ok(settled)
    }

    /// Another branch answers the same approvals: it gets 409 with the id of the winner, and
    /// nothing runs.
    fn answer_too_late(
        &mut self,
        case: &Case,
        asked: &Asked,
        settled: &Settled,
    ) -> Result<(), String> {
        let before = self.charge_server.charges(&case.code)?;
        let mut body = body(case, asked, &case.late_answers, false);
        // Approvals that were answered in the store are answered here too.
        body["input"] = answer_items(case, asked, &case.late_answers, |_| true);
        let request = Request::post("/v1/responses", body.to_string());
        let received = send(&self.server.address, &request, || {})?;
        match &received {
            Received::Error(409, body, _)
                if received.code() == "approval_already_answered"
                    && body["error"]["response_id"] == *settled.id => {}
            other => {
                return Err(format!(
                    "{} took the calls over, and a late branch ended with {other:?}",
                    settled.id
                ));
            }
        }
        self.counts.late += 1;
        match self.charge_server.charges(&case.code)? == before {
            true => Ok(()),
            false => Err("a late branch ran something".to_owned()),
        }
    }

    /// The chain takes another turn, on another server.
    fn continue_chain(
        &mut self,
        case: &Case,
        asked: &Asked,
        settled: &Settled,
    ) -> Result<(), String> {
        if case.kill == Kill::Never {
            self.server.restart("")?;
        }
        let before = self.models.requests(&case.code).len();
        let mut body = create(case, &json!(format!("[[case {}]] Thank you.", case.code)));
        body["previous_response_id"] = json!(settled.id);
        let request = Request::post("/v1/responses", body.to_string());
        let next = match send(&self.server.address, &request, || {})? {
            Received::Response(response) => response,
            other => return Err(format!("the next turn ended with {other:?}")),
        };
        let requests = self.models.requests(&case.code);
        let [entries] = &requests[before..] else {
            return Err("the next turn is one request".to_owned());
        };
        check::request(case, settled, entries, check::Turn::Next)?;
        let next = next["id"].as_str().unwrap_or_default();
        let listed = self.server.input_items(next)?;
        check::listed(case, settled, &asked.questions(), &listed)?;
        self.counts.went_on += 1;
        Ok(())
    }

    fn nothing_ran(&mut self, case: &Case, when: &str) -> Result<(), String> {
        let charges = self.charge_server.charges(&case.code)?;
        if !charges.is_empty() {
            return Err(format!("{charges:?} ran {when}"));
        }
        match self.models.requests(&case.code).len() {
            0 => Ok(()),
            count => Err(format!("the upstream was asked {count} times {when}")),
        }
    }

    fn answering(
        &mut self,
        case: &Case,
        asked: &Asked,
        answers: &[Answer],
        close: bool,
    ) -> Answering {
        self.creates += 1;
        let body = body(case, asked, answers, close);
        Answering {
            request: Request::post("/v1/responses", body.to_string()),
            answers: answers.to_vec(),
            close,
            key: format!("{}-{}", case.code, self.creates),
        }
    }
}

/// The body of an answering create.
fn body(case: &Case, asked: &Asked, answers: &[Answer], close: bool) -> Value {
    let mut input = answer_items(case, asked, answers, |place| {
        let call = &case.calls[place];
        call.channel == Channel::Create || call.answer == Answer::Missing
    });
    if let (Some(place), Some(list)) = (case.input, input.as_array_mut()) {
        let place = place.min(list.len());
        let text = format!("[[case {}]] And be quick.", case.code);
        list.insert(place, json!({"role": "user", "content": text}));
    }
    let mut body = create(case, &input);
    body["previous_response_id"] = asked.response["id"].clone();
    body["stream"] = json!(case.answers_streamed);
    if close {
        body["throughline"] = json!({"on_open_calls": "close"});
    }
    body
}

fn is_in_progress(received: &Received) -> bool {
    received.code() == "idempotency_in_progress"
}

fn create(case: &Case, input: &Value) -> Value {
    json!({
        "model": format!("{}/a-model", upstream(&case.wire)),
        "input": input,
        "tools": [{"type": "mcp", "server_label": "bank", "require_approval": "never"}],
    })
}

/// The answers, in the order of the case.
fn answer_items(
    case: &Case,
    asked: &Asked,
    answers: &[Answer],
    is_sent: impl Fn(usize) -> bool,
) -> Value {
    let sent = case.order.iter().copied().filter(|place| is_sent(*place));
    let items = sent.filter_map(|place| {
        let approve = match answers[place] {
            Answer::Yes => true,
            Answer::No => false,
            Answer::Missing => return None,
        };
        let mut item = json!({"type": "mcp_approval_response", "approve": approve,
            "approval_request_id": asked.approval(place)});
        if let (Some(reason), false) = (&case.calls[place].reason, approve) {
            item["reason"] = json!(reason);
        }
        Some(item)
    });
    items.collect()
}

fn guarded(answering: &Answering, guard: Guard, attempt: u32) -> Request {
    let request = answering.request.clone();
    match guard {
        Guard::Key => request.with("idempotency-key", answering.key.clone()),
        Guard::Sdk => request.with("x-stainless-retry-count", attempt.to_string()),
        Guard::None => request,
    }
}
