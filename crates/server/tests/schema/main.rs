//! The pure core of the Responses API against the published descriptions, captured clients and the
//! grammar of streams.

mod captures;
mod grammar;
mod property;
mod runs;
mod schemas;
mod support;
mod vendors;
