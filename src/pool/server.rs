//! The configured servers: their definitions with the limits that hold for
//! each, and the look-up by name. Knows nothing of what runs.

use super::Caller;
use super::connect::Cancel;
use super::core::{Core, Pace, Shared};
use super::instance::{Lease, Visit};
use super::schema::Known;
use super::scope::{Key, Scope};
use crate::catalog::names;
use crate::config::ServerDef;
use crate::error::{Error, Kind, Result};
use crate::settings::{self, Settings};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A definition, the limits that hold for it, and what lasts of it.
pub(super) struct Server {
    pub def: Arc<ServerDef>,
    pub core: Arc<Core>,
    pub settings: Settings,
    limits: Result<Limits>,
    /// What was known, and what of it is offered.
    offered: Mutex<Option<(Arc<Known>, Arc<Known>)>>,
}

/// What the server's own block says, else the settings.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub scope: Scope,
    /// One caller at a time.
    pub exclusive: bool,
    pub start_timeout: Duration,
    /// Absent: no limit.
    pub call_timeout: Option<Duration>,
    pub idle_timeout: Duration,
    /// Kept running although nobody calls: how many.
    pub min: usize,
    /// How many instances.
    pub max: usize,
    /// How many may wait, for one instance or for room in the table.
    pub queue: usize,
    pub pace: Pace,
    /// How old a known schema may be.
    pub ttl: Duration,
    /// Arguments are compared with the tool's schema.
    pub validate: bool,
    pub tasks: Tasks,
}

/// Which calls of tools that may be tasks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tasks {
    Always,
    Never,
    /// Those that are given more time than this; absent: none.
    Beyond(Option<Duration>),
}

impl Tasks {
    fn of(settings: &Settings) -> Tasks {
        match settings.get(&settings::UPSTREAM_TASKS).as_str() {
            "always" => Tasks::Always,
            "never" => Tasks::Never,
            _ => Tasks::Beyond(Some(settings.get(&settings::POOL_CALL_TIMEOUT)).filter(|d| !d.is_zero())),
        }
    }

    /// Whether a call with this time limit is one.
    pub fn suit(self, limit: Option<Duration>) -> bool {
        match self {
            Tasks::Always => true,
            Tasks::Never => false,
            Tasks::Beyond(usual) => usual.is_some_and(|usual| limit.is_none_or(|limit| limit > usual)),
        }
    }
}

impl Limits {
    fn of(def: &ServerDef, settings: &Settings) -> Result<Limits> {
        let options = &def.options;
        let count = |n: i64| usize::try_from(n).unwrap_or(1).max(1);
        let scope = options.scope.clone().unwrap_or_else(|| settings.get(&settings::POOL_SCOPE));
        let sharing = options.sharing.clone().unwrap_or_else(|| settings.get(&settings::POOL_SHARING));
        let exclusive = match sharing.as_str() {
            "shared" => false,
            "exclusive" => true,
            other => {
                return Err(Error::new(Kind::Config, format!("unknown sharing \"{other}\""))
                    .hint("sharing is one of shared, exclusive"));
            }
        };
        let start_timeout =
            options.start_timeout.unwrap_or_else(|| settings.get(&settings::POOL_START_TIMEOUT));
        let call_timeout = options.call_timeout.unwrap_or_else(|| settings.get(&settings::POOL_CALL_TIMEOUT));
        let max = options.max.unwrap_or_else(|| count(settings.get(&settings::POOL_MAX))).max(1);
        let min = match options.min {
            Some(min) if min > max => {
                return Err(Error::new(Kind::Config, format!("min {min} is more than max {max}"))
                    .hint("lower its \"min\", or raise its \"max\" or pool.max"));
            }
            Some(min) => min,
            // What holds for all servers gives way to one's own limit.
            None => usize::try_from(settings.get(&settings::POOL_MIN)).unwrap_or(0).min(max),
        };
        Ok(Limits {
            scope: Scope::parse(&scope)?,
            exclusive,
            start_timeout,
            call_timeout: (!call_timeout.is_zero()).then_some(call_timeout),
            idle_timeout: options.idle_timeout.unwrap_or_else(|| settings.get(&settings::POOL_IDLE_TIMEOUT)),
            min,
            max,
            queue: count(settings.get(&settings::POOL_QUEUE)),
            pace: Pace {
                cool_min: settings.get(&settings::POOL_COOL_DOWN_MIN),
                cool_max: settings.get(&settings::POOL_COOL_DOWN_MAX),
                listing: start_timeout,
            },
            ttl: settings.get(&settings::CATALOG_CACHE_TTL),
            validate: settings.get(&settings::MCP_VALIDATE_ARGUMENTS),
            tasks: Tasks::of(settings),
        })
    }
}

impl Limits {
    /// The key whose instance is kept running although nobody calls: there is one where callers are not told apart.
    pub fn warm(&self) -> Option<Key> {
        let alike = matches!(self.scope, Scope::Global | Scope::Named(_));
        (self.min > 0 && alike).then(|| self.scope.key(&Caller::default()).0)
    }
}

