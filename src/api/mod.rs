//! What the daemon can be asked, as a table, and how to ask it: operations,
//! wire records, the blocking client.

pub mod client;
pub mod wire;
