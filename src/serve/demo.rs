//! The demonstration MCP server (`mcpx demo-server`): JSON-RPC over a pair of
//! streams, one message a line. Knows nothing of mcpx itself: it is a server as
//! any other, small enough to try everything on.

use super::fault::INTERNAL_ERROR;
use super::lines::{self, Lines, Output, failure, success};
use super::{demo_offers, demo_tools};
use crate::mcp::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::proc::thread;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The cursor of the second page of tools.
const SECOND_PAGE: &str = "2";

/// 32 by 32 pixels, two colours: a picture that any viewer shows, in 95 bytes.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQMAAABJtOi3AAAABlBMVEUfOl/0omE7UeL7AAAAFElEQVR42mNg+A+ERBBEKmOgsnkA7b0/wU6R7xwAAAAASUVORK5CYII=";

/// Serves until `input` ends or `output` can no longer be written, and returns
/// the process's exit code: 0, or 1 when reading failed. A call that is still
/// working then is given up, as the protocol's way of stopping a server wants.
pub fn run(input: impl BufRead, output: impl Write + Send + 'static) -> u8 {
    let server = Arc::new(Server {
        output: Output::new(output),
        count: Mutex::new(0),
        working: Mutex::new(HashMap::new()),
    });
    lines::serve(&server, input, u64::MAX)
}

/// What the threads of one server share.
struct Server {
    output: Output,
    count: Mutex<i64>,
    /// The slow calls at work, by their request's id as JSON text.
    working: Mutex<HashMap<String, Arc<Stop>>>,
}

/// Tells a slow call that nobody wants its answer any more.
#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

/// A poisoned lock still holds a value that is good: each is written in one step.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lines for Server {
    fn output(&self) -> &Output {
        &self.output
    }

    fn request(self: &Arc<Server>, id: &Value, method: &str, params: &Value) -> std::io::Result<()> {
        self.send(&match method {
            "initialize" => success(id, initialize(params)),
            "ping" => success(id, json!({})),
            "tools/list" => list(id, params),
            "tools/call" => return self.call(id, params),
            _ => match demo_offers::answer(method, params) {
                Some(Ok(result)) => success(id, result),
                Some(Err((code, message))) => failure(id, code, &message),
                None => failure(id, METHOD_NOT_FOUND, &format!("no such method: {method}")),
            },
        })
    }

    fn cancelled(&self, id: &Value) {
        // Taken out at once: the id is free again for another call.
        if let Some(stop) = lock(&self.working).remove(&id.to_string()) {
            *lock(&stop.asked) = true;
            stop.changed.notify_all();
        }
    }
}

impl Server {
    fn send(&self, message: &Value) -> std::io::Result<()> {
        self.output.send(message)
    }

    fn call(self: &Arc<Server>, id: &Value, params: &Value) -> std::io::Result<()> {
        let Some(name) = params["name"].as_str() else {
            return self.send(&failure(id, INVALID_PARAMS, "params.name: the tool's name is missing"));
        };
        let none = json!({});
        let arguments = match &params["arguments"] {
            Value::Null => &none,
            given @ Value::Object(_) => given,
            _ => return self.send(&failure(id, INVALID_PARAMS, "params.arguments: expected an object")),
        };
        let known = demo_tools::pages().iter().flatten().any(|tool| tool["name"] == name);
        let result = match name {
            "slow" => return self.slow(id, params, arguments),
            "counter" => self.counter(arguments),
            "echo" => echo(arguments),
            "add" => add(arguments),
            "image" => Ok(json!({"content": [{"type": "image", "data": PICTURE, "mimeType": "image/png"}]})),
            "fail" => {
                let message = arguments["message"].as_str().unwrap_or("this tool always fails");
                Err(message.to_owned())
            }
            "forecast" => forecast(arguments),
            _ if known => Ok(text(&json!({"tool": name, "arguments": arguments}).to_string())),
            _ => return self.send(&failure(id, INVALID_PARAMS, &format!("no such tool: {name}"))),
        };
        self.send(&success(id, result.unwrap_or_else(|message| refusal(&message))))
    }

    fn counter(&self, arguments: &Value) -> Result<Value, String> {
        let by = match &arguments["by"] {
            Value::Null => 1,
            given => given.as_i64().ok_or("by: expected a whole number")?,
        };
        let mut count = lock(&self.count);
        *count = count.checked_add(by).ok_or("by: the count would no longer fit")?;
        Ok(text(&count.to_string()))
    }

