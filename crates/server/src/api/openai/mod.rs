//! OpenAI's APIs: `items` has what they share, `responses` the Responses API, `conversations` the
//! Conversations API, `conversation_head` what both know of a conversation, `models` the list of models,
//! `elsewhere` the routes that are not served.

mod conversation_head;
pub(crate) mod conversations;
pub(crate) mod elsewhere;
pub mod items;
pub(crate) mod models;
pub mod responses;
