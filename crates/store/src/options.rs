//! How to open a store.

use std::sync::Arc;
use std::time::Duration;

use crate::{Clock, SystemClock};

/// Who says that a process is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Heartbeat {
    /// The engine, by itself.
    #[default]
    Automatic,
    /// The application that opened the store, by [`Engine::renew`](crate::Engine::renew).
    Manual,
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who says that the process is alive.
    pub heartbeat: Heartbeat,
    /// How long a process counts as alive after it last said so.
    pub lease: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            heartbeat: Heartbeat::Automatic,
            lease: Duration::from_secs(10),
        }
    }
}
