//! OpenAI's APIs: `items` has what they share, `responses` the Responses API, `conversations` the
//! Conversations API, `models` the list of models.

pub(crate) mod conversations;
pub mod items;
pub(crate) mod models;
pub mod responses;
