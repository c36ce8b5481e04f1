//! Finds the processes of a world by the mark in their environment, signals
//! them, and waits for conditions.

use std::time::{Duration, Instant};

/// The variable that marks every process of a world.
pub const MARK: &str = "MCPX_TEST_WORLD";

/// A process as /proc shows it.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    /// Its arguments, the program first.
    pub args: Vec<String>,
}

impl Process {
    /// The command line, for people.
    pub fn line(&self) -> String {
        format!("{} (parent {}): {}", self.pid, self.parent, self.args.join(" "))
    }
    /// Whether some argument contains this text.
    pub fn mentions(&self, text: &str) -> bool {
        self.args.iter().any(|a| a.contains(text))
    }
}

/// The living processes whose environment carries the mark with this value.
pub fn marked(id: &str) -> Vec<Process> {
    let wanted = format!("{MARK}={id}");
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut found: Vec<Process> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            // A process that is gone, or another user's, is not ours.
            std::fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|env| env.split(|b| *b == 0).any(|pair| pair == wanted.as_bytes()))
        })
        .filter_map(describe)
        .collect();
    found.sort_by_key(|p| p.pid);
    found
}

fn describe(pid: u32) -> Option<Process> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    let parent = fields.next()?.parse().ok()?;
    let args =
        line.split(|b| *b == 0).filter(|a| !a.is_empty()).map(|a| String::from_utf8_lossy(a).into_owned());
    Some(Process { pid, parent, args: args.collect() })
}

/// Whether the process exists and has not ended (a zombie has).
pub fn alive(pid: u32) -> bool {
    describe(pid).is_some()
}

/// Lets this process, and so all that it starts, die of the usual signals. A shell
/// ignores some of them for what it starts in the background, tests perhaps included.
pub fn default_signals() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
            // SAFETY: SIG_DFL is a valid disposition and no handler runs.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    });
}

/// Sends a signal to one process.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// A program beside mcpx, killed when it is dropped.
pub struct Background(std::process::Child);

impl Background {
    /// Starts it; its output is thrown away.
    pub fn start(mut command: std::process::Command) -> Background {
        use std::process::Stdio;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Background(command.spawn().expect("a program in the background starts"))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A TCP port of this machine that nobody listens on at the moment.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}

/// Waits until `holds` gives something, asking again every few milliseconds;
/// panics with `what` when that has not happened within ten seconds.
#[track_caller]
pub fn wait_until<T>(what: &str, mut holds: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(value) = holds() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited 10 s in vain: {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}
