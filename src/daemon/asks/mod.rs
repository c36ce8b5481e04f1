//! The broker of servers' questions: keeps each one until somebody answers, a
//! rule does, its server takes it back, or its time is over. Knows nothing of
//! who shows it to whom.

mod form;
mod format;
pub mod rules;
pub mod sampling;
pub mod tasks;

use super::state::Daemon;
use crate::error::{Error, Kind, Result};
use crate::mcp::{Answer, CancelGuard, Question};
use crate::observe::{Bus, Event, kinds};
use crate::settings::{self, Settings};
use crate::util;
use rules::Verdict;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// JSON-RPC: the request is not one that can be answered here.
const NOT_OFFERED: i64 = -32601;
/// MCP, sampling: the user said no.
const REJECTED: i64 = -1;

/// The method of a question that has a form or a URL.
const ELICITATION: &str = "elicitation/create";

/// What a question is about.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The tool whose call asks; none when the server asks by itself.
    pub tool: Option<String>,
    /// The session of that call; may be empty.
    pub session: String,
    /// The run whose program made the call.
    pub run: Option<String>,
    /// The task that goes on once it is answered.
    pub task: Option<String>,
}

/// All open questions.
pub struct Questions {
    open: Mutex<BTreeMap<String, Open>>,
    /// So many requests for a model are being answered.
    sampling: Arc<AtomicUsize>,
    bus: Arc<Bus>,
}

/// An open question.
struct Open {
    row: Value,
    about: About,
    expires: Instant,
    question: Question,
    /// Removes it when the server takes it back.
    _withdrawn: Option<CancelGuard>,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Accepted,
    Declined,
    Cancelled,
    Expired,
    Withdrawn,
}

impl End {
    fn word(self) -> &'static str {
        match self {
            End::Accepted => "accept",
            End::Declined => "decline",
            End::Cancelled => "cancel",
            End::Expired => "expired",
            End::Withdrawn => "withdrawn",
        }
    }
}

impl Questions {
    /// None open.
    pub fn new(bus: Arc<Bus>) -> Arc<Questions> {
        Arc::new(Questions { open: Mutex::default(), sampling: Arc::default(), bus })
    }

    /// Takes a question. Returns what is shown of it, unless it needs nobody: a rule
    /// has answered it, or it is of a kind that is never answered. `hosted`: whoever made the call
    /// said that it answers questions of this kind.
    pub fn take(
        self: &Arc<Self>,
        question: Question,
        about: impl FnOnce() -> About,
        settings: &Settings,
        tool: Option<&str>,
        hosted: bool,
    ) -> Option<Value> {
        if question.method != ELICITATION && !hosted {
            let why = format!("mcpx does not answer {}", question.method);
            question.answer(Err((NOT_OFFERED, why)));
            return None;
        }
        let rules = settings.get(&settings::ELICIT_RULES);
        let verdict = match question.method == ELICITATION {
            true => rules::verdict(&rules, &question.server, tool),
            // A rule says what goes into a form.
            false => Ok(None),
        };
        match verdict {
            Ok(None) => {}
            Ok(Some(verdict)) => {
                if let Err(e) = self.judge(question, tool, verdict) {
                    crate::log::warn(format_args!("a rule of elicit.rules does not fit: {e}"));
                }
                return None;
            }
            Err(e) => crate::log::warn(format_args!("{e}")),
        }
        let id = match util::random_hex(3) {
            Ok(hex) => format!("q-{hex}"),
            // Without randomness nobody could name it.
            Err(e) => {
                question.answer(Err((NOT_OFFERED, e.to_string())));
                return None;
            }
        };
        let about = about();
        let limit = settings.get(&settings::ELICIT_TIMEOUT);
        let row = row(&id, &question, &about, limit);
        let withdrawn = question.withdrawn.clone();
        let server = question.server.clone();
        let open =
            Open { row: row.clone(), about, expires: Instant::now() + limit, question, _withdrawn: None };
        let told =
            event(&kinds::ELICIT_ASKED, &open, json!({"message": row["message"], "mode": row["mode"]}));
        crate::log::debug(format_args!("server \"{server}\" asks: question {id}"));
        self.lock().insert(id.clone(), open);
        // Whoever hears of it finds it open.
        self.bus.publish(told);
        let (broker, inner) = (Arc::downgrade(self), id.clone());
        // Runs at once when the server has taken it back meanwhile.
        let guard = withdrawn.on_cancel(move || {
            if let Some(broker) = broker.upgrade() {
                broker.close(&inner, End::Withdrawn);
            }
        });
        if let Some(open) = self.lock().get_mut(&id) {
            open._withdrawn = Some(guard);
        }
        Some(row)
    }

