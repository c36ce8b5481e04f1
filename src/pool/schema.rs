//! What a server offers, as the pool keeps it: in memory, else from the cache
//! on disk, else from the server itself. Knows nothing of how it is shown.
//!
//! Never two listings of one server at once for the same question: those who
//! come while one is under way wait for its answer. No lock is held meanwhile.

use super::connect::{Cancel, Options, Upstream};
use super::core::Core;
use super::scope::{Key, Scope};
use super::server::Server;
use super::ticket::{Ticket, Unanswered};
use super::{Caller, Pool};
use crate::catalog::{ServerSchema, Tool, filter, names};
use crate::config::ServerDef;
use crate::error::{Error, Kind, Result};
use crate::observe::{Event, kinds};
use crate::proc;
use crate::settings::CATALOG_CONCURRENCY;
use crate::util;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A server's schema with what makes a look-up in it cheap.
pub(super) struct Known {
    pub schema: Arc<ServerSchema>,
    by_name: HashMap<String, usize>,
    /// It was read by this pool, from a running server; else it is a memory from disk, and may be stale.
    pub live: bool,
    /// When this is what a filter lets through: all that there is, and the definition with the filter.
    whole: Option<(Arc<Known>, Arc<ServerDef>)>,
}

/// One who waits for a listing.
pub(super) type Listener = Ticket<Result<Arc<Known>>>;

impl Known {
    fn new(schema: ServerSchema, live: bool) -> Arc<Known> {
        Arc::new(Known::index(schema, live))
    }

    /// What the definition's filter lets through.
    pub fn filtered(self: &Arc<Known>, def: &Arc<ServerDef>) -> Arc<Known> {
        let schema = filter::schema(def, self.schema.as_ref().clone());
        let whole = Some((self.clone(), def.clone()));
        Arc::new(Known { whole, ..Known::index(schema, self.live) })
    }

    fn index(schema: ServerSchema, live: bool) -> Known {
        // The forms that `find_tool` knows, weakest first, so that the strongest of two equal ones stays.
        let names = || schema.tools.iter().map(|t| t.name.as_str());
        let forms = [names::unique_idents(names()), names::unique_members(names())];
        let mut by_name: HashMap<String, usize> = HashMap::new();
        for form in forms.into_iter().chain([names().map(str::to_owned).collect()]) {
            by_name.extend(form.into_iter().enumerate().map(|(at, name)| (name, at)));
        }
        Known { schema: Arc::new(schema), by_name, live, whole: None }
    }

    /// Nothing may be there that is not in it, as far as the server lets that be known.
    pub fn is_certain(&self) -> bool {
        self.live && self.schema.ttl_ms != Some(0) && !self.schema.has_expired()
    }

    /// The tool of this name, its identifier, or something close enough to be meant.
    ///
    /// # Errors
    /// `Refused` when the tool is there but withheld; `NotFound` with the nearest names.
    pub fn tool(&self, wanted: &str) -> Result<&Tool> {
        if let Some(&at) = self.by_name.get(wanted) {
            return Ok(&self.schema.tools[at]);
        }
        let near = || names::find_tool(&self.schema.tools, wanted, &self.schema.server);
        let Some((whole, def)) = &self.whole else { return near() };
        // A withheld tool's own name is no misspelling of another's.
        let withheld = |tool: &Tool| filter::refusal(def, &tool.name);
        match whole.by_name.get(wanted).and_then(|&at| withheld(&whole.schema.tools[at])) {
            Some(refused) => Err(refused),
            None => near().map_err(|e| whole.tool(wanted).ok().and_then(withheld).unwrap_or(e)),
        }
    }
}

/// There is something in this schema that arguments could break.
pub(super) fn constrains(schema: &Value) -> bool {
    let Some(schema) = schema.as_object() else { return schema.as_bool() == Some(false) };
    schema.iter().any(|(key, value)| match key.as_str() {
        "$schema" | "title" | "description" | "type" => false,
        "properties" => value.as_object().is_none_or(|p| !p.is_empty()),
        "additionalProperties" => value.as_bool() != Some(true),
        "required" => value.as_array().is_none_or(|r| !r.is_empty()),
        _ => true,
    })
}

