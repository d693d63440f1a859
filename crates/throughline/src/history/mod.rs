//! What a thread holds, and what a model is shown of it.

mod mailbox;
mod thread;
mod view;

pub use mailbox::Mailbox;
pub(crate) use thread::Held;
pub use thread::Thread;
pub use view::{Rendering, View};
