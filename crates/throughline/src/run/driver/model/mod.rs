//! Model calls: what a call is given, how it is made, and where its conversation is kept.

mod call;
mod compact;
mod ownership;
mod prompt_view;
pub(in crate::run::driver) mod providers;
mod summary;

pub(in crate::run::driver) use call::{CallResult, until};
pub(in crate::run::driver) use ownership::{Ownership, is_models};
pub(in crate::run::driver) use prompt_view::PromptView;
pub(in crate::run::driver) use providers::{Provided, Unbegun};
