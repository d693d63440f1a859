//! The words of the Responses API that a request needs.
#![allow(dead_code, unused_imports)]

mod items;
#[path = "../../../crates/server/src/api/openai/responses/wire/request/mod.rs"]
mod request;

pub(crate) use items::parts;
pub(crate) use request::CreateRequest;
