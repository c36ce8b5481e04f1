//! Turns a request into an operation with parameters, and its outcome into a
//! status and a body: one router for every listener. Knows nothing of sockets.

use super::answers;
use super::detached::Early;
use super::mcp_endpoint::{self, Desk};
use super::runs::Run;
use super::state::Daemon;
use super::ui;
use crate::api::http::{self, Chunked, Head, Headers, JSON, Method};
use crate::api::ops::{self, NoRoute, Operation, Place, Shape};
use crate::api::page;
use crate::api::uri;
use crate::api::wire::SETTINGS_HEADER;
use crate::artifacts::Incoming;
use crate::error::{Error, Kind, Result};
use crate::pool::{Cancel, Progress};
use crate::settings::Carried;
use crate::util::{self, json_words};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::io::{self, Write};
use std::sync::Arc;

/// Where a request comes from.
#[derive(Clone)]
pub enum Origin {
    /// A connection of the unix socket.
    Unix(u64),
    /// TCP.
    Tcp,
    /// A channel of this run, or a request over TCP with its token.
    Channel(Arc<Run>),
}

/// What is known of who asks.
pub struct Asker<'a> {
    /// Where the request comes from.
    pub origin: Origin,
    /// The run with limits that has started the asking process.
    pub held: Option<Arc<Run>>,
    /// Pulled when the asker goes away.
    pub cancel: &'a Cancel,
    /// Who wants to hear of progress.
    pub progress: Option<Progress>,
    /// The settings that the request brought along.
    pub carried: Carried,
    /// The request's header lines; none on a channel.
    pub headers: &'a Headers,
    /// Answers the asker before a call is over, where that is possible.
    pub early: Option<Arc<Early>>,
}

/// The parameters of an operation.
pub enum Params<'a> {
    /// A JSON object, or nothing, which is an empty one.
    Json(&'a [u8]),
    /// Taken from a path and a query.
    Map(Map<String, Value>),
    /// The same, and a body that was taken in as it came.
    Content(Map<String, Value>, Incoming),
}

impl Params<'_> {
    /// Reads them; unknown ones are ignored.
    pub fn parse<T: DeserializeOwned>(self, op: &Operation) -> Result<T> {
        // One way of reading for all three: each further one is compiled anew for every operation.
        let written;
        let text = match &self {
            Params::Json(text) if text.iter().all(u8::is_ascii_whitespace) => b"{}",
            Params::Json(text) => *text,
            Params::Map(map) | Params::Content(map, _) => {
                written = serde_json::to_vec(map).unwrap_or_default();
                &written
            }
        };
        serde_json::from_slice(text).map_err(|e| {
            Error::new(Kind::Usage, format!("reading the parameters of {}: {}", op.name, json_words(e)))
                .hint("docs/api.md lists them")
        })
    }
}

/// What an operation comes to.
pub enum Done {
    /// A JSON object.
    Json(Vec<u8>),
    /// A tool's result, as its server sent it.
    Tool(Box<RawValue>),
    /// The connection is to become a channel of this run.
    Channel(Arc<Run>),
    /// Something other than JSON, or JSON with a status of its own.
    Response(Response),
}

/// What goes back.
pub enum Answer {
    /// A response.
    Response(Response),
    /// The connection is to become a channel of this run.
    Channel(Arc<Run>),
}

/// A response, before it is written.
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body's media type; none when there is no body.
    pub media: Option<&'static str>,
    /// More header lines, each ended by CR LF.
    pub headers: String,
    /// The body.
    pub body: Body,
}

/// A body.
pub enum Body {
    /// As it is.
    Whole(Vec<u8>),
    /// `{"result":…}` around a text that is not copied.
    Result(Box<RawValue>),
    /// Made while it is sent; the asker's `cancel` is pulled when it goes away meanwhile.
    Stream(Producer),
}

