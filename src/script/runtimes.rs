//! Finds the JavaScript runtime that runs a script: by name, by declaration or
//! by trying in order; and builds the command line that each kind takes.
//! Starts a runtime only to learn node's version, once for each binary.

use super::permissions::{Flags, Permissions};
use crate::error::{Error, Kind, Result};
use crate::proc;
use crate::settings::{SCRIPT_RUNTIME, SCRIPT_RUNTIME_ORDER, SCRIPT_RUNTIMES, Settings};
use crate::util::{Env, did_you_mean, write_atomic};
use serde_json::{Map, Value, json};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long `node --version` may take: node answers in 0.05 s; a machine so
/// loaded that this is not enough would not run the script either.
const PROBE: Duration = Duration::from_secs(10);

/// The kinds of JavaScript runtime, which decide how a command line is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsKind {
    /// deno.
    Deno,
    /// bun.
    Bun,
    /// node.
    Node,
}

impl JsKind {
    /// Every kind.
    pub const ALL: [JsKind; 3] = [JsKind::Deno, JsKind::Bun, JsKind::Node];
    /// The kind as a word, which is also the name of its binary.
    pub fn word(self) -> &'static str {
        match self {
            JsKind::Deno => "deno",
            JsKind::Bun => "bun",
            JsKind::Node => "node",
        }
    }
    /// The kind that a word names.
    pub fn from_word(word: &str) -> Option<JsKind> {
        JsKind::ALL.into_iter().find(|k| k.word() == word)
    }
}

/// A runtime's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl Version {
    /// A version from its numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Version {
        Version { major, minor, patch }
    }
    /// Reads `v22.6.0` or `22.6.0`; what follows the third number is ignored.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim();
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        let mut next = || {
            let part = parts.next()?;
            let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            part[..digits].parse().ok()
        };
        Some(Version { major: next()?, minor: next()?, patch: next()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What a script asks of its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Inline code without imports: JavaScript that any runtime runs, or TypeScript that it strips itself.
    Inline,
    /// Inline code that is a module, in JavaScript or TypeScript: both are offered.
    InlineModule,
    /// A file of JavaScript.
    JavaScript,
    /// A file of TypeScript.
    TypeScript,
    /// A file with JSX in it.
    Jsx,
}

/// A runtime that was found, and why it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Runtime {
    /// Its kind.
    pub kind: JsKind,
    /// Its name: as declared under `script.runtimes`, else the kind.
    pub name: String,
    /// The binary.
    pub bin: PathBuf,
    /// The declaration's own arguments.
    pub args: Vec<String>,
    /// Its version, where that mattered.
    pub version: Option<Version>,
    /// Why it was taken, for people.
    pub why: String,
    /// Those that `auto` passed over, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// The flags that enforce the permissions.
    pub permissions: Flags,
}

/// Where a runtime is looked for.
pub struct Search<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The environment, for PATH.
    pub env: &'a Env,
    /// The working directory, for a relative path.
    pub cwd: &'a Path,
    /// The cache directory, where versions are kept.
    pub cache: &'a Path,
}

/// Chooses the runtime for a script.
///
/// # Errors
/// `NoScript` when none is installed, `Refused` when one is named that cannot
/// enforce the permissions, `Usage` or `Config` when what is named is no runtime.
pub fn choose(search: &Search, permissions: &Permissions, language: Language) -> Result<Runtime> {
    let wanted = search.settings.get(&SCRIPT_RUNTIME);
    if wanted != "auto" && !wanted.is_empty() {
        let mut runtime = resolve(search, &wanted)?;
        fit(search, &mut runtime, permissions, language)?;
        runtime.why = "it was named by script.runtime".into();
        return Ok(runtime);
    }
    let order = search.settings.get(&SCRIPT_RUNTIME_ORDER);
    let mut skipped: Vec<(String, String)> = Vec::new();
    let mut refused = false;
    for name in &order {
        let found = resolve(search, name).and_then(|mut runtime| {
            fit(search, &mut runtime, permissions, language)?;
            Ok(runtime)
        });
        match found {
            Ok(mut runtime) => {
                runtime.why = match skipped.len() {
                    0 => "the first of script.runtimeOrder".into(),
                    _ => "the first of script.runtimeOrder that fits".into(),
                };
                runtime.skipped = skipped;
                return Ok(runtime);
            }
            // A mistake in a declaration is not a reason to take another runtime.
            Err(e) if e.kind() == Kind::Config => return Err(e),
            Err(e) => {
                refused |= e.kind() == Kind::Refused;
                let reason = match e.kind() {
                    Kind::Unavailable if search.settings_declare(name).is_none() => "not on PATH".to_owned(),
                    _ => e.message().to_owned(),
                };
                skipped.push((name.clone(), reason));
            }
        }
    }
    let reasons: Vec<String> = skipped.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    let what = if refused {
        format!("no runtime here can run this script with the permissions {}", permissions.names())
    } else {
        "no JavaScript runtime can run this script".to_owned()
    };
    Err(Error::new(
        if refused { Kind::Refused } else { Kind::NoScript },
        format!("{what} ({})", reasons.join("; ")),
    )
    .hint("install deno, bun or node, or name one with --runtime or under script.runtimes"))
}

