//! The engine in memory: the reference for all others.