    /// Answers a question by a rule.
    fn judge(&self, question: Question, tool: Option<&str>, verdict: Verdict) -> Result<()> {
        let (server, params) = (question.server.clone(), question.params.clone());
        let (end, answer) = match verdict {
            Verdict::Accept(content) => match form::accepted(&params, content) {
                Ok(answer) => (End::Accepted, answer),
                Err(what) => {
                    // Saying no is always possible, and better than to wait for nobody.
                    question.answer(Ok(json!({"action": "decline"})));
                    let e = Error::new(Kind::Config, format!("the answer for {server}: {what}"));
                    return Err(e.server(&server));
                }
            },
            Verdict::Decline => (End::Declined, json!({"action": "decline"})),
            Verdict::Cancel => (End::Cancelled, json!({"action": "cancel"})),
        };
        question.answer(Ok(answer));
        let data = json!({"outcome": end.word(), "by": "rule", "tool": tool, "message": params["message"]});
        self.bus.publish(Event::new(&kinds::ELICIT_CLOSED, data).server(&server));
        Ok(())
    }

    /// What is shown of all open questions, or of those of one task, oldest first.
    pub fn list(&self, task: Option<&str>) -> Vec<Value> {
        let open = self.lock();
        let wanted = open.values().filter(|o| task.is_none() || o.about.task.as_deref() == task);
        let mut rows: Vec<Value> = wanted.map(|o| o.row.clone()).collect();
        rows.sort_by_key(|row| row["askedAt"].as_u64());
        rows
    }

    /// What is shown of one.
    ///
    /// # Errors
    /// `NotFound` when it is not open, or no longer.
    pub fn get(&self, id: &str) -> Result<Value> {
        let row = self.lock().get(id).map(|open| open.row.clone());
        // Looks at the others, once the lock is free again.
        row.ok_or_else(|| self.unknown(id))
    }

    fn unknown(&self, id: &str) -> Error {
        let error = Error::new(Kind::NotFound, format!("no question \"{id}\" is open"));
        let open: Vec<String> =
            self.list(None).iter().filter_map(|r| r["id"].as_str().map(str::to_owned)).collect();
        error.hint(match open.is_empty() {
            true => "none is; it may have been answered, or its time is over".to_owned(),
            false => format!("open are {}", open.join(", ")),
        })
    }

    /// Answers a question; what was shown of it, with the `outcome`.
    ///
    /// # Errors
    /// `NotFound`; `Usage` when the content does not fit what was asked, and the question stays open.
    pub fn answer(
        &self,
        id: &str,
        action: &str,
        content: Option<Value>,
        result: Option<Value>,
    ) -> Result<Value> {
        let method = self.lock().get(id).map(|open| open.question.method.clone());
        let method = method.ok_or_else(|| self.unknown(id))?;
        let (end, answer) = match action {
            "accept" if method != ELICITATION => {
                let result = result.filter(|result| fits(&method, result)).ok_or_else(|| {
                    Error::new(Kind::Usage, format!("answering {id}: it takes the result of {method}"))
                        .hint("whoever made the call has to answer it; it is still open")
                })?;
                (End::Accepted, Ok(result))
            }
            "accept" => {
                let params = self.lock().get(id).map(|open| open.question.params.clone());
                let params = params.ok_or_else(|| self.unknown(id))?;
                let answer = form::accepted(&params, content).map_err(|what| {
                    Error::new(Kind::Usage, format!("answering {id}: {what}"))
                        .hint(format!("`mcpx elicit show {id}` shows what is asked; it is still open"))
                })?;
                (End::Accepted, Ok(answer))
            }
            "decline" => (End::Declined, refusal(&method, "decline")),
            "cancel" => (End::Cancelled, refusal(&method, "cancel")),
            other => {
                return Err(Error::new(Kind::Usage, format!("a question is not answered by \"{other}\""))
                    .hint("the action is accept, decline or cancel"));
            }
        };
        // Only one of two who answer at once gets it.
        let open = self.lock().remove(id);
        let open = open.ok_or_else(|| self.unknown(id))?;
        let mut row = open.row.clone();
        row["outcome"] = json!(end.word());
        self.publish(&kinds::ELICIT_CLOSED, &open, json!({"outcome": end.word(), "by": "caller"}));
        open.question.answer(answer);
        Ok(row)
    }

    /// Ends those whose time is over. The server is told that they were cancelled.
    pub fn expire(&self, now: Instant) {
        let over: Vec<String> = {
            let open = self.lock();
            open.iter().filter(|(_, o)| o.expires <= now).map(|(id, _)| id.clone()).collect()
        };
        for id in over {
            self.close(&id, End::Expired);
        }
    }

    /// Nobody wants to know it any more; nothing when it is over.
    pub fn withdraw(&self, id: &str) {
        self.close(id, End::Withdrawn);
    }

    fn close(&self, id: &str, end: End) {
        let Some(open) = self.lock().remove(id) else { return };
        self.publish(&kinds::ELICIT_CLOSED, &open, json!({"outcome": end.word()}));
        let answer = refusal(&open.question.method, "cancel");
        open.question.answer(answer);
    }

