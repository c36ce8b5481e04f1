//! A temporary directory with a configuration, a state and a cache of its own,
//! and mcpx run in it.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where a figure is taken. Dropping it stops its daemons.
pub struct Scene {
    root: PathBuf,
}

impl Scene {
    /// An empty one.
    pub fn new() -> Scene {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static SERIAL: AtomicUsize = AtomicUsize::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let root = PathBuf::from(format!("/tmp/mxb{}-{serial}", std::process::id()));
        for dir in ["home", "p", "bin"] {
            std::fs::create_dir_all(root.join(dir)).expect("a temporary directory");
        }
        let scene = Scene { root };
        for name in ["true", "sh", "env"] {
            let path = ["/usr/bin", "/bin"].iter().map(|d| Path::new(d).join(name)).find(|p| p.exists());
            if let Some(path) = path {
                scene.link(name, &path);
            }
        }
        scene
    }

    /// With the demonstration server.
    pub fn demo(self) -> Scene {
        self.servers(json!({"demo": {"command": env!("CARGO_BIN_EXE_mcpx"), "args": ["demo-server"]}}))
    }

    /// With these servers.
    pub fn servers(self, servers: Value) -> Scene {
        self.write(".mcpx.json", &json!({"mcpServers": servers}).to_string());
        self
    }

    /// With a runtime on the PATH.
    pub fn with(self, name: &str, path: &Path) -> Scene {
        self.link(name.trim_end_matches(|c: char| c.is_ascii_digit()), path);
        self
    }

    fn link(&self, name: &str, path: &Path) {
        std::os::unix::fs::symlink(path, self.root.join("bin").join(name)).expect("a link");
    }

    /// Writes a file into the project.
    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir().join(name), text).expect("a file");
    }

    /// The project's directory.
    pub fn dir(&self) -> PathBuf {
        self.root.join("p")
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.root.join("home/.local/state/mcpx")
    }

    /// A program in this scene, its output thrown away.
    pub fn program(&self, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(words)
            .current_dir(self.dir())
            .env_clear()
            .env("HOME", self.root.join("home"))
            .env("PATH", self.root.join("bin"))
            .env("TMPDIR", &self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// mcpx in this scene.
    pub fn command(&self, words: &[&str]) -> Command {
        self.program(env!("CARGO_BIN_EXE_mcpx"), words)
    }

    /// What mcpx prints.
    pub fn output(&self, words: &[&str]) -> String {
        let output =
            self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).output().expect("mcpx runs");
        assert!(output.status.success(), "mcpx {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// How long a run of mcpx takes, from start to end.
    pub fn time(&self, words: &[&str]) -> Duration {
        timed(self.command(words), words)
    }

    /// How long a program of the PATH takes.
    pub fn time_program(&self, name: &str, words: &[&str]) -> Duration {
        timed(self.program(self.root.join("bin").join(name), words), words)
    }

    /// Stops every daemon.
    pub fn stop(&self) {
        let _ = self.command(&["stop", "--all"]).status();
    }

    /// Stops every daemon and removes the cache.
    pub fn forget(&self) {
        self.stop();
        let _ = std::fs::remove_dir_all(self.root.join("home/.cache"));
    }

    /// The daemon's pid.
    pub fn daemon(&self) -> u32 {
        let entries = std::fs::read_dir(self.state()).expect("a state directory");
        entries
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().ends_with(".json"))
            .find_map(|e| {
                let info: Value = serde_json::from_slice(&std::fs::read(e.path()).ok()?).ok()?;
                Some(info["pid"].as_u64()? as u32)
            })
            .expect("a daemon's info file")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn timed(mut command: Command, words: &[&str]) -> Duration {
    let start = Instant::now();
    let status = command.status().expect("it starts");
    let took = start.elapsed();
    assert!(status.success(), "{words:?} ended with {status}");
    took
}

/// A process's resident memory, in MB.
pub fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok()).map_or(0.0, |kb| kb * 1024.0 / 1e6)
}

/// The runtimes that are installed, under names that tell node's versions apart.
pub fn runtimes() -> Vec<(&'static str, PathBuf)> {
    let mut found: Vec<(&str, PathBuf)> = [
        ("deno", "node_modules/@deno/linux-x64-glibc/deno"),
        ("bun", "node_modules/@oven/bun-linux-x64/bin/bun"),
        ("node22", "node_modules/node22/bin/node"),
        ("node26", "node_modules/node26/bin/node"),
    ]
    .into_iter()
    .filter_map(|(name, below)| Some((name, crate::installed(below)?)))
    .collect();
    let own = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|d| d.join("node")).find(|p| p.is_file()));
    found.extend(own.map(|path| ("node", path)));
    found
}
