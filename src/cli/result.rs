//! Prints the result of a tool's call: unwrapped, as the envelope, or as a
//! JSON document; and puts images, audio and blobs into files. The result is
//! never held a second time: its parts are read where they stand and written
//! one by one. Knows nothing of how the call was made.

use super::out::Out;
use crate::artifacts::{Artifact, Label, Limits, Store, extension};
use crate::error::{Error, Kind, Result, system_words};
use crate::util::base64;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How much of a tool's own error text is shown.
const ERROR_TEXT: usize = 64 * 1024;

/// A `CallToolResult`, not looked into further than needed.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", expecting = "an object with content")]
pub struct Envelope<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    /// The tool reported an error.
    #[serde(default)]
    pub is_error: Option<bool>,
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// One content block, of whichever type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    data: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    mime_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource: Option<Resource<'a>>,
}

/// An embedded resource.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    mime_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    blob: Option<Cow<'a, str>>,
}

/// What becomes of a block: text to print, or bytes with their MIME type.
enum Part<'a> {
    Text(Cow<'a, str>),
    Media { data: Cow<'a, str>, mime: Cow<'a, str> },
    Other,
}

impl<'a> Envelope<'a> {
    /// Looks at a result. Anything that is not one is an error of the server's.
    pub fn read(raw: &'a RawValue) -> Result<Envelope<'a>> {
        serde_json::from_str(raw.get()).map_err(|e| {
            Error::new(Kind::Unavailable, format!("the server's answer is not a tool's result: {e}"))
                .hint("--raw shows the answer as it came")
        })
    }

    /// Prints the result for a person or a pipe: structured content as JSON, else each block on its own line.
    pub fn print(&self, out: &mut Out, media: &Media) -> Result<()> {
        if let Some(structured) = self.structured_content {
            print_json(out, structured)?;
        }
        let has_structured = self.structured_content.is_some();
        self.each(|raw, part| match part {
            // Beside structured content, text is the same thing said again.
            Part::Text(_) if has_structured => Ok(()),
            Part::Text(text) => {
                out.text(&text)?;
                if text.ends_with('\n') { Ok(()) } else { out.bytes(b"\n") }
            }
            Part::Media { data, mime } => match media.place(&data, &mime)? {
                Some(placed) => out.line(&placed.path.to_string_lossy()),
                None => {
                    out.text("data:")?;
                    out.text(&mime)?;
                    out.text(";base64,")?;
                    out.line(&data)
                }
            },
            Part::Other => out.line(raw.get()),
        })
    }

    /// Writes `{"ok":true,"server","tool","result","content",…}`. `result` is what a script would get:
    /// structured content, else the only block, else all of them, where JSON written as text is JSON.
    pub fn document(&self, out: &mut Out, media: &Media, server: &str, tool: &str) -> Result<()> {
        // Media first: each is written to a file once, and named twice. Whatever can be wrong with the
        // result shows here, before a word of the document is written.
        let mut placed: HashMap<usize, String> = HashMap::new();
        let mut blocks = 0usize;
        self.each(|raw, part| {
            if let Part::Media { data, mime } = part
                && let Some(file) = media.place(&data, &mime)?
            {
                let kind = serde_json::from_str::<Block>(raw.get()).map(|b| b.kind.into_owned());
                placed.insert(blocks, file.block(&kind.unwrap_or_default(), &mime).to_string());
            }
            blocks += 1;
            Ok(())
        })?;
        out.text("{\"ok\":true,\"server\":")?;
        out.text(&Value::from(server).to_string())?;
        out.text(",\"tool\":")?;
        out.text(&Value::from(tool).to_string())?;
        if let Some(structured) = self.structured_content {
            out.text(",\"result\":")?;
            out.text(structured.get())?;
        } else if blocks > 0 {
            out.text(",\"result\":")?;
            self.list(out, blocks > 1, |out, at, raw, part| match (part, placed.get(&at)) {
                (_, Some(block)) => out.text(block),
                (Part::Text(text), None) => match json_in(&text) {
                    Some(json) => out.text(json),
                    None => write_string(out, &text),
                },
                (_, None) => out.text(raw.get()),
            })?;
        }
        out.text(",\"content\":")?;
        self.list(out, true, |out, at, raw, _| out.text(placed.get(&at).map_or(raw.get(), String::as_str)))?;
        for (key, value) in [("structuredContent", self.structured_content), ("_meta", self.meta)] {
            if let Some(value) = value {
                out.text(&format!(",{}:", Value::from(key)))?;
                out.text(value.get())?;
            }
        }
        out.text("}\n")
    }

    /// Writes what `f` writes of each block, separated by commas, in brackets if `brackets` says so.
    fn list(
        &self,
        out: &mut Out,
        brackets: bool,
        mut f: impl FnMut(&mut Out, usize, &'a RawValue, Part<'a>) -> Result<()>,
    ) -> Result<()> {
        if brackets {
            out.bytes(b"[")?;
        }
        let mut at = 0usize;
        self.each(|raw, part| {
            if at > 0 {
                out.bytes(b",")?;
            }
            at += 1;
            f(out, at - 1, raw, part)
        })?;
        if brackets { out.bytes(b"]") } else { Ok(()) }
    }

    /// The error that a result with `isError` stands for; its message is the tool's own text.
    pub fn into_error(self, raw: &RawValue, server: &str, tool: &str) -> Error {
        let mut text = String::new();
        let _ = self.each(|_, part| {
            if let Part::Text(t) = part
                && text.len() < ERROR_TEXT
            {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(t.trim_end());
            }
            Ok(())
        });
        if text.is_empty() {
            text = match self.structured_content {
                Some(s) => s.get().to_owned(),
                None => format!("{server}.{tool} reported an error without saying what"),
            };
        }
        if text.len() > ERROR_TEXT {
            let end = (0..=ERROR_TEXT).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
            text.truncate(end);
            text.push_str("… (--raw shows all of it)");
        }
        let e = Error::new(Kind::Tool, text).server(server).tool(tool);
        match serde_json::from_str(raw.get()) {
            Ok(raw) => e.raw(raw),
            Err(_) => e,
        }
    }

    /// Calls `f` with each block, as it came and as what it is.
    fn each(&self, f: impl FnMut(&'a RawValue, Part<'a>) -> Result<()>) -> Result<()> {
        struct Each<F>(F, Option<Error>);
        impl<'de, F: FnMut(&'de RawValue, Part<'de>) -> Result<()>> Visitor<'de> for &mut Each<F> {
            type Value = ();
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an array of content blocks")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
                while let Some(raw) = seq.next_element::<&'de RawValue>()? {
                    if let Err(e) = (self.0)(raw, part(raw)) {
                        self.1 = Some(e);
                        return Err(serde::de::Error::custom("stopped"));
                    }
                }
                Ok(())
            }
        }
        let Some(content) = self.content else { return Ok(()) };
        let mut each = Each(f, None);
        let outcome = serde_json::Deserializer::from_str(content.get()).deserialize_seq(&mut each);
        match (each.1, outcome) {
            (Some(e), _) => Err(e),
            (None, Ok(())) => Ok(()),
            (None, Err(e)) => {
                Err(Error::new(Kind::Unavailable, format!("the result's content is malformed: {e}"))
                    .hint("--raw shows the answer as it came"))
            }
        }
    }
}

