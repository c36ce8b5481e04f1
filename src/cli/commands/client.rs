//! `mcpx client`: writes the typed client.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::Cx;
use super::super::out::note;
use super::super::schemas;
use crate::catalog::{ServerSchema, ts};
use crate::error::{Error, Result};
use crate::script::{self, Namespace, client_module};
use crate::util::write_atomic;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Where the client goes when nobody says.
const DEFAULT: &str = ".mcpx/client.mjs";

/// The command.
pub static COMMAND: Command = Command {
    name: "client",
    group: Group::Run,
    words: "",
    count: (0, 0),
    rest: Rest::Mixed,
    summary: "Write the typed client, for an editor or a checked-in script",
    about: "A module whose default export holds every namespace, and its declarations beside it. The same import \
            works in a script that mcpx runs and in one that deno, bun or node runs inside mcpx exec or run. The \
            extension of the path (.mjs, .js or .ts) decides what is written; .ts adds a file that re-exports the two.",
    flags: &[
        Flag::value("output", "PATH", "Where to; .mcpx/client.mjs or .mcpx/mcpx.py unless given").short('o'),
        Flag::value(
            "language",
            "NAME",
            "javascript, or python: a module for Python 3.8 and later, without types",
        ),
    ],
    settings: &[],
    examples: &[
        example("mcpx client", "write .mcpx/client.mjs and .mcpx/client.d.mts"),
        example("mcpx client --language python -o lib/mcpx.py", "for from mcpx import tools, in Python"),
        example("mcpx client -o src/mcpx.ts", "for import tools, { demo } from \"./mcpx.ts\""),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    match cx.inv.text("language")? {
        None | Some("javascript" | "typescript" | "js" | "ts") => {}
        Some("python" | "py") => return python(cx),
        Some(other) => {
            return Err(usage(format!("--language: there is no client for {other}"))
                .hint("there are javascript and python; a shell script uses mcpx call"));
        }
    }
    let target = PathBuf::from(cx.inv.value("output").unwrap_or(DEFAULT.as_ref()));
    let files = names(&target)?;
    let world = cx.world()?;
    let known = schemas::load(cx, schemas::select(world, &[])?)?;
    let mut typed: Vec<(&str, &ServerSchema)> = Vec::new();
    let mut namespaces: Vec<Namespace> = Vec::new();
    for k in &known {
        let (name, ident) = (&k.namespace.def.name, &k.namespace.ident);
        namespaces.push(Namespace { name: name.clone(), ident: ident.clone() });
        match &k.tools {
            Ok(schema) => typed.push((ident, schema)),
            Err(e) => note(&format!("{name} has no types: {}", e.message())),
        }
    }
    let declarations = ts::client_dts(&typed);
    let reference = format!("// @ts-self-types=\"./{}\"\n", file_name(&files.types));
    let mut written = Vec::new();
    write(&files.types, &declarations, &mut written)?;
    write(&files.module, &format!("{reference}{}", client_module(&namespaces)), &mut written)?;
    if let Some(typescript) = &files.typescript {
        let module = file_name(&files.module);
        let text = format!("export * from \"./{module}\";\nexport {{ default }} from \"./{module}\";\n");
        write(typescript, &text, &mut written)?;
    }
    drop(known);
    report(cx, &written)
}

/// Says what was written.
fn report(cx: &mut Cx, written: &[PathBuf]) -> Result<u8> {
    if cx.json() {
        cx.out.json(&json!({"ok": true, "files": written}))?;
    } else {
        for path in written {
            cx.out.line(&format!("wrote {}", path.display()))?;
        }
    }
    Ok(0)
}

/// Writes the client for Python, which learns of tools when it calls them.
fn python(cx: &mut Cx) -> Result<u8> {
    let target = PathBuf::from(cx.inv.value("output").unwrap_or(".mcpx/mcpx.py".as_ref()));
    if target.extension().is_none_or(|e| e != "py") {
        return Err(usage(format!("{} does not end in .py", target.display())));
    }
    let mut written = Vec::new();
    write(&target, &script::python_module(), &mut written)?;
    report(cx, &written)
}

/// The files of one client.
struct Files {
    module: PathBuf,
    types: PathBuf,
    typescript: Option<PathBuf>,
}

fn names(target: &Path) -> Result<Files> {
    let with = |extension: &str| target.with_extension(extension);
    let extension = target.extension().and_then(|e| e.to_str()).unwrap_or_default();
    match extension {
        "mjs" => Ok(Files { module: target.to_owned(), types: with("d.mts"), typescript: None }),
        "js" => Ok(Files { module: target.to_owned(), types: with("d.ts"), typescript: None }),
        "ts" | "mts" => {
            Ok(Files { module: with("mjs"), types: with("d.mts"), typescript: Some(target.to_owned()) })
        }
        _ => Err(usage(format!("{} ends in no extension of a module", target.display()))
            .hint("-o takes a path that ends in .mjs, .js or .ts")),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn write(path: &Path, text: &str, written: &mut Vec<PathBuf>) -> Result<()> {
    let fail = |e: std::io::Error| Error::unwritable(path.display(), &e);
    if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).map_err(fail)?;
    }
    write_atomic(path, text.as_bytes(), 0o644, false).map_err(fail)?;
    written.push(path.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides_which_files() {
        let all = |path: &str| {
            let f = names(Path::new(path)).unwrap();
            [Some(f.module), Some(f.types), f.typescript]
                .into_iter()
                .flatten()
                .map(|p| p.display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(all("a/c.mjs"), ["a/c.mjs", "a/c.d.mts"]);
        assert_eq!(all("c.js"), ["c.js", "c.d.ts"]);
        assert_eq!(all("c.ts"), ["c.mjs", "c.d.mts", "c.ts"]);
        assert_eq!(names(Path::new("client")).err().unwrap().exit_code(), 2);
    }
}
