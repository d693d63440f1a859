use throughline_model::{Message, Source};

/// The input of a run: a text, a message, or several.
///
/// ```
/// use throughline::agent::Input;
/// use throughline::model::Message;
///
/// let one: Input = "hello".into();
/// let several = Input::of(["first", "second"].map(Message::user));
/// assert_eq!(several.messages().len(), 2);
/// # drop(one);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input(Vec<Message>);

impl Input {
    /// The messages of a sequence.
    pub fn of(messages: impl IntoIterator<Item = impl Into<Message>>) -> Self {
        Self(messages.into_iter().map(Into::into).collect())
    }

    /// The messages.
    pub fn messages(&self) -> &[Message] {
        &self.0
    }

    pub(crate) fn into_messages(self) -> Vec<Message> {
        self.0
    }

    /// The same messages with the caller as their source. Summaries stay summaries: what another
    /// model wrote must not become the caller's words.
    pub(crate) fn with_caller_source(mut self) -> Self {
        for message in &mut self.0 {
            if message.source != Some(Source::Summary) {
                message.source = Some(Source::Caller);
            }
        }
        self
    }

    /// A digest of the messages, without what differs when the same request is sent again.
    pub(crate) fn digest(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        for message in &self.0 {
            let message = Message {
                id: None,
                created: None,
                ..message.clone()
            };
            let text = message.to_json();
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        digest
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self(vec![Message::user(text)])
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self(vec![Message::user(text)])
    }
}

impl From<Message> for Input {
    fn from(message: Message) -> Self {
        Self(vec![message])
    }
}

impl From<Vec<Message>> for Input {
    fn from(messages: Vec<Message>) -> Self {
        Self(messages)
    }
}