/// The runtime of a kind, when it is installed and fits: what a script's first line asks for.
pub fn named(
    search: &Search,
    kind: JsKind,
    permissions: &Permissions,
    language: Language,
) -> Option<Runtime> {
    let mut runtime = resolve(search, kind.word()).ok()?;
    fit(search, &mut runtime, permissions, language).ok()?;
    runtime.why = "the script's first line names it".into();
    Some(runtime)
}

impl Search<'_> {
    fn settings_declare(&self, name: &str) -> Option<Value> {
        self.settings.get(&SCRIPT_RUNTIMES).get(name).cloned()
    }
}

/// Finds the binary that a name means; decides nothing about permissions.
pub fn resolve(search: &Search, wanted: &str) -> Result<Runtime> {
    let plain = |kind: JsKind, name: &str, bin: PathBuf, args: Vec<String>| Runtime {
        kind,
        name: name.to_owned(),
        bin,
        args,
        version: None,
        why: String::new(),
        skipped: Vec::new(),
        permissions: Flags::default(),
    };
    if let Some(declared) = search.settings_declare(wanted) {
        let (kind, bin, args) = declaration(wanted, &declared)?;
        let path = proc::find_program(OsStr::new(&bin), search.env, search.cwd).map_err(|e| {
            Error::new(Kind::Unavailable, format!("the runtime {wanted}: {}", e.message()))
                .hint(format!("correct script.runtimes.{wanted}.bin"))
        })?;
        return Ok(plain(kind, wanted, path, args));
    }
    let path = proc::find_program(OsStr::new(wanted), search.env, search.cwd).map_err(|e| {
        let declared = search.settings.get(&SCRIPT_RUNTIMES);
        let names = declared.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let known: Vec<&str> = names.chain(JsKind::ALL.map(JsKind::word)).collect();
        let hint = match did_you_mean(wanted, known.iter().copied().filter(|k| *k != wanted)) {
            Some(guess) if !wanted.contains('/') => guess,
            _ => e.hint_text().unwrap_or("give the path of a deno, bun or node").to_owned(),
        };
        Error::new(Kind::Unavailable, format!("the runtime {wanted}: {}", e.message())).hint(hint)
    })?;
    let base = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let base = base.strip_suffix(".exe").unwrap_or(base);
    match JsKind::from_word(base) {
        Some(kind) => Ok(plain(kind, kind.word(), path, Vec::new())),
        None => Err(Error::new(
            Kind::Usage,
            format!("{wanted} is {}, and mcpx does not know that as a JavaScript runtime", path.display()),
        )
        .hint(format!(
            "declare it: \"script\": {{\"runtimes\": {{\"{base}\": {{\"kind\": \"node\", \"bin\": \"{}\"}}}}}}, with the kind deno, bun or node",
            path.display()
        ))),
    }
}

