//! What the unit tests of the server half stand on: a backend whose answers are
//! given beforehand, and an outlet that remembers.

use super::backend::{Asked, Backend, Out, Outlet};
use super::era;
use super::options::Options;
use super::session::{Request, Session};
use super::upstreams::Upstreams;
use crate::api::ops::Operation;
use crate::error::{Error, Result};
use crate::pool::Cancel;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A backend that plays back.
#[derive(Default)]
pub struct Played {
    answers: HashMap<&'static str, Value>,
    error: Option<Error>,
    asked: Mutex<Vec<&'static str>>,
}

impl Played {
    pub fn answering(op: &'static str, answer: Value) -> Played {
        Played::default().and(op, answer)
    }
    pub fn and(mut self, op: &'static str, answer: Value) -> Played {
        self.answers.insert(op, answer);
        self
    }
    pub fn failing(error: Error) -> Played {
        Played { error: Some(error), ..Played::default() }
    }
    pub fn count(&self, op: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|o| **o == op).count()
    }
}

impl Backend for Played {
    fn perform(&self, op: &'static Operation, _: &RawValue, _: &Asked<'_>) -> Result<Box<RawValue>> {
        self.asked.lock().unwrap().push(op.name);
        match (&self.error, self.answers.get(op.name)) {
            (Some(error), _) => Err(error.clone()),
            (None, answer) => Ok(to_raw_value(answer.unwrap_or(&json!({}))).unwrap()),
        }
    }

    fn session(&self) -> Option<String> {
        Some("own".into())
    }
}

/// An outlet that remembers.
#[derive(Default)]
pub struct Heard(pub Mutex<Vec<Value>>);

impl Heard {
    pub fn out() -> Out {
        Arc::new(Heard::default())
    }
}

impl Outlet for Heard {
    fn send(&self, line: &[u8]) -> bool {
        self.0.lock().unwrap().push(serde_json::from_slice(line).unwrap());
        true
    }
}

pub fn session(backend: Played) -> Session {
    session_of(backend, |_| {})
}

pub fn options() -> Options {
    Options {
        code: true,
        passthrough: false,
        plain: false,
        tools: vec!["*".into()],
        instructions: String::new(),
        wait: Duration::ZERO,
        ttl: Duration::from_secs(1),
        task_ttl: Duration::from_secs(600),
        task_after: Duration::ZERO,
    }
}

pub fn session_of(backend: Played, change: impl FnOnce(&mut Options)) -> Session {
    let mut options = options();
    change(&mut options);
    Session::new(options, Arc::new(backend), Arc::new(Upstreams::default()))
}

/// What a stateless request brings along.
pub fn meta() -> Value {
    json!({era::VERSION_KEY: "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}})
}

pub fn request(method: &str, params: &Value) -> Request {
    Request {
        id: to_raw_value(&1).unwrap(),
        method: method.into(),
        params: Some(to_raw_value(params).unwrap()),
        mirrored: None,
    }
}

/// Asks, and returns the answer.
pub fn ask_in(session: &Session, method: &str, params: &Value) -> Value {
    let reply = session.answer(&request(method, params), &Cancel::new(), &Heard::out());
    serde_json::from_slice(&reply.line.expect("an answer")).unwrap()
}
