//! A server's question as a person reads it and answers it field by field.
//! Knows nothing of how it came here.

use super::args::usage;
use super::out::note;
use crate::api::{Client, Interrupter, uri};
use crate::error::{Error, Kind, Result};
use crate::proc;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::io::{self, BufRead, IsTerminal, Write};

/// Whether there is a person to ask: both ends of the conversation are a terminal.
pub fn can_prompt() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// One line: who asks what.
pub fn line(question: &Value) -> String {
    let word = |key: &str| question[key].as_str().unwrap_or_default();
    let who = match question["tool"].as_str() {
        Some(tool) => format!("{}.{tool}", word("server")),
        None => word("server").to_owned(),
    };
    let message = safe(word("message").lines().next().unwrap_or_default());
    format!("{}  {who}  {message}", word("id"))
}

/// The whole of it, with its form.
pub fn shown(question: &Value) -> String {
    let mut text = line(question);
    if let Some(url) = question["url"].as_str() {
        text.push_str(&format!("\n  open {}", safe(url)));
    }
    if question["schema"].is_object() {
        let schema = serde_json::to_string_pretty(&question["schema"]).unwrap_or_default();
        text.push_str(&format!("\n{schema}"));
    }
    text
}

/// Without what could drive a terminal.
fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Asks for each field on the terminal; the body of an answer.
pub fn prompt(question: &Value) -> Result<Value> {
    let mut from = io::stdin().lock();
    ask(question, &mut from, &mut io::stderr())
}

fn ask(question: &Value, from: &mut impl BufRead, to: &mut impl Write) -> Result<Value> {
    let lost = |e: io::Error| Error::new(Kind::Unavailable, format!("asking on the terminal: {e}"));
    writeln!(to, "{}", line(question)).map_err(lost)?;
    if let Some(url) = question["url"].as_str() {
        writeln!(to, "  {}", safe(url)).map_err(lost)?;
        let said = read(from, to, "open it, then press enter (n: decline)")?;
        let action = if said.eq_ignore_ascii_case("n") { "decline" } else { "accept" };
        return Ok(json!({"action": action}));
    }
    let schema = &question["schema"];
    let mut content = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array().is_some_and(|all| all.iter().any(|n| n == name));
        let mut label = safe(property["title"].as_str().unwrap_or(name));
        if let Some(description) = property["description"].as_str() {
            label.push_str(&format!(" – {}", safe(description)));
        }
        let mut notes = vec![property["type"].as_str().unwrap_or("any").to_owned()];
        if let Some(choices) = property["enum"].as_array() {
            notes = choices.iter().filter_map(Value::as_str).map(safe).collect();
        }
        match property.get("default") {
            Some(default) => notes.push(format!("enter for {default}")),
            None if !required => notes.push("enter for none".into()),
            None => {}
        }
        loop {
            let said = read(from, to, &format!("{label} ({})", notes.join(", ")))?;
            if said.is_empty() && (property.get("default").is_some() || !required) {
                break;
            }
            match value(property, &said) {
                Some(value) => {
                    content.insert(name.clone(), value);
                    break;
                }
                None => writeln!(to, "  that is no {}", notes[0]).map_err(lost)?,
            }
        }
    }
    let said = read(from, to, "send it? (enter: yes, n: decline)")?;
    match said.as_str() {
        "n" | "N" | "no" => Ok(json!({"action": "decline"})),
        _ => Ok(json!({"action": "accept", "content": content})),
    }
}

/// A line; the end of the input is nobody's answer.
fn read(from: &mut impl BufRead, to: &mut impl Write, label: &str) -> Result<String> {
    let lost = |e: io::Error| Error::new(Kind::Unavailable, format!("asking on the terminal: {e}"));
    write!(to, "{label}: ").and_then(|()| to.flush()).map_err(lost)?;
    let mut line = String::new();
    match from.read_line(&mut line).map_err(lost)? {
        0 => Err(Error::new(Kind::Cancelled, "the question was left unanswered; it is still open")),
        _ => Ok(line.trim().to_owned()),
    }
}

/// What was typed, as the field wants it.
fn value(property: &Value, said: &str) -> Option<Value> {
    match property["type"].as_str() {
        Some("boolean") => match said.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" | "1" => Some(json!(true)),
            "n" | "no" | "false" | "0" => Some(json!(false)),
            _ => None,
        },
        Some("integer") => said.parse::<i64>().ok().map(|n| json!(n)),
        Some("number") => said.parse::<f64>().ok().filter(|n| n.is_finite()).map(|n| json!(n)),
        Some("array") => {
            Some(said.split(',').map(|part| json!(part.trim())).filter(|part| part != "").collect())
        }
        _ if said.is_empty() => None,
        _ => Some(json!(said)),
    }
}

