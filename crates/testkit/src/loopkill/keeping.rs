//! Who keeps the histories of the threads of a campaign. Their names say it, so that every process
//! knows it without being told.

/// The upstreams whose services keep histories.
pub const SERVICES: [&str; 2] = ["east", "west"];

/// Who keeps the history of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    /// Our store.
    Us,
    /// The services of these upstreams.
    Services(&'static [&'static str]),
    /// The application's store of messages.
    Application {
        /// Whether each append gives the thread a new key.
        moves: bool,
    },
}

/// How the history of a thread is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// Who keeps it.
    pub by: KeptBy,
    /// Whether it has whole calls only, as a storing service would.
    pub parity: bool,
}

impl Keeping {
    /// The names of the threads of a campaign with all keepers.
    pub const NAMES: [&str; 8] = [
        "ours-1", "one-2", "one-3p", "both-4", "both-5p", "shelf-6", "moving-7", "shelf-8p",
    ];

    /// How the history of the thread with this name is kept.
    pub fn of(thread: &str) -> Self {
        let by = match thread.split('-').next() {
            Some("one") => KeptBy::Services(&SERVICES[..1]),
            Some("both") => KeptBy::Services(&SERVICES),
            Some("shelf") => KeptBy::Application { moves: false },
            Some("moving") => KeptBy::Application { moves: true },
            _ => KeptBy::Us,
        };
        Self {
            by,
            parity: thread.ends_with('p'),
        }
    }

    /// The services that keep it.
    pub fn services(self) -> &'static [&'static str] {
        match self.by {
            KeptBy::Services(names) => names,
            KeptBy::Us | KeptBy::Application { .. } => &[],
        }
    }

    /// Whether the application's store keeps it.
    pub fn is_external(self) -> bool {
        matches!(self.by, KeptBy::Application { .. })
    }
}