    /// Starts a slow call on a thread of its own, so that the others go on.
    fn slow(self: &Arc<Server>, id: &Value, params: &Value, arguments: &Value) -> std::io::Result<()> {
        let (length, steps) = match slow_arguments(arguments) {
            Ok(both) => both,
            Err(message) => return self.send(&success(id, refusal(&message))),
        };
        let stop = Arc::new(Stop::default());
        let key = id.to_string();
        lock(&self.working).insert(key.clone(), Arc::clone(&stop));
        let token = params["_meta"]["progressToken"].clone();
        let (server, asked) = (Arc::clone(self), id.clone());
        let spawned = thread::spawn("demo-slow", move || {
            // A cancelled request gets no answer. A failed write shows in the reader's loop too.
            if server.work(length, steps, &token, &stop) {
                lock(&server.working).remove(&asked.to_string());
                let answer = text(&format!("done after {steps} steps in {} s", length.as_secs_f64()));
                let _ = server.send(&success(&asked, answer));
            }
        });
        if let Err(e) = spawned {
            lock(&self.working).remove(&key);
            return self.send(&failure(id, INTERNAL_ERROR, &format!("starting a thread: {e}")));
        }
        Ok(())
    }

    /// Waits through the steps, reporting each when there is a token; false when it was told to stop.
    fn work(&self, length: Duration, steps: u32, token: &Value, stop: &Stop) -> bool {
        let start = Instant::now();
        for step in 1..=steps {
            let until = start + length.mul_f64(f64::from(step) / f64::from(steps));
            let mut asked = lock(&stop.asked);
            while !*asked {
                let Some(left) = until.checked_duration_since(Instant::now()).filter(|d| !d.is_zero()) else {
                    break;
                };
                let waited = stop.changed.wait_timeout(asked, left);
                asked = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if *asked {
                return false;
            }
            drop(asked);
            if !token.is_null() {
                let report = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                    "progressToken": token, "progress": step, "total": steps, "message": format!("step {step} of {steps}")
                }});
                if self.send(&report).is_err() {
                    return false;
                }
            }
        }
        true
    }
}

/// A result that is one text.
fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A result that reports an error of the tool's own, wrong arguments included (as the protocol wants since 2025-11-25).
fn refusal(message: &str) -> Value {
    json!({"content": [{"type": "text", "text": message}], "isError": true})
}

/// A result with structured content, repeated as text for clients that know only text.
fn structured(value: Value) -> Value {
    json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": value})
}

fn initialize(params: &Value) -> Value {
    let own = json!({"name": "mcpx-demo", "title": "mcpx demonstration server", "version": env!("CARGO_PKG_VERSION")});
    let mut result = lines::initialize(params, &own);
    for (name, capability) in demo_offers::capabilities() {
        result["capabilities"][name] = capability;
    }
    result["instructions"] =
        "A demonstration server: tools to try a client on, some of them awkward on purpose.".into();
    result
}

fn list(id: &Value, params: &Value) -> Value {
    let [first, second] = demo_tools::pages();
    match &params["cursor"] {
        Value::Null => success(id, json!({"tools": first, "nextCursor": SECOND_PAGE})),
        cursor if cursor == SECOND_PAGE => success(id, json!({"tools": second})),
        cursor => failure(id, INVALID_PARAMS, &format!("no such cursor: {cursor}")),
    }
}

fn echo(arguments: &Value) -> Result<Value, String> {
    arguments["text"].as_str().map(text).ok_or_else(|| "text: expected a string".to_owned())
}

fn add(arguments: &Value) -> Result<Value, String> {
    let number = |name: &str| match &arguments[name] {
        Value::Number(n) => Ok(n.clone()),
        _ => Err(format!("{name}: expected a number")),
    };
    let (a, b) = (number("a")?, number("b")?);
    // Whole numbers stay whole as long as the sum fits.
    let whole = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    let sum = match whole {
        Some(sum) => json!(sum),
        None => json!(a.as_f64().unwrap_or(f64::NAN) + b.as_f64().unwrap_or(f64::NAN)),
    };
    if sum.is_null() {
        return Err("the sum is too large for a number".to_owned());
    }
    Ok(structured(json!({"sum": sum})))
}