impl Core {
    /// What is known without asking the server. Reads the disk once.
    pub fn known(&self, ttl: Duration) -> Option<Arc<Known>> {
        let state = self.lock();
        if state.known.is_some() || state.disk_read {
            return state.known.clone();
        }
        drop(state);
        let read = self.shared.cache.load(&self.name, &self.digest, ttl).map(|s| Known::new(s, false));
        let mut state = self.lock();
        state.disk_read = true;
        if state.known.is_none() {
            state.known = read;
        }
        state.known.clone()
    }

    /// Reads the schema from a running server, and keeps it; or takes what
    /// somebody else has read since this caller saw `before`.
    ///
    /// # Errors
    /// Those of `tools/list`; `Timeout` and `Cancelled` of the caller's own.
    pub fn list(
        &self,
        upstream: &Arc<dyn Upstream>,
        options: &Options<'_>,
        before: Option<&Arc<Known>>,
    ) -> Result<Arc<Known>> {
        let deadline = options.timeout.map(|t| Instant::now() + t);
        loop {
            let mut state = self.lock();
            if let Some(known) = state.known.as_ref().filter(|known| known.live)
                && before.is_none_or(|before| !Arc::ptr_eq(before, known))
            {
                return Ok(known.clone());
            }
            let Some(listeners) = &mut state.listing else {
                state.listing = Some(Vec::new());
                drop(state);
                let mut leader = Leader { core: self, outcome: None };
                let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
                let outcome = self.read(upstream, &options.left(left));
                leader.outcome = Some(outcome.clone());
                return outcome;
            };
            let ticket = Ticket::new();
            listeners.push(ticket.clone());
            drop(state);
            match ticket.wait(deadline, options.cancel) {
                // The leader left, or had less time: that is no answer for this caller.
                Ok(Err(e)) if matches!(e.kind(), Kind::Cancelled | Kind::Timeout | Kind::Internal) => {}
                Ok(outcome) => return outcome,
                Err(why) => return Err(self.no_listing(why)),
            }
        }
    }

    fn no_listing(&self, why: Unanswered) -> Error {
        let what = format!("while waiting for server \"{}\" to list its tools", self.name);
        match why {
            Unanswered::Cancelled => Error::new(Kind::Cancelled, format!("cancelled {what}")),
            Unanswered::TimedOut => Error::new(Kind::Timeout, format!("timed out {what}")),
        }
    }

    fn read(&self, upstream: &Arc<dyn Upstream>, options: &Options<'_>) -> Result<Arc<Known>> {
        let asked_in = self.lock().epoch;
        let list = upstream.list_tools(options)?;
        let about = upstream.about();
        let schema = ServerSchema {
            server: self.name.clone(),
            digest: self.digest.clone(),
            fetched_at: util::now_ms(),
            protocol: about.protocol,
            server_info: about.info,
            capabilities: about.capabilities,
            instructions: about.instructions,
            ttl_ms: list.ttl_ms,
            private: list.private,
            tools: list.tools,
        };
        if let Err(e) = self.shared.cache.store(&schema) {
            self.warn(format!("keeping the schemas of server \"{}\" on disk: {e}", self.name));
        }
        let known = Known::new(schema, true);
        let mut state = self.lock();
        if known.schema.private && state.epoch != asked_in {
            // It was read as somebody whom the server may not know us as any more.
            drop(state);
            self.shared.cache.forget(&self.name, &self.digest);
            return Ok(known);
        }
        let before = state.known.replace(known.clone());
        drop(state);
        let tools = &known.schema.tools;
        if before.is_none_or(|before| !same(&before.schema.tools, tools)) {
            let event = Event::new(&kinds::TOOLS_CHANGED, json!({"tools": tools.len()}));
            self.shared.bus.publish(event.server(&self.name));
        }
        Ok(known)
    }

