//! Random kills at random moments, and more callers than servers: short here, long
//! with `make soak`. What a round does follows from a seed, which is printed;
//! MCPX_SOAK_SEED repeats it.

use crate::harness::{Runtime, World, alive, signal, wait_until};
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;

/// How many rounds; those of an ordinary test run take some seconds.
fn rounds(short: usize) -> usize {
    std::env::var("MCPX_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(short)
}

/// It runs for long.
fn long() -> bool {
    std::env::var_os("MCPX_SOAK").is_some()
}

/// Numbers that look random and can be repeated: xorshift.
struct Dice(u64);

impl Dice {
    fn new(name: &str) -> Dice {
        let given = std::env::var("MCPX_SOAK_SEED").ok().and_then(|s| s.parse().ok());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = given.unwrap_or(now.as_nanos() as u64 | 1);
        eprintln!("{name}: MCPX_SOAK_SEED={seed}");
        Dice(seed)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn world() -> World {
    World::fake(&[])
        .and_fake("stubborn", &["--ignore-eof", "--ignore-term", "--setsid-grandchild", "--fork-grandchild"])
        .with(Runtime::Bun)
        .setting(
            "pool",
            json!({"stopGrace": "50ms", "killGrace": "50ms", "coolDownMin": "1ms", "coolDownMax": "10ms"}),
        )
}

/// Who is killed in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Daemon,
    Command,
    Script,
    Server,
    Nobody,
}

/// Starts something, and kills somebody a random moment later.
fn round(world: &World, dice: &mut Dice, serial: usize, victims: &[Victim]) {
    let server = ["fake", "stubborn"][dice.below(2) as usize];
    let script = format!("for (let i = 0; i < 20; i++) await {server}.args({{n: {serial} + i / 100}})");
    let call = [format!("{server}.args"), format!("n:={serial}")];
    let hang = [format!("{server}.sleep"), "ms:=100".to_owned()];
    let words: Vec<&str> = match dice.below(4) {
        0 => vec!["exec", &script],
        1 => vec!["call", &call[0], &call[1]],
        2 => vec!["call", &hang[0], &hang[1]],
        _ => vec!["restart"],
    };
    let running = world.mcpx(words.iter().copied()).any_stderr().start();
    std::thread::sleep(Duration::from_micros(dice.below(120_000)));
    let kill = |pid: Option<u32>| {
        if let Some(pid) = pid.filter(|pid| alive(*pid)) {
            signal(pid, libc::SIGKILL);
        }
    };
    let processes = world.processes();
    let victim = victims[dice.below(victims.len() as u64) as usize];
    let guard = dice.below(4) == 0;
    match victim {
        Victim::Daemon => {
            let daemon = processes.iter().find(|p| p.args.get(1).is_some_and(|a| a == "daemon"));
            if guard {
                kill(processes.iter().find(|p| p.args.get(1).is_some_and(|a| a == "guard")).map(|p| p.pid));
            }
            kill(daemon.map(|p| p.pid));
        }
        Victim::Command => running.signal(libc::SIGKILL),
        Victim::Script => kill(processes.iter().find(|p| p.parent == running.pid()).map(|p| p.pid)),
        Victim::Server => kill(processes.iter().find(|p| p.mentions("--record")).map(|p| p.pid)),
        Victim::Nobody => {}
    }
    let output = running.wait();
    assert!(output.status != 70, "a bug in mcpx after {victim:?} was killed: {output}");
}

/// It works as if nothing had been.
fn still_works(world: &World) {
    wait_until("a call to succeed", || {
        let output = world.mcpx(["call", "stubborn.echo", "text=fine"]).any_stderr().output();
        (output.status == 0 && output.stdout() == "fine\n").then_some(())
    });
}

#[test]
fn random_kills_leave_nothing_and_no_call_is_sent_twice() {
    use Victim::{Command, Daemon, Nobody, Script, Server};
    let world = world();
    let mut dice = Dice::new("random kills");
    let rounds = rounds(20);
    for serial in 0..rounds {
        round(&world, &mut dice, serial, &[Daemon, Command, Script, Server, Nobody]);
        if serial % 10 == 9 {
            still_works(&world);
        }
    }
    still_works(&world);
    let _ = world.mcpx(["stop", "--all"]).any_stderr().run();
    wait_until("every process to end", || world.processes().is_empty().then_some(()));
    for server in ["fake", "stubborn"] {
        let mut seen = HashSet::new();
        for call in world.received(server, "tools/call") {
            let n = &call["params"]["arguments"]["n"];
            assert!(n.is_null() || seen.insert(n.to_string()), "{server} was called twice with {n}");
        }
    }
    let left: Vec<String> = std::fs::read_dir(world.state())
        .unwrap()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|name| name != "log" && !name.ends_with(".log") && !name.ends_with(".lock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// How many descriptors and threads a process has.
fn holdings(pid: u32) -> (usize, usize) {
    let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count);
    (count("fd"), count("task"))
}

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

#[test]
fn a_daemon_that_survives_keeps_no_thread_and_no_descriptor() {
    use Victim::{Command, Nobody, Script, Server};
    let world = world();
    let mut dice = Dice::new("a surviving daemon");
    still_works(&world);
    let daemon = world.daemons()[0].pid;
    let at_rest = || {
        let _ = world.mcpx(["restart"]).any_stderr().run();
    };
    at_rest();
    let before = wait_until("the daemon to rest", || {
        let now = holdings(daemon);
        std::thread::sleep(Duration::from_millis(50));
        (now == holdings(daemon)).then_some(now)
    });
    let (rounds, mut highest) = (rounds(20), 0);
    for serial in 0..rounds {
        round(&world, &mut dice, serial, &[Command, Script, Server, Nobody]);
        highest = highest.max(resident_kb(daemon));
    }
    still_works(&world);
    assert_eq!(world.daemons()[0].pid, daemon, "it is the same one");
    at_rest();
    wait_until("it to give back what it took", || {
        let now = holdings(daemon);
        (now.0 <= before.0 && now.1 <= before.1).then_some(())
    });
    eprintln!("after {rounds} rounds: {} kB resident, at most {highest} kB", resident_kb(daemon));
}

#[test]
fn many_scripts_share_few_servers_and_each_gets_its_own_answers() {
    let (scripts, calls) = if long() { (64, 100) } else { (8, 20) };
    let world = World::fake(&[]).and_fake("second", &[]).and_fake("third", &[]).with(Runtime::Bun);
    let running: Vec<_> = (0..scripts)
        .map(|n| {
            let code = format!(
                "const all = [fake, second, third]; let good = 0; \
                 for (let i = 0; i < {calls}; i++) {{ \
                   const text = '{n}-' + i; \
                   const answer = await all[i % 3].echo({{text}}); \
                   if (JSON.stringify(answer).includes(text)) good++; \
                 }} return good"
            );
            world.mcpx(["exec", &code]).limit(Duration::from_secs(300)).start()
        })
        .collect();
    for running in running {
        let output = running.wait();
        assert_eq!((output.status, output.stdout().trim()), (0, calls.to_string().as_str()), "{output}");
    }
    let received: usize =
        ["fake", "second", "third"].iter().map(|s| world.received(s, "tools/call").len()).sum();
    assert_eq!(received, scripts * calls);
    for server in ["fake", "second", "third"] {
        assert_eq!(world.started(server).len(), 1, "one process for all of them");
    }
    eprintln!("{scripts} scripts: {} kB resident", resident_kb(world.daemons()[0].pid));
}

#[test]
fn a_slow_server_slows_nobody_else_and_a_full_line_says_so() {
    let world =
        World::fake(&[]).and_fake("quick", &[]).setting("pool", json!({"queue": 2, "sharing": "exclusive"}));
    let slow: Vec<_> = (0..3)
        .map(|n| {
            let running = world.mcpx(["call", "fake.hang"]).any_stderr().start();
            // In order: the first is in, the others wait.
            wait_until("it to be in line", || {
                let status = world.mcpx(["--json", "status"]).run().json();
                let row = status["instances"].as_array()?.iter().find(|i| i["server"] == "fake")?.clone();
                (row["inFlight"] == 1 && row["queue"] == n).then_some(())
            });
            running
        })
        .collect();
    let refused = world.mcpx(["call", "fake.echo", "text=x"]).status(69).any_stderr().run();
    refused.says(&["2 callers wait", "pool.queue"]);
    for n in 0..20 {
        world.mcpx(["call", "quick.echo", &format!("text={n}")]).stdout(&format!("{n}\n")).check();
    }
    // All that while the slow ones were in and in line.
    let status = world.mcpx(["--json", "status"]).run().json();
    let row = status["instances"].as_array().unwrap().iter().find(|i| i["server"] == "fake").unwrap().clone();
    assert_eq!((&row["inFlight"], &row["queue"]), (&json!(1), &json!(2)));
    for running in slow {
        running.signal(libc::SIGKILL);
        let _ = running.wait();
    }
    wait_until("those who left to free the line", || {
        let output = world.mcpx(["call", "fake.echo", "text=free"]).any_stderr().output();
        (output.status == 0).then_some(())
    });
}