fn part(raw: &RawValue) -> Part<'_> {
    let Ok(block) = serde_json::from_str::<Block>(raw.get()) else { return Part::Other };
    let mime = |m: Option<_>| m.unwrap_or(Cow::Borrowed("application/octet-stream"));
    match &*block.kind {
        "text" => block.text.map_or(Part::Other, Part::Text),
        "image" | "audio" => match block.data {
            Some(data) => Part::Media { data, mime: mime(block.mime_type) },
            None => Part::Other,
        },
        "resource_link" => block.uri.map_or(Part::Other, Part::Text),
        "resource" => match block.resource {
            Some(Resource { text: Some(text), .. }) => Part::Text(text),
            Some(Resource { blob: Some(data), mime_type, .. }) => Part::Media { data, mime: mime(mime_type) },
            Some(Resource { uri: Some(uri), .. }) => Part::Text(uri),
            _ => Part::Other,
        },
        _ => Part::Other,
    }
}

/// The text when it is a JSON object or array, as many tools answer for want of structured content.
fn json_in(text: &str) -> Option<&str> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
}

fn print_json(out: &mut Out, raw: &RawValue) -> Result<()> {
    if out.is_terminal()
        && let Ok(value) = serde_json::from_str::<Value>(raw.get())
    {
        return out.json(&value);
    }
    out.line(raw.get())
}

