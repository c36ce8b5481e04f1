//! `mcpx auth`: logs in to HTTP servers, shows the logins, ends them.

use super::super::args::usage;
use super::super::browser;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, World};
use super::super::interrupt::Interrupt;
use super::super::out::note;
use super::super::table::{Cell, Table};
use crate::catalog::cache::Cache;
use crate::config::{ServerDef, Transport};
use crate::error::{Error, Kind, Result};
use crate::mcp::Cancel;
use crate::mcp::oauth::{Browser, LoggedIn, Login, Record, Store, forget, login};
use crate::proc;
use crate::settings;
use crate::util::{Env, did_you_mean, iso8601, now_ms};
use serde_json::{Value, json};
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, mpsc};

/// The command.
pub static COMMAND: Command = Command {
    name: "auth",
    group: Group::Setup,
    words: "[status|login|logout] [<server>]",
    count: (0, 2),
    rest: Rest::Mixed,
    summary: "Log in to HTTP servers that want it, and show the logins",
    about: "status shows each HTTP server and whether there is a login. login <server> opens the address where access is \
            granted and waits for it; on a machine without a browser, open that address anywhere and, with --paste, \
            paste where the browser ended. logout <server> gives the tokens back and forgets them.\n\n\
            Tokens are kept below the state directory, readable by you alone, and renewed by themselves. In CI, use \
            \"mcpx\": {\"oauth\": {\"grant\": \"client_credentials\", …}} in the server's definition, which needs no login.",
    flags: &[
        Flag::switch("no-browser", "login: print the address and open nothing"),
        Flag::switch("paste", "login: read where the browser ended from standard input"),
        Flag::value("timeout", "DURATION", "login: how long to wait").of("oauth.loginTimeout"),
    ],
    settings: &["oauth.browser", "oauth.callbackPort", "oauth.clientMetadataUrl"],
    examples: &[
        example("mcpx auth", "which servers there are logins for"),
        example("mcpx auth login tracker", "log in with a browser"),
        example("mcpx auth login tracker --paste", "log in where there is no browser"),
        example("mcpx auth logout tracker", "end it"),
    ],
    run,
};

fn run(cx: &mut Cx) -> Result<u8> {
    let words: Vec<String> = cx.inv.words()?.iter().map(|w| (*w).to_owned()).collect();
    let (verb, name) = match &words[..] {
        [] => ("status", None),
        [verb] => (verb.as_str(), None),
        [verb, name, ..] => (verb.as_str(), Some(name.as_str())),
    };
    match verb {
        "status" => status(cx, name),
        "login" => log_in(cx, name),
        "logout" => log_out(cx, name),
        other => Err(match did_you_mean(other, ["status", "login", "logout"]) {
            Some(near) => usage(format!("auth has no {other}")).hint(near),
            None => usage(format!("auth has no {other}; it has status, login and logout")),
        }),
    }
}

/// The server of that name, which has an address.
fn http_server<'w>(world: &'w World, verb: &str, name: Option<&str>) -> Result<&'w ServerDef> {
    let Some(name) = name else {
        return Err(usage(format!("auth {verb} needs the name of a server")).hint("mcpx auth lists them"));
    };
    let Some(def) = world.config.server(name) else {
        let error = Error::new(Kind::NotFound, format!("no server \"{name}\" is configured"));
        let names = world.config.servers.iter().map(|def| def.name.as_str());
        return Err(match did_you_mean(name, names) {
            Some(near) => error.hint(near),
            None => error.hint("mcpx servers lists them"),
        });
    };
    if let Some(problem) = &def.problem {
        return Err(problem.clone());
    }
    match def.transport {
        Transport::Http { .. } => Ok(def),
        Transport::Stdio { .. } => {
            Err(usage(format!("the server {name} is a program that runs here; it needs no login")))
        }
    }
}

fn store(cx: &Cx, def: &ServerDef) -> Result<Store> {
    let url = match &def.transport {
        Transport::Http { url, .. } => url.as_str(),
        Transport::Stdio { .. } => "",
    };
    Ok(Store::new(&cx.dirs()?.state, &def.name, url))
}

fn status(cx: &mut Cx, name: Option<&str>) -> Result<u8> {
    let world = cx.world()?;
    let defs: Vec<&ServerDef> = match name {
        Some(_) => vec![http_server(world, "status", name)?],
        None => {
            let all = world.config.servers.iter().map(|def| &**def);
            all.filter(|def| def.problem.is_none() && matches!(def.transport, Transport::Http { .. }))
                .collect()
        }
    };
    let mut rows = Vec::new();
    for def in defs {
        rows.push(row(def, &store(cx, def)?.load()));
    }
    if cx.json() {
        cx.out.json(&json!({"ok": true, "servers": rows}))?;
        return Ok(0);
    }
    if rows.is_empty() {
        cx.out.line("no HTTP server is configured here, so there is nothing to log in to")?;
        return Ok(0);
    }
    let mut table = Table::new(&["SERVER", "LOGIN", "UNTIL", "SCOPE", "ISSUER"]);
    for row in &rows {
        let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
        let until = row["expiresAt"].as_u64().map(iso8601).unwrap_or_default();
        table.row(vec![
            Cell::new(text("server")),
            Cell::new(text("login")),
            Cell::new(until),
            Cell::new(text("scope")),
            Cell::new(text("issuer")),
        ]);
    }
    let text = table.render(cx.width(), cx.color());
    cx.out.text(&text)?;
    Ok(0)
}

