//! Looks at a script file and decides what runs it: a JavaScript runtime, the
//! interpreter in its first line, or the one for its extension. Reads the
//! file's head; starts nothing.

use super::runtimes::{JsKind, Language};
use crate::error::{Error, Kind, Result};
use crate::util::Env;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// How much of a file is looked at: the first line, and enough text to notice another encoding.
const HEAD: u64 = 4096;

/// The kernel reads this much of a first line; with more, the file would not run by itself either.
const SHEBANG: usize = 255;

/// Interpreters by extension, for scripts without a first line that names one.
const BY_EXTENSION: &[(&str, &str)] =
    &[("sh", "sh"), ("bash", "bash"), ("py", "python3"), ("rb", "ruby"), ("pl", "perl")];

/// What runs a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A JavaScript runtime; `prefer` is the kind that the first line names.
    Js {
        /// What the file is written in.
        language: Language,
        /// The runtime that its first line names.
        prefer: Option<JsKind>,
    },
    /// Another interpreter.
    Interpreter {
        /// The program as it is named: a path, or a name on PATH.
        program: OsString,
        /// Its own arguments, before the script's path.
        args: Vec<OsString>,
        /// `shebang` or `interpreter`.
        how: &'static str,
    },
}

/// What the first line asks to do with the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvChange {
    /// `env -i`: start from nothing.
    pub clear: bool,
    /// `env -u NAME`.
    pub unset: Vec<String>,
    /// `env NAME=VALUE`.
    pub set: Vec<(String, String)>,
}

impl EnvChange {
    /// Applies the change to the inherited environment.
    pub fn apply(&self, env: &Env) -> Env {
        let mut out = if self.clear { Env::default() } else { env.clone() };
        for name in &self.unset {
            out.remove(name);
        }
        for (name, value) in &self.set {
            out.set(name, value);
        }
        out
    }
}

/// Looks at a script.
///
/// # Errors
/// `NoScript` when the file is missing or nothing is known to run it, `Usage`
/// when it is no file of text or its first line cannot be understood.
///
/// `interpreters` is `script.interpreter`: commands by extension.
pub fn inspect(path: &Path, interpreters: &Value) -> Result<(Target, EnvChange)> {
    let shown = path.display();
    let meta = std::fs::metadata(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::new(Kind::NoScript, format!("there is no script {shown}"))
            .hint("`mcpx scripts` lists the named ones"),
        _ => Error::new(Kind::NoScript, format!("looking at the script {shown}: {e}")),
    })?;
    let not_a_file = |what: &str, hint: &str| {
        Err(Error::new(Kind::Usage, format!("the script {shown} is {what}, not a file")).hint(hint))
    };
    if meta.is_dir() {
        return not_a_file("a directory", "name the file in it");
    }
    if meta.file_type().is_fifo() {
        return not_a_file("a pipe", "to run what comes out of it: mcpx exec - <it");
    }
    if !meta.is_file() {
        return not_a_file("a device or a socket", "name a file");
    }
    let mut head = Vec::new();
    File::open(path)
        .and_then(|f| f.take(HEAD).read_to_end(&mut head))
        .map_err(|e| Error::new(Kind::NoScript, format!("reading the script {shown}: {e}")))?;
    let head = match std::str::from_utf8(&head) {
        Ok(text) => text,
        // The head may end within a character.
        Err(e) if e.error_len().is_none() && head.len() as u64 == HEAD => {
            std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(e) => {
            return Err(Error::new(
                Kind::Usage,
                format!("the script {shown} is not UTF-8 text: the byte at {} cannot be", e.valid_up_to()),
            )
            .hint("convert it, for instance with iconv"));
        }
    };
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let language = match extension {
        "ts" | "mts" | "cts" => Some(Language::TypeScript),
        "js" | "mjs" | "cjs" => Some(Language::JavaScript),
        "jsx" | "tsx" => Some(Language::Jsx),
        _ => None,
    };
    let Some(line) = shebang(head, path)? else {
        if let Some(command) = interpreters.get(extension).filter(|_| !extension.is_empty()) {
            let words = command_words(extension, command)?;
            return Ok((target(words, language, "interpreter"), EnvChange::default()));
        }
        if let Some(language) = language {
            return Ok((Target::Js { language, prefer: None }, EnvChange::default()));
        }
        let by_extension = BY_EXTENSION.iter().find(|(e, _)| *e == extension);
        let Some((_, program)) = by_extension else {
            return Err(Error::new(Kind::NoScript, format!("nothing says what runs the script {shown}")).hint(
                "begin it with a line such as #!/usr/bin/env python3, or give it an extension: .ts, .js, .sh, .py",
            ));
        };
        let target = Target::Interpreter { program: program.into(), args: Vec::new(), how: "interpreter" };
        return Ok((target, EnvChange::default()));
    };
    let (words, change) = parse(line, path)?;
    Ok((target(words, language, "shebang"), change))
}

