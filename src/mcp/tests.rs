//! The client against servers that are small shell scripts: real processes,
//! real pipes, and every kind of bad behaviour.

use super::*;
use crate::config::{ServerDef, ServerOptions, Transport};
use crate::error::{Error, Kind};
use crate::proc::{alive, start_ticks};
use crate::settings::Settings;
use crate::util::Env;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

/// Reads a line at a time; `$id` is its id. `$1` runs for each line that is not the handshake.
const SERVER: &str = r#"
say() { printf '%s\n' "$1"; }
answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
while read -r line; do
  rest=${line#*\"id\":}; id=${rest%%,*}
  case $line in
    *'"method":"initialize"'*)
      answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"},"instructions":"be brief"}';;
    *'"method":"notifications/initialized"'*) ;;
    *) eval "$1";;
  esac
done
"#;

fn def(command: &str, args: &[&str]) -> ServerDef {
    ServerDef {
        alias_of: None,
        document: None,
        name: "fixture".into(),
        transport: Transport::Stdio {
            command: command.into(),
            args: args.iter().map(|&a| a.to_owned()).collect(),
            env: vec![("FROM_DEF".into(), "yes".into())],
            cwd: None,
        },
        enabled: true,
        description: None,
        options: ServerOptions { start_timeout: Some(LONG), ..ServerOptions::default() },
        source: Arc::new(PathBuf::from("/test")),
        line: 1,
        digest: String::new(),
        problem: None,
    }
}

fn env() -> Env {
    Env::from_pairs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("INHERITED", "too")])
}

fn connect(def: &ServerDef, settings: &Settings, hooks: Hooks) -> Result<Client, Error> {
    Client::start(Connect { def, env: &env(), settings, hooks, remembered: None }, &Cancel::new())
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let env = Env::default();
    let mut layers = crate::settings::Layers::new(&env);
    layers.flags = pairs
        .iter()
        .map(|(key, text)| crate::settings::FlagValue {
            key: (*key).to_owned(),
            text: (*text).to_owned(),
            spelled: format!("--{key}"),
        })
        .collect();
    Settings::resolve(layers).unwrap()
}

/// A client of a server that does `script` for each request.
pub(super) fn serve(script: &str) -> Client {
    connect(&def("sh", &["-c", SERVER, "sh", script]), &Settings::defaults(), Hooks::default()).unwrap()
}

fn start_failure(script: &str, timeout: Duration) -> Error {
    let mut def = def("sh", &["-c", script]);
    def.options.start_timeout = Some(timeout);
    connect(&def, &settings(&[("pool.killGrace", "50ms")]), Hooks::default()).err().expect("it must fail")
}

fn params(value: Value) -> Option<Box<RawValue>> {
    Some(RawValue::from_string(value.to_string()).unwrap())
}

pub(super) fn call(client: &Client, tool: &str) -> Result<String, Error> {
    let cancel = Cancel::new();
    let options = Options::new(&cancel).timeout(LONG);
    client
        .request("tools/call", params(json!({"name": tool, "arguments": {}})), options)
        .map(|raw| raw.get().to_owned())
}

