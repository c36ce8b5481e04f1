//! What can be seen of mcpx at work: the bus of events, the log that outlives the
//! daemon, and the figures of a running one. Knows nothing of who publishes, and
//! nothing of HTTP.

mod bus;
pub mod declared;
pub mod kinds;
pub mod log;
mod metrics;
#[cfg(test)]
mod scratch;

pub use self::bus::{Bus, Event, Filter, Heard, Tap, Wait};
pub use self::metrics::{Metrics, Values, family};