/// What a command of at least one word means.
fn target(words: Vec<String>, language: Option<Language>, how: &'static str) -> Target {
    let base = Path::new(&words[0]).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let prefer = JsKind::from_word(base);
    if prefer.is_some() || base == "mcpx" {
        return Target::Js { language: language.unwrap_or(Language::JavaScript), prefer };
    }
    let mut words = words.into_iter().map(OsString::from);
    let program = words.next().unwrap_or_default();
    Target::Interpreter { program, args: words.collect(), how }
}

/// The words of a command under `script.interpreter`.
fn command_words(extension: &str, command: &Value) -> Result<Vec<String>> {
    let words: Option<Vec<String>> = match command {
        Value::String(text) => split(text),
        Value::Array(items) => items.iter().map(|i| i.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    words.filter(|w| w.first().is_some_and(|p| !p.is_empty())).ok_or_else(|| {
        Error::new(
            Kind::Config,
            format!("script.interpreter.{extension}: expected a command, such as \"ruby -w\" or a list of its words"),
        )
    })
}

/// Whether an interpreter is one of Python, by its name.
pub fn is_python(program: &Path) -> bool {
    let name = interpreter_name(program);
    name.starts_with("python") || name.starts_with("pypy")
}

/// The text behind `#!`.
fn shebang<'a>(head: &'a str, path: &Path) -> Result<Option<&'a str>> {
    let text = head.strip_prefix('\u{feff}').unwrap_or(head);
    let Some(rest) = text.strip_prefix("#!") else { return Ok(None) };
    let end = rest.find('\n').unwrap_or(rest.len());
    let line = rest[..end].trim();
    if end + 2 > SHEBANG {
        return Err(Error::new(
            Kind::Usage,
            format!("the first line of the script {} is longer than {SHEBANG} bytes, which is all that a system reads of it", path.display()),
        )
        .hint("shorten the path of the interpreter, or use #!/usr/bin/env"));
    }
    // `#![…]` is an attribute of some languages.
    Ok((!line.is_empty() && !line.starts_with('[')).then_some(line))
}

