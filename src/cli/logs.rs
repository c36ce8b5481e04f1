//! Where the log is read: in this machine's files, or with the daemon that the
//! settings name, which has a log of its own. Knows nothing of how records are shown.

use super::cx::Cx;
use super::interrupt::Interrupt;
use super::out::note;
use super::progress::Progress;
use crate::api::{Client, uri};
use crate::error::{Kind, Result};
use crate::observe::log::chain::chain;
use crate::observe::log::stats::{About, report};
use crate::observe::log::{Follower, MOST, Query, Snapshot, dir, every, newest, unreadable};
use crate::proc::thread;
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How often the files are looked at for what came: fast enough for a person, and next to nothing to do.
const LOOK: Duration = Duration::from_millis(200);

/// Which records are wanted: for the files, and as a daemon is asked, whose clock its times are.
pub struct Asked {
    /// Made ready.
    pub query: Query,
    /// As it was typed: parameters and their values.
    pub said: Vec<(&'static str, String)>,
}

impl Asked {
    /// What is asked of a daemon.
    fn path(&self, path: &str, more: &str) -> String {
        let said = self.said.iter().map(|(name, value)| format!("&{name}={}", uri::encode(value, false)));
        format!("{path}?{more}{}", said.collect::<String>())
    }
}

/// Takes a record, and answers whether more are wanted.
pub type Each<'a> = &'a mut dyn FnMut(&str) -> Result<bool>;

/// Takes a record, or nothing when those at hand have all been given.
pub type Coming<'a> = &'a mut dyn FnMut(Option<&str>) -> Result<bool>;

/// A log that can be asked.
pub enum Logs {
    /// That of this machine's daemons.
    Files(PathBuf, Arc<Snapshot>),
    /// That of the daemon which is named.
    Daemon(Box<Client>, String),
}

impl Logs {
    /// The log that the settings mean.
    ///
    /// # Errors
    /// `Unreadable` when the files cannot be read; `Unavailable` when the daemon that is named does not answer.
    pub fn open(cx: &Cx) -> Result<Logs> {
        if let Some((client, endpoint)) = cx.named_elsewhere(&Progress::start("asking the daemon"))? {
            return Ok(Logs::Daemon(Box::new(client), endpoint));
        }
        let place = dir(&cx.dirs()?);
        let snapshot = Snapshot::take(&place).map_err(|e| unreadable(&place, &e))?;
        Ok(Logs::Files(place, Arc::new(snapshot)))
    }

    /// What an id belongs to: a list of trees, one for each daemon.
    ///
    /// # Errors
    /// `Unreadable` when the log cannot be read.
    pub fn chain(&self, id: &str) -> Result<Value> {
        match self {
            Logs::Files(place, snapshot) => {
                json(&chain(snapshot, id, thread::spawn).map_err(|e| unreadable(place, &e))?)
            }
            Logs::Daemon(client, _) => {
                let path = format!("/v1/log/chain?id={}", uri::encode(id, false));
                Ok(client.json("GET", &path, None)?["tree"].take())
            }
        }
    }

    /// Counts, with at most so many rows; 0: all.
    ///
    /// # Errors
    /// `Unreadable` when the log cannot be read.
    pub fn statistics(&self, about: About, asked: &Asked, limit: usize) -> Result<Value> {
        match self {
            Logs::Files(place, snapshot) => {
                let limit = if limit == 0 { usize::MAX } else { limit };
                let counted = report(snapshot, about, &asked.query, limit, thread::spawn);
                json(&counted.map_err(|e| unreadable(place, &e))?)
            }
            Logs::Daemon(client, _) => {
                let about = About::ALL.iter().find(|(one, _)| *one == about).map_or("", |(_, word)| *word);
                client.json("GET", &asked.path("/v1/stats", &format!("about={about}&limit={limit}")), None)
            }
        }
    }

