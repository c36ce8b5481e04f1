//! Finds the daemon of a configuration, or starts one: under a lock, and
//! waiting for its word that it is ready. Knows nothing of what a daemon does.

use super::client::{Client, dial};
use super::info;
use super::lock::FileLock;
use super::remote::{Access, Remote};
use super::wire::DaemonInfo;
use crate::config::Config;
use crate::error::{Error, Kind, Result};
use crate::paths::{self, Dirs};
use crate::proc;
use crate::settings::{self, Declared as _, FlagValue, Secret, Settings, Source};
use crate::util::{Env, digest};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
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

/// What is needed to find a daemon, or to start one.
pub struct Boot<'a> {
    /// The configuration as this command read it.
    pub config: &'a Config,
    /// The settings of this command.
    pub settings: &'a Settings,
    /// Where state is kept.
    pub dirs: &'a Dirs,
    /// The environment that a daemon started here gets.
    pub env: &'a Env,
    /// The mcpx binary.
    pub exe: PathBuf,
    /// The directory that the configuration was searched from, absolute.
    pub dir: &'a Path,
    /// The flags of this command; those of the daemon's go to a daemon that is started here.
    pub flags: &'a [FlagValue],
}

/// Every daemon that left an info file: what it says, whether the daemon is
/// alive, and how that is known.
pub fn daemons(dirs: &Dirs) -> Vec<(DaemonInfo, bool, String)> {
    info::list(dirs)
        .into_iter()
        // Under the names that it had before an edit a daemon is not another one.
        .filter(|(path, found)| *path == info::info_path(dirs, &found.key))
        .map(|(_, found)| {
            let (live, why) = info::liveness(dirs, &found);
            (found, live, why)
        })
        .collect()
}

impl Client {
    /// The daemon that serves the configuration, if it runs. One that serves the
    /// same files in an older state is asked to read them again.
    pub fn find(boot: &Boot) -> Result<Option<Client>> {
        if let Some(named) = named(boot)? {
            return Ok(Some(named));
        }
        if let Some(client) = by_key(boot, &boot.config.key)? {
            return Ok(Some(client));
        }
        by_sources(boot)
    }

    /// A running daemon over exactly these files, as it is: for when they can't be read.
    pub fn find_over(dirs: &Dirs, sources: &[PathBuf]) -> Option<Client> {
        let wanted = sources.iter().map(PathBuf::as_path).collect();
        over_sources(dirs, wanted).into_iter().find_map(|found| Client::connect(found).ok())
    }

    /// As [`Client::find`], and starts a daemon when there is none. `progress` is told what is being waited for.
    pub fn find_or_start(boot: &Boot, progress: &dyn Fn(&str)) -> Result<Client> {
        if let Some(client) = Client::find(boot)? {
            return Ok(client);
        }
        if !boot.settings.get(&settings::DAEMON_AUTOSTART) {
            return Err(Error::new(Kind::Unavailable, "no daemon is running for this configuration")
                .hint("start one with `mcpx daemon`, or set daemon.autostart to true"));
        }
        let timeout = boot.settings.get(&settings::AUTOSTART_TIMEOUT);
        paths::ensure_private(&boot.dirs.state, proc::uid())?;
        let lock = start_lock(boot, timeout, progress)?;
        // Whoever held the lock before may have started it.
        let outcome = match Client::find(boot) {
            Ok(Some(client)) => Ok(client),
            Ok(None) => start(boot, timeout, progress),
            Err(e) => Err(e),
        };
        lock.remove();
        outcome
    }
}

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