    /// Reads the schema again in the background. Any number of requests while
    /// one is under way lead to one more.
    pub fn refresh(self: &Arc<Self>, upstream: Arc<dyn Upstream>) {
        {
            let mut state = self.lock();
            let busy = state.refreshing.is_some();
            state.refreshing = Some(busy);
            if busy {
                return;
            }
        }
        let worker = Refresher(self.clone());
        let _ = proc::thread::spawn("pool-schema", move || worker.run(&upstream));
    }

    /// After a start: a server that says something else of itself than what is known has probably other tools.
    pub fn compare(self: &Arc<Self>, upstream: &Arc<dyn Upstream>) {
        let known = self.lock().known.clone();
        let Some(known) = known else { return };
        let about = upstream.about();
        let of = |schema: &ServerSchema| {
            (schema.server_info.clone(), schema.capabilities.clone(), schema.protocol.clone())
        };
        // A private list that another process read may have been for somebody else.
        let is_private = known.schema.private && !known.live;
        if is_private || of(&known.schema) != (about.info, about.capabilities, about.protocol) {
            self.refresh(upstream.clone());
        }
    }

    /// Forgets a list that is for whoever asked alone: that may be somebody else from now on.
    pub fn forget_private(&self) {
        let mut state = self.lock();
        state.epoch += 1;
        if state.known.as_ref().is_some_and(|known| known.schema.private) {
            state.known = None;
            state.disk_read = true;
            drop(state);
            self.shared.cache.forget(&self.name, &self.digest);
        }
    }
}

/// Whether two lists say the same of the same tools.
fn same(a: &[Tool], b: &[Tool]) -> bool {
    a.len() == b.len() && serde_json::to_string(a).ok() == serde_json::to_string(b).ok()
}

/// The one that lists; however that ends, those who wait are told.
struct Leader<'a> {
    core: &'a Core,
    outcome: Option<Result<Arc<Known>>>,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let listeners = self.core.lock().listing.take().unwrap_or_default();
        for ticket in listeners {
            let outcome = self.outcome.clone();
            let _ = ticket.answer(outcome.unwrap_or_else(|| Err(broken())));
        }
    }
}

/// A background reading that is under way.
struct Refresher(Arc<Core>);

impl Refresher {
    fn run(&self, upstream: &Arc<dyn Upstream>) {
        loop {
            let limit = self.0.lock().pace.listing;
            // A failure leaves what was known; whoever calls next hears of it from the server.
            let _ = self.0.read(upstream, &Options { timeout: Some(limit), ..Options::new(&Cancel::new()) });
            let mut state = self.0.lock();
            if state.refreshing != Some(true) {
                return;
            }
            state.refreshing = Some(false);
        }
    }
}

impl Drop for Refresher {
    fn drop(&mut self) {
        self.0.lock().refreshing = None;
    }
}

/// What a listing that did not wait says of a server besides its reason.
pub const STILL_STARTING: &str = "it goes on starting; ask again in a moment";

/// An answer, and whose it is.
type Answer = (usize, Result<Arc<ServerSchema>>);

/// Servers that are asked for their tools by several threads.
struct Survey {
    pool: Arc<Pool>,
    fresh: bool,
    asked: Vec<(usize, Arc<Server>)>,
    next: AtomicUsize,
}

