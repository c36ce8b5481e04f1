//! Opens an address in the user's browser. Knows nothing of what is behind it.

use super::out::note;
use crate::proc::{self, Io, Spawn};
use crate::util::Env;
use std::ffi::OsString;
use std::path::Path;

/// Opens an address with a program (`oauth.browser`): empty is the system's own way, `none` opens
/// nothing. Whoever has no browser here has been shown the address. Answers whether something was started.
pub fn open(program: &str, url: &str, env: &Env, cwd: &Path) -> bool {
    let default = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let name = match program {
        "none" => return false,
        "" => default,
        name => name,
    };
    let Ok(found) = proc::find_program(name.as_ref(), env, cwd) else {
        if !program.is_empty() {
            note(&format!("there is no {name} to open it with"));
        }
        return false;
    };
    let spawn = Spawn {
        program: found,
        args: vec![OsString::from(url)],
        env: env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        cwd: Some(cwd.to_owned()),
        stdin: Io::Null,
        stdout: Io::Null,
        stderr: Io::Null,
        fds: Vec::new(),
        own_group: true,
        own_session: true,
        die_with_parent: false,
        marked: false,
    };
    match proc::spawn(spawn) {
        Ok(_) => true,
        Err(e) => {
            note(&format!("{name} could not be started: {e}"));
            false
        }
    }
}