    fn publish(&self, kind: &'static kinds::Kind, open: &Open, data: Value) {
        self.bus.publish(event(kind, open, data));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is told of a question.
fn event(kind: &'static kinds::Kind, open: &Open, mut data: Value) -> Event {
    data["question"] = open.row["id"].clone();
    if let Some(tool) = &open.about.tool {
        data["tool"] = json!(tool);
    }
    if let Some(task) = &open.about.task {
        data["task"] = json!(task);
    }
    Event::new(kind, data).server(&open.question.server).session(&open.about.session)
}

/// The answer that is none: said in the words of a form, or as the error that MCP has for it.
fn refusal(method: &str, action: &str) -> Answer {
    match method {
        ELICITATION => Ok(json!({"action": action})),
        _ => Err((REJECTED, format!("{method} was refused ({action})"))),
    }
}

/// Whether this may be the result of a request: as much as its server cannot do without.
fn fits(method: &str, result: &Value) -> bool {
    match method {
        "roots/list" => result["roots"].is_array(),
        _ => result["content"].is_object() || result["content"].is_array(),
    }
}

/// What is shown of a question.
fn row(id: &str, question: &Question, about: &About, limit: Duration) -> Value {
    let now = util::now_ms();
    let params = &question.params;
    let mode = match (&*question.method, &params["mode"]) {
        (ELICITATION, Value::String(mode)) if mode == "url" => "url",
        (ELICITATION, _) => "form",
        _ => "request",
    };
    let mut row = json!({
        "id": id,
        "server": question.server,
        "mode": mode,
        "message": params["message"].as_str().unwrap_or_default(),
        "askedAt": now,
        "expiresAt": now + u64::try_from(limit.as_millis()).unwrap_or(0),
    });
    let (tool, run, task) = (about.tool.as_deref(), about.run.as_deref(), about.task.as_deref());
    for (name, value) in [("tool", tool), ("run", run), ("task", task)] {
        if let Some(value) = value {
            row[name] = json!(value);
        }
    }
    if !about.session.is_empty() {
        row["session"] = json!(about.session);
    }
    for (name, from) in [("schema", "requestedSchema"), ("url", "url"), ("elicitationId", "elicitationId")] {
        if mode != "request" && !params[from].is_null() {
            row[name] = params[from].clone();
        }
    }
    if mode == "request" {
        row["message"] = json!(format!("{} for whoever made the call", question.method));
        row["method"] = json!(question.method);
        row["params"] = if params.is_object() { params.clone() } else { json!({}) };
    }
    if let Some(key) = &question.key {
        row["key"] = json!(key);
    }
    row
}

/// The error of a caller whose call goes on as a task while its server waits for answers;
/// where the daemon ends with the command (`passing`) nobody can give any.
pub fn input_required(task: &tasks::Task, questions: &[Value], passing: bool) -> Error {
    let text = text(task, questions, passing);
    let body = json!({"inputRequired": {"callId": task.id, "server": task.server, "tool": task.tool,
        "questions": questions, "text": text}});
    Error::new(Kind::InputRequired, text).server(&task.server).tool(&task.tool).raw(body)
}

/// What a person reads: the questions, how each is answered, and where the result will be.
fn text(task: &tasks::Task, questions: &[Value], passing: bool) -> String {
    let mut text = format!("{}.{} asks before it goes on:", task.server, task.tool);
    for question in questions {
        let id = question["id"].as_str().unwrap_or_default();
        let message = question["message"].as_str().unwrap_or_default();
        text.push_str(&format!("\n{message}"));
        if question["mode"] == "request" || passing {
            continue;
        }
        match question["url"].as_str() {
            Some(url) => text.push_str(&format!("\n  open {url}\n  then: mcpx elicit answer {id}")),
            None => {
                text.push_str(&form::described(&question["schema"]));
                let example = form::example(&question["schema"]);
                text.push_str(&format!("\n  answer it: mcpx elicit answer {id} '{example}'"));
            }
        }
        text.push_str(&format!("\n  or not: mcpx elicit decline {id}"));
    }
    text.push_str(&match passing {
        true => "\nwith --no-daemon nobody can answer later: --interactive asks here, elicit.rules answer \
                 without a person, and a daemon keeps the question"
            .to_owned(),
        false => format!("\nthe result: mcpx task result {}", task.id),
    });
    text
}

/// Takes the questions that no call can be found for.
pub fn unattributed(daemon: &Arc<Daemon>) -> crate::mcp::Asked {
    let daemon = Arc::downgrade(daemon);
    Arc::new(move |question| {
        // Dropped with the daemon gone, it is refused.
        let Some(daemon) = daemon.upgrade() else { return };
        if question.method == sampling::METHOD {
            return sampling::begin(&daemon, question, About::default(), None);
        }
        let settings = daemon.current().settings.clone();
        let _ = daemon.questions.take(question, About::default, &settings, None, false);
    })
}