/// Sends a body piece by piece, and returns when it is whole. An error means that
/// the asker has gone, or that the body cannot be finished: then its end is not sent.
/// Whoever waits for something to send says so now and then (a comment, an empty
/// line), since on TCP nothing else shows that the asker has left.
pub type Producer = Box<dyn FnOnce(&mut Chunked<'_>) -> io::Result<()> + Send>;

impl Response {
    /// JSON.
    pub fn json(status: u16, text: Vec<u8>) -> Response {
        Response { status, media: Some(JSON), headers: String::new(), body: Body::Whole(text) }
    }

    /// A body that is made while it is sent.
    pub fn stream(media: &'static str, producer: Producer) -> Response {
        Response { status: 200, media: Some(media), headers: String::new(), body: Body::Stream(producer) }
    }

    /// Writes it. `framed`: the peer takes chunks. Answers whether the connection may be kept.
    pub fn write(self, out: &mut impl Write, keep_alive: bool, framed: bool) -> io::Result<bool> {
        let head = Head { status: self.status, media: self.media, headers: &self.headers, keep_alive };
        match self.body {
            Body::Whole(text) => http::write_response(out, head, &[&text])?,
            Body::Result(result) => {
                http::write_response(out, head, &[b"{\"result\":", result.get().as_bytes(), b"}"])?;
            }
            Body::Stream(producer) => {
                let mut chunked = Chunked::begin(out, head, framed)?;
                let outcome = producer(&mut chunked);
                if outcome.is_err() {
                    chunked.break_off();
                    return outcome.map(|()| false);
                }
                chunked.end()?;
                return Ok(keep_alive && framed);
            }
        }
        Ok(keep_alive)
    }
}

impl Answer {
    /// An error with the status of its kind, or another one.
    pub fn error(error: &Error, status: Option<u16>) -> Answer {
        Answer::Response(Response::error(error, status))
    }
}

impl Response {
    /// An error with the status of its kind, or another one.
    pub fn error(error: &Error, status: Option<u16>) -> Response {
        let mut response = Response::json(status.unwrap_or(error.kind().row().status), error_body(error));
        if response.status == 503 {
            response.headers.push_str("Retry-After: 1\r\n");
        }
        response
    }
}

/// `{"error":…}`.
pub fn error_body(error: &Error) -> Vec<u8> {
    format!("{{\"error\":{}}}", error.to_json()).into_bytes()
}

/// The settings that a request's header brings along.
///
/// # Errors
/// `Usage` when the header is not what it should be.
pub fn carried(header: Option<&str>) -> Result<Carried> {
    let Some(text) = header else { return Ok(Carried::default()) };
    Carried::parse(text).map_err(|e| {
        let error = Error::new(Kind::Usage, format!("{SETTINGS_HEADER}: {}", e.message()));
        e.hint_text().map_or(error.clone(), |hint| error.hint(hint))
    })
}

/// A request, whichever listener it came to.
pub struct Asked<'a> {
    /// The method.
    pub method: Method,
    /// The path, and perhaps `?query`.
    pub target: &'a str,
    /// The body; empty when there is none.
    pub body: &'a [u8],
    /// A body that was taken in as it came, for the one operation that wants that.
    pub content: Cell<Option<Incoming>>,
}

/// Answers one HTTP request. The listener counts it as in flight until the answer is written.
pub fn answer(daemon: &Arc<Daemon>, asked: &Asked<'_>, asker: &Asker<'_>) -> Answer {
    let Asked { method, target, body, .. } = *asked;
    let (path, query) = uri::split(target);
    if path == mcp_endpoint::PATH
        && let Some(endpoint) = &daemon.mcp
    {
        return Answer::Response(endpoint.answer(&Desk::new(daemon, asker), asked, query));
    }
    if page::is_page(method, path) {
        return Answer::Response(ui::page());
    }
    let (op, in_path) = match ops::route(method, path) {
        Ok(found) => found,
        Err(NoRoute::Method) => {
            let error = Error::new(Kind::Usage, format!("{path} does not take {}", method.word()));
            return Answer::error(&error, Some(405));
        }
        Err(NoRoute::Path) => {
            let error = Error::new(Kind::NotFound, format!("the daemon has no {path}"))
                .hint("GET /v1/openapi.json lists what it has");
            return Answer::error(&error, None);
        }
    };
    let outcome = params(op, &in_path, query, body).and_then(|params| {
        let params = match (params, asked.content.take()) {
            (Params::Map(map), Some(content)) => Params::Content(map, content),
            (params, _) => params,
        };
        answers::perform(daemon, op, params, asker)
    });
    match outcome {
        Ok(Done::Json(text)) => Answer::Response(Response::json(200, text)),
        Ok(Done::Tool(result)) => {
            Answer::Response(Response { body: Body::Result(result), ..Response::json(200, Vec::new()) })
        }
        Ok(Done::Response(response)) => Answer::Response(response),
        Ok(Done::Channel(run)) => Answer::Channel(run),
        Err(error) => Answer::error(&error, None),
    }
}

