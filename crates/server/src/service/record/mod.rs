//! Requests that carry their whole conversation, recorded as threads (ADR 33).
//!
//! A client without a thread sends everything again with each request. [`Recorder::begin`] finds the
//! answer that a request goes on from, by digests of its messages, and begins a run there whose input is
//! what is new; [`Recording::publish`] adds the answer before the client gets its end. The model is asked
//! by another run, which sees the request as the client sent it: the record is beside it and never in
//! its way.
//!
//! `canonical` says when two messages are the same, `conversation` digests them, `placement` decides
//! where a request belongs; these are pure.

mod canonical;
mod close;
mod conversation;
mod metrics;
mod placement;
mod recorder;
mod stored;

pub(crate) use close::close_left;
pub(crate) use metrics::RecordMetrics;
use recorder::Placed;
pub(crate) use recorder::{RecordError, Recorder, Recording};
pub(crate) use stored::RecordedRequest;
