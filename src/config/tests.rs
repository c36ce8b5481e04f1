//! Tests of loading as a whole: files on disk, the nearest that wins, and every fault.

use super::fields::{FIELDS, OPTIONS, SYNONYMS};
use super::*;
use crate::error::{Error, Kind};
use crate::paths::Dirs;
use crate::settings::{POOL_MAX, Settings};
use crate::util::Env;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A directory of one test's own, with a home in it; removed at the end.
pub(super) struct Scratch {
    root: PathBuf,
    work: PathBuf,
    dirs: Dirs,
    uid: u32,
}

impl Scratch {
    pub fn new() -> Scratch {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("mcpx-config-{}-{serial}", std::process::id()));
        fs::create_dir_all(root.join("w")).unwrap();
        let root = root.canonicalize().unwrap();
        let uid = fs::metadata(&root).unwrap().uid();
        let dirs = Dirs::from_env(&Env::from_pairs([("HOME", root.join("home"))]), uid).unwrap();
        Scratch { work: root.join("w"), root, dirs, uid }
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
    pub fn dir(&self, name: &str) -> PathBuf {
        fs::create_dir_all(self.path(name)).unwrap();
        self.path(name)
    }
    /// Writes a file that its owner alone may write, whatever the umask.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        path
    }
    /// Options for the directory `w`.
    pub fn options<'a>(&'a self, env: &'a Env) -> LoadOptions<'a> {
        LoadOptions { explicit: None, dir: &self.work, env, dirs: &self.dirs, uid: self.uid }
    }
    fn load(&self) -> Config {
        load(&self.options(&Env::default())).unwrap()
    }
    fn fault(&self) -> Error {
        load(&self.options(&Env::default())).unwrap_err()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Loads a text as `.mcpx.json`, with an empty environment.
pub(super) fn load_text(text: &str) -> Config {
    let scratch = Scratch::new();
    scratch.file("w/.mcpx.json", text);
    scratch.load()
}

fn names(config: &Config) -> Vec<&str> {
    config.servers.iter().map(|s| s.name.as_str()).collect()
}

fn command(config: &Config, name: &str) -> String {
    match &config.server(name).unwrap().transport {
        Transport::Stdio { command, .. } => command.clone(),
        Transport::Http { url, .. } => url.clone(),
    }
}

#[test]
fn no_file_at_all_is_an_empty_configuration_with_a_key_of_its_own() {
    let (a, b) = (Scratch::new(), Scratch::new());
    let config = a.load();
    assert!(config.servers.is_empty() && config.sources.is_empty() && config.path().is_none());
    assert_eq!(config.key.len(), 16);
    assert_eq!(config.key, a.load().key);
    assert_ne!(config.key, b.load().key);
}

#[test]
fn the_nearest_file_wins_a_server_and_a_setting() {
    let scratch = Scratch::new();
    scratch.file("w/.mcpx.json", r#"{"mcpServers": {"b": {"command": "near"}, "a": {"command": "a"}}}"#);
    scratch.file("w/.mcp.json", r#"{"mcpServers": {"b": {"command": "far"}, "c": {"command": "c"}}}"#);
    scratch.file(
        ".mcpx/config.json",
        r#"{"mcpServers": {"c": {"command": "x"}, "d": {"url": "http://h"}}, "pool": {"max": 3}}"#,
    );
    scratch.file("home/.config/mcpx/config.json", r#"{"pool": {"max": 4}}"#);
    scratch.file("home/.mcpx.json", r#"{"mcpServers": {"a": {"command": "home"}}}"#);
    let config = scratch.load();
    assert_eq!(names(&config), ["b", "a", "c", "d"]);
    let commands: Vec<String> = names(&config).iter().map(|n| command(&config, n)).collect();
    assert_eq!(commands, ["near", "a", "c", "http://h"]);
    let files: Vec<PathBuf> = config.sources.iter().map(|s| s.path.clone()).collect();
    let expected = ["w/.mcpx.json", "w/.mcp.json", ".mcpx/config.json", "home/.config/mcpx/config.json"];
    assert_eq!(files[..4], expected.map(|f| scratch.path(f)));
    assert_eq!(config.path(), Some(scratch.path("w/.mcpx.json").as_path()));
    assert_eq!(config.layers.len(), 5);

    let env = Env::default();
    let settings = Settings::resolve(config.settings_layers(&env)).unwrap();
    assert_eq!(settings.get(&POOL_MAX), 3);
    let row = settings.explain("pool.max").unwrap();
    assert_eq!(row.source.to_string(), format!("{}:1", scratch.path(".mcpx/config.json").display()));
    assert_eq!(row.displaced.len(), 2);
}

#[test]
fn a_nearer_switch_turns_a_server_off_and_on() {
    let scratch = Scratch::new();
    scratch.file(
        "w/.mcpx.json",
        r#"{"mcpServers": {"a": {"enabled": false}, "b": {"disabled": false}, "c": {"disabled": true},
            "d": {"mcpx": {"enabled": false}, "command": "d", "enabled": true}}}"#,
    );
    scratch.file(
        ".mcpx.json",
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b", "disabled": true},
            "e": {"command": "e", "disabled": false}}}"#,
    );
    let config = scratch.load();
    let on: Vec<(&str, bool)> = config.servers.iter().map(|s| (s.name.as_str(), s.enabled)).collect();
    // Nobody defines c, so there is nothing to switch off.
    assert_eq!(on, [("d", false), ("a", false), ("b", true), ("e", true)]);
    assert!(config.servers.iter().all(|s| s.problem.is_none()));
    let problem = load_text(r#"{"mcpServers": {"x": {"enabled": true}}}"#);
    assert!(
        problem.server("x").unwrap().problem.as_ref().unwrap().message().contains("no file further away")
    );
}

#[test]
fn one_named_file_is_read_alone_and_must_exist() {
    let scratch = Scratch::new();
    scratch.file("w/.mcpx.json", r#"{"mcpServers": {"near": {"command": "a"}}}"#);
    let other = scratch.file("w/sub/other.json", r#"{"mcpServers": {"other": {"command": "./b"}}}"#);
    let env = Env::from_pairs([("MCPX_CONFIG", "sub/other.json")]);
    let config = load(&scratch.options(&env)).unwrap();
    assert_eq!(names(&config), ["other"]);
    assert_eq!(config.sources[0].path, other);
    assert_eq!(command(&config, "other"), scratch.path("w/sub/./b").to_str().unwrap());
    let explicit = |path: PathBuf| load(&LoadOptions { explicit: Some(path), ..scratch.options(&env) });
    assert_eq!(names(&explicit(scratch.path("w/.mcpx.json")).unwrap()), ["near"]);
    let e = explicit("none.json".into()).unwrap_err();
    assert_eq!((e.kind(), e.exit_code()), (Kind::Config, 65));
    let path = scratch.path("w/none.json");
    assert_eq!(e.message(), format!("there is no configuration file {}", path.display()));
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let env = Env::default();
    type Make = fn(&Scratch);
    let cases: &[(Make, &str)] = &[
        (|s| drop(s.dir("w/.mcpx.json")), "it is a directory"),
        (
            |s| drop(s.file("w/.mcpx.json", b"{\n\n \"a\": \"\xff\"}")),
            ".mcpx.json:3: the file is not valid UTF-8",
        ),
        (|s| drop(s.file("w/.mcpx.json", "")), ".mcpx.json:1:1: the file is empty"),
        (|s| drop(s.file("w/.mcpx.json", "[1]")), "must be an object, not a list"),
        (|s| drop(s.file("w/.mcpx.json", "{\n \"a\": 1\n \"b\": 2}")), ".mcpx.json:2:8: expected , or }"),
        (
            |s| drop(s.file("w/.mcpx.json", "{\"mcpServers\":\n []}")),
            ".mcpx.json:1:2: \"mcpServers\" must be an object",
        ),
        (|s| drop(s.file("w/.mcpx.json", "{\"servers\": null}")), "\"servers\" must be an object, not null"),
        (
            |s| {
                let path = s.file("w/.mcpx.json", "");
                fs::OpenOptions::new().write(true).open(path).unwrap().set_len(17 << 20).unwrap();
            },
            "larger than 16MiB",
        ),
        (|s| symlink("/dev/null", s.path("w/.mcpx.json")).unwrap(), "not a regular file"),
        (|s| symlink(s.path("w/.mcpx.json"), s.path("w/.mcpx.json")).unwrap(), "too many levels"),
    ];
    for (make, part) in cases {
        let scratch = Scratch::new();
        make(&scratch);
        let e = load(&scratch.options(&env)).unwrap_err();
        assert_eq!(e.kind(), Kind::Config, "{e}");
        assert!(e.message().contains(part), "{part}: {e}");
        assert!(e.message().contains(".mcpx.json") && !e.message().contains("os error"), "{e}");
    }
    // A link that leads nowhere, and a file where a directory would be, are no files.
    let scratch = Scratch::new();
    symlink(scratch.path("gone"), scratch.path("w/.mcpx.json")).unwrap();
    scratch.file("w/.mcpx", "");
    assert!(scratch.load().sources.is_empty());
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    let scratch = Scratch::new();
    let path = scratch.file("w/.mcpx.json", "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o646)).unwrap();
    let e = scratch.fault();
    assert_eq!((e.kind(), e.exit_code()), (Kind::Refused, 77));
    assert!(e.message().contains("everybody may write to it"), "{e}");
    assert!(e.hint_text().is_some_and(|h| h.contains("chmod go-w")));
}

#[test]
fn two_links_to_one_file_count_once() {
    let scratch = Scratch::new();
    let real = scratch.file("shared/mcp.json", r#"{"mcpServers": {"a": {"command": "./a"}}}"#);
    symlink(&real, scratch.path("w/.mcpx.json")).unwrap();
    symlink(&real, scratch.path(".mcpx.json")).unwrap();
    let config = scratch.load();
    assert_eq!(config.sources.len(), 1);
    assert_eq!(config.sources[0].path, real);
    assert_eq!(command(&config, "a"), scratch.path("shared/./a").to_str().unwrap());
}

#[test]
fn the_key_is_over_every_path_and_byte() {
    let scratch = Scratch::new();
    let text = r#"{"mcpServers": {"a": {"command": "a"}}}"#;
    scratch.file("w/.mcpx.json", text);
    let first = scratch.load();
    assert_eq!(first.key, scratch.load().key);
    scratch.file("w/.mcpx.json", format!("{text} // a comment"));
    let commented = scratch.load();
    assert_ne!(first.key, commented.key);
    assert_eq!(first.servers_digest, commented.servers_digest);
    fs::rename(scratch.path("w/.mcpx.json"), scratch.path("w/.mcp.json")).unwrap();
    assert_ne!(commented.key, scratch.load().key);
    scratch.file(".mcpx.json", "{}");
    assert_eq!(scratch.load().servers_digest, first.servers_digest);
}

#[test]
fn a_definition_is_read_whole_and_other_hosts_members_are_passed_over() {
    let scratch = Scratch::new();
    scratch.file(
        "w/.mcpx/config.json",
        r#"{"servers": {
            "a": {"type": "stdio", "command": "bin/${NAME}", "args": ["-x", "${N:-1}", ""], "timeout": 60,
                  "env": {"TOKEN": "${TOKEN}"}, "cwd": "sub", "description": "host's",
                  "mcpx": {"scope": "named:x", "sharing": "exclusive", "startTimeout": "5s",
                           "callTimeout": 0, "idleTimeout": "1h", "max": 2, "description": "ours"}},
            "b": {"type": "sse", "serverUrl": "${BASE}/sse", "headers": {"X-Key": "k"}}}}"#,
    );
    let env = Env::from_pairs([("NAME", "server"), ("TOKEN", "hunter2"), ("BASE", "https://h")]);
    let config = load(&scratch.options(&env)).unwrap();
    let a = config.server("a").unwrap();
    assert!(a.problem.is_none(), "{a:?}");
    assert_eq!(
        a.transport,
        Transport::Stdio {
            command: scratch.path("w/bin/server").to_str().unwrap().into(),
            args: vec!["-x".into(), "1".into(), String::new()],
            env: vec![("TOKEN".into(), "hunter2".into())],
            cwd: Some(scratch.path("w/sub")),
        }
    );
    assert_eq!(
        a.options,
        ServerOptions {
            scope: Some("named:x".into()),
            sharing: Some("exclusive".into()),
            start_timeout: Some(Duration::from_secs(5)),
            call_timeout: Some(Duration::ZERO),
            idle_timeout: Some(Duration::from_secs(3600)),
            max: Some(2),
            ..ServerOptions::default()
        }
    );
    assert_eq!((a.description.as_deref(), a.line), (Some("ours"), 2));
    assert_eq!(*a.source, scratch.path("w/.mcpx/config.json"));
    let b = config.server("b").unwrap();
    let headers = vec![("X-Key".to_owned(), "k".to_owned())];
    assert_eq!(b.transport, Transport::Http { url: "https://h/sse".into(), headers });
    assert!(config.warnings.is_empty(), "{:?}", config.warnings);
    let shown = format!("{config:?}");
    assert!(
        shown.contains("TOKEN=****") && !shown.contains("hunter2") && !shown.contains("\"k\""),
        "{shown}"
    );
}

#[test]
fn a_fault_in_a_definition_is_that_servers_problem() {
    for (block, part) in [
        ("5", "3:1: server \"x\": its definition must be an object, not a number"),
        ("{}", "3:1: server \"x\": has neither \"command\" nor \"url\""),
        ("{\"command\": \"a\",\n\"url\": \"http://h\"}", "has both \"command\" and \"url\""),
        (
            "{\"command\": [\"a\", \"b\"]}",
            "command: expected a text, got a list; put what follows into \"args\"",
        ),
        ("{\"command\": \" \"}", "command: is empty"),
        ("{\"command\": \"a\\u0000b\"}", "command: must not contain a NUL"),
        ("{\"command\": \"a\",\n\"args\": \"b\"}", "4:1: server \"x\": args: expected a list, got a text"),
        (
            "{\"command\": \"a\",\n\"args\": [\"b\",\n 8080]}",
            "5:2: server \"x\": args[1]: expected a text, got a number",
        ),
        ("{\"command\": \"a\", \"env\": []}", "env: expected an object, got a list"),
        ("{\"command\": \"a\", \"env\": {\"A\": 1}}", "env.A: expected a text, got a number"),
        ("{\"command\": \"a\", \"env\": {\"A=\": \"\"}}", "env: \"A=\" cannot be a name"),
        ("{\"command\": \"a\", \"cwd\": null}", "cwd: expected a text, got null"),
        ("{\"command\": \"a\", \"enabled\": \"no\"}", "enabled: expected true or false, got a text"),
        ("{\"command\": \"a\", \"enabled\": true, \"disabled\": true}", "contradict each other"),
        ("{\"url\": \"ftp://h\"}", "url: must begin with http:// or https://"),
        ("{\"url\": \"http://\"}", "url: names no host"),
        ("{\"url\": \"http:///x\"}", "url: names no host"),
        ("{\"url\": \"http://h/a b\"}", "url: must not contain spaces"),
        ("{\"url\": \"http://h\", \"httpUrl\": \"http://i\"}", "httpUrl: another field already gives"),
        ("{\"url\": \"http://h\", \"headers\": {\"a b\": \"c\"}}", "headers.a b: is no name of a header"),
        (
            "{\"url\": \"http://h\", \"headers\": {\"a\": \"b\\nc: d\"}}",
            "headers.a: its value must be one line",
        ),
        ("{\"command\": \"a\", \"mcpx\": true}", "mcpx: expected an object, got true or false"),
        (
            "{\"command\": \"a\", \"mcpx\": {\n\"scop\": \"cwd\"}}",
            "4:1: server \"x\": mcpx: unknown key \"scop\"; did you mean \"scope\"?",
        ),
        (
            "{\"command\": \"a\", \"mcpx\": {\"scope\": \"me\"}}",
            "mcpx.scope: \"me\" is not one of global, repo",
        ),
        (
            "{\"command\": \"a\", \"mcpx\": {\"sharing\": 1}}",
            "mcpx.sharing: expected shared, exclusive, got a number",
        ),
        ("{\"command\": \"a\", \"mcpx\": {\"callTimeout\": \"5\"}}", "mcpx.callTimeout: \"5\" has no unit"),
        ("{\"command\": \"a\", \"mcpx\": {\"max\": 0}}", "mcpx.max: must be from 1 to 4096, not 0"),
        ("{\"command\": \"a\", \"mcpx\": {\"enabled\": 1}}", "mcpx.enabled: expected true or false"),
        (
            "{\"command\": \"a\", \"args\": [\"x\"],\n\"env\": {\"T\": \"${T}\"}}",
            "4:9: server \"x\": env.T: the variable T is not set",
        ),
        (
            "{\"command\": \"a\", \"args\": [\"x\",\n\"${U}\"]}",
            "4:1: server \"x\": args[1]: the variable U is not set",
        ),
        ("{\"command\": \"${U}\"}", "command: the variable U is not set"),
        ("{\"command\": \"a\", \"cwd\": \"${U}\"}", "cwd: the variable U is not set"),
        ("{\"url\": \"${U}\"}", "url: the variable U is not set"),
        ("{\"url\": \"http://h\", \"headers\": {\"K\": \"${U}\"}}", "headers.K: the variable U is not set"),
    ] {
        let scratch = Scratch::new();
        let text = format!("{{\"mcpServers\": {{\n\"ok\": {{\"command\": \"ok\"}},\n\"x\": {block}}}}}");
        let path = scratch.file("w/.mcpx.json", text);
        let config = scratch.load();
        assert!(config.server("ok").unwrap().problem.is_none());
        let problem = config.server("x").unwrap().problem.clone().unwrap_or_else(|| panic!("{block}"));
        assert_eq!((problem.kind(), problem.server_name()), (Kind::Config, Some("x")));
        assert!(problem.message().starts_with(&format!("{}:", path.display())), "{problem}");
        assert!(problem.message().contains(part), "{block}: {problem}");
    }
    let nameless = load_text(r#"{"mcpServers": {"": {"command": "a"}}}"#);
    assert!(nameless.servers[0].problem.as_ref().unwrap().message().contains("its name is empty"));
}

#[test]
fn the_tables_of_members_are_those_that_are_read() {
    let wrong = |block: String| {
        let config = load_text(&format!("{{\"mcpServers\": {{\"x\": {block}}}}}"));
        config.server("x").and_then(|s| s.problem.clone()).map(|p| p.message().to_owned()).unwrap_or_default()
    };
    let fields = FIELDS.iter().map(|(name, _)| *name).chain(SYNONYMS.iter().copied());
    for name in fields {
        assert!(wrong(format!("{{\"{name}\": null}}")).contains("got null"), "{name}");
    }
    for (name, _) in OPTIONS {
        let message = wrong(format!("{{\"command\": \"a\", \"mcpx\": {{\"{name}\": null}}}}"));
        assert!(message.contains(&format!("mcpx.{name}: expected")), "{name}: {message}");
    }
    assert_eq!(wrong("{\"command\": \"a\", \"whatever\": null}".into()), "");
}

#[test]
fn a_digest_changes_with_how_a_server_is_reached_and_with_nothing_else() {
    let digest = |block: &str| {
        let config = load_text(&format!("{{\"mcpServers\": {{\"x\": {block}}}}}"));
        config.servers[0].digest.clone()
    };
    let base = digest(r#"{"command": "a", "args": ["b"], "env": {"A": "1", "B": "2"}}"#);
    assert_eq!(base.len(), 16);
    for same in [
        r#"{"args": ["b"], /* moved */ "env": {"B": "2", "A": "1"}, "command": "a"}"#,
        r#"{"command": "a", "args": ["b"], "env": {"A": "1", "B": "2"}, "mcpx": {"callTimeout": "1s"},
            "description": "d", "enabled": false}"#,
    ] {
        assert_eq!(digest(same), base, "{same}");
    }
    for other in [
        r#"{"command": "b", "args": ["b"], "env": {"A": "1", "B": "2"}}"#,
        r#"{"command": "a", "args": ["b", ""], "env": {"A": "1", "B": "2"}}"#,
        r#"{"command": "a", "args": ["b"], "env": {"A": "2", "B": "1"}}"#,
        r#"{"command": "a", "args": ["b"], "env": {"A": "1", "B": "${NONE:-2}"}}"#,
        r#"{"command": "a", "args": ["b"], "env": {"A": "1", "B": "2"}, "cwd": "/x"}"#,
        r#"{"command": "a", "args": ["b", "env", "A", "1", "B", "2"]}"#,
        r#"{"url": "http://a"}"#,
    ] {
        assert_ne!(digest(other), base, "{other}");
    }
    // What depends on the file's place differs from place to place; what does not, does not.
    assert_ne!(digest(r#"{"command": "./a"}"#), digest(r#"{"command": "./a"}"#));
    assert_eq!(digest(r#"{"command": "/a"}"#), digest(r#"{"command": "/a"}"#));
}

#[test]
fn what_is_odd_about_a_file_is_a_warning_with_its_line() {
    let scratch = Scratch::new();
    let path = scratch.file(
        "w/.mcpx.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}},\n\"servers\": {},\n\"pool\": {\n\"callTimout\": \"1s\"}}",
    );
    scratch.file("w/.mcp.json", r#"{"theirs": 1, "pool": {"nonsense": 1}}"#);
    let config = scratch.load();
    assert_eq!(command(&config, "a"), "y");
    let short: Vec<String> =
        config.warnings.iter().map(|w| w.replace(path.parent().unwrap().to_str().unwrap(), "")).collect();
    assert_eq!(
        short,
        [
            "/.mcpx.json:2:1: \"a\" is given twice; the last one counts",
            "/.mcpx.json:3:1: \"servers\" is ignored beside \"mcpServers\"",
            "/.mcpx.json:5:1: unknown key \"pool.callTimout\"; did you mean \"pool.callTimeout\"?",
            "/.mcp.json:1:24: unknown key \"pool.nonsense\"; mcpx settings lists the known ones",
        ]
    );
}

#[test]
fn a_hidden_directory_of_somebody_elses_is_no_file() {
    let scratch = Scratch::new();
    let closed = scratch.dir("home/.config");
    scratch.file("home/.config/mcpx/config.json", "{}");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let config = load(&scratch.options(&Env::default()));
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    // The superuser looks into it all the same.
    assert_eq!(config.unwrap().sources.len(), usize::from(scratch.uid == 0));
    assert!(Path::new(&closed).exists());
}

#[test]
fn a_daemon_reads_exactly_its_own_files_again() {
    let scratch = Scratch::new();
    scratch.file("w/.mcp.json", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    let far = scratch.file(".mcpx.json", r#"{"mcpServers": {"b": {"command": "b"}}}"#);
    let first = scratch.load();
    scratch.file("w/.mcpx.json", r#"{"mcpServers": {"new": {"command": "n"}}}"#);
    let env = Env::default();
    let again = reload(&first.sources, &scratch.options(&env)).unwrap();
    assert_eq!((names(&again), &again.key), (vec!["a", "b"], &first.key));
    fs::remove_file(&far).unwrap();
    let e = reload(&first.sources, &scratch.options(&env)).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (Kind::Config, &*format!("the configuration file {} is gone", far.display()))
    );
}

#[test]
fn an_alias_is_another_server_under_another_name_with_options_of_its_own() {
    let scratch = Scratch::new();
    scratch.file(
        "w/.mcpx.json",
        r#"{"mcpServers": {
            "ro": {"aliasOf": "files", "mcpx": {"excludeTools": ["write*"], "max": 2}},
            "lost": {"aliasOf": "fles"},
            "twice": {"aliasOf": "ro"},
            "self": {"aliasOf": "self"},
            "both": {"aliasOf": "files", "command": "x"},
            "of-bad": {"aliasOf": "bad"},
        }}"#,
    );
    scratch.file(
        "home/.mcpx.json",
        r#"{"mcpServers": {
            "files": {"command": "f", "args": ["a"], "description": "d", "enabled": false,
                      "mcpx": {"scope": "session", "max": 9, "tools": ["x"], "profiles": ["p"]}},
            "bad": {"command": 1},
        }}"#,
    );
    let config = scratch.load();
    let (ro, files) = (config.server("ro").unwrap(), config.server("files").unwrap());
    assert!(ro.problem.is_none() && ro.enabled && !files.enabled);
    assert!(ro.transport == files.transport && ro.digest == files.digest);
    assert_eq!((ro.options.scope.as_deref(), ro.options.max), (Some("session"), Some(2)));
    assert_eq!(ro.description.as_deref(), Some("d"));
    assert!(ro.options.profiles.is_empty() && ro.options.tools.only.is_none());
    assert!(ro.options.tools.offers("read") && !ro.options.tools.offers("write_file"));
    assert_eq!(ro.source.as_path(), scratch.path("w/.mcpx.json"));
    for (name, part) in [
        ("lost", "there is no server \"fles\"; did you mean \"files\"?"),
        ("twice", "is an alias itself"),
        ("self", "it is an alias of itself"),
        ("both", "beside a definition"),
        ("of-bad", "\"bad\" cannot be used"),
    ] {
        let problem = config.server(name).unwrap().problem.clone().unwrap();
        assert!(problem.message().contains(part), "{name}: {problem}");
        assert!(problem.message().contains(".mcpx.json:"), "{name}: {problem}");
    }
}

#[test]
fn a_faulty_pattern_or_profile_is_the_servers_problem() {
    for (options, part) in [
        (r#"{"tools": ["/a(/"]}"#, "mcpx.tools[0]: \"/a(/\" has a ( without its )"),
        (r#"{"excludeTools": "a"}"#, "mcpx.excludeTools: expected a list"),
        (r#"{"extraIncludeTools": [""]}"#, "is empty"),
        (r#"{"profiles": ["a,b"]}"#, "cannot be a profile's name"),
    ] {
        let text = format!(r#"{{"mcpServers": {{"s": {{"command": "x", "mcpx": {options}}}}}}}"#);
        let config = load_text(&text);
        let problem = config.server("s").unwrap().problem.clone().unwrap();
        assert!(problem.message().contains(part), "{options}: {problem}");
    }
}