fn assert_gone(pid: u32, ticks: Option<u64>) {
    let deadline = Instant::now() + LONG;
    while ticks.is_some_and(|t| alive(pid, t)) {
        assert!(Instant::now() < deadline, "the server {pid} is still there");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_starts_answers_and_stops() {
    let client = serve(r#"answer '{ "n": 1.0, "env": "'$FROM_DEF$INHERITED'" }'"#);
    assert_eq!(client.protocol(), "2025-06-18");
    assert_eq!(client.server_info().unwrap()["name"], "sh");
    assert_eq!(client.instructions().as_deref(), Some("be brief"));
    assert_eq!(call(&client, "x").unwrap(), r#"{ "n": 1.0, "env": "yestoo" }"#, "byte for byte");
    client.ping(LONG).unwrap();
    let pid = client.pid().unwrap();
    let ticks = start_ticks(pid);
    assert!(!client.is_closed() && ticks.is_some());
    client.stop();
    assert!(client.is_closed());
    assert!(start_ticks(pid) != ticks, "reaped");
    let e = call(&client, "x").unwrap_err();
    assert_eq!(e.kind(), Kind::Unavailable);
    assert!(e.message().contains("the call of x was not sent: the server fixture was stopped"), "{e}");
}

#[test]
fn a_forgotten_client_leaves_no_process() {
    let client = serve("answer 1");
    let pid = client.pid().unwrap();
    let ticks = start_ticks(pid);
    drop(client);
    assert_gone(pid, ticks);
}

#[test]
fn many_calls_at_once_get_their_own_answers() {
    let client = serve(r#"tool=${line#*name\":\"}; answer "\"${tool%%\"*}\"""#);
    let threads: Vec<_> = (0..16)
        .map(|t| {
            let client = client.clone();
            std::thread::spawn(move || {
                for n in 0..20 {
                    let tool = format!("tool-{t}-{n}");
                    assert_eq!(call(&client, &tool).unwrap(), format!("\"{tool}\""));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

#[test]
fn errors_keep_the_servers_words() {
    let client = serve(
        r#"case $line in *bad*) code=-32602;; *) code=-32000;; esac
           say "{\"id\":$id,\"error\":{\"code\":$code,\"message\":\"no luck\",\"data\":7}}""#,
    );
    let e = call(&client, "t").unwrap_err();
    assert_eq!((e.kind(), e.server_name(), e.tool_name()), (Kind::Tool, Some("fixture"), Some("t")));
    assert!(e.message().contains("no luck (JSON-RPC error -32000)"), "{e}");
    assert_eq!(e.raw_value().unwrap()["data"], 7);
    assert_eq!(call(&client, "bad").unwrap_err().kind(), Kind::Usage);
}

#[test]
fn noise_duplicates_and_strays_change_nothing() {
    let client = serve(
        r#"say 'warning: {half'; say ''; say '[]'; say 'null'; printf '\377\376\n'
           say '{"id":99999,"result":1}'; say "{\"id\":\"$id\",\"result\":1}"
           answer 2; answer 3; say 'debug: done'"#,
    );
    for _ in 0..3 {
        assert_eq!(call(&client, "x").unwrap(), "2");
    }
    assert!(!client.is_closed());
}

#[test]
fn a_servers_own_questions_are_answered_before_it_goes_on() {
    let roots: Arc<dyn Fn() -> Vec<PathBuf> + Send + Sync> = Arc::new(|| vec!["/work".into()]);
    let script = r#"
        case $line in *tools/call*) ;; *) exit 9;; esac
        call=$id
        say '{"jsonrpc":"2.0","id":"q 1","method":"roots/list"}'; read -r roots
        say '{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}'; read -r sampling
        id=$call; answer "[$roots,$sampling]""#;
    let hooks = Hooks { roots, ..Hooks::default() };
    let client = connect(&def("sh", &["-c", SERVER, "sh", script]), &Settings::defaults(), hooks).unwrap();
    let both: Value = serde_json::from_str(&call(&client, "x").unwrap()).unwrap();
    assert_eq!(both[0]["id"], "q 1");
    assert_eq!(both[0]["result"]["roots"][0]["uri"], "file:///work");
    assert_eq!((&both[1]["id"], &both[1]["error"]["code"]), (&json!(2), &json!(-32601)));
}

#[test]
fn a_question_that_names_no_call_is_of_the_one_that_does_not_end() {
    // It asks because of the slow call when the quick one has come, which ends a little later.
    let script = r#"case $line in
        *slow*) slow=$id;;
        *quick*) say '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}'
            sleep 0.1; answer 1;;
        *accept*) id=$slow; answer 2;;
        esac"#;
    let hooks = Hooks { asked: Some(Arc::new(|_| ())), ..Hooks::default() };
    let client = connect(&def("sh", &["-c", SERVER, "sh", script]), &Settings::defaults(), hooks).unwrap();
    let (tell, told) = mpsc::channel();
    let asking = |name: &'static str| {
        let (client, tell) = (client.clone(), tell.clone());
        let (send, receive) = mpsc::channel();
        let work = move || {
            let cancel = Cancel::new();
            let asked: Asked = Arc::new(move |question: Question| {
                tell.send(name).unwrap();
                question.answer(Ok(json!({"action": "accept"})));
            });
            let options = Options { asked: Some(asked), ..Options::new(&cancel).timeout(LONG) };
            send.send(client.request("tools/call", params(json!({"name": name})), options)).unwrap();
        };
        crate::proc::thread::spawn(name, work).unwrap();
        move || receive.recv_timeout(LONG).unwrap().unwrap().get().to_owned()
    };
    let slow = asking("slow");
    while client.0.peer.pending.is_empty() {
        std::thread::yield_now();
    }
    let quick = asking("quick");
    assert_eq!(quick(), "1");
    assert_eq!(told.recv_timeout(LONG).unwrap(), "slow");
    assert_eq!(slow(), "2");
}

#[test]
fn what_is_said_of_a_time_out_is_the_time_that_there_was_at_first() {
    let cancel = Cancel::new();
    let options = Options::new(&cancel).timeout(LONG).left(Some(Duration::ZERO)).left(Some(Duration::ZERO));
    assert_eq!((options.timeout, options.limit()), (Some(Duration::ZERO), LONG));
}

#[test]
fn a_time_out_and_a_caller_that_leaves_are_told_to_the_server() {
    let script = r#"
        case $line in
          *notifications/cancelled*) log="$log $line";;
          *slow*) say "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$id,\"progress\":1}}";;
          *) answer "\"$(printf %s "$log" | tr '"' "'")\"";;
        esac"#;
    let client = serve(script);
    let slow = || params(json!({"name": "slow"}));
    let cancel = Cancel::new();
    let options = Options::new(&cancel).timeout(Duration::from_millis(30));
    let e = client.request("tools/call", slow(), options).unwrap_err();
    assert_eq!(e.kind(), Kind::Timeout);
    assert!(e.message().contains("did not answer the call of slow within 30ms"), "{e}");
    // The report proves that the call has arrived before it is cancelled.
    let inside = cancel.clone();
    let options = Options { progress: Some(Arc::new(move |_| inside.cancel())), ..Options::new(&cancel) };
    let e = client.request("tools/call", slow(), options).unwrap_err();
    assert_eq!(e.kind(), Kind::Cancelled);
    let log = call(&client, "log").unwrap();
    assert_eq!(log.matches("notifications/cancelled").count(), 2, "{log}");
    assert!(log.contains("'requestId':2,'reason':'timed out'"), "{log}");
    assert!(log.contains("'requestId':3,'reason':'the caller left'"), "{log}");
    // A call that is cancelled from the start is not sent at all, or at least ends.
    let e = client.request("tools/call", slow(), Options::new(&cancel)).unwrap_err();
    assert_eq!(e.kind(), Kind::Cancelled);
}

#[test]
fn progress_reaches_the_caller_in_order() {
    let client = serve(
        r#"token=${line#*progressToken\":}; token=${token%%\}*}
           for n in 1 2 3; do
             say "{\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$token,\"progress\":$n,\"message\":\"m\"}}"
           done; answer true"#,
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&seen);
    let cancel = Cancel::new();
    let progress: Arc<dyn Fn(Value) + Send + Sync> = Arc::new(move |v| into.lock().unwrap().push(v));
    let options = Options { progress: Some(progress), ..Options::new(&cancel).timeout(LONG) };
    client.request("tools/call", params(json!({"name": "x"})), options).unwrap();
    let expected: Vec<_> = (1..=3).map(|n| json!({"progress": n, "message": "m"})).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[test]
fn a_death_in_mid_call_leaves_the_outcome_unknown() {
    let client = serve("echo one >&2; echo two >&2; exit 3");
    let (tell, told) = mpsc::channel();
    client.on_close(Box::new(move |reason| tell.send(reason).unwrap()));
    let e = call(&client, "write").unwrap_err();
    assert_eq!((e.kind(), e.exit_code()), (Kind::OutcomeUnknown, 76));
    let said = "exited (exit code 3); its stderr ends with:\n  one\n  two";
    assert!(e.message().starts_with(&format!("the server fixture {said}")), "{e}");
    assert_eq!(told.recv_timeout(LONG).unwrap(), said);
    assert_eq!(client.closed_reason().unwrap(), said);
    assert_eq!(client.stderr_tail(), "one\ntwo\n");
    let e = call(&client, "write").unwrap_err();
    assert_eq!(e.kind(), Kind::Unavailable, "this one was not sent");
    let client = serve("kill -9 $$");
    let e = client.list_tools(&Options::new(&Cancel::new())).unwrap_err();
    assert_eq!(e.kind(), Kind::Unavailable, "to list is harmless");
    assert!(e.message().contains("was ended by signal 9 (SIGKILL)"), "{e}");
}

#[test]
fn a_server_that_closes_its_output_is_ended() {
    let client = serve("exec >&-; sleep 1000");
    let pid = client.pid().unwrap();
    let ticks = start_ticks(pid);
    let e = call(&client, "x").unwrap_err();
    assert!(e.message().contains("closed its standard output while it was running"), "{e}");
    assert_gone(pid, ticks);
}

#[test]
fn a_stranger_that_keeps_the_pipe_open_does_not_hide_the_end() {
    // It ends only when the other one has a group of its own: before that, it would be ended along with it.
    let client =
        serve("exec 3>&1; pid=$(setsid sh -c 'echo $$; exec 1>&3; exec sleep 20' &); echo $pid >&2; exit 4");
    let e = call(&client, "x").unwrap_err();
    assert!(e.message().contains("exited (exit code 4)"), "{e}");
    let deadline = Instant::now() + LONG;
    let stranger: u32 = loop {
        // On a busy machine its last words may come after its end.
        match client.stderr_tail().trim().parse() {
            Ok(pid) => break pid,
            Err(e) => assert!(Instant::now() < deadline, "{e}: {}", client.stderr_tail()),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    crate::proc::kill(stranger, libc::SIGKILL).unwrap();
}

#[test]
fn big_messages_pass_whole_both_ways() {
    let client = serve(
        r#"case $line in *big*) printf '{"id":%s,"result":"' "$id"; head -c 8000000 /dev/zero | tr '\0' x; say '"}';;
           *) answer ${#line};; esac"#,
    );
    let text = call(&client, "big").unwrap();
    assert_eq!(text.len(), 8_000_002);
    assert!(text[1..8_000_001].bytes().all(|b| b == b'x'));
    let long = params(json!({"name": "length", "arguments": {"text": "y".repeat(1_000_000)}}));
    let cancel = Cancel::new();
    let options = Options::new(&cancel).timeout(LONG);
    let length: usize = client.request("tools/call", long, options).unwrap().get().parse().unwrap();
    assert!(length > 1_000_000);
    assert_eq!(call(&client, "big").unwrap().len(), 8_000_002);
}

#[test]
fn a_message_over_the_limit_ends_its_call_and_not_the_server() {
    let script = r#"case $line in
        *big*) printf '{"result":"'; head -c 300000 /dev/zero | tr '\0' x; say "\",\"id\":$id}";;
        *) answer 1;; esac"#;
    let settings = settings(&[("mcp.maxMessage", "64KiB")]);
    let client = connect(&def("sh", &["-c", SERVER, "sh", script]), &settings, Hooks::default()).unwrap();
    let e = call(&client, "big").unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge);
    assert!(e.message().contains("mcp.maxMessage"), "{e}");
    assert_eq!(call(&client, "small").unwrap(), "1");
}

#[test]
fn all_pages_of_tools_are_read_and_what_is_broken_is_left_out() {
    let client = serve(
        r#"case $line in
             *'"cursor":"b"'*) answer '{"tools":[{"name":"three","description":7},{"name":"one"},"x"],"nextCursor":""}';;
             *) answer '{"tools":[{"name":"one","title":"One"},{"name":"two","inputSchema":{"type":"object"}}],"nextCursor":"b"}';;
           esac"#,
    );
    let tools = client.list_tools(&Options::new(&Cancel::new())).unwrap().tools;
    let names: Vec<_> = tools.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(tools[0].input_schema, json!({}));
}

