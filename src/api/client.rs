//! The blocking client of the daemon.
