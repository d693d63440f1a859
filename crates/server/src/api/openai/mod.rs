//! OpenAI's APIs: `items` has what they share, `responses` the Responses API, `conversations` the
//! Conversations API, `chat` Chat Completions, `conversation_head` what the first two know of a conversation,
//! `delivered_body` answers whose delivery is noted, `models` the list of models, `elsewhere` the routes that
//! are not served.

pub(crate) mod chat;
mod conversation_head;
pub(crate) mod conversations;
mod delivered_body;
pub(crate) mod elsewhere;
pub mod items;
pub(crate) mod models;
pub mod responses;

pub(in crate::api) use conversation_head::ALIAS as CONVERSATION_ALIAS;
