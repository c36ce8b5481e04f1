//! Work that goes on although whoever asked for it was answered: because its
//! server asks something, or because it was wanted as a task. Knows nothing of
//! what is done.

use super::answers::json_of;
use super::asks::tasks::{Subject, Task};
use super::call_stream::{self, News};
use super::calling::asked;
use super::router::{Asker, Done};
use super::state::Daemon;
use crate::api::http::Headers;
use crate::api::wire::TaskWish;
use crate::error::{Error, Kind, Result};
use crate::pool::{Cancel, Progress};
use crate::proc;
use crate::settings;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The header with which a caller says that it rather hears of a question than waits for its answer.
pub(super) const INPUT_HEADER: &str = "x-mcpx-input";
/// The header with which such a caller says that it wants to hear of progress.
const PROGRESS_HEADER: &str = "x-mcpx-progress";

/// Answers the caller with a question; false when it has been answered.
type Tell = Box<dyn Fn(&Error) -> bool + Send + Sync>;

type Ready = Box<dyn Fn(Option<Arc<Task>>) + Send + Sync>;

/// How a caller can be answered before its call is over, and the task that the call then is.
pub struct Early {
    tell: Tell,
    /// Told once it is known what is carried out; with the task, where it is one at once.
    ready: Option<Ready>,
    /// The caller wants a task.
    wish: Option<TaskWish>,
    place: Mutex<Place>,
}

/// Where a call stands.
#[derive(Default)]
struct Place {
    subject: Option<Subject>,
    task: Option<Arc<Task>>,
    over: bool,
}

impl Early {
    /// For a caller that is told of questions.
    pub fn new(tell: Tell) -> Arc<Early> {
        Arc::new(Early { tell, ready: None, wish: None, place: Mutex::default() })
    }

    /// Answers the caller with a question; false when it has been answered.
    pub fn tell(&self, error: &Error) -> bool {
        (self.tell)(error)
    }

    /// Says what is carried out: from now on it can be a task.
    pub fn enter(&self, daemon: &Daemon, subject: Subject) {
        self.lock().subject = Some(subject);
        let at_once = self.wish.as_ref().is_some_and(|wish| wish.after_ms == 0);
        // Before it is carried out: whoever wants a task gets one, however soon it is over.
        let task = if at_once { self.task(daemon).ok().flatten() } else { None };
        if let Some(ready) = &self.ready {
            ready(task);
        }
    }

    /// The task that the call is from now on; none once it is over.
    pub fn task(&self, daemon: &Daemon) -> Result<Option<Arc<Task>>> {
        let mut place = self.lock();
        if place.task.is_none()
            && !place.over
            && let Some(subject) = place.subject.take()
        {
            place.task = Some(daemon.tasks.begin(subject, self.wish.as_ref())?);
        }
        Ok(place.task.clone())
    }

    /// The task that the call is already.
    pub fn begun(&self) -> Option<Arc<Task>> {
        self.lock().task.clone()
    }

    /// The call is over; the task that it was.
    pub fn over(&self) -> Option<Arc<Task>> {
        let mut place = self.lock();
        place.over = true;
        place.task.take()
    }

