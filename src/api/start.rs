//! Starts a daemon: under a lock, and waiting for its word that it is ready. Knows
//! nothing of where else one may be found, nor of what a daemon does.

use super::client::Client;
use super::find::{Boot, by_key};
use super::info;
use super::lock::FileLock;
use crate::error::{Error, Kind, Result};
use crate::proc;
use crate::settings::{self, Declared as _, FlagValue};
use crate::util::{Env, digest};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How much of a failed daemon's log is shown.
const LOG_LINES: usize = 10;
/// How much of it is read for that.
const LOG_TAIL: u64 = 8 * 1024;
/// A daemon's word that it is ready is short; more is not one.
const MAX_READY: usize = 64 * 1024;
/// What belongs to one session, and is not for a daemon that outlives it.
const OF_ONE_SESSION: &[&str] =
    &["MCPX_SESSION", "MCPX_SESSION_ID", "MCPX_PARENT_SESSION_ID", "MCPX_TRACE_IDS", "MCPX_CALL_ID"];
/// What belongs to one run, where `MCPX_RUN` says that this is one: elsewhere some of these are a user's settings.
const OF_ONE_RUN: &[&str] = &[
    "MCPX_CHANNEL",
    "MCPX_EPHEMERAL",
    "MCPX_ENDPOINT",
    "MCPX_INPUT",
    "MCPX_RUN",
    "MCPX_SETTINGS",
    "MCPX_SOCKET",
    "MCPX_TRANSPORT_BEARER_TOKEN",
];

/// The environment of something that outlives the run that this process may be part of.
pub fn without_run(env: &Env) -> Env {
    let mut own = env.clone();
    // What a server starts for everybody is not to end with the server.
    own.remove(proc::MARK);
    OF_ONE_SESSION.iter().for_each(|name| own.remove(name));
    if env.get("MCPX_RUN").is_some() {
        OF_ONE_RUN.iter().for_each(|name| own.remove(name));
    }
    own
}

/// One command starts a daemon for a set of files, whatever their content is.
pub(super) fn start_lock(boot: &Boot, timeout: Duration, progress: &dyn Fn(&str)) -> Result<FileLock> {
    let paths = boot.config.sources.iter().map(|s| s.path.as_os_str().as_bytes());
    let key = boot.config.key.as_bytes();
    let name = if boot.config.sources.is_empty() { digest([key], 16) } else { digest(paths, 16) };
    let path = boot.dirs.state.join(format!("start-{name}.lock"));
    let fail = |what: String| {
        Error::new(Kind::Unavailable, format!("locking {}: {what}", path.display()))
            .hint("set MCPX_STATE_DIR to a directory that mcpx may write to and lock files in")
    };
    if let Some(lock) = FileLock::try_now(&path).map_err(|e| fail(e.to_string()))? {
        return Ok(lock);
    }
    progress("waiting for another command that is starting the daemon");
    // The holder waits `timeout` for its daemon; a little more lets it say so.
    match FileLock::wait(&path, timeout + timeout / 2) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(fail("another command has held it for too long".into())),
        Err(e) => Err(fail(e.to_string())),
    }
}

/// Starts a daemon and waits for its word.
pub(super) fn start(boot: &Boot, timeout: Duration, progress: &dyn Fn(&str)) -> Result<Client> {
    progress("starting the daemon");
    let log = info::log_path(boot.dirs, &boot.config.key);
    let log_before = std::fs::metadata(&log).map_or(0, |m| m.len());
    let env = without_run(boot.env);
    let mut args = vec!["daemon".into(), "--detached".into(), "--dir".into(), boot.dir.into()];
    if !boot.settings.get(&settings::PATHS_CONFIG_FILE).is_empty()
        && let Some(source) = boot.config.sources.first()
    {
        args.extend(["--config".into(), source.path.as_os_str().to_owned()]);
    }
    args.extend(flags_for_daemon(boot.flags));
    let child = proc::spawn(proc::Spawn {
        program: boot.exe.clone(),
        args,
        env: env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        cwd: Some("/".into()),
        stdin: proc::Io::Null,
        stdout: proc::Io::Piped,
        stderr: proc::Io::Null,
        fds: Vec::new(),
        own_group: true,
        own_session: true,
        die_with_parent: false,
        marked: false,
    })
    .map_err(|e| Error::new(Kind::Unavailable, format!("starting the daemon {}: {e}", boot.exe.display())))?;
    let word = match child.take_stdout() {
        Some(out) => ready_line(out, Instant::now() + timeout),
        None => Word::Ended,
    };
    let trouble = match word {
        Word::Said(line) => return said(boot, &line).inspect(Client::was_started),
        Word::Ended => {
            let exit = child.wait();
            Error::new(Kind::Unavailable, format!("starting the daemon: it ended at once ({exit})"))
        }
        Word::Nothing => {
            child.signal_group(libc::SIGKILL);
            Error::new(Kind::Unavailable, format!("starting the daemon: it was not ready within {timeout:?}"))
        }
    };
    let tail = log_tail(&log, log_before);
    Err(match tail.is_empty() {
        true => trouble,
        false => trouble.hint(format!("the end of its log ({}):\n{tail}", log.display())),
    })
}