    /// The newest so many records, or all for 0, the oldest first.
    ///
    /// # Errors
    /// `Unreadable` when the log cannot be read; what `each` fails with.
    pub fn lines(&self, asked: &Asked, limit: usize, each: Each<'_>) -> Result<()> {
        let (place, snapshot) = match self {
            Logs::Files(place, snapshot) => (place, snapshot),
            Logs::Daemon(client, _) => {
                let path = asked.path("/v1/log", &format!("lines=1&limit={limit}"));
                let mut each = |line: Option<&str>| line.map_or(Ok(true), &mut *each);
                return stream(client, &path, &mut each).map(|_| ());
            }
        };
        if limit > 0 {
            for line in
                newest(snapshot, &asked.query, limit, thread::spawn).map_err(|e| unreadable(place, &e))?
            {
                if !each(&line)? {
                    break;
                }
            }
            return Ok(());
        }
        let mut failed = None;
        every(snapshot, &asked.query, &mut |line| match each(line) {
            Ok(more) => more,
            Err(e) => {
                failed = Some(e);
                false
            }
        })
        .map_err(|e| unreadable(place, &e))?;
        failed.map_or(Ok(()), Err)
    }

    /// The newest so many records, and then what comes, until a signal, whose exit code is returned.
    ///
    /// # Errors
    /// As [`Logs::lines`].
    pub fn follow(self, asked: &Asked, limit: usize, each: Coming<'_>) -> Result<u8> {
        let (place, snapshot) = match self {
            Logs::Files(place, snapshot) => (place, snapshot),
            Logs::Daemon(client, _) => {
                let handle = client.shutdown_handle()?;
                let interrupt = Interrupt::listen(move || handle.interrupt())?;
                let path = asked.path("/v1/log", &format!("follow=1&limit={limit}"));
                return match stream(&client, &path, each) {
                    Err(e) if e.kind() == Kind::Cancelled => Ok(interrupt.exit_code().unwrap_or(130)),
                    Err(e) => Err(e),
                    Ok(true) => {
                        note("the daemon has stopped");
                        Ok(0)
                    }
                    Ok(false) => Ok(0),
                };
            }
        };
        let limit = if limit == 0 { MOST } else { limit };
        for line in
            newest(&snapshot, &asked.query, limit, thread::spawn).map_err(|e| unreadable(&place, &e))?
        {
            if !each(Some(&line))? {
                return Ok(0);
            }
        }
        each(None)?;
        let mut follower = Follower::after(&place, &snapshot);
        drop(snapshot);
        let (stop, stopped) = mpsc::channel();
        let interrupt = Interrupt::listen(move || {
            let _ = stop.send(());
        })?;
        loop {
            let over = stopped.recv_timeout(LOOK).is_ok();
            // Once more after the signal, so that what came before it is shown.
            let mut wanted = true;
            for line in follower.look(&asked.query).map_err(|e| unreadable(&place, &e))? {
                wanted = each(Some(&line))?;
            }
            if over {
                return Ok(interrupt.exit_code().unwrap_or(130));
            }
            if !(each(None)? && wanted) {
                return Ok(0);
            }
        }
    }

    /// Why nothing was found, for a person.
    ///
    /// # Errors
    /// When the daemon that is named does not answer.
    pub fn nothing(&self) -> Result<String> {
        let (empty, place) = match self {
            Logs::Files(place, snapshot) => (snapshot.size() == 0, place.display().to_string()),
            Logs::Daemon(client, endpoint) => {
                let any = client.json("GET", "/v1/log?limit=1", None)?;
                (any["records"].as_array().is_none_or(Vec::is_empty), endpoint.clone())
            }
        };
        let why = if empty { "the log is empty" } else { "no record of the log is like that" };
        Ok(format!("{why} ({place})"))
    }
}

/// Reads records, one a line, as they come, and answers whether they ended by themselves.
fn stream(client: &Client, path: &str, each: Coming<'_>) -> Result<bool> {
    let mut pending = Vec::new();
    let mut left = None;
    let outcome = client.stream("GET", path, None, &mut |chunk| {
        pending.extend_from_slice(chunk);
        let mut from = 0;
        let mut more = Ok(true);
        while let Some(end) = pending[from..].iter().position(|b| *b == b'\n') {
            let line = String::from_utf8_lossy(&pending[from..from + end]);
            from += end + 1;
            if !line.is_empty() {
                more = each(Some(&line));
            }
            if !matches!(more, Ok(true)) {
                break;
            }
        }
        pending.drain(..from);
        if matches!(more, Ok(true)) {
            more = each(None);
        }
        if matches!(more, Ok(true)) {
            return Ok(());
        }
        left = Some(more);
        Err(io::ErrorKind::BrokenPipe.into())
    });
    match (left, outcome) {
        // Whoever reads has enough.
        (Some(more), _) => more,
        (None, outcome) => outcome.map(|_| true),
    }
}

fn json(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|e| super::internal(format!("writing what the log holds: {e}")))
}
