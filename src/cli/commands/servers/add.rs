//! `mcpx servers add`: a new server, by a program or by an address.

use super::super::super::args::usage;
use super::super::super::cx::Cx;
use super::super::super::out::note;
use super::{afterwards, announce, listener, target};
use crate::config::servers::{self, How};
use crate::error::Result;
use serde_json::{Map, Value, json};

/// Adds a server to a file.
pub fn add(cx: &mut Cx, name: &str, what: &[String]) -> Result<u8> {
    let block = block(cx, what)?;
    let world = cx.world()?;
    let path = target(cx, world)?;
    let force = cx.inv.has("force");
    if let Some(def) = world.config.server(name).filter(|_| !force) {
        let message = format!("there is a server \"{name}\" already, {}:{}", def.source.display(), def.line);
        return Err(usage(message)
            .server(name)
            .hint("--force replaces it, or hides it where it is in a file further away"));
    }
    let client = listener(cx);
    let change = servers::put(&path, name, &block, How { replace: force, private: cx.inv.has("user") })?;
    let told = announce(client);
    let after = afterwards(cx)?;
    let def = after.server(name);
    if let Some(problem) = def.and_then(|d| d.problem.as_ref()) {
        note(&format!("it cannot be used as yet: {}", problem.message()));
    }
    match def {
        Some(def) if def.source.as_path() != change.path => {
            note(&format!("the one in {}:{} is nearer, and counts", def.source.display(), def.line))
        }
        _ => {}
    }
    let verb = if change.there { "replaced" } else { "added" };
    if cx.json() {
        cx.out.json(&json!({
            "ok": true, "server": name, "path": change.path, "change": verb,
            "newFile": change.new_file, "reloaded": told,
        }))?;
    } else {
        cx.out.line(&format!("{verb} {name} in {}", change.path.display()))?;
    }
    Ok(0)
}

/// The block that the words and flags describe.
fn block(cx: &Cx, what: &[String]) -> Result<Value> {
    let mut block = Map::new();
    let is_url = |w: &str| ["http://", "https://"].iter().any(|p| w.to_ascii_lowercase().starts_with(p));
    let first = what.first().map(String::as_str).unwrap_or_default();
    let of = |flag: &str| cx.inv.values(flag).next().is_some();
    if is_url(first) {
        if what.len() > 1 {
            return Err(usage("an address stands alone")
                .hint("to start a program that takes one: mcpx servers add NAME -- PROGRAM ADDRESS"));
        }
        for flag in ["env", "cwd"] {
            if of(flag) {
                return Err(usage(format!("--{flag} is for a program, not for an address")));
            }
        }
        block.insert("url".into(), first.into());
    } else {
        if let Some((scheme, _)) = first.split_once("://") {
            return Err(usage(format!(
                "mcpx speaks to an address with http:// or https://, not {scheme}://"
            ))
            .hint("to start a program that takes it: mcpx servers add NAME -- PROGRAM ADDRESS"));
        }
        if !cx.inv.dashes {
            let words: Vec<&str> = what.iter().map(String::as_str).collect();
            return Err(usage(format!("{first:?} is no address, and -- is missing in front of a program"))
                .hint(format!("mcpx servers add NAME -- {}, or NAME https://HOST/PATH", words.join(" "))));
        }
        if of("header") {
            return Err(usage("--header is for an address, not for a program"));
        }
        block.insert("command".into(), first.into());
        if what.len() > 1 {
            block.insert("args".into(), what[1..].into());
        }
    }
    let env = pairs(cx, "env", "=", "KEY=VALUE")?;
    if !env.is_empty() {
        block.insert("env".into(), env.into());
    }
    if let Some(cwd) = cx.inv.text("cwd")? {
        block.insert("cwd".into(), cwd.into());
    }
    let headers = pairs(cx, "header", ":", "'NAME: VALUE'")?;
    if !headers.is_empty() {
        block.insert("headers".into(), headers.into());
    }
    if let Some(text) = cx.inv.text("description")? {
        block.insert("description".into(), text.into());
    }
    let mut own = Map::new();
    for flag in ["scope", "sharing"] {
        if let Some(text) = cx.inv.text(flag)? {
            own.insert(flag.into(), text.into());
        }
    }
    own.extend(offered(cx)?);
    if !own.is_empty() {
        block.insert("mcpx".into(), own.into());
    }
    Ok(block.into())
}

/// What the flags say of which tools are offered, and to whom: members of an `mcpx` block.
pub fn offered(cx: &Cx) -> Result<Map<String, Value>> {
    const LISTS: [(&str, &str); 4] = [
        ("profile", "profiles"),
        ("tools", "tools"),
        ("exclude-tools", "excludeTools"),
        ("extra-include-tools", "extraIncludeTools"),
    ];
    let mut out = Map::new();
    for (flag, member) in LISTS {
        let mut list: Vec<Value> = Vec::new();
        for typed in cx.inv.values(flag) {
            let text = super::super::super::args::utf8(typed, &format!("the value of --{flag}"))?;
            // An expression may have commas of its own; an empty text is the empty list.
            match text.starts_with('/') {
                true => list.push(text.into()),
                false => {
                    list.extend(text.split(',').map(str::trim).filter(|p| !p.is_empty()).map(Value::from))
                }
            }
        }
        if cx.inv.has(flag) {
            out.insert(member.into(), list.into());
        }
    }
    Ok(out)
}

/// The values of a flag that takes a name and a text.
fn pairs(cx: &Cx, flag: &str, between: &str, form: &str) -> Result<Map<String, Value>> {
    let mut out = Map::new();
    for typed in cx.inv.values(flag) {
        let text = super::super::super::args::utf8(typed, &format!("the value of --{flag}"))?;
        match text.split_once(between) {
            Some((name, value)) if !name.trim().is_empty() => {
                let value = if between == ":" { value.trim() } else { value };
                out.insert(name.trim().into(), value.into());
            }
            // What was typed may be a secret: it is not repeated.
            _ => return Err(usage(format!("--{flag} takes {form}"))),
        }
    }
    Ok(out)
}