fn declaration(name: &str, value: &Value) -> Result<(JsKind, String, Vec<String>)> {
    let wrong =
        |place: &str, what: &str| Error::new(Kind::Config, format!("script.runtimes.{name}{place}: {what}"));
    let Value::Object(map) = value else {
        return Err(wrong("", "expected an object with kind, bin and args"));
    };
    let (mut kind, mut bin, mut args) = (None, name.to_owned(), Vec::new());
    for (key, value) in map {
        match (key.as_str(), value) {
            ("kind", Value::String(word)) => kind = JsKind::from_word(word),
            ("bin", Value::String(text)) if !text.is_empty() => bin.clone_from(text),
            ("args", Value::Array(items)) => {
                for item in items {
                    args.push(
                        item.as_str().ok_or_else(|| wrong(".args", "expected a list of texts"))?.to_owned(),
                    );
                }
            }
            ("bin", _) => return Err(wrong(".bin", "expected a path or a name on PATH")),
            ("args", _) => return Err(wrong(".args", "expected a list of texts")),
            ("kind", _) => {}
            (other, _) => return Err(wrong(&format!(".{other}"), "expected kind, bin or args")),
        }
    }
    let kind = kind.ok_or_else(|| wrong(".kind", "expected deno, bun or node"))?;
    Ok((kind, bin, args))
}

/// Completes a runtime with its version and flags, or says why it cannot run the script.
fn fit(search: &Search, runtime: &mut Runtime, permissions: &Permissions, language: Language) -> Result<()> {
    let asks_node = matches!(language, Language::TypeScript | Language::InlineModule);
    if runtime.kind == JsKind::Node && (asks_node || permissions.needs_node_version()) {
        runtime.version = Some(version(search, &runtime.bin)?);
    }
    runtime.permissions = permissions.flags(runtime.kind, runtime.version)?;
    if runtime.kind != JsKind::Node {
        return Ok(());
    }
    let cannot = |why: String| {
        Err(Error::new(Kind::NoScript, why)
            .hint("use --runtime deno or bun, or write the script in JavaScript"))
    };
    match (language, runtime.version) {
        (Language::Jsx, _) => cannot(format!("{} reads no JSX", runtime.bin.display())),
        (Language::TypeScript, Some(v)) if v < STRIPS => cannot(format!(
            "node {v} ({}) reads no TypeScript; 22.6 is the first that does",
            runtime.bin.display()
        )),
        _ => Ok(()),
    }
}

/// The first node that strips types, given the flag.
const STRIPS: Version = Version::new(22, 6, 0);
/// The first node that needs no flag for it.
const STRIPS_UNASKED: Version = Version::new(23, 6, 0);

/// Whether this node reads TypeScript files.
pub fn strips_types(version: Version) -> bool {
    version >= STRIPS
}

impl Runtime {
    /// The arguments up to and without the entry file.
    pub fn argv(&self, language: Language) -> Vec<OsString> {
        let mut argv: Vec<&str> = match self.kind {
            JsKind::Deno => vec!["run", "--quiet", "--no-check"],
            JsKind::Bun => vec!["run"],
            JsKind::Node => vec!["--no-warnings"],
        };
        // 22.18 needs no flag either, but takes it.
        if self.kind == JsKind::Node
            && matches!(language, Language::TypeScript | Language::InlineModule)
            && self.version.is_some_and(|v| (STRIPS..STRIPS_UNASKED).contains(&v))
        {
            argv.push("--experimental-strip-types");
        }
        argv.extend(self.args.iter().map(String::as_str));
        argv.extend(self.permissions.flags.iter().map(String::as_str));
        argv.into_iter().map(OsString::from).collect()
    }
}

/// The version of a node binary: from the cache when the file is the one that was asked before.
pub fn version(search: &Search, bin: &Path) -> Result<Version> {
    let cannot = |why: &dyn fmt::Display| {
        Error::new(Kind::NoScript, format!("asking {} for its version: {why}", bin.display()))
            .hint("is it node? name another one with --runtime")
    };
    let meta = std::fs::metadata(bin).map_err(|e| cannot(&e))?;
    let stamp = json!([meta.size(), meta.mtime(), meta.mtime_nsec()]);
    let file = search.cache.join("runtimes.json");
    let mut known: Map<String, Value> =
        std::fs::read(&file).ok().and_then(|b| serde_json::from_slice(&b).ok()).unwrap_or_default();
    let row = known.get(&*bin.to_string_lossy());
    if let Some(row) = row.filter(|r| r.get("stamp") == Some(&stamp))
        && let Some(version) = row.get("version").and_then(Value::as_str).and_then(Version::parse)
    {
        return Ok(version);
    }
    let text = ask(bin, search).map_err(|e| cannot(&e))?;
    let version = Version::parse(&text).ok_or_else(|| cannot(&format!("it answered {:?}", text.trim())))?;
    // A script in its place (a version manager's shim) may start another node tomorrow.
    if !is_script(bin) {
        let row = json!({"stamp": stamp, "version": version.to_string()});
        known.insert(bin.to_string_lossy().into_owned(), row);
        let _ = crate::paths::make_private(search.cache);
        // Without the cache node is only asked again.
        let _ = write_atomic(&file, &serde_json::to_vec(&known).unwrap_or_default(), 0o600, false);
    }
    Ok(version)
}

