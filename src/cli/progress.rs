//! One line on standard error that says what is being waited for, when a
//! person is looking and it takes a while; gone when the wait is over.

use crate::proc::thread;
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
    done: bool,
}

impl Progress {
    /// Starts the clock. Where standard error is no terminal nothing will be written.
    pub fn start(text: &str) -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { shared: None, writer: None };
        }
        let shared =
            Arc::new((Mutex::new(State { text: text.to_owned(), ..State::default() }), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let writer = thread::spawn("progress", move || write(&theirs)).ok();
        Progress { shared: Some(shared), writer }
    }
    /// Replaces the text.
    pub fn say(&self, text: &str) {
        if let Some(shared) = &self.shared {
            let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.text = text.to_owned();
            state.changed = true;
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
    while !state.done && Instant::now() < from {
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
        let line = super::table::fit(&super::table::one_line(&format!("mcpx: {}…", state.text)), width);
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