/// The words of a first line: the program and its arguments, and what `env` is asked to change.
fn parse(line: &str, path: &Path) -> Result<(Vec<String>, EnvChange)> {
    let wrong = |what: &str| {
        Error::new(Kind::Usage, format!("the first line of the script {}: {what}: #!{line}", path.display()))
    };
    let (program, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim();
    let mut change = EnvChange::default();
    if Path::new(program).file_name() != Some(OsStr::new("env")) {
        // The system hands over everything behind the program as one argument.
        let mut words = vec![program.to_owned()];
        words.extend((!rest.is_empty()).then(|| rest.to_owned()));
        return Ok((words, change));
    }
    let mut words: std::collections::VecDeque<String> =
        split(rest).ok_or_else(|| wrong("a quote is not closed"))?.into();
    while let Some(word) = words.front().cloned() {
        let mut take = || words.pop_front().unwrap_or_default();
        if word == "-i" || word == "-" || word == "--ignore-environment" {
            take();
            change.clear = true;
        } else if word == "-u" || word == "--unset" {
            take();
            change.unset.push(words.pop_front().ok_or_else(|| wrong("env -u names no variable"))?);
        } else if let Some(name) = word.strip_prefix("--unset=").or_else(|| word.strip_prefix("-u")) {
            take();
            change.unset.push(name.to_owned());
        } else if word == "-S"
            || word == "--split-string"
            || word == "-v"
            || word == "--debug"
            || word == "--"
        {
            take();
        } else if let Some(more) = word.strip_prefix("--split-string=").or_else(|| word.strip_prefix("-S")) {
            take();
            words.push_front(more.to_owned());
        } else if word.starts_with('-') {
            return Err(wrong(&format!("env has no option {word} that mcpx knows")));
        } else if let Some((name, value)) = word.split_once('=') {
            take();
            change.set.push((name.to_owned(), value.to_owned()));
        } else {
            break;
        }
    }
    if words.is_empty() {
        return Err(wrong("env names no program"));
    }
    Ok((words.into(), change))
}

/// Splits as `env -S` does: blanks between words, quotes and backslashes around them. Nothing when a quote stays open.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().push(chars.next()?),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The base name of an interpreter, as `MCPX_RUNTIME` gives it.
pub fn interpreter_name(program: &Path) -> String {
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// The file's absolute path without links in its directory; a script's own name stays, since some look at it.
pub fn absolute(path: &Path) -> PathBuf {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    dir.canonicalize().map_or_else(|_| path.to_owned(), |d| d.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dir(PathBuf);
    impl Dir {
        fn new(name: &str) -> Dir {
            let dir = std::env::temp_dir().join(format!("mcpx-dispatch-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(&dir).unwrap();
            Dir(dir)
        }
        fn look(&self, name: &str, text: &[u8]) -> Result<(Target, EnvChange)> {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            inspect(&path, &serde_json::json!({"rb2": "ruby -w", "js": ["tsx"], "odd": 1, "x": "/opt/bun"}))
        }
    }
    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn other(program: &str, args: &[&str], how: &'static str) -> Target {
        Target::Interpreter { program: program.into(), args: args.iter().map(OsString::from).collect(), how }
    }
    fn js(language: Language, prefer: Option<JsKind>) -> Target {
        Target::Js { language, prefer }
    }

    #[test]
    fn extensions_and_first_lines_decide() {
        let dir = Dir::new("decide");
        let target = |name: &str, text: &str| dir.look(name, text.as_bytes()).unwrap().0;
        assert_eq!(target("a.ts", "let a"), js(Language::TypeScript, None));
        assert_eq!(target("a.mjs", "#!/usr/bin/env node\n"), js(Language::JavaScript, Some(JsKind::Node)));
        assert_eq!(target("a.tsx", ""), js(Language::Jsx, None));
        assert_eq!(
            target("tool", "#!/usr/bin/env -S deno run --allow-net\n"),
            js(Language::JavaScript, Some(JsKind::Deno))
        );
        assert_eq!(target("tool", "#!/usr/bin/env -S mcpx run\n"), js(Language::JavaScript, None));
        assert_eq!(target("a.sh", "echo"), other("sh", &[], "interpreter"));
        assert_eq!(
            target("a.py", "#!/usr/bin/python3 -u -x\r\nprint()"),
            other("/usr/bin/python3", &["-u -x"], "shebang")
        );
        assert_eq!(
            target("a", "\u{feff}#!/usr/bin/env -S bash -e \"a b\"\n"),
            other("bash", &["-e", "a b"], "shebang")
        );
        assert_eq!(target("a.js", "#!/bin/sh\n"), other("/bin/sh", &[], "shebang"));
        assert_eq!(target("a.rb2", ""), other("ruby", &["-w"], "interpreter"));
        assert_eq!(target("a.js", ""), other("tsx", &[], "interpreter"));
        assert_eq!(target("a.x", ""), js(Language::JavaScript, Some(JsKind::Bun)));
        assert_eq!(dir.look("a.odd", b"").unwrap_err().exit_code(), 65);
        let e = dir.look("a", b"text").unwrap_err();
        assert_eq!(e.exit_code(), 127);
        assert!(e.to_string().contains("#!/usr/bin/env"), "{e}");
    }

    #[test]
    fn env_in_the_first_line_changes_the_environment() {
        let dir = Dir::new("env");
        let (target, change) =
            dir.look("a.ts", b"#!/usr/bin/env -i -u A --unset=B X=1 -S deno run\n").unwrap();
        assert_eq!(target, js(Language::TypeScript, Some(JsKind::Deno)));
        assert_eq!(
            change,
            EnvChange {
                clear: true,
                unset: vec!["A".into(), "B".into()],
                set: vec![("X".into(), "1".into())]
            }
        );
        let env = Env::from_pairs([("A", "1"), ("C", "2")]);
        assert_eq!(change.apply(&env), Env::from_pairs([("X", "1")]));
        let (_, change) = dir.look("b", b"#!/usr/bin/env -uA sh\n").unwrap();
        assert_eq!(change.apply(&env), Env::from_pairs([("C", "2")]));
        for bad in [
            "#!/usr/bin/env\n",
            "#!/usr/bin/env -S \"sh\n",
            "#!/usr/bin/env --frob sh\n",
            "#!/usr/bin/env -u\n",
        ] {
            assert_eq!(dir.look("b", bad.as_bytes()).unwrap_err().exit_code(), 2, "{bad}");
        }
    }

    #[test]
    fn what_is_no_script_is_told_apart() {
        let dir = Dir::new("bad");
        let inspect = |path: &Path| inspect(path, &Value::Null);
        assert_eq!(inspect(&dir.0.join("none.ts")).unwrap_err().exit_code(), 127);
        assert!(inspect(&dir.0).unwrap_err().message().contains("directory"));
        assert!(inspect(Path::new("/dev/null")).unwrap_err().message().contains("device"));
        assert!(dir.look("b.ts", b"// \xff\xfe").unwrap_err().message().contains("UTF-8"));
        let mut long = vec![b'a'; 4095];
        long.extend("ü".as_bytes());
        assert!(dir.look("b.ts", &long).is_ok(), "the head may end within a character");
        let line = format!("#!/{}\n", "x/".repeat(200));
        assert!(dir.look("b", line.as_bytes()).unwrap_err().message().contains("255"));
    }
}
