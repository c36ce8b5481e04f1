//! A command-line program as tools: reads the declaration, turns a call into one
//! run of the program and the run into a result. Knows nothing of MCP's messages.

use super::result;
use super::run::{self, Ended, Job};
use super::template::{self, Entry, Template};
use super::{Adapter, Limits, duration, fault, known};
use crate::config::declared::is_for_child;
use crate::error::Result;
use crate::mcp::{Cancel, Tool};
use crate::proc::{Exit, find_program};
use crate::util::{self, Env};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The members of a tool's declaration.
const MEMBERS: &[&str] = &[
    "allowDash",
    "annotations",
    "args",
    "description",
    "exitCodes",
    "output",
    "outputSchema",
    "schema",
    "stdin",
    "timeout",
    "title",
];

/// A program and what can be done with it.
#[derive(Debug)]
pub struct Program {
    server: String,
    path: PathBuf,
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    output: usize,
    tools: Vec<Tool>,
    uses: Vec<Use>,
}

/// How one tool runs the program.
#[derive(Debug)]
struct Use {
    args: Vec<Entry>,
    stdin: Option<Template>,
    kind: Output,
    timeout: Duration,
    /// What exit codes mean: true is success.
    codes: BTreeMap<i32, bool>,
    dashes: HashSet<String>,
    defaults: Map<String, Value>,
}

/// What stdout is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Output {
    Text,
    Json,
    Lines,
}

impl Program {
    /// Reads the declaration of a server.
    ///
    /// # Errors
    /// `Config` when it cannot be used, `Unavailable` when the program is not there.
    pub fn read(server: &str, declared: &Value, env: &Env, cwd: &Path, limits: &Limits) -> Result<Program> {
        let wrong = |place: &str, what: &str| fault(server, place, what);
        let members = declared.as_object().ok_or_else(|| wrong("program", "expected an object"))?;
        known(server, "program", members, &["command", "timeout", "tools"])?;
        let command = members.get("command").and_then(Value::as_str);
        let command = command.ok_or_else(|| wrong("program.command", "expected the name of a program"))?;
        let timeout = match members.get("timeout") {
            Some(given) => duration(server, "program.timeout", given)?,
            None => limits.timeout,
        };
        let declared = members.get("tools").and_then(Value::as_object).filter(|tools| !tools.is_empty());
        let declared =
            declared.ok_or_else(|| wrong("program.tools", "expected an object of at least one tool"))?;
        let mut tools = Vec::new();
        let mut uses = Vec::new();
        for (name, tool) in declared {
            let place = format!("program.tools.{name}");
            let (tool, how) = read_tool(server, &place, name, tool, timeout)?;
            tools.push(tool);
            uses.push(how);
        }
        let path = find_program(command.as_ref(), env, cwd).map_err(|e| e.server(server))?;
        // What is handed to us is none of the program's.
        let own = |name: &OsString| name.to_str().is_some_and(is_for_child);
        let env = env.iter().filter(|(name, _)| !own(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
        let (server, cwd) = (server.to_owned(), cwd.to_owned());
        Ok(Program { server, path, env, cwd, output: limits.output, tools, uses })
    }

    fn run(&self, how: &Use, given: &Map<String, Value>, cancel: &Cancel) -> Value {
        let mut values = how.defaults.clone();
        values.extend(given.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())));
        let args = match template::arguments(&how.args, &values, &how.dashes) {
            Ok(args) => args,
            Err(what) => return result::failed(format!("arguments.{what}")),
        };
        let job = Job {
            program: self.path.clone(),
            args,
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            stdin: how.stdin.as_ref().and_then(|stdin| stdin.fill(&values)),
            timeout: how.timeout,
            output: self.output,
        };
        let name = self.path.display();
        match run::run(job, cancel) {
            Err(e) => result::failed(format!("starting {name}: {e}")),
            Ok(Ended::Cancelled) => result::failed(format!("{name} was stopped: the call was cancelled")),
            Ok(Ended::TooMuch) => result::failed(format!(
                "{name} wrote more than {} bytes, and was stopped (adapters.maxOutput)",
                self.output
            )),
            Ok(Ended::TimedOut { stderr }) => {
                let limit = how.timeout;
                let said = quoted(&stderr);
                result::failed(format!(
                    "{name} took longer than {limit:?}, and was stopped (\"timeout\"){said}"
                ))
            }
            Ok(Ended::Exited { exit, stdout, stderr }) => {
                let good = match exit {
                    Exit::Code(code) => how.codes.get(&code).copied().unwrap_or(code == 0),
                    Exit::Signal(_) => false,
                };
                if good {
                    return finished(how.kind, &stdout, &name);
                }
                let both = [quoted(&stderr), quoted(&stdout)].concat();
                result::failed(format!("{name} ended with {exit}{both}"))
            }
        }
    }
}

