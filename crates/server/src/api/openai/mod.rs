//! OpenAI's APIs: `items` has what they share, `responses` the Responses API, `conversations` the
//! Conversations API, `models` the list of models, `elsewhere` the routes that are not served.

pub(crate) mod conversations;
pub(crate) mod elsewhere;
pub mod items;
pub(crate) mod models;
pub mod responses;