#[test]
fn a_list_without_end_is_ended_and_a_server_without_tools_has_none() {
    let client = serve(r#"answer '{"tools":[],"nextCursor":"again"}'"#);
    let e = client.list_tools(&Options::new(&Cancel::new())).unwrap_err();
    assert!(e.message().contains("a cursor that it had given before"), "{e}");
    let client = serve(r#"say "{\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"what?\"}}""#);
    assert!(client.list_tools(&Options::new(&Cancel::new())).unwrap().tools.is_empty());
}

#[test]
fn changed_tools_are_told() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let tools_changed: Arc<dyn Fn() + Send + Sync> = Arc::new(move || tell.lock().unwrap().send(()).unwrap());
    let script = r#"say '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; answer 1"#;
    let hooks = Hooks { tools_changed, ..Hooks::default() };
    let client = connect(&def("sh", &["-c", SERVER, "sh", script]), &Settings::defaults(), hooks).unwrap();
    call(&client, "x").unwrap();
    told.recv_timeout(LONG).unwrap();
}

#[test]
fn a_start_that_fails_says_why() {
    let e = connect(&def("no-such-server", &[]), &Settings::defaults(), Hooks::default()).err().unwrap();
    assert_eq!(e.kind(), Kind::Unavailable);
    assert_eq!(e.message(), "starting the server fixture: the command no-such-server was not found on PATH");
    assert!(e.hint_text().unwrap().contains("extend PATH"));

    let e = start_failure("echo 'Error: no module x' >&2; exit 1", LONG);
    assert_eq!(
        e.message(),
        "the server fixture exited (exit code 1) before it answered initialize; its stderr ends with:\n  Error: no module x"
    );

    let e = start_failure("echo 'Usage: server [options]'; exit 2", LONG);
    assert!(
        e.message().contains("exited (exit code 2) before it answered initialize; on its stdout is a line"),
        "{e}"
    );
    assert!(e.message().contains("\"Usage: server [options]\"") && e.hint_text().is_some(), "{e}");

    let e = start_failure("echo waiting >&2; exec sleep 1000", Duration::from_millis(100));
    assert_eq!(e.kind(), Kind::Timeout);
    assert!(e.message().starts_with("the server fixture did not answer initialize within 100ms"), "{e}");
    assert!(e.hint_text().unwrap().contains("startTimeout"));

    let e = start_failure("echo hello; echo there; exec sleep 1000", Duration::from_millis(300));
    assert!(e.message().contains("2 lines that are no MCP messages, first: \"hello\""), "{e}");

    let e = start_failure(
        r#"read -r line; echo '{"id":1,"result":{"protocolVersion":"2031-01-01"}}'; read -r line"#,
        LONG,
    );
    assert_eq!(e.kind(), Kind::Unavailable);
    assert!(
        e.message().contains("speaks MCP revision \"2031-01-01\"") && e.message().contains("2025-11-25"),
        "{e}"
    );

    let e = start_failure(
        r#"read -r line; echo '{"id":1,"error":{"code":-32022,"message":"too old"}}'; read -r line"#,
        LONG,
    );
    assert_eq!(e.kind(), Kind::Unavailable);
    assert!(e.message().contains("fixture answered initialize: too old (JSON-RPC error -32022)"), "{e}");
}

#[test]
fn a_start_may_be_cancelled_and_leaves_nothing() {
    let file = std::env::temp_dir().join(format!("mcpx-cancel-{}", std::process::id()));
    let cancel = Cancel::new();
    let leaver = std::thread::spawn({
        let (file, cancel) = (file.clone(), cancel.clone());
        move || {
            let deadline = Instant::now() + LONG;
            loop {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                if text.ends_with('\n') {
                    let pid: u32 = text.trim().parse().unwrap();
                    let ticks = start_ticks(pid);
                    cancel.cancel();
                    return (pid, ticks);
                }
                assert!(Instant::now() < deadline, "the server did not start");
                std::thread::yield_now();
            }
        }
    });
    let def = def("sh", &["-c", &format!("echo $$ > {}; exec sleep 1000", file.display())]);
    let settings = Settings::defaults();
    let connect =
        Connect { def: &def, env: &env(), settings: &settings, hooks: Hooks::default(), remembered: None };
    let e = Client::start(connect, &cancel).err().unwrap();
    assert_eq!(e.kind(), Kind::Cancelled);
    let (pid, ticks) = leaver.join().unwrap();
    assert!(ticks.is_some());
    assert_gone(pid, ticks);
    std::fs::remove_file(file).unwrap();
}
