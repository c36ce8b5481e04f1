//! Checks what lies on this machine: directories and files, the disk, runtimes,
//! the way to the network, and which secrets programs would see.

use super::super::cx::{Cx, World, own_path};
use super::{Level, Report};
use crate::config::inherit::inherited;
use crate::config::{Transport, servers};
use crate::error::Result;
use crate::paths::Dirs;
use crate::proc;
use crate::script::permissions::Permissions;
use crate::script::profiles;
use crate::script::runtimes::{self, JsKind, Search};
use crate::settings::{self, bytes_text};
use crate::util::Env;
use serde_json::Map;
use std::fs::{self, Permissions as Mode};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Which binary this is, and whether another one comes first on PATH.
pub fn version(cx: &Cx, report: &mut Report) -> Result<()> {
    let own = own_path()?;
    let what = format!("mcpx {} at {}", env!("CARGO_PKG_VERSION"), own.display());
    report.add(Level::Ok, "version", "", what);
    let found = proc::find_program("mcpx".as_ref(), &cx.env, Path::new("/")).ok();
    match found.map(|p| p.canonicalize().unwrap_or(p)) {
        Some(path) if path != own.canonicalize().unwrap_or(own) => report.todo(
            Level::Warning,
            "version",
            "",
            format!("the mcpx on PATH is another one: {}", path.display()),
            "remove one of them, or put the right one first on PATH: editors and scripts take that",
        ),
        None => report.todo(
            Level::Info,
            "version",
            "",
            "there is no mcpx on PATH",
            "put it there if editors or scripts are to find it by name",
        ),
        _ => {}
    }
    Ok(())
}

/// The directories that mcpx keeps: ours, closed to others, and writable.
pub fn directories(dirs: &Dirs, fix: bool, report: &mut Report) {
    for (name, dir) in [("state", &dirs.state), ("cache", &dirs.cache), ("runtime", &dirs.runtime)] {
        let shown = dir.display();
        let Ok(meta) = fs::symlink_metadata(dir) else {
            // It is made when it is needed; whether that can be done shows its nearest parent.
            let parent = dir.ancestors().skip(1).find(|p| p.exists());
            if let Some(Err(e)) = parent.map(proc::may_write) {
                let what = format!("the {name} directory {shown} cannot be made: {e}");
                let todo = "name another one: MCPX_STATE_DIR, MCPX_CACHE_DIR";
                report.todo(Level::Error, "files", name, what, todo);
            }
            continue;
        };
        if !meta.is_dir() {
            let what = format!("the {name} directory {shown} is no directory");
            report.todo(Level::Error, "files", name, what, "move it away; mcpx makes a directory there");
        } else if meta.uid() != proc::uid() {
            let what = format!("the {name} directory {shown} belongs to user {}", meta.uid());
            report.todo(Level::Error, "files", name, what, format!("chown {} {shown}", proc::uid()));
        } else if let Err(e) = proc::may_write(dir) {
            let what = format!("the {name} directory {shown} cannot be written to: {e}");
            report.todo(Level::Error, "files", name, what, format!("chmod u+w {shown}, or name another one"));
        } else if meta.mode() & 0o077 != 0 {
            close(dir, meta.mode() & 0o700, name, "directory", fix, report);
        } else {
            report.add(Level::Ok, "files", name, format!("the {name} directory is {shown}"));
        }
        if name != "cache" {
            private_files(dir, fix, report);
        }
    }
}

/// What daemons leave in a directory is for their user alone.
fn private_files(dir: &Path, fix: bool, report: &mut Report) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(meta) = entry.path().symlink_metadata() else { continue };
        let ours = name.starts_with("daemon-") && !meta.is_symlink() && meta.uid() == proc::uid();
        if ours && meta.mode() & 0o077 != 0 {
            close(&entry.path(), meta.mode() & 0o700, &name, "file", fix, report);
        }
    }
}

/// Takes the rights of others away, or says how.
fn close(path: &Path, mode: u32, subject: &str, kind: &str, fix: bool, report: &mut Report) {
    let shown = path.display();
    if fix && fs::set_permissions(path, Mode::from_mode(mode)).is_ok() {
        report.fixed.push(format!("closed {shown} to others"));
        report.add(Level::Ok, "files", subject, format!("the {kind} {shown} is closed to others now"));
        return;
    }
    let todo = format!("chmod go-rwx {shown}, or mcpx doctor --fix");
    report.todo(Level::Warning, "files", subject, format!("the {kind} {shown} is open to others"), todo);
}

/// Configuration files with secrets in them that others may read.
pub fn secret_files(world: &World, fix: bool, report: &mut Report) {
    for path in super::files(world) {
        let Ok(meta) = fs::metadata(path) else { continue };
        if meta.mode() & 0o044 == 0 || meta.uid() != proc::uid() {
            continue;
        }
        let blocks = servers::blocks(path).unwrap_or_default();
        let secret: Vec<&str> = blocks
            .iter()
            .filter(|(_, block)| servers::masked(block) != **block)
            .map(|(name, _)| name.as_str())
            .collect();
        if secret.is_empty() {
            continue;
        }
        let what = format!("others can read the values of {} in {}", secret.join(", "), path.display());
        let todo = format!("keep secrets in variables (${{TOKEN}}), or chmod go-rwx {}", path.display());
        // Not repaired: that a file is shared may be meant.
        let _ = fix;
        report.todo(Level::Info, "secrets", "", what, todo);
    }
}

