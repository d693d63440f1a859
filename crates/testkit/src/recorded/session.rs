//! What a client does that keeps its conversation itself.

use crate::Rng;

use super::{By, Said};

/// What a client did before a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// It said something new.
    Said,
    /// It sent the result of a tool.
    Result,
    /// It sent the same request again.
    Retry,
    /// It changed an earlier message and left out what followed.
    Edit,
    /// It changed an earlier message and kept what followed.
    Rewrite,
    /// It left out an earlier turn.
    Delete,
    /// It put a summary in place of its oldest messages.
    Compact,
    /// It began again with a text around its last answer.
    Continue,
    /// Another tab went on from the same conversation.
    Tab,
    /// It began a conversation with words that another one began with.
    Opening,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Said,
        Self::Result,
        Self::Retry,
        Self::Edit,
        Self::Rewrite,
        Self::Delete,
        Self::Compact,
        Self::Continue,
        Self::Tab,
        Self::Opening,
    ];
}

/// A client with its tabs. Each tab has a conversation of its own.
#[derive(Debug)]
pub struct Session {
    name: String,
    rng: Rng,
    tabs: Vec<Vec<Said>>,
    tab: usize,
    count: usize,
}

/// Words with which many conversations begin, and that users say again and again.
const SMALL_TALK: [&str; 3] = ["Good morning.", "Go on.", "Is the pilot aboard?"];

/// What a harbour is asked.
const WORDS: [&str; 12] = [
    "barge", "quay", "tide", "pilot", "fog", "crane", "lock", "manifest", "berth", "towline",
    "ballast", "customs",
];

/// A text of about so many bytes that no other text equals.
pub fn prose(rng: &mut Rng, name: &str, bytes: usize) -> String {
    let mut text = format!("[{name}]");
    while text.len() < bytes {
        text.push(if rng.chance(0.08) { '\n' } else { ' ' });
        text.push_str(WORDS[rng.below(WORDS.len())]);
        if rng.chance(0.2) {
            text.push_str(&format!(" {}", rng.below(100_000)));
        }
    }
    text
}

impl Session {
    /// A client. Its name is in all that it says.
    pub fn new(name: &str, rng: Rng) -> Self {
        Self {
            name: name.to_owned(),
            rng,
            tabs: vec![Vec::new()],
            tab: 0,
            count: 0,
        }
    }

    /// The next request: what the client did, and all of the conversation.
    pub fn request(&mut self) -> (Action, Vec<Said>) {
        self.tab = self.rng.below(self.tabs.len());
        let action = self.act();
        (action, self.conversation().clone())
    }

    /// The request was answered.
    pub fn answered(&mut self, answer: Said) {
        let tab = self.tab;
        self.tabs[tab].push(answer);
    }

    fn conversation(&mut self) -> &mut Vec<Said> {
        &mut self.tabs[self.tab]
    }

    /// Something that was never said before.
    fn text(&mut self) -> String {
        self.count += 1;
        let name = format!("{}.{}", self.name, self.count);
        let bytes = *self.rng.pick(&[60, 400, 1_500, 4_000]);
        prose(&mut self.rng, &name, bytes)
    }

    fn says(&mut self) -> Said {
        match self.rng.chance(0.1) {
            true => Said::user(SMALL_TALK[self.rng.below(SMALL_TALK.len())]),
            false => Said::user(self.text()),
        }
    }

    fn act(&mut self) -> Action {
        let length = self.conversation().len();
        let last = self.conversation().last().cloned();
        match last {
            None => {
                let (said, action) = match self.rng.chance(0.3) {
                    true => (Said::user(SMALL_TALK[0]), Action::Opening),
                    false => (Said::user(self.text()), Action::Said),
                };
                self.conversation().push(said);
                return action;
            }
            // The request before had no answer.
            Some(Said {
                by: By::User | By::Tool,
                ..
            }) => match self.rng.chance(0.7) {
                true => return Action::Retry,
                // The user goes on without it.
                false => {
                    let said = self.says();
                    self.conversation().push(said);
                    return Action::Said;
                }
            },
            Some(Said {
                call: Some(call), ..
            }) => {
                let text = self.text();
                self.conversation().push(Said::result(call, text));
                return Action::Result;
            }
            Some(_) => {}
        }
        let action = *self.rng.pick(&[
            Action::Said,
            Action::Said,
            Action::Said,
            Action::Said,
            Action::Said,
            Action::Said,
            Action::Retry,
            Action::Edit,
            Action::Rewrite,
            Action::Delete,
            Action::Compact,
            Action::Continue,
            Action::Tab,
        ]);
        self.change(action, length)
    }

    /// Change the conversation, which ends with an answer.
    fn change(&mut self, action: Action, length: usize) -> Action {
        let users: Vec<usize> = (0..length)
            .filter(|place| self.conversation()[*place].by == By::User)
            .collect();
        let place = *self.rng.pick(&users);
        match action {
            Action::Retry => {
                self.conversation().pop();
                return action;
            }
            Action::Edit => {
                let said = self.says();
                let conversation = self.conversation();
                conversation.truncate(place);
                conversation.push(said);
                return action;
            }
            Action::Rewrite if length > 2 => {
                let text = self.text();
                self.conversation()[place] = Said::user(text);
            }
            Action::Delete if length > 4 => {
                // A call goes with its result.
                let next = users.iter().find(|next| **next > place);
                let end = next.copied().unwrap_or(length);
                let conversation = self.conversation();
                conversation.drain(place..end);
            }
            Action::Compact if users.len() > 2 => {
                let kept = users[users.len() - 2];
                let summary = self.text();
                let conversation = self.conversation();
                conversation.splice(..kept, [Said::user(format!("Earlier: {summary}"))]);
            }
            Action::Continue if length > 2 => {
                let conversation = self.conversation();
                let answer = conversation.last().map(|said| said.text.clone());
                let text = format!(
                    "This conversation goes on from another one.\n\n{}\n\nGo on where it ended.",
                    answer.unwrap_or_default()
                );
                *conversation = vec![Said::user(text)];
                return action;
            }
            Action::Tab => {
                let copy = self.conversation().clone();
                if self.tabs.len() < 3 {
                    self.tabs.push(copy);
                    self.tab = self.tabs.len() - 1;
                } else {
                    self.tabs[self.tab] = Vec::new();
                    return self.act();
                }
            }
            _ => {
                let said = self.says();
                self.conversation().push(said);
                return Action::Said;
            }
        }
        let said = self.says();
        self.conversation().push(said);
        action
    }
}