/// What a successful run gives.
fn finished(kind: Output, stdout: &[u8], name: &dyn std::fmt::Display) -> Value {
    let text = String::from_utf8_lossy(stdout);
    match kind {
        Output::Text => result::text(text),
        Output::Lines => {
            let lines: Vec<&str> = text.lines().collect();
            let value = json!({"lines": lines});
            result::structured(text, value)
        }
        Output::Json => match serde_json::from_str::<Value>(&text) {
            Ok(value) => result::structured(text.trim().to_owned(), result::object(value)),
            Err(e) => result::failed(format!("{name} was to write JSON, and did not: {e}{}", quoted(stdout))),
        },
    }
}

/// What a program said, on lines of its own; empty when it said nothing.
fn quoted(bytes: &[u8]) -> String {
    /// How much of it helps.
    const SHOWN: usize = 4000;
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(SHOWN);
    let shown: String = text.chars().skip(skipped).collect();
    if shown.is_empty() { shown } else { format!("\n{shown}") }
}

fn read_tool(server: &str, place: &str, name: &str, tool: &Value, timeout: Duration) -> Result<(Tool, Use)> {
    let at = |key: &str| format!("{place}.{key}");
    let wrong = |key: &str, what: &str| fault(server, &at(key), what);
    let members = tool.as_object().ok_or_else(|| fault(server, place, "expected an object"))?;
    known(server, place, members, MEMBERS)?;
    let text = |key: &str| match members.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(key, "expected a text")),
    };
    let object = |key: &str| match members.get(key) {
        None => Ok(None),
        Some(given @ Value::Object(_)) => Ok(Some(given.clone())),
        Some(_) => Err(wrong(key, "expected an object")),
    };
    let mut args = Vec::new();
    match members.get("args") {
        None => {}
        Some(Value::Array(list)) => {
            for (i, entry) in list.iter().enumerate() {
                let entry = Entry::parse(entry);
                args.push(entry.map_err(|what| fault(server, &format!("{place}.args[{i}]"), what))?);
            }
        }
        Some(_) => return Err(wrong("args", "expected a list")),
    }
    let stdin = match text("stdin")? {
        Some(text) => Some(Template::parse(&text).map_err(|what| wrong("stdin", &what))?),
        None => None,
    };
    let names: BTreeSet<&str> =
        args.iter().flat_map(Entry::names).chain(stdin.iter().flat_map(Template::names)).collect();
    let schema = schema(object("schema")?, &names);
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    if let Some(odd) = names.iter().find(|name| !properties.contains_key(**name)) {
        let near = util::did_you_mean(odd, properties.keys().map(String::as_str));
        let near = near.map(|n| format!("; {n}")).unwrap_or_default();
        return Err(wrong("args", &format!("{{{odd}}} is no property of its schema{near}")));
    }
    let kind = match text("output")?.as_deref() {
        None | Some("text") => Output::Text,
        Some("json") => Output::Json,
        Some("lines") => Output::Lines,
        Some(_) => return Err(wrong("output", "expected \"text\", \"json\" or \"lines\"")),
    };
    let lines = json!({"type": "object", "required": ["lines"],
        "properties": {"lines": {"type": "array", "items": {"type": "string"}}}});
    let output_schema = match (kind, object("outputSchema")?) {
        (Output::Lines, None) => Some(lines),
        (Output::Json, declared) => declared,
        (_, None) => None,
        (_, Some(_)) => return Err(wrong("outputSchema", "only output \"json\" can have one")),
    };
    let mut codes = BTreeMap::new();
    if let Some(Value::Object(given)) = object("exitCodes")? {
        for (code, means) in &given {
            let number: i32 = code.parse().map_err(|_| wrong("exitCodes", "expected exit codes as keys"))?;
            let good = match means.as_str() {
                Some("ok") => true,
                Some("error") => false,
                _ => return Err(wrong("exitCodes", &format!("{code}: expected \"ok\" or \"error\""))),
            };
            codes.insert(number, good);
        }
    }
    let timeout = match members.get("timeout") {
        Some(given) => duration(server, &at("timeout"), given)?,
        None => timeout,
    };
    let mut dashes = HashSet::new();
    if let Some(given) = members.get("allowDash") {
        for name in given.as_array().ok_or_else(|| wrong("allowDash", "expected a list of names"))? {
            let known = name.as_str().filter(|name| properties.contains_key(*name));
            let known =
                known.ok_or_else(|| wrong("allowDash", &format!("{name} is no property of its schema")))?;
            dashes.insert(known.to_owned());
        }
    }
    let default =
        |(name, property): (&String, &Value)| Some((name.clone(), property.get("default")?.clone()));
    let defaults = properties.iter().filter_map(default).collect();
    let tool = Tool {
        title: text("title")?,
        description: text("description")?,
        input_schema: schema,
        output_schema,
        annotations: object("annotations")?,
        ..Tool::named(name)
    };
    Ok((tool, Use { args, stdin, kind, timeout, codes, dashes, defaults }))
}

