//! Hands what a script logs to the daemon's log, while the script runs and without
//! holding it up. Knows nothing of where the records are kept.

use crate::api::Client;
use crate::observe::log::Trace;
use crate::proc::thread;
use crate::script::LogRecord;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many records may wait for the daemon; a script that logs faster loses some, and is told how many in the log.
const ROOM: usize = 4096;

/// So many go into one request; the daemon takes a thousand.
const BATCH: usize = 500;

/// How long the end of a run waits for its last records to be taken.
const LAST_RECORDS: Duration = Duration::from_secs(2);

/// The way to the log of one run.
pub struct ScriptLog {
    client: Arc<Client>,
    ids: Value,
    lost: Arc<AtomicU64>,
    started: Mutex<Option<Started>>,
}

struct Started {
    records: SyncSender<Value>,
    end: Receiver<()>,
}

impl ScriptLog {
    /// For a run: nothing is started before there is a record.
    pub fn new(client: Arc<Client>, run: &str, session: &str, trace: &Trace) -> ScriptLog {
        let ids = json!({"run": run, "session": session, "trace": trace});
        ScriptLog { client, ids, lost: Arc::default(), started: Mutex::default() }
    }

    /// Takes a record.
    pub fn push(&self, record: &LogRecord) {
        let mut entry = json!({
            "level": record.level, "source": "script", "event": "script.log", "message": record.message,
        });
        let mut data = json!({});
        if let Some(fields) = &record.fields {
            data["fields"] = fields.clone();
        }
        if let Some(source) = &record.source {
            data["source"] = source.as_str().into();
        }
        entry["data"] = data;
        if let (Some(entry), Some(ids)) = (entry.as_object_mut(), self.ids.as_object()) {
            entry.extend(ids.clone());
        }
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.is_none() {
            *started = self.start();
        }
        let taken = started.as_ref().is_some_and(|started| started.records.try_send(entry).is_ok());
        if !taken {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn start(&self) -> Option<Started> {
        let (records, source) = sync_channel::<Value>(ROOM);
        let (done, end) = sync_channel(1);
        let (client, lost) = (self.client.clone(), self.lost.clone());
        thread::spawn("script-log", move || {
            while let Ok(first) = source.recv() {
                let batch: Vec<Value> =
                    std::iter::once(first).chain(source.try_iter().take(BATCH - 1)).collect();
                let count = batch.len() as u64;
                // A daemon that is gone, or of an older version, is no reason to disturb the script.
                if client.json("POST", "/v1/log", Some(&json!({"records": batch}))).is_err() {
                    lost.fetch_add(count, Ordering::Relaxed);
                }
            }
            let _ = done.send(());
        })
        .ok()?;
        Some(Started { records, end })
    }

    /// The run is over: waits a little until everything was taken, and says how much was not.
    pub fn finish(&self) {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Started { records, end }) = started else { return };
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            let mut told = json!({"level": "warn", "source": "script", "message": format!("{lost} records of the script were lost")});
            told["run"] = self.ids["run"].clone();
            let _ = records.try_send(told);
        }
        drop(records);
        if let Err(RecvTimeoutError::Timeout) = end.recv_timeout(LAST_RECORDS) {
            crate::log::debug("the daemon did not take the last records of the script");
        }
    }
}