fn write_string(out: &mut Out, text: &str) -> Result<()> {
    serde_json::to_writer(&mut *out, text).map_err(|e| Error::unwritable("to standard output", &e.into()))
}

/// Where images, audio and blobs go.
pub struct Media {
    /// What becomes of them.
    pub way: Way,
    /// What the files' names begin with.
    pub stem: String,
}

/// What becomes of images, audio and blobs.
pub enum Way {
    /// The data stays in the output.
    Inline,
    /// Each becomes a file in this directory.
    Dir(PathBuf),
    /// Each becomes an artifact, of this run and session.
    Kept {
        /// The store.
        store: Store,
        /// How much may be in it.
        limits: Limits,
        /// The run and the session, where they are known.
        of: (Option<String>, Option<String>),
    },
}

/// A file that data was put into: the block that stands for it.
struct Placed {
    path: PathBuf,
    artifact: Option<Artifact>,
}

impl Placed {
    fn block(&self, kind: &str, mime: &str) -> Value {
        let mut block = json!({"type": kind, "mimeType": mime, "path": self.path});
        if let Some(a) = &self.artifact {
            block["uri"] = a.uri.as_str().into();
            block["name"] = a.name.as_str().into();
            block["size"] = a.size.into();
            block["sha256"] = a.sha256.as_str().into();
        }
        block
    }
}

impl Media {
    /// Puts the data into a file; `None` when data stays in the output.
    fn place(&self, data: &str, mime: &str) -> Result<Option<Placed>> {
        if matches!(self.way, Way::Inline) {
            return Ok(None);
        }
        let bytes = base64::decode(data).map_err(|at| {
            Error::new(
                Kind::Unavailable,
                format!("the server sent {mime} that is not base64 at character {at}"),
            )
            .hint("--media inline leaves the data as it came")
        })?;
        match &self.way {
            Way::Inline => Ok(None),
            Way::Dir(dir) => self.write(dir, &bytes, mime).map(Some),
            Way::Kept { store, limits, of } => {
                let mut incoming = store.begin(limits)?;
                incoming.take(&bytes)?;
                let label = Label {
                    name: format!("{}.{}", self.stem, extension(mime)),
                    mime: Some(mime.to_owned()),
                    run: of.0.clone(),
                    session: of.1.clone(),
                };
                let is_open = |run: &str| store.is_noted(run, &crate::proc::alive);
                let (artifact, _) = store.keep(incoming, label, limits, &is_open)?;
                let path = artifact.path.clone().unwrap_or_default();
                Ok(Some(Placed { path, artifact: Some(artifact) }))
            }
        }
    }

    /// Writes a new file.
    fn write(&self, dir: &Path, bytes: &[u8], mime: &str) -> Result<Placed> {
        let fail = |what: &str, e: std::io::Error| {
            Error::new(Kind::Unwritable, format!("{what} {}: {}", dir.display(), system_words(&e))).hint(
                "output.mediaDir (--output-media-dir) sets another directory; --media inline writes no files",
            )
        };
        std::fs::create_dir_all(dir).map_err(|e| fail("creating the directory", e))?;
        let stamp = crate::util::now_ms();
        for serial in 0..u32::MAX {
            let name = format!("{}-{stamp}-{}-{serial}.{}", self.stem, std::process::id(), extension(mime));
            let path = dir.join(name);
            match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(bytes).map_err(|e| fail("writing a file in", e))?;
                    return Ok(Placed { path, artifact: None });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(fail("creating a file in", e)),
            }
        }
        Err(super::internal("no free file name"))
    }
}

