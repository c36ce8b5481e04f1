//! What can be seen of mcpx at work: the bus of events. Knows nothing of who
//! publishes, and nothing of HTTP.

mod bus;
pub mod kinds;

pub use self::bus::{Bus, Event, Filter, Wait};