fn slow_arguments(arguments: &Value) -> Result<(Duration, u32), String> {
    let seconds = match &arguments["seconds"] {
        Value::Null => 1.0,
        given => given
            .as_f64()
            .filter(|s| (0.0..=3600.0).contains(s))
            .ok_or("seconds: expected a number from 0 to 3600")?,
    };
    let steps = match &arguments["steps"] {
        Value::Null => 5,
        given => given
            .as_u64()
            .filter(|s| (1..=1000).contains(s))
            .ok_or("steps: expected a whole number from 1 to 1000")?,
    };
    Ok((Duration::from_secs_f64(seconds), steps as u32))
}

fn forecast(arguments: &Value) -> Result<Value, String> {
    let city = arguments["city"].as_str().filter(|c| !c.is_empty()).ok_or("city: expected a text")?;
    let days = match &arguments["days"] {
        Value::Null => 3,
        given => given
            .as_u64()
            .filter(|d| (1..=7).contains(d))
            .ok_or("days: expected a whole number from 1 to 7")?,
    };
    let unit = match &arguments["unit"] {
        Value::Null => "celsius",
        given => match given.as_str() {
            Some(unit @ ("celsius" | "fahrenheit")) => unit,
            _ => return Err("unit: expected \"celsius\" or \"fahrenheit\"".to_owned()),
        },
    };
    let seed = city.chars().fold(7u64, |seed, c| seed.wrapping_mul(31).wrapping_add(u64::from(c)));
    let days: Vec<Value> = (1..=days)
        .map(|day| {
            let roll = seed.wrapping_mul(day).wrapping_add(day * 17);
            let low = (roll % 25) as i64 - 5;
            let high = low + 3 + (roll / 25 % 9) as i64;
            let degrees = |c: i64| if unit == "celsius" { json!(c) } else { json!(c as f64 * 1.8 + 32.0) };
            let sky = match roll / 225 % 3 {
                0 => "clear",
                1 => "cloudy",
                _ if high < 2 => "snow",
                _ => "rain",
            };
            let rain = if matches!(sky, "rain" | "snow") { json!(1 + roll % 20) } else { Value::Null };
            json!({"day": day, "low": degrees(low), "high": degrees(high), "sky": sky, "rain": rain})
        })
        .collect();
    Ok(structured(json!({"city": city, "unit": unit, "days": days})))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::jsonrpc::{INVALID_REQUEST, PARSE_ERROR};
    use std::io::{BufReader, Cursor, PipeReader, PipeWriter};

    /// Writes into a buffer that the test keeps.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Feeds the lines, then the end, and returns all that was answered.
    fn converse(lines: &[&str]) -> Vec<Value> {
        let output = Shared::default();
        assert_eq!(run(Cursor::new(lines.join("\n")), output.clone()), 0);
        let bytes = lock(&output.0).clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn call(name: &str, arguments: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        converse(&[&request.to_string()]).remove(0)
    }

    #[test]
    fn a_known_revision_is_echoed_and_another_gets_the_newest() {
        for (asked, given) in [("2024-11-05", "2024-11-05"), ("2026-07-28", "2025-11-25"), ("", "2025-11-25")]
        {
            let request = json!({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": {"protocolVersion": asked}});
            let answer = converse(&[&request.to_string()]).remove(0);
            assert_eq!(answer["id"], "a");
            assert_eq!(answer["result"]["protocolVersion"], given);
        }
    }

    #[test]
    fn the_tools_come_in_two_pages_without_repeats() {
        let answers = converse(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"2"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"3"}}"#,
        ]);
        assert_eq!(answers[0]["result"]["nextCursor"], "2");
        assert_eq!(answers[1]["result"].get("nextCursor"), None);
        assert_eq!(answers[2]["error"]["code"], INVALID_PARAMS);
        let mut names: Vec<&str> = (0..2)
            .flat_map(|page| answers[page]["result"]["tools"].as_array().unwrap())
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        for name in ["echo", "class", "get-weird.name", "1st", "tool with spaces", "ünïcode", "hostile"] {
            assert!(names.contains(&name), "{name}");
            let answer = call(name, json!({"text": "t"}));
            assert!(answer["result"]["content"][0]["text"].is_string(), "{answer}");
        }
    }

    #[test]
    fn each_fault_has_its_code_and_the_server_goes_on() {
        let answers = converse(&[
            "{\"jsonrpc\":",
            "7",
            "[]",
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"nope"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":[1]}}"#,
            r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "",
            r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#,
        ]);
        let codes: Vec<Option<i64>> = answers.iter().map(|a| a["error"]["code"].as_i64()).collect();
        let expected = [
            Some(PARSE_ERROR),
            Some(INVALID_REQUEST),
            Some(INVALID_REQUEST),
            Some(INVALID_REQUEST),
            Some(METHOD_NOT_FOUND),
            Some(INVALID_PARAMS),
            Some(INVALID_PARAMS),
            None,
        ];
        assert_eq!(codes, expected);
        assert_eq!(answers[0]["id"], Value::Null);
        assert_eq!(answers[7], json!({"jsonrpc": "2.0", "id": 9, "result": {}}));
    }

    #[test]
    fn structured_results_keep_whole_numbers_whole() {
        assert_eq!(call("add", json!({"a": 2, "b": 3}))["result"]["structuredContent"], json!({"sum": 5}));
        assert_eq!(
            call("add", json!({"a": 0.5, "b": 3}))["result"]["structuredContent"],
            json!({"sum": 3.5})
        );
        let wrong = call("add", json!({"a": "2", "b": 3}));
        assert_eq!(wrong["result"], refusal("a: expected a number"));
        let weather = call("forecast", json!({"city": "Bern", "days": 7}));
        assert_eq!(weather["result"]["structuredContent"]["days"].as_array().unwrap().len(), 7);
        assert_eq!(weather, call("forecast", json!({"city": "Bern", "days": 7})));
        assert_eq!(call("fail", json!({"message": "no"}))["result"], refusal("no"));
    }

    #[test]
    fn the_counter_keeps_its_count() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"counter","arguments":{"by":2}}}"#;
        let answers = converse(&[line, line]);
        assert_eq!(answers[1]["result"], text("4"));
    }

    /// A server on pipes, for conversations in which time matters.
    struct Live {
        input: Option<PipeWriter>,
        output: BufReader<PipeReader>,
        thread: Option<std::thread::JoinHandle<u8>>,
    }

    impl Live {
        fn new() -> Live {
            let (server_input, input) = std::io::pipe().unwrap();
            let (output, server_output) = std::io::pipe().unwrap();
            let thread = std::thread::Builder::new()
                .spawn(move || run(BufReader::new(server_input), server_output))
                .unwrap();
            Live { input: Some(input), output: BufReader::new(output), thread: Some(thread) }
        }
        fn say(&mut self, message: Value) {
            writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        }
        fn hear(&mut self) -> Value {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap()
        }
        fn end(mut self) -> u8 {
            self.input = None;
            self.thread.take().unwrap().join().unwrap()
        }
    }

    fn slow(id: i64, arguments: Value, token: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
               "params": {"name": "slow", "arguments": arguments, "_meta": {"progressToken": token}}})
    }

    #[test]
    fn a_slow_call_reports_progress_and_lets_others_pass() {
        let mut live = Live::new();
        live.say(slow(1, json!({"seconds": 3600}), Value::Null));
        live.say(slow(2, json!({"seconds": 0, "steps": 2}), json!("token")));
        for step in 1..=2 {
            let report = live.hear();
            assert_eq!(report["method"], "notifications/progress");
            assert_eq!(report["params"]["progressToken"], "token");
            assert_eq!(report["params"]["progress"], step);
        }
        assert_eq!(live.hear()["id"], 2);
        // The first call is still working; the end of the input does not wait for it.
        assert_eq!(live.end(), 0);
    }

    #[test]
    fn a_cancelled_call_stops_and_is_not_answered() {
        let mut live = Live::new();
        live.say(slow(1, json!({"seconds": 3600}), Value::Null));
        live.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
        live.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}));
        // The same id is free again, and its new call is answered, once.
        live.say(slow(1, json!({"seconds": 0, "steps": 1}), Value::Null));
        live.say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
        let (first, second) = (live.hear(), live.hear());
        let mut ids = [first["id"].as_i64(), second["id"].as_i64()];
        ids.sort_unstable();
        assert_eq!(ids, [Some(1), Some(2)]);
        assert_eq!(live.end(), 0);
    }
}