/// The schema as declared, closed unless it says otherwise; without one, each placeholder is a text that is needed.
fn schema(declared: Option<Value>, names: &BTreeSet<&str>) -> Value {
    let Some(mut schema) = declared else {
        let properties: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        return json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false});
    };
    if let Some(members) = schema.as_object_mut() {
        members.entry("type").or_insert_with(|| "object".into());
        members.entry("properties").or_insert_with(|| json!({}));
        members.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    schema
}

impl Adapter for Program {
    fn name(&self) -> &str {
        &self.server
    }

    fn tools(&self) -> &[Tool] {
        &self.tools
    }

    fn call(&self, tool: &str, arguments: &Map<String, Value>, cancel: &Cancel) -> Value {
        match self.tools.iter().position(|known| known.name == tool) {
            Some(at) => self.run(&self.uses[at], arguments, cancel),
            None => result::failed(format!("no such tool: {tool}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::VARIABLE;
    use super::*;

    fn limits() -> Limits {
        Limits {
            output: 1000,
            document: 1000,
            schema: 1000,
            timeout: Duration::from_secs(60),
            ca: String::new(),
        }
    }

    fn read(program: Value) -> Result<Program> {
        let env = Env::from_pairs([("PATH", "/usr/bin:/bin"), (VARIABLE, "secret")]);
        Program::read("s", &program, &env, Path::new("/"), &limits())
    }

    fn shell(tool: Value) -> Program {
        read(json!({"command": "sh", "tools": {"t": tool}})).unwrap()
    }

    fn call(program: &Program, arguments: Value) -> Value {
        program.call("t", arguments.as_object().unwrap(), &Cancel::new())
    }

    #[test]
    fn the_kinds_of_output() {
        let echo = |output: &str| {
            shell(json!({"args": ["-c", "printf %s \"$1\"", "sh", "{text}"], "output": output}))
        };
        assert_eq!(call(&echo("text"), json!({"text": "a\nb"}))["content"][0]["text"], "a\nb");
        let lines = call(&echo("lines"), json!({"text": "a\nb\n"}));
        assert_eq!(lines["structuredContent"], json!({"lines": ["a", "b"]}));
        assert_eq!(call(&echo("json"), json!({"text": "{\"a\":1}"}))["structuredContent"], json!({"a": 1}));
        assert_eq!(call(&echo("json"), json!({"text": "[1]"}))["structuredContent"], json!({"result": [1]}));
        let no = call(&echo("json"), json!({"text": "oops"}));
        assert!(no["isError"] == true && no["content"][0]["text"].as_str().unwrap().contains("oops"), "{no}");
    }

    #[test]
    fn stdin_environment_and_exit_codes() {
        let cat = shell(json!({"args": ["-c", "cat; env | grep -c ADAPTER"], "stdin": "<{text}>",
            "exitCodes": {"1": "ok"}}));
        assert_eq!(call(&cat, json!({"text": "in"}))["content"][0]["text"], "<in>0\n");
        let exit = shell(json!({"args": ["-c", "echo why >&2; exit $1", "sh", "{code}"],
            "schema": {"properties": {"code": {"type": "integer", "default": 3}}}, "exitCodes": {"4": "ok", "0": "error"}}));
        let failed = call(&exit, json!({}));
        assert_eq!(failed["isError"], true);
        let text = failed["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("sh ended with exit code 3\nwhy"), "{text}");
        assert_eq!(call(&exit, json!({"code": 4})).get("isError"), None);
        assert_eq!(call(&exit, json!({"code": 0}))["isError"], true);
    }

    #[test]
    fn too_long_too_much_and_no_longer_wanted() {
        let wait = shell(json!({"args": ["-c", "sleep 1000"], "timeout": "50ms"}));
        let text = call(&wait, json!({}))["content"][0]["text"].to_string();
        assert!(text.contains("took longer than 50ms"), "{text}");
        let flood = shell(json!({"args": ["-c", "while :; do echo flood; done"]}));
        let text = call(&flood, json!({}))["content"][0]["text"].to_string();
        assert!(text.contains("adapters.maxOutput"), "{text}");
        let cancel = Cancel::new();
        cancel.cancel();
        let wait = shell(json!({"args": ["-c", "sleep 1000"]}));
        let text = wait.call("t", &Map::new(), &cancel)["content"][0]["text"].to_string();
        assert!(text.contains("cancelled"), "{text}");
    }

    #[test]
    fn a_declaration_that_cannot_be_used_says_where() {
        let tool = |tool: Value| json!({"command": "sh", "tools": {"t": tool}});
        for (program, part) in [
            (json!({"tools": {}}), "program.command: expected"),
            (json!({"command": "sh", "tools": {}}), "program.tools: expected"),
            (json!({"command": "sh", "tool": {}}), "unknown key \"tool\"; did you mean"),
            (tool(json!({"argz": []})), "program.tools.t: unknown key \"argz\"; did you mean"),
            (tool(json!({"args": ["{a"]})), "program.tools.t.args[0]: "),
            (tool(json!({"args": ["{cuont}"], "schema": {"properties": {"count": {}}}})), "did you mean"),
            (tool(json!({"output": "xml"})), "program.tools.t.output: expected"),
            (tool(json!({"exitCodes": {"x": "ok"}})), "exitCodes: expected"),
            (tool(json!({"exitCodes": {"1": "fine"}})), "exitCodes: 1: expected"),
            (tool(json!({"timeout": "soon"})), "program.tools.t.timeout: "),
            (tool(json!({"allowDash": ["x"]})), "allowDash"),
            (tool(json!({"outputSchema": {}})), "outputSchema"),
        ] {
            let e = read(program.clone()).unwrap_err();
            assert!(e.message().contains(part), "{program}: {}", e.message());
        }
        let e = read(json!({"command": "no-such-program", "tools": {"t": {}}})).unwrap_err();
        assert!(e.message().contains("no-such-program"), "{}", e.message());
    }
}
