//! What a [`Run`](crate::agent::Run) is for: starting, resuming, replying or cancelling.
//!
//! Each order has only the methods that make sense for it, so that the wrong combination does not
//! compile: a run that starts takes input and no answers, a run that is resumed takes answers and
//! no input, a reply takes both, and cancelling takes neither.
//!
//! ```compile_fail
//! # async fn wrong(agent: throughline::Agent, thread: throughline::Thread, call: throughline::thread::Pending) {
//! agent.cancel(&thread).approve(&call).await; // a cancel never runs a tool
//! # }
//! ```
//!
//! ```compile_fail
//! # async fn wrong(agent: throughline::Agent, thread: throughline::Thread, call: throughline::thread::Pending) {
//! agent.run_on(&thread, "more").approve(&call).await; // new input is never dropped for an answer
//! # }
//! ```

use super::handle::sealed::Sealed;

/// What a [`Run`](crate::agent::Run) is for.
pub trait Order: Sealed {}

/// An order that calls models and tools, and takes options for that.
pub trait Working: Order {}

/// An order that takes answers to pending calls.
pub trait Answering: Working {}

/// Start a run with input: [`Agent::run`](crate::Agent::run), [`Agent::run_on`](crate::Agent::run_on).
#[derive(Debug)]
pub enum Start {}

/// Resume a run that is parked, interrupted or failed: [`Agent::resume`](crate::Agent::resume),
/// [`Agent::resume_run`](crate::Agent::resume_run).
#[derive(Debug)]
pub enum Resume {}

/// Start a run at a node that is marked open, with answers and input:
/// [`Agent::reply_on`](crate::Agent::reply_on).
#[derive(Debug)]
pub enum Reply {}

/// Cancel a run: [`Agent::cancel`](crate::Agent::cancel).
#[derive(Debug)]
pub enum Cancel {}

impl Order for Start {}
impl Order for Resume {}
impl Order for Reply {}
impl Order for Cancel {}
impl Working for Start {}
impl Working for Resume {}
impl Working for Reply {}
impl Answering for Resume {}
impl Answering for Reply {}