    /// Notes in the task how far it says that it is.
    fn note(&self, report: &Value) {
        if let (Some(task), Some(text)) = (&self.lock().task, report["message"].as_str()) {
            task.note(text);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a header asks for reports.
fn wants(asker: &Asker<'_>, header: &str) -> bool {
    asker.headers.get(header).is_some_and(|v| v.trim().eq_ignore_ascii_case("report"))
}

/// Carries out what a server may ask something about; on a thread of its own where the asker's has
/// to be able to leave it, because it wants to hear of questions or (`wish`) of the task that it is.
pub(super) fn detachable(
    daemon: &Arc<Daemon>,
    asker: &Asker<'_>,
    wish: Option<TaskWish>,
    work: impl FnOnce(&Asker<'_>) -> Result<Box<RawValue>> + Send + 'static,
) -> Result<Done> {
    if wish.is_none() && (asker.early.is_some() || !wants(asker, INPUT_HEADER)) {
        return work(asker).map(Done::Tool);
    }
    if wish.is_some() {
        daemon.tasks.has_room()?;
    }
    let (send, receive) = mpsc::sync_channel(call_stream::AHEAD);
    let cancel = Cancel::new();
    let inner = cancel.clone();
    let guard = asker.cancel.on_cancel(move || inner.cancel());
    let after = wish.as_ref().map(|wish| Duration::from_millis(wish.after_ms));
    let early = early(&send, wish);
    let heartbeat = daemon.current().settings.get(&settings::EVENTS_HEARTBEAT);
    let progress = reports(asker, &send, &early, after.is_some());
    let (origin, held, carried) = (asker.origin.clone(), asker.held.clone(), asker.carried.clone());
    let (inside, own) = (daemon.clone(), early.clone());
    proc::thread::spawn("call", move || {
        // The caller may be answered and gone long before this is over.
        let _busy = inside.activity.enter();
        let _whole = Whole { daemon: inside.clone(), early: own.clone(), send: send.clone() };
        let headers = Headers::default();
        let early = Some(own);
        let asker = Asker { origin, held, cancel: &cancel, progress, carried, headers: &headers, early };
        let _ = send.send(News::Done(work(&asker)));
    })
    .map_err(|e| Error::new(Kind::Busy, format!("starting a thread for a call: {e}")))?;
    let news = match after {
        Some(after) => match first(daemon, &receive, &early, after)? {
            First::Begun(task) => {
                drop(guard);
                return json_of(&json!({"task": task.row(0)}));
            }
            First::News(news) => Some(news),
            First::Nothing => None,
        },
        None => receive.recv().ok(),
    };
    if let Some(News::Progress(first)) = news {
        return Ok(Done::Response(call_stream::response(first, receive, guard, heartbeat)));
    }
    // From here on the asker's leaving is nothing to the call.
    drop(guard);
    match news {
        Some(News::Done(outcome)) => outcome.map(Done::Tool),
        // A channel has no answers but results and errors.
        Some(News::Asked(error)) if asker.early.is_some() => Err(error),
        Some(News::Asked(error)) => Ok(Done::Response(asked(&error))),
        _ => Err(Error::new(Kind::Internal, "the call broke off inside mcpx")),
    }
}

/// Says what came of a call that broke off: whoever waits for it, or for its task, is not to wait for ever.
struct Whole {
    daemon: Arc<Daemon>,
    early: Arc<Early>,
    send: SyncSender<News>,
}

impl Drop for Whole {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let error =
            Error::new(Kind::Internal, "the call broke off inside mcpx").hint("the daemon's log says where");
        if let Some(task) = self.early.over()
            && let Some(session) = self.daemon.tasks.finish(&task, Err(error.clone()))
        {
            self.daemon.pool.end_session(&session);
        }
        let _ = self.send.send(News::Done(Err(error)));
    }
}

/// How whoever waits at the other end is answered early.
fn early(send: &SyncSender<News>, wish: Option<TaskWish>) -> Arc<Early> {
    let once: Mutex<Option<SyncSender<News>>> = Mutex::new(Some(send.clone()));
    let tell: Tell = Box::new(move |error| {
        let send = once.lock().unwrap_or_else(PoisonError::into_inner).take();
        send.is_some_and(|send| send.send(News::Asked(error.clone())).is_ok())
    });
    let ready = wish.is_some().then(|| {
        let send = send.clone();
        Box::new(move |task| drop(send.try_send(News::Ready(task)))) as Ready
    });
    Arc::new(Early { tell, ready, wish, place: Mutex::default() })
}

/// Where reports of progress go. Of a task its server is asked for them in any case: they say how it stands.
fn reports(
    asker: &Asker<'_>,
    send: &SyncSender<News>,
    early: &Arc<Early>,
    is_task: bool,
) -> Option<Progress> {
    if is_task {
        let (early, passed) = (early.clone(), asker.progress.clone());
        return Some(Arc::new(move |report| {
            early.note(&report);
            if let Some(passed) = &passed {
                passed(report);
            }
        }));
    }
    if wants(asker, PROGRESS_HEADER) {
        let send = send.clone();
        return Some(Arc::new(move |report| drop(send.try_send(News::Progress(report)))));
    }
    asker.progress.clone()
}

/// What comes first of a call that becomes a task after a while.
enum First {
    /// It is a task now.
    Begun(Arc<Task>),
    /// Its end, or a question.
    News(News),
    /// Its thread broke off.
    Nothing,
}

fn first(daemon: &Daemon, receive: &mpsc::Receiver<News>, early: &Early, after: Duration) -> Result<First> {
    let until = Instant::now() + after;
    loop {
        match receive.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(News::Ready(Some(task))) => return Ok(First::Begun(task)),
            Ok(News::Ready(None)) if Instant::now() < until => continue,
            Ok(News::Ready(None)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(news) => return Ok(First::News(news)),
            Err(RecvTimeoutError::Disconnected) => return Ok(First::Nothing),
        }
        if let Some(task) = early.task(daemon)? {
            return Ok(First::Begun(task));
        }
        // It is over, or it is not known yet what it is.
        match receive.recv() {
            Ok(News::Ready(Some(task))) => return Ok(First::Begun(task)),
            Ok(News::Ready(None)) => {}
            Ok(news) => return Ok(First::News(news)),
            Err(_) => return Ok(First::Nothing),
        }
    }
}