impl Server {
    /// The limits, unless the server can't be used.
    ///
    /// # Errors
    /// `Refused` when it is disabled, else what is wrong with its definition.
    pub fn usable(&self) -> Result<&Limits> {
        let def = &self.def;
        if !def.enabled {
            return Err(Error::new(Kind::Refused, format!("server \"{}\" is disabled", def.name))
                .server(&def.name)
                .hint(format!("set \"enabled\": true for it in {}", def.source.display())));
        }
        if let Some(problem) = &def.problem {
            return Err(problem.clone().server(&def.name));
        }
        self.limits.as_ref().map_err(|e| {
            let place = format!("{}:{}: server \"{}\": ", def.source.display(), def.line, def.name);
            let error = Error::new(e.kind(), format!("{place}{}", e.message())).server(&def.name);
            match e.hint_text() {
                Some(hint) => error.hint(hint),
                None => error,
            }
        })
    }

    /// What of the known tools is offered under the definition's filter. The unfiltered
    /// belongs to the core, which outlives a change of the filter.
    pub fn offered(&self, known: Arc<Known>) -> Arc<Known> {
        if self.def.options.tools.is_open() {
            return known;
        }
        let mut kept = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((of, offered)) if Arc::ptr_eq(of, &known) => offered.clone(),
            _ => {
                let offered = known.filtered(&self.def);
                *kept = Some((known, offered.clone()));
                offered
            }
        }
    }

    /// A turn at the instance of this key. `None`: it ended meanwhile, or the
    /// definition changed; nothing was sent, look the server up again.
    /// `listing` is how long the start may take where it is for a listing.
    pub fn lease(
        &self,
        key: &Key,
        deadline: Option<Instant>,
        cancel: &Cancel,
        listing: Option<Duration>,
    ) -> Result<Option<Lease>> {
        let limits = self.usable()?;
        let settings = &self.settings;
        let found = self.core.instance(key, &self.def, limits, settings, deadline, cancel)?;
        let Some(instance) = found else { return Ok(None) };
        instance.enter(&Visit { exclusive: limits.exclusive, queue: limits.queue, deadline, cancel, listing })
    }
}

/// All configured servers, and what is left of earlier ones.
pub(super) struct Servers {
    pub list: Vec<Arc<Server>>,
    pub settings: Settings,
    /// Of earlier configurations; they finish what is in flight.
    pub leaving: Vec<Arc<Core>>,
    /// Nothing is started any more.
    pub closed: bool,
    by_name: HashMap<String, Arc<Server>>,
}

impl Servers {
    /// The servers of a configuration. One whose definition is the same as in
    /// `before` keeps its lasting part, and so its instances.
    pub fn new(
        defs: Vec<Arc<ServerDef>>,
        settings: Settings,
        shared: &Arc<Shared>,
        before: Option<&Servers>,
    ) -> Servers {
        let list: Vec<Arc<Server>> = defs
            .into_iter()
            .map(|def| {
                let kept = before
                    .and_then(|b| b.by_name.get(&def.name))
                    .filter(|old| old.core.name == def.name && old.core.digest == def.digest && def.enabled);
                let core = kept.map_or_else(|| Core::new(&def, shared.clone()), |old| old.core.clone());
                let limits = Limits::of(&def, &settings);
                Arc::new(Server { core, limits, settings: settings.clone(), offered: Mutex::default(), def })
            })
            .collect();
        let idents = names::unique_idents(list.iter().map(|s| s.def.name.as_str()));
        let mut by_name: HashMap<String, Arc<Server>> =
            idents.into_iter().zip(list.iter().cloned()).collect();
        // Where a name is also another's identifier, the name wins.
        by_name.extend(list.iter().map(|s| (s.def.name.clone(), s.clone())));
        let leaving = before.map(|b| b.leaving.clone()).unwrap_or_default();
        Servers { list, settings, leaving, closed: before.is_some_and(|b| b.closed), by_name }
    }

    /// The server of this name or identifier.
    pub fn find(&self, name: &str) -> Result<Arc<Server>> {
        if self.closed {
            return Err(Error::new(Kind::Unavailable, "the daemon is shutting down").hint("try again"));
        }
        if let Some(server) = self.by_name.get(name) {
            return Ok(server.clone());
        }
        let names: Vec<&str> = self.list.iter().map(|s| s.def.name.as_str()).collect();
        match names::find_server(name, &names) {
            Ok(meant) => self.by_name.get(meant).cloned().ok_or_else(|| {
                Error::new(Kind::Internal, format!("namespace \"{meant}\" has a name but no server"))
            }),
            Err(error) if names.is_empty() => {
                Err(error.hint("no server is configured; `mcpx init` writes a start"))
            }
            Err(error) => Err(error),
        }
    }
}
