//! What a thread holds, and what a model is shown of it.

mod view;

pub use view::{Rendering, View};
