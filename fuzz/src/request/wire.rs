//! The words of the Responses API that a request needs.
#![allow(dead_code, unused_imports)]

#[path = "../../../crates/server/src/responses/wire/base64.rs"]
mod base64;
#[path = "../../../crates/server/src/responses/wire/envelope.rs"]
mod envelope;
#[path = "../../../crates/server/src/responses/wire/input/mod.rs"]
mod input;
#[path = "../../../crates/server/src/responses/wire/parcel.rs"]
mod parcel;
#[path = "../../../crates/server/src/responses/wire/read.rs"]
mod read;
#[path = "../../../crates/server/src/responses/wire/request/mod.rs"]
mod request;

pub(crate) use input::parts;
pub(crate) use request::CreateRequest;