impl Survey {
    fn work(&self, send: &mpsc::Sender<Answer>) {
        while let Some((at, server)) = self.asked.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // With nobody left to tell, the answer is kept all the same.
            let _ = send.send((*at, self.pool.schema_of(server, self.fresh)));
        }
    }

    /// Asks them, at most `most` at once, into the rows that they stand for. Who has
    /// not answered within `wait` is asked to the end in the background.
    fn fill(self, most: usize, wait: Option<Duration>, rows: &mut [Option<Result<Arc<ServerSchema>>>]) {
        let deadline = wait.map(|wait| Instant::now() + wait);
        let survey = Arc::new(self);
        let (send, receive) = mpsc::channel();
        let mut working = 0;
        for _ in 0..most.min(survey.asked.len()) {
            let (survey, send) = (survey.clone(), send.clone());
            let work = move || survey.work(&send);
            working += usize::from(proc::thread::spawn("pool-list", work).is_ok());
        }
        if working == 0 {
            // With no room for a thread, the work is done all the same.
            survey.work(&send);
        }
        drop(send);
        for _ in &survey.asked {
            let answer = match deadline {
                None => receive.recv().ok(),
                Some(d) => receive.recv_timeout(d.saturating_duration_since(Instant::now())).ok(),
            };
            let Some((at, outcome)) = answer else { break };
            rows[at] = Some(outcome);
        }
        let Some(wait) = wait else { return };
        for (at, server) in &survey.asked {
            rows[*at].get_or_insert_with(|| Err(still_starting(&server.def.name, wait)));
        }
    }
}

fn still_starting(server: &str, wait: Duration) -> Error {
    let message = format!("still starting after {wait:?}; the listing does not wait longer (catalog.wait)");
    Error::new(Kind::Timeout, message).server(server).hint(STILL_STARTING)
}

/// A namespace: a configured server, and what it offers or why that is not known.
pub type Namespace = (Arc<ServerDef>, Result<Arc<ServerSchema>>);

impl Pool {
    /// What a server offers: from memory, the cache on disk, or, when neither
    /// knows or `fresh` asks for it, from the server, within its `startTimeout`.
    ///
    /// # Errors
    /// `NotFound`, `Refused` for a disabled server, the definition's own problem, and whatever keeps the server from starting.
    pub fn schema(&self, server: &str, fresh: bool) -> Result<Arc<ServerSchema>> {
        self.schema_of(&self.server(server)?, fresh)
    }

    /// The same of several servers, in their order; those that have to be asked are
    /// asked as in [`Pool::namespaces_of`].
    pub fn schemas(
        self: &Arc<Self>,
        names: &[String],
        fresh: bool,
        wait: Option<Duration>,
    ) -> Vec<Result<Arc<ServerSchema>>> {
        let found: Vec<Result<Arc<Server>>> = names.iter().map(|name| self.server(name)).collect();
        let servers: Vec<Arc<Server>> = found.iter().flatten().cloned().collect();
        let mut rows = self.survey(&servers, fresh, wait).into_iter();
        let row = |found: Result<_>| found.and_then(|_| rows.next().unwrap_or_else(|| Err(broken())));
        found.into_iter().map(row).collect()
    }

    /// All namespaces, in the configuration's order. Those that have to be
    /// asked are asked in parallel, at most `catalog.concurrency` at once, and
    /// each within its `startTimeout`; one that fails is a row with its reason.
    pub fn namespaces(self: &Arc<Self>, fresh: bool) -> Vec<Namespace> {
        self.namespaces_of(fresh, None, &|_| true)
    }

    /// The same, of those servers alone that are wanted; the others are not asked.
    /// One that has not answered within `wait` is a row that says so; it goes on
    /// starting, and what it offers is kept when it comes.
    pub fn namespaces_of(
        self: &Arc<Self>,
        fresh: bool,
        wait: Option<Duration>,
        wanted: &dyn Fn(&ServerDef) -> bool,
    ) -> Vec<Namespace> {
        let (mut servers, _) = self.servers_and_settings();
        servers.retain(|server| wanted(&server.def));
        let rows = self.survey(&servers, fresh, wait);
        servers.iter().zip(rows).map(|(s, row)| (s.def.clone(), row)).collect()
    }

