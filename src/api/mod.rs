//! What the daemon can be asked, as a table, and how to ask it: operations,
//! wire records, HTTP, the blocking client. Knows nothing of how the daemon answers.

pub mod docs;
pub mod frame;
pub mod http;
pub mod ops;
pub mod records;
pub mod uri;
pub mod wire;
