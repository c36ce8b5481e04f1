//! `--typecheck`: has a checker look at a script before it runs, with the types
//! of the servers' tools. Knows no types itself.

use super::cx::Cx;
use super::out::note;
use super::progress::Progress;
use super::schemas;
use crate::catalog::{ServerSchema, ts};
use crate::error::{Error, Kind, Result};
use crate::proc::{self, Exit};
use crate::script::{self, Local, RunSpec, Source};
use crate::util::{digest, write_atomic};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// What inline code is called in reports.
const SOURCE: &str = "<exec>";

/// What makes inline code a module that may await and return.
const HEAD: &str = "import type {} from \"./mcpx.d.ts\";export default async () => {";

/// A type checker.
enum Checker {
    Deno(PathBuf),
    Tsc(PathBuf),
}

/// Checks the script; says so where nobody can.
///
/// # Errors
/// `Script` with the checker's words when the types do not fit.
pub fn check(cx: &Cx, spec: &RunSpec) -> Result<()> {
    let world = cx.world()?;
    let file = match &spec.source {
        Source::Inline(_) => None,
        Source::Script(wanted) => {
            let local = Local { settings: &world.settings, env: &cx.env, dirs: &world.dirs };
            let place = script::place(wanted, spec, &local)?;
            if place.language != "javascript" {
                note(&format!("--typecheck: nothing checks the types of a script for {}", place.language));
                return Ok(());
            }
            Some(place.path)
        }
    };
    let anchor = file.as_deref().and_then(Path::parent).unwrap_or(&spec.cwd);
    let Some(checker) = find(cx, anchor) else {
        note(
            "--typecheck: there is no checker here: neither deno nor tsc is on PATH, and no directory above the \
             script has node_modules/.bin/tsc; bun and node check no types",
        );
        return Ok(());
    };
    let progress = Progress::start("checking types");
    let known = schemas::load(cx, schemas::select(world, &[])?)?;
    let mut typed: Vec<(&str, &ServerSchema)> = Vec::new();
    for k in &known {
        if let Ok(schema) = &k.tools {
            typed.push((&k.namespace.ident, schema));
        }
    }
    let types = ts::client_dts(&typed);
    let code = match &spec.source {
        // Its first line stays the first.
        Source::Inline(code) => {
            let (imports, rest) = script::parted(code);
            format!("{HEAD}\n")
                .replace("export default", &format!("{imports}export default"))
                .trim_end()
                .to_owned()
                + &rest
                + "\n};\n"
        }
        Source::Script(_) => {
            let url = file.as_deref().map(script::launcher::file_url).unwrap_or_default();
            format!("import type {{}} from \"./mcpx.d.ts\";\nimport \"{url}\";\n")
        }
    };
    let dir = world.dirs.cache.join("check").join(digest([types.as_bytes(), code.as_bytes()], 16));
    let entry = dir.join("exec.ts");
    let fail = |e: std::io::Error| Error::unwritable("what is checked", &e);
    crate::paths::make_private(&dir).map_err(fail)?;
    write_atomic(&dir.join("mcpx.d.ts"), types.as_bytes(), 0o600, false).map_err(fail)?;
    write_atomic(&entry, code.as_bytes(), 0o600, false).map_err(fail)?;
    let (exit, said) = run(cx, &checker, &dir, &entry, file.as_deref(), &spec.cwd)?;
    drop(progress);
    let _ = std::fs::remove_dir_all(&dir);
    if exit == Exit::Code(0) {
        return Ok(());
    }
    let head = code.split('\n').next().unwrap_or_default().len()
        - match &spec.source {
            Source::Inline(inline) => script::parted(inline).1.split('\n').next().unwrap_or_default().len(),
            Source::Script(_) => 0,
        };
    Err(Error::new(
        Kind::Script,
        format!("the script's types do not fit\n{}", own_places(&said, &entry, head)),
    )
    .hint("without --typecheck it runs all the same"))
}

/// The checker that there is: deno, the project's own tsc, or one on PATH.
fn find(cx: &Cx, anchor: &Path) -> Option<Checker> {
    let on_path = |name: &str| proc::find_program(OsStr::new(name), &cx.env, anchor).ok();
    let own = anchor.ancestors().map(|dir| dir.join("node_modules/.bin/tsc")).find(|path| path.is_file());
    own.map(Checker::Tsc)
        .or_else(|| on_path("deno").map(Checker::Deno))
        .or_else(|| on_path("tsc").map(Checker::Tsc))
}

/// Runs it; its exit and its words.
fn run(
    cx: &Cx,
    checker: &Checker,
    dir: &Path,
    entry: &Path,
    file: Option<&Path>,
    cwd: &Path,
) -> Result<(Exit, String)> {
    let (program, mut args): (&PathBuf, Vec<OsString>) = match checker {
        Checker::Deno(program) => (program, vec!["check".into(), "--quiet".into(), entry.into()]),
        Checker::Tsc(program) => {
            let flags = "--noEmit --pretty false --strict --skipLibCheck --target esnext --module esnext \
                         --moduleResolution bundler --allowImportingTsExtensions --allowJs --checkJs --lib esnext,dom";
            let mut args: Vec<OsString> = flags.split_whitespace().map(OsString::from).collect();
            args.push(dir.join("mcpx.d.ts").into());
            args.push(file.unwrap_or(entry).into());
            (program, args)
        }
    };
    let fail = |what: String| Error::new(Kind::Unavailable, format!("running {}: {what}", program.display()));
    let words = dir.join("words");
    let out = File::create(&words).map_err(|e| fail(e.to_string()))?;
    let err = out.try_clone().map_err(|e| fail(e.to_string()))?;
    let mut env = cx.env.clone();
    env.set("NO_COLOR", "1");
    let child = proc::spawn(proc::Spawn {
        program: program.clone(),
        args: std::mem::take(&mut args),
        env: env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        cwd: Some(cwd.to_owned()),
        stdout: proc::Io::Fd(OwnedFd::from(out)),
        stderr: proc::Io::Fd(OwnedFd::from(err)),
        die_with_parent: true,
        ..proc::Spawn::default()
    })
    .map_err(|e| fail(e.to_string()))?;
    let exit = child.wait();
    let said = std::fs::read(&words).map_err(|e| fail(e.to_string()))?;
    Ok((exit, String::from_utf8_lossy(&said).into_owned()))
}

/// The checker's words with the user's own places: inline code has no file, and its first line begins after `head`.
fn own_places(said: &str, entry: &Path, head: usize) -> String {
    let url = script::launcher::file_url(entry);
    let path = entry.to_string_lossy();
    let named = said.replace(&url, SOURCE).replace("file://", "");
    let mut out = String::new();
    for line in named.lines() {
        // tsc tells the path from the directory that it runs in.
        let place = line.find("exec.ts(").filter(|_| line.contains(": error TS"));
        let line = match place {
            Some(at) => format!("{SOURCE}{}", &line[at + "exec.ts".len()..]),
            None => line.replace(&*path, SOURCE),
        };
        for (open, between) in [("<exec>:1:", ""), ("<exec>(1,", "")] {
            let Some(at) = line.find(open) else { continue };
            let digits: String = line[at + open.len()..].chars().take_while(char::is_ascii_digit).collect();
            if let Ok(column) = digits.parse::<usize>() {
                let own = column.saturating_sub(head).max(1);
                out.push_str(&line.replacen(&format!("{open}{digits}"), &format!("{open}{own}{between}"), 1));
                out.push('\n');
                break;
            }
        }
        if !["<exec>:1:", "<exec>(1,"].iter().any(|open| line.contains(open)) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}