/// What may be shown of a login.
fn row(def: &ServerDef, record: &Record) -> Value {
    let own = match &def.transport {
        Transport::Http { headers, .. } => {
            headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("authorization"))
        }
        Transport::Stdio { .. } => false,
    };
    let tokens = record.tokens.as_ref();
    let ended = |at: Option<u64>| at.is_some_and(|at| at <= now_ms());
    let login = match tokens {
        _ if own => "by header",
        _ if def.options.oauth.off => "off",
        Some(tokens) if !ended(tokens.expires_at) => "yes",
        Some(tokens) if tokens.refresh.is_some() => "yes, renewed at the next call",
        Some(_) => "ended",
        None if def.options.oauth.client_credentials => "in its own name, at the next call",
        None if record.wanted.is_some() => "wanted",
        None => "no",
    };
    let mut row = json!({"server": def.name, "login": login});
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            row[key] = value;
        }
    };
    set("expiresAt", tokens.and_then(|tokens| tokens.expires_at).map(Value::from));
    set("scope", tokens.and_then(|tokens| tokens.scope.clone()).map(Value::from));
    set("issuer", record.issuer.clone().map(Value::from));
    row
}

fn log_in(cx: &mut Cx, name: Option<&str>) -> Result<u8> {
    let world = cx.world()?;
    let def = http_server(world, "login", name)?;
    let cancel = Cancel::new();
    let ending = cancel.clone();
    let interrupt = Interrupt::listen(move || ending.cancel())?;
    let program = match cx.inv.has("no-browser") || cx.inv.has("paste") {
        true => "none".to_owned(),
        false => world.settings.get(&settings::OAUTH_BROWSER),
    };
    let person = Person {
        program,
        env: &cx.env,
        cwd: &world.cwd,
        pasted: Mutex::new(cx.inv.has("paste").then(paste)),
    };
    let state = cx.dirs()?.state;
    let request = Login { def, settings: &world.settings, env: &cx.env, state: &state, browser: &person };
    let record = match login(&request, &cancel) {
        Ok(LoggedIn::Yes(record)) => record,
        Ok(LoggedIn::NotNeeded) => {
            if cx.json() {
                cx.out.json(&json!({"ok": true, "server": def.name, "login": "not needed"}))?;
            } else {
                let text = format!("the server {} wants no login", def.name);
                cx.out.line(&text)?;
            }
            return Ok(0);
        }
        Err(error) if error.kind() == Kind::Cancelled => {
            return Ok(interrupt.exit_code().unwrap_or(error.exit_code()));
        }
        Err(error) => return Err(error),
    };
    // Somebody else may be shown other tools.
    forget_list(cx, def)?;
    // A server that failed for want of it is tried again at once.
    if let Some(client) = cx.running()? {
        client.json("POST", "/v1/restart", Some(&json!({"server": def.name})))?;
    }
    let shown = row(def, &record);
    if cx.json() {
        let mut body = json!({"ok": true});
        if let (Some(body), Some(row)) = (body.as_object_mut(), shown.as_object()) {
            body.extend(row.clone());
        }
        cx.out.json(&body)?;
    } else {
        let scope = shown["scope"].as_str().map(|scope| format!(", for {scope}")).unwrap_or_default();
        let by = shown["issuer"].as_str().unwrap_or_default();
        let text = format!("logged in to {}{scope}, by {by}", def.name);
        cx.out.line(&text)?;
    }
    Ok(0)
}

fn log_out(cx: &mut Cx, name: Option<&str>) -> Result<u8> {
    let world = cx.world()?;
    let def = http_server(world, "logout", name)?;
    let cancel = Cancel::new();
    let had = forget(&store(cx, def)?, &def.options.oauth, &cx.env, &world.settings, &cancel)?;
    forget_list(cx, def)?;
    if let Some(client) = cx.running()? {
        client.json("POST", "/v1/restart", Some(&json!({"server": def.name})))?;
    }
    if cx.json() {
        cx.out.json(&json!({"ok": true, "server": def.name, "forgotten": had}))?;
    } else {
        let text = match had {
            true => format!("logged out of {}", def.name),
            false => format!("there was no login to {}", def.name),
        };
        cx.out.line(&text)?;
    }
    Ok(0)
}

/// Forgets what is kept of a server's tools.
fn forget_list(cx: &Cx, def: &ServerDef) -> Result<()> {
    Cache::new(cx.dirs()?.cache).forget(&def.name, &def.digest);
    Ok(())
}

/// The person at the terminal, or at the browser that it can open.
struct Person<'a> {
    program: String,
    env: &'a Env,
    cwd: &'a PathBuf,
    pasted: Mutex<Option<mpsc::Receiver<String>>>,
}

impl Browser for Person<'_> {
    fn open(&self, url: &str) -> Result<()> {
        note(&format!("open this address to grant access:\n{url}"));
        if self.pasted.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            note("then paste the address at which the browser ended (it need not show a page):");
        }
        browser::open(&self.program, url, self.env, self.cwd);
        Ok(())
    }

    fn pasted(&self) -> Option<Result<String>> {
        let pasted = self.pasted.lock().unwrap_or_else(PoisonError::into_inner);
        let line = pasted.as_ref()?.try_recv();
        match line {
            Ok(line) => Some(Ok(line)),
            Err(mpsc::TryRecvError::Empty) => None,
            Err(mpsc::TryRecvError::Disconnected) => {
                Some(Err(usage("nothing was pasted: standard input has ended")))
            }
        }
    }
}

/// Reads one line of standard input on a thread of its own, since the browser may come back first.
fn paste() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    let _ = proc::thread::spawn("paste", move || {
        let mut line = String::new();
        let stdin = std::io::stdin();
        if stdin.lock().read_line(&mut line).is_ok_and(|n| n > 0) {
            let _ = send.send(line);
        }
    });
    receive
}
