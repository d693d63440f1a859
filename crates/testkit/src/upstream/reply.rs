use std::collections::VecDeque;
use std::sync::Arc;

use throughline_model::Response;

use super::fault::Fault;
use super::gate::Gate;
use super::recorded::Recorded;
use super::stored::Fate;

/// The answer to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) what: What,
    pub(super) fault: Option<Fault>,
    pub(super) gate: Option<Gate>,
    pub(super) detached: bool,
    pub(super) fate: Fate,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Plain(PlainReply),
    Response(Box<Response>),
    Raw(Raw),
}

/// An answer in neutral form; ids and usage are the server's.
#[derive(Clone, Debug, Default)]
pub(super) struct PlainReply {
    pub(super) parts: Vec<Part>,
    pub(super) usage: Option<(u64, u64)>,
    pub(super) cut_off: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Thought(String),
    Text(String),
    Call {
        id: ReplyId,
        name: String,
        arguments: String,
    },
    /// PNG in base 64.
    Image(String),
}

/// The id of a call in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplyId {
    /// A new one, in the vendor's form.
    #[default]
    Fresh,
    /// This one, even if another call has it. It may be empty.
    Given(String),
    /// The member is missing.
    Absent,
}

impl ReplyId {
    /// The id as it is sent, if any.
    pub(super) fn text(&self, fresh: String) -> Option<String> {
        match self {
            Self::Fresh => Some(fresh),
            Self::Given(text) => Some(text.clone()),
            Self::Absent => None,
        }
    }
}

/// An answer as raw bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Raw {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    fn said(parts: Vec<Part>) -> Self {
        Self::of(What::Plain(PlainReply {
            parts,
            usage: Some((12, 7)),
            cut_off: false,
        }))
    }

    fn of(what: What) -> Self {
        Self {
            what,
            fault: None,
            gate: None,
            detached: false,
            fate: Fate::default(),
        }
    }

    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::said(vec![Part::Text(text.into())])
    }

    /// Calls of functions: name, JSON text of the arguments. The server gives them ids in the
    /// vendor's form.
    pub fn calls<N, A>(calls: impl IntoIterator<Item = (N, A)>) -> Self
    where
        N: Into<String>,
        A: Into<String>,
    {
        Self::said(Vec::new()).and_calls(calls)
    }

    /// Appends calls.
    #[must_use]
    pub fn and_calls<N, A>(mut self, calls: impl IntoIterator<Item = (N, A)>) -> Self
    where
        N: Into<String>,
        A: Into<String>,
    {
        if let What::Plain(said) = &mut self.what {
            said.parts
                .extend(calls.into_iter().map(|(name, arguments)| Part::Call {
                    id: ReplyId::Fresh,
                    name: name.into(),
                    arguments: arguments.into(),
                }));
        }
        self
    }

    /// Appends calls with given ids: id, name, JSON text of the arguments. Ids may repeat, be empty
    /// or be missing, as with some servers.
    #[must_use]
    pub fn and_calls_with_ids<N, A>(
        mut self,
        calls: impl IntoIterator<Item = (ReplyId, N, A)>,
    ) -> Self
    where
        N: Into<String>,
        A: Into<String>,
    {
        if let What::Plain(said) = &mut self.what {
            let calls = calls.into_iter().map(|(id, name, arguments)| Part::Call {
                id,
                name: name.into(),
                arguments: arguments.into(),
            });
            said.parts.extend(calls);
        }
        self
    }

    /// Appends a picture, a PNG in base 64, for vendors whose models make some.
    #[must_use]
    pub fn and_image(mut self, data: impl Into<String>) -> Self {
        if let What::Plain(said) = &mut self.what {
            said.parts.push(Part::Image(data.into()));
        }
        self
    }

    /// Prepends reasoning, sealed or signed as the vendor does. Ignored for formats without
    /// reasoning.
    #[must_use]
    pub fn reasoning_first(mut self, thought: impl Into<String>) -> Self {
        if let What::Plain(said) = &mut self.what {
            said.parts.insert(0, Part::Thought(thought.into()));
        }
        self
    }

    /// Sets the usage: input and output tokens.
    #[must_use]
    pub fn with_usage(mut self, input: u64, output: u64) -> Self {
        if let What::Plain(said) = &mut self.what {
            said.usage = Some((input, output));
        }
        self
    }

    /// Cuts the answer off at the token limit.
    #[must_use]
    pub fn cut_off(mut self) -> Self {
        if let What::Plain(said) = &mut self.what {
            said.cut_off = true;
        }
        self
    }

    /// Makes the answer wait for a gate: a stream in its middle, a whole answer before its head.
    #[must_use]
    pub fn held(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// An answer in our form, written by the codec.
    pub fn response(response: Response) -> Self {
        Self::of(What::Response(Box::new(response)))
    }

    /// A status and a body, independent of the request.
    pub fn raw(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::of(What::Raw(Raw {
            status,
            headers: vec![("content-type".into(), content_type.into())],
            body: body.into(),
        }))
    }

    /// Adds a header to a raw answer.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let What::Raw(raw) = &mut self.what {
            raw.headers.push((name.into(), value.into()));
        }
        self
    }

    /// Ends the connection as soon as the service has accepted the call, while the answer goes on
    /// being made and stored: a stream ends after its first event, a whole answer before its head.
    /// The stored answer can be looked up, if the call asks the service to store it.
    #[must_use]
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// Makes the stored answer `in_progress` for this number of look-ups.
    #[must_use]
    pub fn running_for(mut self, look_ups: usize) -> Self {
        self.fate.running_for = look_ups;
        self
    }

    /// Makes the stored answer end with this status and without content: `failed`, `cancelled`.
    #[must_use]
    pub fn ended_as(mut self, status: &str) -> Self {
        self.fate.ended_as = Some(status.to_owned());
        self
    }

    /// Adds a fault.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }
}

/// Decides an answer from the request.
type Decide = Arc<dyn Fn(&Recorded) -> Reply + Send + Sync>;

/// The answers of a server, in order.
#[derive(Clone, Default)]
pub struct Script {
    queue: VecDeque<Reply>,
    rest: Option<Decide>,
}

impl Script {
    /// One answer for each accepted request.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            queue: replies.into_iter().collect(),
            rest: None,
        }
    }

    /// Decides the answer to every request.
    pub fn respond_with(answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        Self::default().then(answer)
    }

    /// Decides the answers after these are used up.
    #[must_use]
    pub fn then(mut self, answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        self.rest = Some(Arc::new(answer));
        self
    }

    /// Appends an answer.
    pub(super) fn push(&mut self, reply: Reply) {
        self.queue.push_back(reply);
    }

    /// The answer to a request. With a fault, the answer stays in the script for the next request.
    pub(super) fn next(&mut self, request: &Recorded, spoilt: bool) -> Option<Reply> {
        let queued = match spoilt {
            true => self.queue.front().cloned(),
            false => self.queue.pop_front(),
        };
        queued.or_else(|| self.rest.as_ref().map(|decide| decide(request)))
    }

    /// The number of answers that are left.
    pub(super) fn left(&self) -> usize {
        self.queue.len()
    }
}

impl<const N: usize> From<[Reply; N]> for Script {
    fn from(replies: [Reply; N]) -> Self {
        Self::new(replies)
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        Self::new(replies)
    }
}
