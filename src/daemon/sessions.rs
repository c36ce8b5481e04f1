//! The sessions that last longer than a run: who used which when, what keeps one
//! although nobody uses it, and when one is over. What a session runs is the
//! pool's; this knows its key alone.
//!
//! The lock is held for look-ups, never while anything is started or stopped.

use super::runs::Runs;
use super::state::Daemon;
use crate::api::wire::SessionRow;
use crate::error::{Error, Kind, Result};
use crate::pool::Caller;
use crate::settings::{self, duration_text};
use crate::util;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many sessions are remembered; the one that was unused for longest gives way to a new one.
const REMEMBERED: usize = 4096;

/// The longest key of a session, in bytes; it stands in paths, listings and file names.
const LONGEST_KEY: usize = 200;

/// What is known of one session.
struct Session {
    /// Milliseconds since 1970.
    created_at: u64,
    used: Instant,
    kept: Option<Kept>,
}

/// Until when a session stays although nobody uses it.
struct Kept {
    until: Instant,
    /// The same in milliseconds since 1970.
    at: u64,
}

impl Session {
    fn new() -> Session {
        Session { created_at: util::now_ms(), used: Instant::now(), kept: None }
    }

    fn is_kept(&self) -> bool {
        self.kept.as_ref().is_some_and(|k| k.until > Instant::now())
    }
}

/// The sessions with a key that somebody chose. One that was made for a run alone ends with it and is not here.
#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, Session>>);

impl Sessions {
    /// Notes whose session is being used: the caller's and the one that spawned it, as far as they
    /// do not end with a run. A command inside a script names the session of the script's run.
    pub fn touch_of(&self, caller: &Caller, runs: &Runs) {
        let own = Some(caller.session.as_str()).filter(|_| !caller.ephemeral);
        let lasting = |session: &&str| !session.is_empty() && !runs.is_of_a_run(session);
        for session in own.into_iter().chain(caller.parent_session_id.as_deref()).filter(lasting) {
            self.touch(session);
        }
    }

    fn touch(&self, key: &str) {
        let mut all = self.lock();
        match all.get_mut(key) {
            Some(session) => session.used = Instant::now(),
            None => insert(&mut all, key),
        }
    }

    /// Opens a session that is not there yet.
    ///
    /// # Errors
    /// `Usage` for a key that cannot be one, or that is taken.
    fn open(&self, key: &str) -> Result<()> {
        check(key)?;
        let mut all = self.lock();
        if all.contains_key(key) {
            return Err(Error::new(Kind::Usage, format!("there is a session \"{key}\" already"))
                .hint(format!("join it with --session {key}, or end it first: mcpx session stop {key}")));
        }
        insert(&mut all, key);
        Ok(())
    }

    /// Keeps a session for so long from now; zero no longer.
    fn keep(&self, key: &str, ttl: Duration) {
        let mut all = self.lock();
        if !all.contains_key(key) {
            insert(&mut all, key);
        }
        if let Some(session) = all.get_mut(key) {
            let at = util::now_ms().saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
            session.kept = (!ttl.is_zero()).then(|| Kept { until: Instant::now() + ttl, at });
            session.used = Instant::now();
        }
    }

    fn forget(&self, key: &str) -> bool {
        self.lock().remove(key).is_some()
    }

    /// Nothing of the session may be stopped for being idle.
    pub fn is_kept(&self, key: &str) -> bool {
        self.lock().get(key).is_some_and(Session::is_kept)
    }

    /// Some session is waited for.
    pub fn any_kept(&self) -> bool {
        self.lock().values().any(Session::is_kept)
    }