fn is_script(bin: &Path) -> bool {
    let mut head = [0; 2];
    std::fs::File::open(bin).and_then(|mut f| f.read_exact(&mut head)).is_ok() && &head == b"#!"
}

fn ask(bin: &Path, search: &Search) -> std::io::Result<String> {
    let child = proc::spawn(proc::Spawn {
        program: bin.to_owned(),
        args: vec!["--version".into()],
        env: search.env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        cwd: Some(search.cwd.to_owned()),
        stdout: proc::Io::Piped,
        own_group: true,
        die_with_parent: true,
        ..proc::Spawn::default()
    })?;
    let stdout = child.take_stdout();
    if child.wait_timeout(PROBE).is_none() {
        child.stop(Duration::ZERO, Duration::ZERO);
        return Err(std::io::Error::other("it did not answer"));
    }
    let mut text = String::new();
    if let Some(stdout) = stdout {
        // A version is short; something else may never stop talking.
        stdout.take(256).read_to_string(&mut text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{FlagValue, Layers};
    use std::os::unix::fs::PermissionsExt;

    struct Place {
        dir: PathBuf,
        env: Env,
    }

    impl Place {
        fn new(name: &str) -> Place {
            let dir = std::env::temp_dir().join(format!("mcpx-runtimes-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(dir.join("bin")).unwrap();
            let env = Env::from_pairs([("PATH", dir.join("bin"))]);
            Place { dir, env }
        }
        fn install(&self, name: &str, version: &str) -> PathBuf {
            let path = self.dir.join("bin").join(name);
            let text = format!("#!/bin/sh\necho asked >> {}/asked\necho {version}\n", self.dir.display());
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        }
        fn choose(&self, flags: &[(&str, &str)], language: Language) -> Result<Runtime> {
            let mut layers = Layers::new(&self.env);
            layers.flags = flags
                .iter()
                .map(|(k, v)| FlagValue { key: (*k).into(), text: (*v).into(), spelled: "--x".into() })
                .collect();
            let settings = Settings::resolve(layers)?;
            let permissions = Permissions::from_settings(&settings)?;
            let search = Search {
                settings: &settings,
                env: &self.env,
                cwd: &self.dir,
                cache: &self.dir.join("cache"),
            };
            choose(&search, &permissions, language)
        }
        fn times_asked(&self) -> usize {
            std::fs::read_to_string(self.dir.join("asked")).map_or(0, |t| t.lines().count())
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }

    fn argv(runtime: &Runtime, language: Language) -> String {
        let argv: Vec<_> = runtime.argv(language).into_iter().map(|a| a.into_string().unwrap()).collect();
        argv.join(" ")
    }

    #[test]
    fn auto_takes_the_first_that_fits_and_says_what_it_passed_over() {
        let place = Place::new("auto");
        place.install("bun", "1.4.5");
        place.install("node", "v26.1.0");
        let bun = place.choose(&[], Language::Inline).unwrap();
        assert_eq!((bun.kind, argv(&bun, Language::Inline).as_str()), (JsKind::Bun, "run"));
        assert_eq!(bun.skipped, [("deno".into(), "not on PATH".into())]);
        let node = place.choose(&[("script.permissions", "readnet")], Language::Inline).unwrap();
        assert_eq!(argv(&node, Language::Inline), "--no-warnings --permission --allow-fs-read=* --allow-net");
        assert!(node.skipped.iter().any(|(n, why)| n == "bun" && why.contains("readnet")), "{node:?}");
        let e = place.choose(&[("script.permissions", "strict")], Language::Inline).unwrap_err();
        assert_eq!(e.exit_code(), 77);
        assert!(e.message().contains("bun:") && e.message().contains("node:"), "{e}");
        place.install("deno", "deno 2.9.6");
        let deno = place.choose(&[], Language::Inline).unwrap();
        assert_eq!(argv(&deno, Language::Inline), "run --quiet --no-check --allow-all");
    }

    #[test]
    fn node_is_asked_for_its_version_only_where_that_matters() {
        let place = Place::new("version");
        place.install("node", "v20.20.2");
        let node = |language| place.choose(&[("script.runtime", "node")], language);
        assert_eq!(argv(&node(Language::Inline).unwrap(), Language::Inline), "--no-warnings");
        assert_eq!(argv(&node(Language::JavaScript).unwrap(), Language::JavaScript), "--no-warnings");
        assert_eq!(place.times_asked(), 0);
        let e = node(Language::TypeScript).unwrap_err();
        assert_eq!(e.exit_code(), 127);
        assert!(e.message().contains("20.20.2") && e.to_string().contains("deno"), "{e}");
        for (version, flag) in [("v22.6.0", true), ("v23.5.0", true), ("v23.6.0", false), ("v26.10.0", false)]
        {
            place.install("node", version);
            let text = argv(&node(Language::TypeScript).unwrap(), Language::TypeScript);
            assert_eq!(text.contains("--experimental-strip-types"), flag, "{version}: {text}");
        }
    }

    #[test]
    fn a_binary_is_asked_once_and_a_shim_every_time() {
        let place = Place::new("cache");
        place.install("node", "v24.0.0");
        let ts = || place.choose(&[("script.runtime", "node")], Language::TypeScript).unwrap();
        ts();
        ts();
        assert_eq!(place.times_asked(), 2, "a script may start another node each time");
        // Something that is no script: pretend that it was asked before.
        let bin = place.dir.join("bin/node");
        std::fs::write(&bin, b"\x7fELF").unwrap();
        let meta = std::fs::metadata(&bin).unwrap();
        let row = json!({&*bin.to_string_lossy(): {"stamp": [meta.size(), meta.mtime(), meta.mtime_nsec()], "version": "24.1.0"}});
        std::fs::create_dir_all(place.dir.join("cache")).unwrap();
        std::fs::write(place.dir.join("cache/runtimes.json"), row.to_string()).unwrap();
        assert_eq!(ts().version, Some(Version::new(24, 1, 0)));
        assert_eq!(place.times_asked(), 2);
    }

    #[test]
    fn declared_runtimes_and_paths() {
        let place = Place::new("declared");
        let odd = place.install("node22", "v22.20.0");
        let runtimes = r#"{"old":{"kind":"node","bin":"node22","args":["--enable-source-maps"]},"bad":{"kind":"ruby"},"deno":{"kind":"deno","bin":"/no/such"}}"#;
        let with = |name| {
            place.choose(&[("script.runtimes", runtimes), ("script.runtime", name)], Language::TypeScript)
        };
        let old = with("old").unwrap();
        assert_eq!((old.kind, old.name.as_str(), &old.bin), (JsKind::Node, "old", &odd));
        assert_eq!(
            argv(&old, Language::TypeScript),
            "--no-warnings --experimental-strip-types --enable-source-maps"
        );
        assert_eq!(with("bad").unwrap_err().exit_code(), 65);
        assert!(with("deno").unwrap_err().to_string().contains("script.runtimes.deno.bin"));
        let e = with("node22").unwrap_err();
        assert!(e.message().contains("node22") && e.to_string().contains("\"kind\""), "{e}");
        assert!(with("nod").unwrap_err().to_string().contains("\"node\""));
        assert!(with("./bin").unwrap_err().message().contains("directory"));
        let real = place.install("bun", "1");
        assert_eq!(with(real.to_str().unwrap()).unwrap().kind, JsKind::Bun);
    }

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        assert_eq!(Version::parse("v22.13.0-nightly\n"), Some(Version::new(22, 13, 0)));
        assert!(Version::parse("v22.13").is_none() && Version::parse("deno 2.9.6").is_none());
        assert!(Version::new(22, 13, 0) > Version::new(22, 9, 9));
    }
}
