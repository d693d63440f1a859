//! The campaigns, in one executable.

#[cfg(feature = "agents")]
mod loopkill;
mod record;
#[cfg(feature = "server")]
mod serverkill;
mod trials;