    /// Ends, in the background, the sessions that nobody used for so long; zero is never.
    pub fn expire(&self, daemon: &Daemon, limit: Duration) {
        if self.lock().is_empty() {
            return;
        }
        let open = daemon.runs.by_session();
        let now = Instant::now();
        let mut over = Vec::new();
        let mut all = self.lock();
        for (key, session) in all.iter_mut() {
            session.kept.take_if(|kept| kept.until <= now);
            // Its time begins when the last run has ended.
            if open.contains_key(key) {
                session.used = now;
            }
            if !limit.is_zero() && session.kept.is_none() && now.duration_since(session.used) >= limit {
                over.push(key.clone());
            }
        }
        drop(all);
        if over.is_empty() {
            return;
        }
        // A call may take longer than that, and is a use for as long as it lasts.
        for instance in daemon.pool.status().iter().filter(|i| i.idle < limit) {
            over.retain(|key| instance.session.as_ref() != Some(key));
        }
        let mut all = self.lock();
        over.retain(|key| all.get(key).is_some_and(|s| s.used.elapsed() >= limit && !s.is_kept()));
        for key in &over {
            all.remove(key);
        }
        drop(all);
        daemon.end_sessions(over);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn insert(all: &mut HashMap<String, Session>, key: &str) {
    if all.len() >= REMEMBERED {
        let oldest =
            all.iter().filter(|(_, s)| !s.is_kept()).min_by_key(|(_, s)| s.used).map(|(k, _)| k.clone());
        oldest.and_then(|oldest| all.remove(&oldest));
    }
    all.insert(key.to_owned(), Session::new());
}

/// What a person may call a session.
fn check(key: &str) -> Result<()> {
    let wrong = |what: &str| Err(Error::new(Kind::Usage, format!("a session's name {what}")));
    if key.is_empty() {
        return wrong("may not be empty");
    }
    if key.len() > LONGEST_KEY {
        return wrong(&format!("may have {LONGEST_KEY} bytes at most"));
    }
    if key.chars().any(char::is_control) {
        return wrong("may not hold control characters");
    }
    Ok(())
}

/// Every session: those that are remembered, those of open runs, and those that own something that runs.
pub fn list(daemon: &Daemon) -> Vec<SessionRow> {
    let mut rows: BTreeMap<String, SessionRow> = BTreeMap::new();
    {
        let all = daemon.sessions.lock();
        for (key, session) in all.iter() {
            let row = SessionRow {
                key: key.clone(),
                created_at: Some(session.created_at),
                idle_ms: millis(session.used.elapsed()),
                kept_until: session.kept.as_ref().filter(|_| session.is_kept()).map(|k| k.at),
                ..SessionRow::default()
            };
            rows.insert(key.clone(), row);
        }
    }
    let unknown =
        |key: String| SessionRow { key, idle_ms: u64::MAX, ephemeral: true, ..SessionRow::default() };
    for (key, runs) in daemon.runs.by_session() {
        let row = rows.entry(key.clone()).or_insert_with(|| unknown(key));
        row.runs = runs;
        row.idle_ms = 0;
    }
    for instance in daemon.pool.status() {
        let Some(key) = instance.session.clone() else { continue };
        let row = rows.entry(key.clone()).or_insert_with(|| unknown(key));
        row.idle_ms = row.idle_ms.min(millis(instance.idle));
        row.instances.push(super::status::instance(instance));
    }
    rows.into_values().collect()
}

/// One session.
///
/// # Errors
/// `NotFound`, with the nearest name.
pub fn show(daemon: &Daemon, key: &str) -> Result<SessionRow> {
    let mut all = list(daemon);
    if let Some(at) = all.iter().position(|row| row.key == key) {
        return Ok(all.swap_remove(at));
    }
    let near = util::did_you_mean(key, all.iter().map(|row| row.key.as_str()));
    Err(Error::new(Kind::NotFound, format!("there is no session \"{key}\""))
        .hint(near.unwrap_or_else(|| "mcpx session list shows them; mcpx session new opens one".to_owned())))
}

/// Opens a session under a name, or under a key that nobody else has.
pub fn new(daemon: &Daemon, name: Option<&str>, ttl: Option<Duration>) -> Result<SessionRow> {
    let ttl = ttl.map(|ttl| keepable(daemon, ttl)).transpose()?;
    let key = match name {
        Some(name) => name.to_owned(),
        None => daemon.runs.mint("session"),
    };
    daemon.sessions.open(&key)?;
    if let Some(ttl) = ttl {
        daemon.sessions.keep(&key, ttl);
    }
    show(daemon, &key)
}

/// Ends a session; how many servers were stopped for it.
pub fn end(daemon: &Daemon, key: &str) -> Result<usize> {
    show(daemon, key)?;
    daemon.sessions.forget(key);
    Ok(daemon.pool.stop_session(key))
}

/// Keeps a session for so long from now, used or not.
pub fn keep(daemon: &Daemon, key: &str, ttl: Duration) -> Result<SessionRow> {
    let row = show(daemon, key)?;
    if row.ephemeral {
        return Err(Error::new(
            Kind::Usage,
            format!("the session \"{key}\" was made for one run and ends with it"),
        )
        .hint("mcpx session new opens one that lasts"));
    }
    daemon.sessions.keep(key, keepable(daemon, ttl)?);
    show(daemon, key)
}

fn keepable(daemon: &Daemon, ttl: Duration) -> Result<Duration> {
    let most = daemon.current().settings.get(&settings::SESSION_KEEP_MOST);
    if ttl > most {
        let (ttl, most) = (duration_text(ttl), duration_text(most));
        return Err(Error::new(Kind::Usage, format!("a session is kept for {most} at most, not for {ttl}"))
            .hint("session.keepMost sets the limit"));
    }
    Ok(ttl)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_opened_once_and_under_a_fit_name() {
        let sessions = Sessions::default();
        sessions.open("work").unwrap();
        let taken = sessions.open("work").unwrap_err();
        assert!(taken.hint_text().unwrap().contains("--session work"), "{taken}");
        for odd in ["", "a\nb", &"x".repeat(LONGEST_KEY + 1)] {
            assert_eq!(sessions.open(odd).unwrap_err().kind(), Kind::Usage, "{odd:?}");
        }
        assert!(sessions.forget("work") && !sessions.forget("work"));
    }

    #[test]
    fn what_is_kept_never_gives_way() {
        let sessions = Sessions::default();
        sessions.keep("kept", Duration::from_secs(60));
        assert!(sessions.is_kept("kept") && sessions.any_kept());
        for n in 0..=REMEMBERED {
            sessions.touch(&format!("s{n}"));
        }
        let all = sessions.lock();
        assert_eq!(all.len(), REMEMBERED);
        assert!(all.contains_key("kept") && !all.contains_key("s0"));
        drop(all);
        sessions.keep("kept", Duration::ZERO);
        assert!(!sessions.any_kept());
    }
}