/// Gathers an operation's parameters from where they travel.
fn params<'a>(
    op: &Operation,
    in_path: &[(&'static str, &str)],
    query: &str,
    body: &'a [u8],
) -> Result<Params<'a>> {
    let usage = |what: String| Error::new(Kind::Usage, format!("{}: {what}", op.name));
    let mut map = Map::new();
    if op.params.iter().any(|p| p.place == Place::Body) {
        if in_path.is_empty() {
            return Ok(Params::Json(body));
        }
        let text = if body.trim_ascii().is_empty() { b"{}" } else { body };
        map = serde_json::from_slice(text)
            .map_err(|e| usage(format!("reading the body: {}", json_words(e))))?;
    }
    for (name, value) in in_path {
        let value = uri::decode(value, false).ok_or_else(|| usage("the path has a broken escape".into()))?;
        map.insert((*name).to_owned(), value.into());
    }
    let pairs = uri::query(query).ok_or_else(|| usage("the query has a broken escape".into()))?;
    for (name, value) in pairs {
        let Some(param) = op.params.iter().find(|p| p.place == Place::Query && p.field.name == name) else {
            if op.method != Method::Get {
                continue;
            }
            // Passed over it would widen what is asked for, and nobody would see.
            let known = || op.params.iter().filter(|p| p.place == Place::Query).map(|p| p.field.name);
            let error = usage(format!("the query has no parameter \"{name}\""));
            return Err(match (util::did_you_mean(&name, known()), known().collect::<Vec<_>>()) {
                (Some(near), _) => error.hint(near),
                (None, names) if names.is_empty() => error.hint("it takes none"),
                (None, names) => error.hint(format!("it takes {}", names.join(", "))),
            });
        };
        match &param.field.shape {
            Shape::Boolean => {
                let value = match value.as_str() {
                    "" | "1" | "true" => true,
                    "0" | "false" => false,
                    _ => return Err(usage(format!("{name} is true or false, not \"{value}\""))),
                };
                map.insert(name, value.into());
            }
            Shape::Integer => {
                let number: u64 =
                    value.parse().map_err(|_| usage(format!("{name} is a whole number, not \"{value}\"")))?;
                map.insert(name, number.into());
            }
            Shape::List(_) => match map.entry(name).or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(list) => list.push(value.into()),
                _ => return Err(usage("a parameter is given in two ways".into())),
            },
            _ => {
                map.insert(name, value.into());
            }
        }
    }
    Ok(Params::Map(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(op: &str, query: &str) -> Result<Value> {
        match params(ops::by_name(op).unwrap(), &[], query, b"")? {
            Params::Map(map) => Ok(Value::Object(map)),
            Params::Json(_) | Params::Content(..) => panic!("{op} has a body"),
        }
    }

    #[test]
    fn a_query_is_typed_by_the_table() {
        let schemas = map("schemas", "server=a&server=b+c&fresh").unwrap();
        assert_eq!(schemas, serde_json::json!({"server": ["a", "b c"], "fresh": true}));
        assert_eq!(map("namespaces", "fresh=0").unwrap(), serde_json::json!({"fresh": false}));
        assert_eq!(map("resolve", "dir=%2Ftmp").unwrap(), serde_json::json!({"dir": "/tmp"}));
        let odd = map("log", "sevrer=demo").unwrap_err();
        assert!(
            odd.message().contains("\"sevrer\"") && odd.hint_text().unwrap().contains("\"server\""),
            "{odd}"
        );
        assert!(map("status", "x=1").unwrap_err().hint_text().is_some());
        for (op, bad) in [("namespaces", "fresh=maybe"), ("resolve", "dir=%zz")] {
            assert_eq!(map(op, bad).unwrap_err().kind(), Kind::Usage);
        }
    }

    #[test]
    fn a_body_that_does_not_fit_says_what_is_missing() {
        #[derive(serde::Deserialize, Debug)]
        #[allow(dead_code, reason = "only its reading matters")]
        struct Wanted {
            server: String,
        }
        let op = ops::by_name("call").unwrap();
        let error = Params::Json(b"").parse::<Wanted>(op).unwrap_err();
        assert!(error.message().contains("call") && error.message().contains("server"), "{error}");
        let error = Params::Json(b"{\"server\":").parse::<Wanted>(op).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
    }
}
