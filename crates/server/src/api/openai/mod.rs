//! OpenAI's APIs: `items` has what they share, `responses` the Responses API, `models` the list of
//! models.

pub mod items;
pub(crate) mod models;
pub mod responses;