/// Goes on with a call whose server asks something, question by question, on the
/// terminal; gives the result, or whatever else becomes of it.
pub fn converse(client: &Client, mut outcome: Result<Box<RawValue>>) -> Result<Box<RawValue>> {
    loop {
        let error = match outcome {
            Err(error) if error.kind() == Kind::InputRequired => error,
            outcome => return outcome,
        };
        let asked = error.raw_value().map(|raw| raw["inputRequired"].clone()).unwrap_or_default();
        let Some(task) = asked["callId"].as_str() else { return Err(error) };
        for question in asked["questions"].as_array().into_iter().flatten() {
            put(client, question)?;
        }
        outcome = client.task_result(task);
    }
}

/// Somebody at the terminal who is asked what servers ask of the calls of one run. Until it is dropped.
pub struct Attendant(Interrupter);

impl Attendant {
    /// Begins to listen. A script that reads from the terminal itself gets what is not typed as an answer.
    pub fn start(client: &Client, run: &str) -> Result<Attendant> {
        let (listening, answering) = (client.another()?, client.another()?);
        let attendant = Attendant(listening.shutdown_handle()?);
        let run = run.to_owned();
        let outcome = proc::thread::spawn("questions", move || {
            let mut seen = Vec::new();
            // The stream begins with a comment, so nothing that was asked before is missed.
            let _ = listening.stream("GET", "/v1/events?kind=elicit.asked&follow=1", None, &mut |_| {
                answer_open(&answering, &run, &mut seen).map_err(|_| io::ErrorKind::BrokenPipe.into())
            });
        });
        outcome.map_err(|e| Error::new(Kind::Busy, format!("starting a thread for questions: {e}")))?;
        Ok(attendant)
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        // The thread may be waiting for a line that nobody types; it ends with the process.
        self.0.interrupt();
    }
}

/// Asks what is open of a run and has not been asked.
fn answer_open(client: &Client, run: &str, seen: &mut Vec<String>) -> Result<()> {
    let open = client.json("GET", "/v1/elicit", None)?;
    for question in open["questions"].as_array().into_iter().flatten() {
        let id = question["id"].as_str().unwrap_or_default();
        if question["run"] != run || seen.iter().any(|known| known == id) {
            continue;
        }
        seen.push(id.to_owned());
        match put(client, question) {
            // It has been answered elsewhere, or its time is over.
            Err(e) if e.kind() == Kind::NotFound => {}
            Err(e) if e.kind() == Kind::Cancelled => {
                let _ = client.json("POST", &answer_path(question), Some(&json!({"action": "cancel"})));
            }
            outcome => outcome?,
        }
    }
    Ok(())
}

fn answer_path(question: &Value) -> String {
    format!("/v1/elicit/{}", uri::encode(question["id"].as_str().unwrap_or_default(), false))
}

/// Puts one question to the person, until the answer fits.
fn put(client: &Client, question: &Value) -> Result<()> {
    loop {
        match client.json("POST", &answer_path(question), Some(&prompt(question)?)) {
            // Something did not fit; it is still open.
            Err(e) if e.kind() == Kind::Usage => note(e.message()),
            outcome => return outcome.map(drop),
        }
    }
}

/// `--interactive` without a terminal is a mistake.
pub fn check_terminal() -> Result<()> {
    match can_prompt() {
        true => Ok(()),
        false => Err(usage("--interactive needs a terminal to ask on")
            .hint("without it the question is printed, and mcpx elicit answers it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(schema: Value, typed: &str) -> Result<Value> {
        let question = json!({"id": "q-1", "server": "s", "message": "how?\u{1b}[2J", "schema": schema});
        let mut shown = Vec::new();
        let outcome = ask(&question, &mut typed.as_bytes(), &mut shown);
        assert!(!String::from_utf8(shown).unwrap().contains('\u{1b}'));
        outcome
    }

    #[test]
    fn each_field_is_asked_until_it_fits() {
        let schema = json!({"required": ["n"], "properties": {
            "a": {"type": "string", "default": "x"}, "b": {"type": "boolean"},
            "n": {"type": "integer"}, "t": {"type": "array"}}});
        let answer = answers(schema.clone(), "\ny\nmany\n\n7\nu, v\n\n").unwrap();
        assert_eq!(answer, json!({"action": "accept", "content": {"b": true, "n": 7, "t": ["u", "v"]}}));
        let answer = answers(schema.clone(), "\n\n1\n\nn\n").unwrap();
        assert_eq!(answer, json!({"action": "decline"}));
        assert_eq!(answers(schema, "\n").unwrap_err().kind(), Kind::Cancelled);
    }
}
