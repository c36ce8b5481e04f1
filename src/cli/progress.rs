//! One line on standard error that says what is being waited for, when a
//! person is looking and it takes a while; gone when the wait is over.

use crate::proc::thread;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A wait shorter than this is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line that appears after a while, and is wiped when this is dropped.
pub struct Progress {
    shared: Option<Arc<(Mutex<State>, Condvar)>>,
    writer: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    text: String,
    changed: bool,
    /// It is shown at once, however short the wait has been.
    urgent: bool,
    done: bool,
}

impl Progress {
    /// Starts the clock. Where standard error is no terminal nothing will be written.
    pub fn start(text: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress::none();
        }
        let shared =
            Arc::new((Mutex::new(State { text: text.to_owned(), ..State::default() }), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn("progress", move || write(&theirs)).ok();
        Progress { shared: Some(shared), writer }
    }

    /// One that shows nothing.
    pub fn none() -> Progress {
        Progress { shared: None, writer: None }
    }

    /// Whether somebody may see it.
    pub fn is_shown(&self) -> bool {
        self.writer.is_some()
    }

    /// Replaces the text.
    pub fn say(&self, text: &str) {
        self.put(text, false);
    }

    /// Replaces the text by something worth a line of its own, which is shown at once.
    pub fn report(&self, text: &str) {
        self.put(text, true);
    }

    fn put(&self, text: &str, urgent: bool) {
        if let Some(shared) = &self.shared {
            let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.text = text.to_owned();
            state.changed = true;
            state.urgent |= urgent;
            shared.1.notify_one();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.0.lock().unwrap_or_else(PoisonError::into_inner).done = true;
            shared.1.notify_one();
        }
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn write(shared: &(Mutex<State>, Condvar)) {
    let from = Instant::now() + PATIENCE;
    let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.done && !state.urgent && Instant::now() < from {
        let left = from.saturating_duration_since(Instant::now());
        state = shared.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    if state.done {
        return;
    }
    let mut stderr = std::io::stderr();
    loop {
        state.changed = false;
        let width = crate::proc::terminal_width().unwrap_or(80).saturating_sub(1);
        let line = super::table::fit(
            &super::table::one_line(&format!("mcpx: {}…", state.text.trim_end_matches([':', ' ']))),
            width,
        );
        let _ = write!(stderr, "\r\x1b[K{line}");
        while !state.done && !state.changed {
            state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.done {
            let _ = write!(stderr, "\r\x1b[K");
            return;
        }
    }
}

/// A server's report of its progress as a person reads it: `40 % (2 of 5), halfway`.
pub fn reported(said: &Value) -> String {
    let number = |name: &str| said[name].as_f64().filter(|n| n.is_finite() && *n >= 0.0);
    let done = match (number("progress"), number("total").filter(|total| *total > 0.0)) {
        (Some(done), Some(total)) => {
            let percent = (done / total * 100.0).min(100.0).floor();
            Some(format!("{percent} % ({} of {})", short(done), short(total)))
        }
        (Some(done), None) => Some(short(done)),
        (None, _) => None,
    };
    let message = said["message"].as_str().map(str::trim).filter(|text| !text.is_empty());
    done.into_iter().chain(message.map(str::to_owned)).collect::<Vec<_>>().join(", ")
}

/// A number to two places, without what is only zeros.
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_says_how_far_it_is() {
        for (said, text) in [
            (json!({"progress": 2, "total": 5, "message": " two\n"}), "40 % (2 of 5), two"),
            (json!({"progress": 0.333, "total": 1}), "33 % (0.33 of 1)"),
            (json!({"progress": 7, "total": 5}), "100 % (7 of 5)"),
            (json!({"progress": 100}), "100"),
            (json!({"progress": 3, "total": 0}), "3"),
            (json!({"progress": "x", "message": "on it"}), "on it"),
            (json!(null), ""),
        ] {
            assert_eq!(reported(&said), text, "{said}");
        }
    }
}