/// The flags that are as much the daemon's as the command's. A secret has no flag.
fn flags_for_daemon(flags: &[FlagValue]) -> impl Iterator<Item = OsString> {
    let theirs = flags.iter().filter(|flag| {
        settings::declared(&flag.key)
            .is_some_and(|d| d.scope() == settings::Scope::Daemon || d.key() == settings::PRESET.key())
    });
    theirs.map(|flag| {
        let name =
            settings::declared(&flag.key).and_then(|d| d.flag_names().into_iter().next()).unwrap_or_default();
        format!("{name}={}", flag.text).into()
    })
}

enum Word {
    Said(Vec<u8>),
    Ended,
    Nothing,
}

fn ready_line(mut out: File, deadline: Instant) -> Word {
    let mut line = Vec::new();
    let mut block = [0u8; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match proc::poll_readable(&[out.as_fd()], Some(left)) {
            Ok(ready) if ready.contains(&true) => {}
            _ => return Word::Nothing,
        }
        match out.read(&mut block) {
            Ok(0) => return Word::Ended,
            Ok(n) => line.extend_from_slice(&block[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Word::Ended,
        }
        if let Some(end) = line.iter().position(|b| *b == b'\n') {
            line.truncate(end);
            return Word::Said(line);
        }
        if line.len() > MAX_READY {
            return Word::Nothing;
        }
    }
}

/// `{"ready":{"key":…}}` or `{"error":{…}}`.
fn said(boot: &Boot, line: &[u8]) -> Result<Client> {
    let word: Value = serde_json::from_slice(line).unwrap_or_default();
    if let Some(error) = word.get("error") {
        // Somebody may have started one by hand at the same time.
        return match by_key(boot, &boot.config.key) {
            Ok(Some(client)) => Ok(client),
            _ => Err(Error::from_json(error)),
        };
    }
    // The files may have changed since we read them: the daemon's key counts.
    let key = word.pointer("/ready/key").and_then(Value::as_str).unwrap_or(&boot.config.key);
    by_key(boot, key)?.ok_or_else(|| {
        Error::new(
            Kind::Unavailable,
            "starting the daemon: it said that it was ready, and then could not be reached",
        )
    })
}

fn log_tail(path: &Path, from: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        // A log that shrank was begun anew.
        let from = if length < from { 0 } else { from };
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(LOG_TAIL))))?;
        let mut text = Vec::new();
        file.take(LOG_TAIL).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::scratch::Scratch;
    use crate::config::{self, Config, LoadOptions};
    use crate::paths::Dirs;
    use crate::settings::Settings;
    use std::cell::RefCell;
    use std::os::unix::fs::OpenOptionsExt;

    struct Place {
        dir: Scratch,
        env: Env,
        dirs: Dirs,
        config: Config,
    }

    impl Place {
        fn new() -> Place {
            let dir = Scratch::new("find");
            let env = Env::from_pairs([
                ("HOME", dir.path("")),
                ("MCPX_STATE_DIR", dir.path("s")),
                ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
            ]);
            let dirs = Dirs::from_env(&env, proc::uid()).unwrap();
            std::fs::write(dir.path(".mcpx.json"), "{}").unwrap();
            let uid = proc::uid();
            let here = dir.path("");
            let config =
                config::load(&LoadOptions { explicit: None, dir: &here, env: &env, dirs: &dirs, uid })
                    .unwrap();
            Place { dir, env, dirs, config }
        }
        /// What comes of starting a daemon that is this shell script.
        fn start(&self, script: &str, settings: &[(&str, &str)]) -> Result<Client> {
            use std::io::Write;
            let exe = self.dir.path("daemon.sh");
            let _ = std::fs::remove_file(&exe);
            let mut file =
                std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(&exe).unwrap();
            write!(file, "#!/bin/sh\n{script}\n").unwrap();
            drop(file);
            let mut env = self.env.clone();
            settings.iter().for_each(|(name, value)| env.set(*name, *value));
            let settings = Settings::resolve(self.config.settings_layers(&env)).unwrap();
            let dir = self.dir.path("");
            let (config, dirs) = (&self.config, &self.dirs);
            let boot = Boot { config, settings: &settings, dirs, env: &env, exe, dir: &dir, flags: &[] };
            let told = RefCell::new(Vec::new());
            let outcome = loop {
                told.borrow_mut().clear();
                let outcome = Client::find_or_start(&boot, &|text| told.borrow_mut().push(text.to_owned()));
                // A child of another test, forked while the script was open for writing, keeps it busy until it execs.
                if !outcome.as_ref().is_err_and(|e| e.message().contains("Text file busy")) {
                    break outcome;
                }
            };
            if env.get("MCPX_DAEMON_AUTOSTART").is_none() {
                assert_eq!(*told.borrow(), ["starting the daemon"]);
            }
            assert_eq!(info::list(dirs).len(), 0);
            outcome
        }
        fn error(&self, script: &str, settings: &[(&str, &str)]) -> Error {
            self.start(script, settings).err().expect("nothing was started")
        }
    }

    #[test]
    fn a_daemon_that_does_not_come_up_says_why() {
        let place = Place::new();
        let error = place.error("exit 3", &[]);
        assert!(error.message().contains("exit code 3") && error.hint_text().is_none(), "{error}");
        let log = info::log_path(&place.dirs, &place.config.key);
        std::fs::write(&log, "an old line\n").unwrap();
        let error = place.error(&format!("echo the reason >> {}; exit 3", log.display()), &[]);
        let hint = error.hint_text().unwrap();
        assert!(hint.contains("the reason") && !hint.contains("an old line"), "{hint}");
        let word = r#"echo '{"error":{"kind":"refused","message":"no"}}'"#;
        let error = place.error(word, &[]);
        assert_eq!((error.kind(), error.message()), (Kind::Refused, "no"));
        let error = place.error(r#"echo '{"ready":{"key":"x"}}'"#, &[]);
        assert!(error.message().contains("could not be reached"), "{error}");
        // It is detached: no input, its own session, and the root directory.
        let check = r#"[ "$(pwd)" = / ] && ! read x && echo '{"error":{"kind":"config","message":"as it should be"}}'"#;
        assert_eq!(place.error(check, &[]).message(), "as it should be");
        // Only the lock file's directory is left behind, without the lock.
        let left: Vec<_> =
            std::fs::read_dir(&place.dirs.state).unwrap().flatten().map(|e| e.path()).collect();
        assert_eq!(left, [log]);
    }

    #[test]
    fn a_daemon_that_says_nothing_is_given_up_and_killed() {
        let place = Place::new();
        let pid = place.dir.path("pid");
        let script = format!("echo $$ > {}; exec sleep 1000", pid.display());
        let error = place.error(&script, &[("MCPX_AUTOSTART_TIMEOUT", "1s")]);
        assert!(error.message().contains("not ready within"), "{error}");
        let pid: u32 = std::fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while proc::start_ticks(pid).is_some_and(|ticks| proc::alive(pid, ticks)) {
            assert!(Instant::now() < deadline, "process {pid} stays");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_outlives_a_run_has_nothing_of_it() {
        let all = OF_ONE_SESSION.iter().chain(OF_ONE_RUN).map(|name| (*name, "x"));
        let inside = without_run(&Env::from_pairs(all.clone()));
        assert_eq!(inside.iter().count(), 0);
        // Outside of a run some of them are a user's settings.
        let outside = without_run(&Env::from_pairs(all.filter(|(name, _)| *name != "MCPX_RUN")));
        assert_eq!(outside.text("MCPX_TRANSPORT_BEARER_TOKEN"), Some("x"));
        assert_eq!(outside.text("MCPX_SESSION"), None);
    }

    #[test]
    fn what_is_not_to_be_started_is_not() {
        let place = Place::new();
        let error = place.error("exit 9", &[("MCPX_DAEMON_AUTOSTART", "false")]);
        assert!(error.message().contains("no daemon is running"), "{error}");
        assert!(!place.dirs.state.exists());
    }

    #[test]
    fn a_named_daemon_is_the_only_one_tried() {
        let place = Place::new();
        let missing = place.dir.path("none.sock");
        let mut env = place.env.clone();
        env.set("MCPX_SOCKET", missing.as_os_str());
        let settings = Settings::resolve(place.config.settings_layers(&env)).unwrap();
        let dir = place.dir.path("");
        let exe = "/bin/false".into();
        let boot = Boot {
            config: &place.config,
            settings: &settings,
            dirs: &place.dirs,
            env: &env,
            exe,
            dir: &dir,
            flags: &[],
        };
        let error = Client::find_or_start(&boot, &|_| panic!("nothing is started")).err().unwrap();
        assert!(error.message().contains("none.sock"), "{error}");
        assert!(error.hint_text().unwrap().contains("daemon.socket"), "{error}");
    }
}
