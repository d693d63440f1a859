//! OpenAI's APIs: `items` has what they share, `responses` the Responses API, `conversations` the
//! Conversations API, `conversation_head` what both know of a conversation, `delivered_body` answers whose
//! delivery is noted, `models` the list of models, `elsewhere` the routes that are not served.

mod conversation_head;
pub(crate) mod conversations;
mod delivered_body;
pub(crate) mod elsewhere;
pub mod items;
pub(crate) mod models;
pub mod responses;
