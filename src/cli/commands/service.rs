//! `mcpx service`: the daemon of a directory as a service of the user's manager.

use super::super::args::usage;
use super::super::command::{Command, Flag, Group, Rest, example};
use super::super::cx::{Cx, own_path};
use super::super::out::note;
use crate::error::{Error, Kind, Result, system_words};
use crate::proc::{self, Io, Spawn};
use crate::util::{digest, write_atomic};
use serde_json::json;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The command.
pub static COMMAND: Command = Command {
    name: "service",
    group: Group::Daemon,
    words: "install|uninstall|print",
    count: (1, 1),
    rest: Rest::Mixed,
    summary: "Have the system's manager run the daemon of a directory",
    about: "For systemd a unit of the user's, for launchd an agent. print shows what would be written; install writes \
            and starts it; uninstall stops and removes it. The program's path and PATH are those of now; secrets are \
            not written, so that a bearer token goes into the configuration. Where the manager cannot be told, the file \
            is written or removed all the same, what to run is said, and the exit code is 69.",
    flags: &[
        Flag::value(
            "dir",
            "DIRECTORY",
            "Search the configuration from here instead of the working directory",
        ),
        Flag::value("manager", "systemd|launchd", "For this manager instead of the system's own"),
    ],
    settings: &[],
    examples: &[
        example("mcpx service print", "what would be written"),
        example("mcpx service install --dir /srv/project", "for one project, from now on and at each login"),
        example("mcpx service uninstall --dir /srv/project", "and no more"),
    ],
    run,
};

/// How long the manager may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many digits tell services of directories with one name apart.
const DIGITS: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manager {
    Systemd,
    Launchd,
}

/// All that a service is made of.
struct Service {
    manager: Manager,
    name: String,
    path: PathBuf,
    text: String,
}

fn run(cx: &mut Cx) -> Result<u8> {
    let words = cx.inv.words()?;
    let verb = words[0].to_owned();
    let service = service(cx)?;
    match verb.as_str() {
        "print" => {
            if cx.json() {
                let body =
                    json!({"ok": true, "name": service.name, "path": service.path, "text": service.text});
                cx.out.json(&body)?;
            } else {
                cx.out.text(&service.text)?;
            }
            Ok(0)
        }
        "install" => install(cx, &service),
        "uninstall" => uninstall(cx, &service),
        other => Err(match crate::util::did_you_mean(other, ["install", "uninstall", "print"]) {
            Some(near) => usage(format!("mcpx service does not know {other:?}")).hint(near),
            None => usage(format!("mcpx service does not know {other:?}"))
                .hint("it takes install, uninstall or print"),
        }),
    }
}

fn service(cx: &Cx) -> Result<Service> {
    let typed = cx.inv.value("dir").map_or(Path::new("."), Path::new);
    let dir = typed.canonicalize().map_err(|e| usage(format!("--dir: {}: {e}", typed.display())))?;
    let manager = match cx.inv.text("manager")? {
        None if cfg!(target_os = "macos") => Manager::Launchd,
        None | Some("systemd") => Manager::Systemd,
        Some("launchd") => Manager::Launchd,
        Some(other) => return Err(usage(format!("--manager is systemd or launchd, not {other:?}"))),
    };
    let base = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let base: String =
        base.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let name = format!("mcpx-{base}-{}", digest([dir.as_os_str().as_bytes()], DIGITS));
    let dirs = cx.dirs()?;
    let home = || {
        dirs.home
            .clone()
            .ok_or_else(|| Error::new(Kind::Unavailable, "finding the home directory: HOME is not set"))
    };
    let program = text(&own_path()?)?;
    let directory = text(&dir)?;
    let mut variables = Vec::new();
    for name in ["PATH", "MCPX_CONFIG", "MCPX_STATE_DIR", "MCPX_CACHE_DIR"] {
        variables.extend(cx.env.text(name).map(|value| (name, value.to_owned())));
    }
    let (path, text) = match manager {
        Manager::Systemd => {
            let config = dirs.config.as_ref().and_then(|c| c.parent()).map(Path::to_owned);
            let config = config.map_or_else(|| home().map(|h| h.join(".config")), Ok)?;
            (
                config.join("systemd/user").join(format!("{name}.service")),
                unit(&program, &directory, &variables),
            )
        }
        Manager::Launchd => {
            let path = home()?.join("Library/LaunchAgents").join(format!("{name}.plist"));
            (path, agent(&name, &program, &directory, &variables))
        }
    };
    Ok(Service { manager, name, path, text })
}

/// What goes into a file of text.
fn text(path: &Path) -> Result<String> {
    let text = path.to_str().filter(|t| !t.contains('\n'));
    text.map(str::to_owned)
        .ok_or_else(|| usage(format!("{} cannot be written into a service file", path.display())))
}

/// A unit for systemd's user manager.
fn unit(program: &str, directory: &str, variables: &[(&str, String)]) -> String {
    // systemd.service(5) and systemd.syntax(7): what quotes, specifiers and variables are made of is escaped.
    let quoted = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
        format!("\"{escaped}\"")
    };
    let word = |text: &str| quoted(text).replace('$', "$$");
    let mut out = format!(
        "[Unit]\nDescription=mcpx daemon for {}\n\n[Service]\nType=exec\nExecStart={} daemon --dir {}\n",
        directory.replace('%', "%%"),
        word(program),
        word(directory)
    );
    for (name, value) in variables {
        let _ = writeln!(out, "Environment={}", quoted(&format!("{name}={value}")));
    }
    // The daemon ends its servers itself; what it cannot the manager does.
    out.push_str(
        "Restart=on-failure\nKillMode=mixed\nTimeoutStopSec=15\n\n[Install]\nWantedBy=default.target\n",
    );
    out
}

