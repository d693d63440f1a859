//! The HTTP layer, over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod accepted_calls;
mod approvals;
mod background;
mod bodies;
mod captures;
mod chat;
mod client_tools;
mod compaction;
mod compliance;
mod conn_runtimes;
mod connections;
mod conversations;
mod hand_over;
mod hosted;
mod keys;
mod logs;
mod mcp;
mod message_stores;
mod messages;
mod metrics;
mod models;
mod native;
mod published;
mod recorded;
mod references;
mod replay;
mod retries;
mod routes;
mod socket_client;
mod sockets;
mod stop;
mod strategy;
mod support;
mod sweep;
mod unsupported;
mod upstreams;
mod vendors;
mod webhooks;