/// Where a setting says that the daemon is.
enum Named {
    /// At a unix socket, by that setting.
    Socket(&'static str, PathBuf),
    /// At an HTTP address.
    Http(String),
}

/// The setting that decides, if one does: of `daemon.socket` and `daemon.endpoint` the one
/// that was said closer to the command. A socket in a file is where that configuration's own daemon
/// listens, which is found and started like any other.
fn where_named(settings: &Settings) -> Option<Named> {
    const FILE: u8 = 1; // a rank, below which nobody said anything
    let rank = |key: &str| {
        let said = settings.explain(key).filter(|r| !r.value.text().is_empty());
        said.map(|r| match r.source {
            Source::Default => 0,
            Source::File(..) => FILE,
            Source::Env(_) => 2,
            Source::Preset(..) => 3,
            Source::Flag(_) => 4,
            Source::Runtime => 5,
        })
    };
    let socket = rank("daemon.socket").filter(|rank| *rank > FILE);
    let endpoint = rank("daemon.endpoint");
    // A script is told both; the socket is the nearer way.
    if socket.is_some() && socket >= endpoint {
        return Some(Named::Socket("daemon.socket", settings.get(&settings::DAEMON_SOCKET).into()));
    }
    endpoint?;
    let endpoint = settings.get(&settings::DAEMON_ENDPOINT);
    Some(match endpoint.strip_prefix("unix://") {
        Some(path) => Named::Socket("daemon.endpoint", path.into()),
        None => Named::Http(endpoint),
    })
}

/// Whether the settings name a daemon whose servers are to be used instead of those
/// configured here, and perhaps on another machine.
pub fn is_elsewhere(settings: &Settings) -> bool {
    matches!(where_named(settings), Some(Named::Http(_) | Named::Socket("daemon.endpoint", _)))
}

/// Whether the settings name a daemon, so that none is looked for.
pub fn is_named(settings: &Settings) -> bool {
    where_named(settings).is_some()
}

/// Whether the settings name a daemon that is reached over HTTP.
pub fn is_far(settings: &Settings) -> bool {
    matches!(where_named(settings), Some(Named::Http(_)))
}

/// The daemon that a setting names, which is the only one then.
fn named(boot: &Boot) -> Result<Option<Client>> {
    let (setting, path) = match where_named(boot.settings) {
        None => return Ok(None),
        Some(Named::Http(endpoint)) => return far(boot, &endpoint).map(Some),
        Some(Named::Socket(setting, path)) => (setting, path),
    };
    match dial(&path) {
        Ok(stream) => {
            Ok(Some(Client::over(stream, DaemonInfo { schema: 1, socket: path, ..Default::default() })))
        }
        Err(e) => {
            Err(Error::new(Kind::Unavailable, format!("connecting to the daemon at {}: {e}", path.display()))
                .hint(format!(
                    "{setting} names it, so no other is tried; unset it to use this directory's own"
                )))
        }
    }
}

/// A daemon at an HTTP address.
fn far(boot: &Boot, endpoint: &str) -> Result<Client> {
    Remote::new(Access {
        endpoint,
        token: token_for(boot, endpoint),
        env: boot.env,
        ca: &boot.settings.get(&settings::TRANSPORT_CA_FILE),
        dial: boot.settings.get(&settings::DAEMON_CONNECT_TIMEOUT),
    })
    .map(Client::remote)
}

/// The token for an address: what is configured, else that of a daemon of ours which listens there.
fn token_for(boot: &Boot, endpoint: &str) -> Secret {
    let of_run = |name: &str| boot.env.text("MCPX_RUN").and(boot.env.text(name));
    let configured = boot.settings.get(&settings::TRANSPORT_BEARER_TOKEN);
    // The token of the run that we are part of is for that run's daemon alone.
    let of_another = of_run("MCPX_TRANSPORT_BEARER_TOKEN") == Some(configured.reveal())
        && of_run("MCPX_ENDPOINT") != Some(endpoint);
    if !configured.is_empty() && !of_another {
        return configured;
    }
    let same = |found: &DaemonInfo| found.endpoint == endpoint.trim_end_matches('/');
    let ours = info::list(boot.dirs).into_iter().map(|(_, found)| found).find(same);
    ours.map(|found| Secret::new(found.token)).unwrap_or_default()
}

/// The daemon with that key. Connecting is the check: nothing is asked.
fn by_key(boot: &Boot, key: &str) -> Result<Option<Client>> {
    let path = info::info_path(boot.dirs, key);
    let mut last = None;
    // Twice: between reading the file and connecting the daemon may have moved.
    for _ in 0..2 {
        let Some(found) = info::read(&path)? else { return Ok(None) };
        match dial(&found.socket) {
            // It has followed an edit since it had this key. Our configuration may be older than
            // that edit, or undo it: only reading again tells.
            Ok(stream) if found.key != key => return followed(boot, Client::over(stream, found)),
            Ok(stream) => return Ok(Some(Client::over(stream, found))),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Err(Error::new(
                    Kind::Refused,
                    format!("connecting to the daemon at {}: {e}", found.socket.display()),
                ));
            }
            Err(_) if last.as_ref() == Some(&found.socket) => break,
            Err(_) => last = Some(found.socket),
        }
    }
    Ok(None)
}

/// What the live daemons over exactly these files say of themselves, the newest first.
fn over_sources(dirs: &Dirs, mut wanted: Vec<&Path>) -> Vec<DaemonInfo> {
    wanted.sort_unstable();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut candidates: Vec<DaemonInfo> = info::list(dirs)
        .into_iter()
        .map(|(_, found)| found)
        .filter(|found| {
            let mut sources: Vec<&Path> = found.sources.iter().map(PathBuf::as_path).collect();
            sources.sort_unstable();
            sources == wanted && info::liveness(dirs, found).0
        })
        .collect();
    candidates.sort_by_key(|found| std::cmp::Reverse(found.started_at));
    candidates
}

/// A live daemon over the same set of files, asked to read them again.
fn by_sources(boot: &Boot) -> Result<Option<Client>> {
    let wanted: Vec<&Path> = boot.config.sources.iter().map(|s| s.path.as_path()).collect();
    let candidates = over_sources(boot.dirs, wanted);
    for found in candidates {
        let Ok(client) = Client::connect(found) else { continue };
        if let Some(client) = followed(boot, client)? {
            return Ok(Some(client));
        }
    }
    Ok(None)
}

/// Has a daemon read its files again, and returns it under the names that it has
/// then; none when it does not answer.
fn followed(boot: &Boot, client: Client) -> Result<Option<Client>> {
    client.set_timeout(Some(boot.settings.get(&settings::AUTOSTART_TIMEOUT)));
    let Ok(reloaded) = client.json("POST", "/v1/reload", None) else { return Ok(None) };
    client.set_timeout(None);
    // It has read files at least as new as ours, so whatever its key is now, it is the
    // one: insisting on ours could start a second daemon in a race with an edit.
    let key = reloaded.get("key").and_then(Value::as_str).unwrap_or_default();
    let now = info::read(&info::info_path(boot.dirs, key))?.filter(|now| now.pid == client.info().pid);
    if let Some(now) = now
        && let Ok(client) = Client::connect(now)
    {
        return Ok(Some(client));
    }
    Ok(Some(client))
}

/// One command starts a daemon for a set of files, whatever their content is.
fn start_lock(boot: &Boot, timeout: Duration, progress: &dyn Fn(&str)) -> Result<FileLock> {
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
fn start(boot: &Boot, timeout: Duration, progress: &dyn Fn(&str)) -> Result<Client> {
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
    use crate::config::{self, LoadOptions};
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
