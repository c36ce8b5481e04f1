//! The path of one call: find the tool, check the arguments, take a lease,
//! send. Knows nothing of who called from where.
//!
//! With the schema known and an instance ready, that is a handful of short
//! locks; the arguments are copied once, into the request, and parsed only to be validated.

use super::connect::Options;
use super::instance::{End, Lease};
use super::schema::{Known, constrains};
use super::scope;
use super::server::{Limits, Server};
use super::{Call, Caller, Pool};
use crate::catalog::{ServerSchema, Tool, validate};
use crate::error::{Error, Kind, Result};
use crate::mcp;
use crate::observe::log::{Redactor, Upto};
use crate::observe::{Event, kinds};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// `tools/call`'s params.
#[derive(Serialize)]
struct Params<'a> {
    name: &'a str,
    arguments: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<Value>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Value>,
}

/// A call whose tool is known and whose arguments passed.
struct Prepared {
    tool: String,
    params: Box<RawValue>,
    /// The server is asked to carry it out as a task.
    task: bool,
    /// Arguments that go along in headers too.
    mirrored: Vec<(String, String)>,
}

/// One call on its way.
struct Errand<'a> {
    call: &'a Call<'a>,
    caller: &'a Caller,
    begun: Instant,
    /// An instance was found dead before anything was sent to it; once is bad luck, twice is an error.
    unlucky: bool,
    met: Met,
}

/// What a call came to on its way, for the log: empty as far as it did not get there.
#[derive(Default)]
struct Met {
    /// The server's configured name.
    server: String,
    /// The tool's exact name.
    tool: String,
    /// The instance's key.
    instance: String,
}

impl Pool {
    /// Calls a tool and returns the `CallToolResult` as the server sent it;
    /// `isError` in it is no error here.
    ///
    /// # Errors
    /// `NotFound` (server or tool, with the nearest names), `Refused` (disabled, or a tool that a filter withholds),
    /// `Usage` (arguments that break the schema), `Busy`, `Unavailable` (did not
    /// start; nothing was sent), `OutcomeUnknown` (the connection broke, or the
    /// server was stopped, after sending), `Timeout`, `Cancelled`, `Tool` (a JSON-RPC error).
    pub fn call(&self, call: Call<'_>, caller: &Caller) -> Result<Box<RawValue>> {
        let begun = Instant::now();
        let met = Met { server: call.server.to_owned(), tool: call.tool.to_owned(), ..Met::default() };
        let mut errand = Errand { call: &call, caller, begun, unlucky: false, met };
        let outcome = self.carry_out(&mut errand);
        self.publish(&errand, &outcome);
        outcome
    }

    fn publish(&self, errand: &Errand<'_>, outcome: &Result<Box<RawValue>>) {
        let Errand { call, caller, begun, met, .. } = errand;
        let word = match outcome {
            Ok(result) if says_error(result) => Kind::Tool.row().word,
            Ok(_) => "ok",
            Err(error) => error.kind().row().word,
        };
        let ms = begun.elapsed().as_micros() as f64 / 1000.0;
        let bus = self.bus();
        let mut data = json!({"tool": met.tool, "ms": ms, "outcome": word, "call": bus.mint()});
        if let Some(run) = &caller.run {
            data["run"] = run.as_str().into();
        }
        if !met.instance.is_empty() {
            data["instance"] = met.instance.as_str().into();
        }
        let event = Event::new(&kinds::CALL_FINISHED, data);
        let failed = outcome.is_ok() && word != "ok";
        let extra = details(call, caller, outcome, failed, bus.is_detailed());
        bus.publish_with(event.server(&met.server).session(&caller.session), Some(extra));
    }