/// One content item of a prompt's message, in a line or a few: its text, or what it is.
pub fn printable_part(content: &serde_json::Value) -> String {
    let word = |key: &str| content[key].as_str();
    match word("type") {
        Some("text") => word("text").unwrap_or_default().to_owned(),
        Some("resource") => {
            let resource = &content["resource"];
            let uri = resource["uri"].as_str().unwrap_or_default();
            resource["text"].as_str().map_or_else(|| format!("[{uri}]"), |text| format!("[{uri}]\n{text}"))
        }
        Some("resource_link") => format!("[{}]", word("uri").unwrap_or_default()),
        Some(kind) => format!("[{kind} {}]", word("mimeType").unwrap_or_default()),
        None => content.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::out::capture;
    use super::*;

    fn printed(result: Value, media: &Media) -> String {
        let raw = RawValue::from_string(result.to_string()).unwrap();
        let mut out = capture();
        Envelope::read(&raw).unwrap().print(&mut out, media).unwrap();
        out.flush().unwrap();
        String::from_utf8(out.captured).unwrap()
    }
    fn document(result: Value, media: &Media) -> Value {
        let raw = RawValue::from_string(result.to_string()).unwrap();
        let mut out = capture();
        Envelope::read(&raw).unwrap().document(&mut out, media, "s", "t").unwrap();
        out.flush().unwrap();
        serde_json::from_slice(&out.captured).unwrap()
    }
    fn inline() -> Media {
        Media { way: Way::Inline, stem: "t".into() }
    }

    #[test]
    fn text_is_printed_line_by_line() {
        let two = json!({"content":[{"type":"text","text":"a\n"},{"type":"text","text":"b \"q\""}]});
        assert_eq!(printed(two, &inline()), "a\nb \"q\"\n");
        assert_eq!(printed(json!({"content":[]}), &inline()), "");
        assert_eq!(printed(json!({}), &inline()), "");
        assert_eq!(
            printed(json!({"content":[{"type":"new","x":1}]}), &inline()),
            "{\"type\":\"new\",\"x\":1}\n"
        );
    }

    #[test]
    fn structured_content_is_the_result() {
        let r = json!({"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}});
        assert_eq!(printed(r.clone(), &inline()), "{\"n\":1}\n");
        let d = document(r, &inline());
        assert_eq!(d["result"], json!({"n":1}));
        assert_eq!(d["content"][0]["type"], "text");
        assert_eq!(d["ok"], true);
    }

    #[test]
    fn a_document_unwraps_what_a_script_would() {
        let one = |text: &str| {
            document(json!({"content":[{"type":"text","text":text}]}), &inline())["result"].clone()
        };
        assert_eq!(one("{\"n\":1}"), json!({"n":1}));
        assert_eq!(one("[1"), json!("[1"));
        assert_eq!(one("12"), json!("12"));
        let none = document(json!({"content":[]}), &inline());
        assert!(none.get("result").is_none());
        let two = json!({"content":[{"type":"text","text":"a"},{"type":"text","text":"{\"n\":1}"}]});
        assert_eq!(document(two, &inline())["result"], json!(["a", {"n":1}]));
    }

    #[test]
    fn media_goes_to_files_or_stays() {
        let dir = std::env::temp_dir().join(format!("mcpx-media-{}", std::process::id()));
        let files = Media { way: Way::Dir(dir.join("in")), stem: "t".into() };
        let r = json!({"content":[
            {"type":"image","data":"Zm9v","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"x:/1","blob":"YmFy","mimeType":"text/csv"}},
            {"type":"resource","resource":{"uri":"x:/2","text":"hi"}},
            {"type":"resource_link","uri":"x:/3","name":"n"}
        ]});
        let shown = printed(r.clone(), &files);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].ends_with(".png") && lines[1].ends_with(".csv"), "{shown}");
        assert_eq!(std::fs::read(lines[0]).unwrap(), b"foo");
        assert_eq!(std::fs::read(lines[1]).unwrap(), b"bar");
        assert_eq!(lines[2..], ["hi", "x:/3"]);
        let d = document(r.clone(), &files);
        assert_eq!(std::fs::read(d["content"][0]["path"].as_str().unwrap()).unwrap(), b"foo");
        assert_eq!(d["content"][0]["type"], "image");
        assert!(d["content"][0].get("data").is_none());
        assert_eq!(d["result"][0], d["content"][0]);
        assert_eq!(std::fs::read_dir(dir.join("in")).unwrap().count(), 4);
        let root = dir.to_str().unwrap();
        let env = crate::util::Env::from_pairs([("HOME", root), ("MCPX_STATE_DIR", root)]);
        let store = Store::new(&crate::paths::Dirs::from_env(&env, 0).unwrap());
        let limits = Limits { one: 100, quota: 0, ttl: std::time::Duration::ZERO };
        let of = (Some("r1".into()), None);
        let kept = Media { way: Way::Kept { store: store.clone(), limits, of }, stem: "t".into() };
        let d = document(r.clone(), &kept);
        let block = &d["content"][0];
        assert_eq!(std::fs::read(block["path"].as_str().unwrap()).unwrap(), b"foo");
        assert_eq!((block["type"].as_str(), block["size"].as_u64()), (Some("image"), Some(3)));
        let artifact = store.find(block["uri"].as_str().unwrap()).unwrap();
        assert_eq!((artifact.name.as_str(), artifact.run.as_deref()), ("t.png", Some("r1")));
        assert_eq!(store.list().unwrap().len(), 2);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(printed(r, &inline()).starts_with("data:image/png;base64,Zm9v\n"));
        let bad = json!({"content":[{"type":"image","data":"*","mimeType":"image/png"}]});
        let raw = RawValue::from_string(bad.to_string()).unwrap();
        let e = Envelope::read(&raw).unwrap().print(&mut capture(), &files).unwrap_err();
        assert!(e.message().contains("not base64"));
    }

    #[test]
    fn nothing_is_written_of_what_cannot_be_shown() {
        let files = || Media { way: Way::Dir("/dev/null".into()), stem: "t".into() };
        let image = |data: &str| json!({"content":[{"type":"image","data":data,"mimeType":"image/png"}]});
        for (result, media, why) in [
            (image("Zm9v"), files(), "/dev/null"),
            (image("*"), files(), "not base64"),
            (json!({"content": "text"}), inline(), "expected an array of content blocks"),
        ] {
            let raw = RawValue::from_string(result.to_string()).unwrap();
            let mut out = capture();
            let e = Envelope::read(&raw).unwrap().document(&mut out, &media, "s", "t").unwrap_err();
            assert!(e.message().contains(why), "{e}");
            out.flush().unwrap();
            assert!(out.captured.is_empty(), "{}", String::from_utf8_lossy(&out.captured));
        }
        let text = RawValue::from_string("\"hello\"".into()).unwrap();
        let e = Envelope::read(&text).err().unwrap();
        assert!(
            e.message().contains("invalid type: string \"hello\", expected an object with content"),
            "{e}"
        );
    }

    #[test]
    fn a_tools_error_speaks_for_itself() {
        let r = json!({"isError":true,"content":[{"type":"text","text":"no such file\n"},{"type":"text","text":"x"}]});
        let raw = RawValue::from_string(r.to_string()).unwrap();
        let envelope = Envelope::read(&raw).unwrap();
        assert_eq!(envelope.is_error, Some(true));
        let e = envelope.into_error(&raw, "s", "t");
        assert_eq!((e.message(), e.exit_code()), ("no such file\nx", 1));
        assert_eq!(e.raw_value(), Some(&r));
        let silent = RawValue::from_string("{\"isError\":true}".into()).unwrap();
        let e = Envelope::read(&silent).unwrap().into_error(&silent, "s", "t");
        assert!(e.message().contains("s.t reported an error"));
    }

    #[test]
    fn a_million_blocks_pass_in_a_line() {
        let block = "{\"type\":\"text\",\"text\":\"x\"}";
        let text = format!("{{\"content\":[{}]}}", vec![block; 100_000].join(","));
        let raw = RawValue::from_string(text).unwrap();
        let mut out = capture();
        Envelope::read(&raw).unwrap().print(&mut out, &inline()).unwrap();
        out.flush().unwrap();
        assert_eq!(out.captured.len(), 200_000);
    }
}
