use throughline_model::Message;

/// What a caller says to an agent: a text, a message, or several.
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
    /// The messages of a sequence, which is read once, here.
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