    fn carry_out(&self, errand: &mut Errand<'_>) -> Result<Box<RawValue>> {
        let call = errand.call;
        loop {
            let server = self.server(call.server)?;
            match errand.attempt(self, &server) {
                Ok(Some(result)) => return Ok(result),
                // Nothing was sent: the instance or the definition went away meanwhile.
                Ok(None) => {}
                Err(error) => {
                    let error = match error.server_name() {
                        Some(_) => error,
                        None => error.server(&server.def.name),
                    };
                    return Err(match error.tool_name() {
                        Some(_) => error,
                        None => error.tool(call.tool),
                    });
                }
            }
        }
    }
}

impl Errand<'_> {
    /// One try; `None` when nothing was sent and the next try may do better.
    fn attempt(&mut self, pool: &Pool, server: &Arc<Server>) -> Result<Option<Box<RawValue>>> {
        self.met.server.clone_from(&server.def.name);
        let limits = server.usable()?;
        let mut prepared = None;
        let known = server.core.known(limits.ttl);
        if let Some(known) = &known {
            match self.prepare(&server.offered(known.clone()), limits) {
                Ok(ready) => prepared = Some(ready),
                // A filter is the configuration's: the server could not change it.
                Err(error) if known.is_certain() || error.kind() == Kind::Refused => return Err(error),
                // What is remembered may be behind the server: ask before refusing.
                Err(_) => {}
            }
        }
        let (key, missing) = pool.places.key(&limits.scope, self.caller);
        if let Some(missing) = missing {
            server.core.warn(format!(
                "server \"{}\" has scope \"{}\", but {missing}; each such call gets an instance of its own",
                server.def.name,
                limits.scope.word()
            ));
        }
        let deadline = self.deadline(limits);
        let Some(mut lease) = server.lease(&key, deadline, self.call.cancel, None)? else { return Ok(None) };
        lease.works_for(&self.caller.session);
        self.met.instance = lease.instance.key.text.clone().into_owned();
        if let Some(session) = &lease.instance.key.session
            && self.caller.ephemeral
            && pool.ended.contains(session)
        {
            lease.instance.retire(End::SessionEnded, false);
            return Err(lease.instance.ended(&End::SessionEnded, Kind::Cancelled));
        }
        let prepared = match prepared {
            Some(ready) => ready,
            None => {
                let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
                let timeout = Some(left.map_or(limits.start_timeout, |l| l.min(limits.start_timeout)));
                let own = left.is_some_and(|left| left < limits.start_timeout);
                let given = self.call.timeout.filter(|limit| own && !limit.is_zero());
                let options = Options { timeout, given, ..Options::new(self.call.cancel) };
                let known = match server.core.list(&lease.upstream, &options, known.as_ref()) {
                    Ok(known) => known,
                    Err(error) => return self.unsent(error, &lease),
                };
                lease.instance.note_answer(false);
                self.prepare(&server.offered(known), limits)?
            }
        };
        self.send(&lease, prepared, limits)
    }

    fn send(&mut self, lease: &Lease, prepared: Prepared, limits: &Limits) -> Result<Option<Box<RawValue>>> {
        self.met.tool.clone_from(&prepared.tool);
        let timeout = match self.call.timeout {
            Some(limit) if limit.is_zero() => None,
            Some(limit) => Some(whole_millis(limit.saturating_sub(self.begun.elapsed()))),
            None => self.call_timeout(limits),
        };
        if timeout.is_some_and(|t| t.is_zero()) {
            return Err(Error::new(Kind::Timeout, "timed out before the call was sent").tool(prepared.tool));
        }
        let options = Options {
            timeout,
            given: self.call.timeout.filter(|limit| !limit.is_zero()),
            cancel: self.call.cancel,
            progress: self.call.progress.clone(),
            asked: self.call.asked.clone(),
            roots: Some(&|| scope::roots(self.caller)),
            capabilities: self.call.capabilities,
            began: self.call.began.clone(),
            mirrored: &prepared.mirrored,
        };
        let outcome = match prepared.task {
            true => lease.upstream.call_as_task(prepared.params, &options),
            false => lease.upstream.request("tools/call", Some(prepared.params), &options),
        };
        let error = match outcome {
            Ok(result) => {
                lease.instance.note_answer(true);
                return Ok(Some(result));
            }
            Err(error) => error,
        };
        let name = |error: Error| error.tool(&prepared.tool);
        match error.kind() {
            Kind::Unavailable => self.unsent(error, lease).map_err(name),
            // It does not read what is sent to it.
            Kind::Busy => Err(name(error)),
            Kind::Timeout => {
                lease.instance.note_error(error.message());
                lease.instance.probe(limits.start_timeout);
                Err(name(error))
            }
            Kind::OutcomeUnknown => {
                lease.instance.notice_crash();
                Err(name(match lease.instance.deliberate_end() {
                    Some(end) => lease.instance.ended(&end, Kind::OutcomeUnknown),
                    None => error,
                }))
            }
            // The caller's own doing; the server has been told.
            Kind::Cancelled if self.call.cancel.is_cancelled() => Err(name(error)),
            Kind::Cancelled => Err(name(match lease.instance.deliberate_end() {
                Some(end) => lease.instance.ended(&end, Kind::OutcomeUnknown),
                None => error,
            })),
            // The server answered, if only with a refusal.
            _ => {
                lease.instance.note_answer(true);
                Err(name(error))
            }
        }
    }

    /// What to do when the connection was found broken before the call was sent.
    fn unsent(&mut self, error: Error, lease: &Lease) -> Result<Option<Box<RawValue>>> {
        lease.instance.notice_crash();
        lease.instance.note_error(error.message());
        if let Some(end) = lease.instance.deliberate_end() {
            return match end.dismisses() {
                true => Err(lease.instance.ended(&end, Kind::Unavailable)),
                false => Ok(None),
            };
        }
        if lease.upstream.is_closed() && !std::mem::replace(&mut self.unlucky, true) {
            return Ok(None);
        }
        Err(error)
    }

    /// How long the call itself may take, where the caller says nothing about its own patience.
    fn call_timeout(&self, limits: &Limits) -> Option<Duration> {
        let own = self.call.call_timeout.map(|limit| Some(limit).filter(|l| !l.is_zero()));
        own.unwrap_or(limits.call_timeout)
    }

    /// Whether a call of this tool is to be a task of its server.
    fn is_task(&self, tool: &Tool, schema: &ServerSchema, limits: &Limits) -> bool {
        let execution = tool.execution.as_ref();
        let has_tasks = |said: &Value| said["tasks"]["requests"]["tools"]["call"].is_object();
        mcp::is_task_only(execution)
            || mcp::may_be_task(execution)
                && schema.capabilities.as_ref().is_some_and(has_tasks)
                && limits.tasks.suit(match self.call.timeout {
                    Some(limit) => Some(limit).filter(|limit| !limit.is_zero()),
                    None => self.call_timeout(limits),
                })
    }

    /// Until when the caller waits for its turn.
    fn deadline(&self, limits: &Limits) -> Option<Instant> {
        match self.call.timeout {
            Some(limit) if limit.is_zero() => None,
            Some(limit) => Some(self.begun + limit),
            None => self.call_timeout(limits).map(|limit| self.begun + limits.start_timeout + limit),
        }
    }

    /// Finds the tool and checks the arguments.
    fn prepare(&self, known: &Known, limits: &Limits) -> Result<Prepared> {
        let tool = known.tool(self.call.tool)?;
        if let Some(permit) = self.call.permit {
            permit(&known.schema, tool)?;
        }
        let empty;
        let arguments = match self.call.arguments.as_deref().filter(|a| a.get() != "null") {
            Some(arguments) => arguments,
            None => {
                empty = no_arguments();
                &*empty
            }
        };
        let wrong = |why: String| {
            let server = &known.schema.server;
            Error::new(Kind::Usage, format!("the arguments of {server}.{} are wrong: {why}", tool.name))
                .server(server)
                .tool(&tool.name)
                .hint(format!("`mcpx types {server}` shows what it takes"))
        };
        if !arguments.get().trim_start().starts_with('{') {
            return Err(wrong("expected a JSON object".into()));
        }
        if self.call.validate.unwrap_or(limits.validate) && constrains(&tool.input_schema) {
            let value: Value = serde_json::from_str(arguments.get()).map_err(|e| wrong(e.to_string()))?;
            validate::arguments(&tool.input_schema, &value).map_err(wrong)?;
        }
        let mirrored = match mcp::is_stateless(&known.schema.protocol) {
            true => mcp::mirrored(&tool.input_schema, arguments),
            false => Vec::new(),
        };
        // The stateless era has tasks of another kind, which the server begins by itself.
        let task = !mcp::is_stateless(&known.schema.protocol) && self.is_task(tool, &known.schema, limits);
        let (name, meta) = (&tool.name, self.call.meta);
        let params = to_raw_value(&Params { name, arguments, task: task.then(|| json!({})), meta })
            .map_err(|e| Error::new(Kind::Internal, format!("writing a request: {e}")))?;
        Ok(Prepared { tool: tool.name.clone(), params, task, mirrored })
    }
}