    /// A row for each of these servers.
    fn survey(
        self: &Arc<Self>,
        servers: &[Arc<Server>],
        fresh: bool,
        wait: Option<Duration>,
    ) -> Vec<Result<Arc<ServerSchema>>> {
        let mut rows: Vec<Option<Result<Arc<ServerSchema>>>> = servers
            .iter()
            .map(|server| match server.usable() {
                Err(error) => Some(Err(error)),
                Ok(_) if fresh => None,
                Ok(limits) => server.recent(limits.ttl).map(Ok),
            })
            .collect();
        let unknown = (0..rows.len()).filter(|&i| rows[i].is_none());
        let asked: Vec<_> = unknown.map(|i| (i, servers[i].clone())).collect();
        if let Some((_, first)) = asked.first() {
            let most = usize::try_from(first.settings.get(&CATALOG_CONCURRENCY)).unwrap_or(1).max(1);
            let survey = Survey { pool: self.clone(), fresh, asked, next: AtomicUsize::new(0) };
            survey.fill(most, wait, &mut rows);
        }
        rows.into_iter().map(|row| row.unwrap_or_else(|| Err(broken()))).collect()
    }

    /// What is known of a server without asking it.
    pub fn known(&self, server: &str) -> Option<Arc<ServerSchema>> {
        let server = self.server(server).ok()?;
        let limits = server.usable().ok()?;
        server.core.known(limits.ttl).map(|known| server.offered(known).schema.clone())
    }

    fn schema_of(&self, server: &Arc<Server>, fresh: bool) -> Result<Arc<ServerSchema>> {
        let name = &server.def.name;
        let outcome = self.ask_for_schema(server.clone(), fresh);
        outcome.map_err(|error| if error.server_name().is_some() { error } else { error.server(name) })
    }

    fn ask_for_schema(&self, mut server: Arc<Server>, fresh: bool) -> Result<Arc<ServerSchema>> {
        let limits = server.usable()?.clone();
        if !fresh && let Some(schema) = server.recent(limits.ttl) {
            return Ok(schema);
        }
        let deadline = Instant::now() + limits.start_timeout;
        let before = server.core.known(limits.ttl);
        let cancel = Cancel::new();
        loop {
            let key = server.listing_key(&server.usable()?.scope);
            let Some(lease) = server.lease(&key, Some(deadline), &cancel, Some(limits.start_timeout))? else {
                // It ended, or was configured anew, before anything was asked.
                server = self.server(&server.def.name)?;
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let options = Options { timeout: Some(left), ..Options::new(&cancel) };
            return match server.core.list(&lease.upstream, &options, before.as_ref()) {
                Ok(known) => {
                    lease.instance.note_answer(false);
                    Ok(server.offered(known).schema.clone())
                }
                Err(error) => {
                    lease.instance.note_error(error.message());
                    Err(error)
                }
            };
        }
    }
}

fn broken() -> Error {
    Error::new(Kind::Internal, "listing the tools broke off inside mcpx")
}

impl Server {
    /// The schema, unless it is older than `ttl`.
    fn recent(&self, ttl: Duration) -> Option<Arc<ServerSchema>> {
        let schema = self.offered(self.core.known(ttl)?).schema.clone();
        let age = util::now_ms().saturating_sub(schema.fetched_at);
        (u128::from(age) < ttl.as_millis() && !schema.has_expired()).then_some(schema)
    }

    /// Whom to ask for a listing, which has no caller: the instance that all
    /// share, else one that runs and is free, else one for this question alone.
    pub fn listing_key(&self, scope: &Scope) -> Key {
        if let Scope::Global | Scope::Named(_) = scope {
            return scope.key(&Caller::default()).0;
        }
        let running = self.core.instances();
        match running.iter().find(|i| !i.key.once && i.is_idle_for(Duration::ZERO)) {
            Some(instance) => instance.key.clone(),
            None => Key::call(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_without_constraints_is_recognised() {
        for open in [json!({}), json!(true), json!({"type": "object", "properties": {}}), json!(null)] {
            assert!(!constrains(&open), "{open}");
        }
        for closed in [
            json!(false),
            json!({"properties": {"a": {}}}),
            json!({"required": ["a"]}),
            json!({"additionalProperties": false}),
            json!({"oneOf": []}),
        ] {
            assert!(constrains(&closed), "{closed}");
        }
    }
}