/// An agent for launchd.
fn agent(name: &str, program: &str, directory: &str, variables: &[(&str, String)]) -> String {
    let xml = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words = [program, "daemon", "--dir", directory]
        .map(|w| format!("    <string>{}</string>\n", xml(w)))
        .concat();
    let variables: String = variables
        .iter()
        .map(|(name, value)| format!("    <key>{name}</key>\n    <string>{}</string>\n", xml(value)))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">\n<dict>\n  \
         <key>Label</key>\n  <string>{name}</string>\n  <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n  \
         <key>EnvironmentVariables</key>\n  <dict>\n{variables}  </dict>\n  <key>RunAtLoad</key>\n  <true/>\n  \
         <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n  \
         <key>ExitTimeOut</key>\n  <integer>15</integer>\n</dict>\n</plist>\n"
    )
}

impl Service {
    /// The commands of the manager that put it in force, or out of it.
    fn commands(&self, on: bool) -> Vec<Vec<String>> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let name = &self.name;
        match (self.manager, on) {
            (Manager::Systemd, true) => vec![
                words("systemctl --user daemon-reload"),
                words(&format!("systemctl --user enable --now {name}.service")),
            ],
            (Manager::Systemd, false) => {
                vec![words(&format!("systemctl --user disable --now {name}.service"))]
            }
            (Manager::Launchd, true) => {
                let mut load = words(&format!("launchctl bootstrap gui/{}", proc::uid()));
                load.push(self.path.display().to_string());
                vec![load]
            }
            (Manager::Launchd, false) => {
                vec![words(&format!("launchctl bootout gui/{}/{name}", proc::uid()))]
            }
        }
    }
}

fn install(cx: &mut Cx, service: &Service) -> Result<u8> {
    let fail = |e: std::io::Error| Error::unwritable(service.path.display(), &e);
    if let Some(parent) = service.path.parent() {
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    // Others may read it: there is no secret in it.
    write_atomic(&service.path, service.text.as_bytes(), 0o644, true).map_err(fail)?;
    let started = manage(cx, service, true)?;
    report(cx, service, "wrote", started)
}

fn uninstall(cx: &mut Cx, service: &Service) -> Result<u8> {
    if !service.path.exists() {
        return Err(Error::new(Kind::NotFound, format!("there is no {}", service.path.display()))
            .hint("mcpx service install writes it; --dir names the directory that it is for"));
    }
    let stopped = manage(cx, service, false)?;
    std::fs::remove_file(&service.path).map_err(|e| {
        let what = format!("removing {}: {}", service.path.display(), system_words(&e));
        Error::new(Kind::Unwritable, what)
    })?;
    report(cx, service, "removed", stopped)
}

fn report(cx: &mut Cx, service: &Service, verb: &str, managed: bool) -> Result<u8> {
    if cx.json() {
        cx.out
            .json(&json!({"ok": managed, "name": service.name, "path": service.path, "managed": managed}))?;
    } else {
        cx.out.line(&format!("{verb} {}", service.path.display()))?;
    }
    // The file is as it should be, and nothing runs by it.
    Ok(if managed { 0 } else { Kind::Unavailable.row().exit })
}

/// Has the manager follow; where it cannot, says what to run.
fn manage(cx: &Cx, service: &Service, on: bool) -> Result<bool> {
    for command in service.commands(on) {
        if let Err(why) = manager(cx, &command) {
            note(&format!("the manager was not told ({why}); run: {}", command.join(" ")));
            return Ok(false);
        }
    }
    Ok(true)
}

fn manager(cx: &Cx, words: &[String]) -> std::result::Result<(), String> {
    let program =
        proc::find_program(words[0].as_ref(), &cx.env, Path::new("/")).map_err(|e| e.message().to_owned())?;
    let child = proc::spawn(Spawn {
        program,
        args: words[1..].iter().map(OsString::from).collect(),
        env: cx.env.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        cwd: None,
        stdin: Io::Null,
        stdout: Io::Null,
        stderr: Io::Inherit,
        fds: Vec::new(),
        own_group: true,
        own_session: false,
        die_with_parent: true,
        marked: false,
    })
    .map_err(|e| format!("{}: {e}", words[0]))?;
    match child.wait_timeout(PATIENCE) {
        Some(exit) if exit.code() == 0 => Ok(()),
        Some(exit) => Err(format!("{} ended with {exit}", words[0])),
        None => {
            child.signal_group(libc::SIGKILL);
            Err(format!("{} did not end within {PATIENCE:?}", words[0]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_unit_gives_a_meaning_is_escaped() {
        let unit = unit("/opt/my \"bin\"/mcpx", "/srv/50% $HOME", &[("PATH", "/a b:/c".into())]);
        assert!(
            unit.contains(r#"ExecStart="/opt/my \"bin\"/mcpx" daemon --dir "/srv/50%% $$HOME""#),
            "{unit}"
        );
        assert!(unit.contains("Environment=\"PATH=/a b:/c\"\n"), "{unit}");
        let agent = agent("n", "/m", "/a&b<c>", &[]);
        assert!(agent.contains("<string>/a&amp;b&lt;c&gt;</string>"), "{agent}");
    }
}