/// What the log gets to know of a call besides its event. Arguments and results are
/// contents, and so is a message that quotes arguments: only where they are asked for.
fn details(
    call: &Call<'_>,
    caller: &Caller,
    outcome: &Result<Box<RawValue>>,
    failed: bool,
    contents: bool,
) -> Value {
    let arguments = call.arguments.as_deref().map_or("{}", RawValue::get);
    let mut extra = json!({"sent": arguments.len()});
    if !caller.trace.is_empty() {
        extra["trace"] = json!(caller.trace);
    }
    match outcome {
        Ok(result) => {
            extra["received"] = result.get().len().into();
            // What it said is a part of the result; that it said it is not.
            if failed {
                extra["message"] = "the tool reported an error".into();
            }
        }
        // It quotes the arguments.
        Err(error) if error.kind() == Kind::Usage && !contents => {
            extra["message"] = "the arguments are wrong (with logging.arguments the log says how)".into();
        }
        Err(error) => extra["message"] = error.message().into(),
    }
    if contents || extra.get("message").is_some() {
        let given = serde_json::from_str(arguments).unwrap_or_default();
        // What is masked there is not told by what comes of it either.
        let redactor = Redactor::of_arguments(&given);
        if let Some(message) = extra.get_mut("message") {
            redactor.hide_in(message);
            *message = QUOTED.cut(message.as_str().unwrap_or_default()).into();
        }
        if contents {
            extra["arguments"] = content(given, arguments.len(), &redactor);
            if let Ok(result) = outcome {
                let value = serde_json::from_str(result.get()).unwrap_or_default();
                extra["result"] = content(value, result.get().len(), &redactor);
            }
        }
    }
    extra
}

/// How much of a message, and of arguments or a result, is recorded: enough to see what
/// was meant. Whoever needs all of a large result has the tool.
const QUOTED: Upto = Upto(1000);
const CONTENT: Upto = Upto(8192);

/// Arguments or a result of this length without what its names say is secret, and without what the
/// redactor hides; cut where it is long.
fn content(mut value: Value, length: usize, redactor: &Redactor) -> Value {
    Redactor::hide_names(&mut value);
    redactor.hide_in(&mut value);
    if length <= CONTENT.0 { value } else { CONTENT.cut(&value.to_string()).into() }
}

/// Whether a result is the tool's own report of an error. Reads past everything else in it.
fn says_error(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Outcome {
        #[serde(default, rename = "isError")]
        is_error: bool,
    }
    serde_json::from_str::<Outcome>(result.get()).is_ok_and(|outcome| outcome.is_error)
}

/// Rounded up to a millisecond, so that a limit nobody has used up yet is spoken of as it was given.
fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// `{}`.
fn no_arguments() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