/// Proxies and certificate bundles that the environment names.
pub fn network(env: &Env, report: &mut Report) {
    for name in [
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "DENO_CERT",
    ] {
        let Some(path) = env.text(name) else { continue };
        match fs::metadata(path) {
            Ok(_) => report.add(Level::Info, "network", name, format!("certificates come from {path}")),
            Err(e) => report.todo(
                Level::Warning,
                "network",
                name,
                format!("{name} names {path}, which cannot be read: {e}"),
                "correct or unset it: servers that use TLS fail, or hang, without a word",
            ),
        }
    }
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let Some(value) = env.text(name) else { continue };
        let (scheme, rest) = value.split_once("://").unwrap_or(("", value));
        // A password may stand before the host.
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        if !matches!(scheme, "" | "http" | "https" | "socks5" | "socks5h" | "socks4") || host.is_empty() {
            let what = format!("{name} is no address of a proxy: {scheme}://{host}");
            report.todo(Level::Warning, "network", name, what, "correct or unset it");
        } else {
            report.add(Level::Info, "network", name, format!("requests go through the proxy {host}"));
        }
    }
}

/// Room for state and cache.
pub fn disk(world: &World, report: &mut Report) {
    let least = world.settings.get(&settings::DOCTOR_DISK_FREE);
    for (name, dir) in [("state", &world.dirs.state), ("cache", &world.dirs.cache)] {
        let Some(there) = dir.ancestors().find(|p| p.exists()) else { continue };
        match proc::free_bytes(there) {
            Ok(free) if free < least => report.todo(
                Level::Warning,
                "disk",
                name,
                format!(
                    "only {} are free where the {name} directory is ({})",
                    bytes_text(round(free)),
                    there.display()
                ),
                "make room: state that cannot be written is lost (doctor.diskFree is the limit)",
            ),
            Ok(free) => report.add(
                Level::Ok,
                "disk",
                name,
                format!("{} are free for {name}", bytes_text(round(free))),
            ),
            Err(e) => report.add(Level::Info, "disk", name, format!("how much is free is not known: {e}")),
        }
    }
}

/// Bytes in whole megabytes, as far as there are any.
fn round(bytes: u64) -> u64 {
    const MEGABYTE: u64 = 1_000_000; // the unit that a person reads
    if bytes < MEGABYTE { bytes } else { bytes - bytes % MEGABYTE }
}

/// Which runtimes there are, and which permission profiles each can enforce.
pub fn runtimes(cx: &Cx, world: &World, report: &mut Report) {
    let search =
        Search { settings: &world.settings, env: &cx.env, cwd: &world.cwd, cache: &world.dirs.cache };
    let defined = world.settings.get(&settings::SCRIPT_PROFILES);
    let empty = Map::new();
    let names = profiles::names(defined.as_object().unwrap_or(&empty));
    let mut found = 0;
    for name in world.settings.get(&settings::SCRIPT_RUNTIME_ORDER) {
        let runtime = match runtimes::resolve(&search, &name) {
            Ok(runtime) => runtime,
            Err(_) if JsKind::from_word(&name).is_some() => {
                report.add(Level::Info, "runtime", &name, format!("{name} is not installed"));
                continue;
            }
            Err(e) => {
                report.error("runtime", &name, &e);
                continue;
            }
        };
        let version = match runtime.kind {
            JsKind::Node => match runtimes::version(&search, &runtime.bin) {
                Ok(version) => Some(version),
                Err(e) => {
                    report.error("runtime", &name, &e);
                    continue;
                }
            },
            JsKind::Deno | JsKind::Bun => None,
        };
        found += 1;
        let enforced: Vec<&str> = names
            .iter()
            .filter(|profile| {
                let permissions = Permissions::parse(profile, &defined);
                permissions.and_then(|p| p.flags(runtime.kind, version)).is_ok_and(|f| f.sandboxed)
            })
            .map(String::as_str)
            .collect();
        let version = version.map(|v| format!(" {v}")).unwrap_or_default();
        let can = match enforced.as_slice() {
            [] => "no permission profile".to_owned(),
            some => some.join(", "),
        };
        let what = format!("{}{version} at {} can enforce {can}", runtime.kind.word(), runtime.bin.display());
        report.add(Level::Ok, "runtime", &name, what);
    }
    if found == 0 {
        report.todo(
            Level::Warning,
            "runtime",
            "",
            "there is no JavaScript runtime, so mcpx exec cannot run anything",
            "install deno, bun or node, or name one under script.runtimes; mcpx call needs none",
        );
    }
}

/// What a variable's name has in it that speaks of a secret.
const SECRETIVE: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
];

/// Which variables that look like secrets each server's program would see. Names only, never values.
pub fn secrets(cx: &Cx, world: &World, report: &mut Report) {
    for def in world.config.servers.iter().filter(|d| d.enabled && d.problem.is_none()) {
        let Transport::Stdio { env: own, .. } = &def.transport else { continue };
        let all = vec!["*".to_owned()];
        let patterns = def.options.inherit_env.as_ref().unwrap_or(&all);
        let seen = inherited(patterns, &cx.env);
        let names: Vec<String> = seen
            .iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .filter(|name| SECRETIVE.iter().any(|s| name.to_uppercase().contains(s)))
            // Those that its own definition gives are meant for it.
            .filter(|name| !own.iter().any(|(given, _)| given == name))
            .collect();
        if !names.is_empty() {
            report.todo(
                Level::Info,
                "secrets",
                &def.name,
                format!("its program sees {}", names.join(", ")),
                "deny what it has no need of: \"mcpx\": {\"inheritEnv\": [\"!NAME\"]}",
            );
        }
    }
}
