//! What the newest messages of a conversation are made of.

use throughline_model::Message;
use throughline_model::tokens::Mix;

/// So many of the newest units are enough to say which languages a conversation is in.
const ENOUGH: f64 = 20_000.0;

/// What the newest messages are made of; the messages are in the order of the conversation.
///
/// ```
/// use throughline_compact::tokens::{Class, recent_mix};
/// use throughline_model::Message;
///
/// let messages = [Message::user("When is the tide?"), Message::user("Когда прилив?")];
/// let mix = recent_mix(messages.iter());
/// assert!(mix.share(Class::Latin) > 0.2 && mix.share(Class::Cyrillic) > 0.2);
/// ```
pub fn recent_mix<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>) -> Mix {
    let mut mix = Mix::default();
    for message in messages.rev() {
        mix.add(&Mix::of_message(message));
        if mix.units() >= ENOUGH {
            break;
        }
    }
    mix
}
