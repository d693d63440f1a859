//! OpenAI's APIs: `items` has what they share, `responses` the Responses API.

pub mod items;
pub mod responses;
