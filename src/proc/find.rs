//! Finds a program the way a shell does, and says what it searched when it
//! finds none. Starts nothing.

use super::ourselves::{LINK, own_program};
use crate::error::{Error, Kind, Result};
use crate::util::Env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What execvp(3) searches when there is no PATH.
const PATH_WITHOUT_PATH: &str = "/usr/local/bin:/bin:/usr/bin";

/// The absolute path of the program `name`: with a slash in it, taken from
/// `cwd`; else the first executable file of that name in the environment's
/// `PATH`. The error ([`Kind::Unavailable`]) names the PATH that was searched.
pub fn find_program(name: &OsStr, env: &Env, cwd: &Path) -> Result<PathBuf> {
    let shown = Path::new(name).display();
    if name.is_empty() {
        return Err(Error::new(Kind::Unavailable, "the name of the program is empty"));
    }
    if name.as_bytes().contains(&b'/') {
        let path = cwd.join(name);
        return match usable(&path) {
            Ok(()) => Ok(path),
            // A definition that stands for mcpx itself, on a machine without /proc.
            Err(Unusable::Missing) if path == Path::new(LINK) => own_program()
                .map_err(|e| Error::new(Kind::Unavailable, format!("finding this very program: {e}"))),
            Err(Unusable::Missing) => {
                Err(Error::new(Kind::Unavailable, format!("there is no program {}", path.display())))
            }
            Err(Unusable::Other(why)) => {
                Err(Error::new(Kind::Unavailable, format!("{} cannot be started: {why}", path.display())))
            }
        };
    }
    let path = env.get("PATH");
    let searched = path.unwrap_or(OsStr::new(PATH_WITHOUT_PATH));
    let mut rejected = None;
    for dir in std::env::split_paths(searched) {
        // An empty element means the working directory, and so does a relative one start there.
        let candidate = cwd.join(dir).join(name);
        match usable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(Unusable::Missing) => {}
            Err(Unusable::Other(why)) => {
                rejected.get_or_insert((candidate, why));
            }
        }
    }
    let searched = Path::new(searched).display();
    let (place, looked) = match path {
        Some(_) => ("on PATH", format!("PATH is {searched}")),
        None => ("and PATH is not set", format!("searched {searched}")),
    };
    Err(match rejected {
        Some((candidate, why)) => Error::new(
            Kind::Unavailable,
            format!("the command {shown} cannot be started: {}: {why}", candidate.display()),
        )
        .hint(looked),
        None => Error::new(Kind::Unavailable, format!("the command {shown} was not found {place}"))
            .hint(match shown.to_string().split_once(' ') {
                Some((program, _)) => {
                    format!("this is looked for as one name; to start {program}, put what follows it into \"args\"")
                }
                None => format!("install {shown}, give its absolute path, or extend PATH ({looked})"),
            }),
    })
}

enum Unusable {
    Missing,
    Other(String),
}

/// Whether a path names a file that may be executed.
pub fn is_program(path: &Path) -> bool {
    usable(path).is_ok()
}

fn usable(path: &Path) -> Result<(), Unusable> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Err(Unusable::Missing);
        }
        Err(e) => return Err(Unusable::Other(e.to_string())),
    };
    if meta.is_dir() {
        return Err(Unusable::Other("it is a directory".into()));
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Err(Unusable::Other("it is not executable".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path_env(path: &str) -> Env {
        Env::from_pairs([("PATH", path)])
    }

    #[test]
    fn the_first_executable_on_the_path_wins() {
        let found =
            find_program(OsStr::new("sh"), &path_env("/nowhere:/bin:/usr/bin"), Path::new("/")).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
        let found = find_program(OsStr::new("sh"), &Env::default(), Path::new("/")).unwrap();
        assert!(found.ends_with("sh") && found.is_absolute());
    }

    #[test]
    fn a_relative_name_or_element_starts_at_the_working_directory() {
        let found = find_program(OsStr::new("./bin/sh"), &path_env(""), Path::new("/")).unwrap();
        assert!(found.is_file() && found.is_absolute());
        assert!(find_program(OsStr::new("sh"), &path_env("bin"), Path::new("/")).is_ok());
        assert!(find_program(OsStr::new("sh"), &path_env(""), Path::new("/bin")).is_ok());
    }

    #[test]
    fn a_whole_command_line_is_told_from_a_name() {
        let miss =
            find_program(OsStr::new("npx -y server"), &path_env("/nowhere"), Path::new("/")).unwrap_err();
        let hint = miss.hint_text().unwrap();
        assert!(hint.contains("to start npx, put what follows it into \"args\""), "{hint}");
    }

    #[test]
    fn a_miss_names_the_path_and_what_to_do() {
        let e = find_program(OsStr::new("no-such-thing"), &path_env("/a:/b"), Path::new("/")).unwrap_err();
        assert_eq!(e.kind(), Kind::Unavailable);
        assert_eq!(e.message(), "the command no-such-thing was not found on PATH");
        assert!(e.hint_text().unwrap().contains("extend PATH"));
        let e = find_program(OsStr::new("no-such-thing"), &Env::default(), Path::new("/")).unwrap_err();
        assert!(e.message().contains("PATH is not set"), "{e}");
    }

    #[test]
    fn what_is_there_but_cannot_run_is_said() {
        let e = find_program(OsStr::new("passwd"), &path_env("/etc"), Path::new("/")).unwrap_err();
        assert!(e.message().contains("/etc/passwd: it is not executable"), "{e}");
        let e = find_program(OsStr::new("/etc"), &path_env(""), Path::new("/")).unwrap_err();
        assert!(e.message().contains("/etc cannot be started: it is a directory"), "{e}");
        let e = find_program(OsStr::new("x/y"), &path_env(""), Path::new("/tmp")).unwrap_err();
        assert_eq!(e.message(), "there is no program /tmp/x/y");
    }
}
