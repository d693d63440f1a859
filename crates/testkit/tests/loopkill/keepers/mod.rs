//! Who keeps a conversation under kills: our store, services that store conversations, and the
//! application's store of messages, each in a process of its own.

mod campaign;
mod check;
mod items;
mod log;

pub(crate) use log::KeeperLog;
