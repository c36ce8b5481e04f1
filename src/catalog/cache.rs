//! The cache of schemas on disk, one file for each server and digest of its
//! definition. A file holds lines, so that each reader reads no more than it
//! needs: a head (what `ls` shows), the rows (what `search` shows), then the whole.
//! Whatever is wrong with a file makes it a miss, never an error. Knows nothing
//! of servers; failures are not cached.

use super::rows::{self, Row};
use super::{ServerSchema, Tool};
use crate::util::{digest, now_ms, write_atomic};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The format's version. A file of any other one is a miss; raise it when the
/// lines, or what is derived into them (signatures), change.
const VERSION: u32 = 3;

/// How many digests of one server are kept. More than one, because two projects
/// may define the same name in two ways and must not empty each other's cache.
const KEPT: usize = 6;

/// A write takes milliseconds: a temporary file of this age has nobody who finishes it.
const ABANDONED: Duration = Duration::from_secs(3600);

/// How much is read for a head at once; heads are some 300 bytes.
const HEAD: usize = 4096;

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Head {
    mcpx: u32,
    server: String,
    digest: String,
    at: u64,
    tools: usize,
    #[serde(default)]
    tokens: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    /// Until when the server promised that its list stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    /// Lengths in bytes of the second line and of all that follows it, line ends included.
    rows: u64,
    rest: u64,
}

/// The third line: the server schema without its tools, each of which has a line
/// of its own after it (so that no tool's schema is nested deeper than it was on the wire).
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server_info: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    private: bool,
}

/// What `ls` needs of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many tools it offers.
    pub tools: usize,
    /// About how many tokens their signatures take, a line each.
    pub tokens: usize,
    /// What it says of itself, one line.
    pub description: Option<String>,
    /// When its schemas were read, milliseconds since 1970.
    pub fetched_at: u64,
}

/// The schema cache in one cache directory.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// The cache below this cache directory; nothing is created before something is stored.
    pub fn new(cache_dir: impl AsRef<Path>) -> Cache {
        Cache { dir: cache_dir.as_ref().join("schemas") }
    }

    /// The directory of the files.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The head of a server's file, when it is not older than `ttl`.
    pub fn summary(&self, server: &str, digest: &str, ttl: Duration) -> Option<Summary> {
        let (_, head, _) = self.open(server, digest, ttl)?;
        Some(Summary { tools: head.tools, tokens: head.tokens, description: head.about, fetched_at: head.at })
    }

    /// The rows of a server's tools, in its own order, when they are not older than `ttl`.
    pub fn load_rows(&self, server: &str, digest: &str, ttl: Duration) -> Option<Vec<Row>> {
        let (mut file, head, mut bytes) = self.open(server, digest, ttl)?;
        let length = usize::try_from(head.rows).ok()?;
        read_up_to(&mut file, &mut bytes, length)?;
        let rows: Vec<Row> = serde_json::from_slice(bytes.get(..length)?).ok()?;
        (rows.len() == head.tools).then_some(rows)
    }

    /// The whole of what is known of a server, when it is not older than `ttl`.
    pub fn load(&self, server: &str, digest: &str, ttl: Duration) -> Option<ServerSchema> {
        let (mut file, head, mut bytes) = self.open(server, digest, ttl)?;
        let (skip, rest) = (usize::try_from(head.rows).ok()?, usize::try_from(head.rest).ok()?);
        read_up_to(&mut file, &mut bytes, skip.checked_add(rest)?)?;
        let mut lines = bytes.get(skip..skip + rest)?.split(|b| *b == b'\n');
        let meta: Meta = serde_json::from_slice(lines.next()?).ok()?;
        let tools = lines
            .filter(|line| !line.is_empty())
            .map(serde_json::from_slice)
            .collect::<Result<Vec<Tool>, _>>()
            .ok()?;
        (tools.len() == head.tools).then(|| schema(head, meta, tools))
    }

    /// One tool, by its exact name: of a server with thousands the others are not looked at.
    pub fn load_tool(&self, server: &str, digest: &str, ttl: Duration, name: &str) -> Option<Tool> {
        self.load_with(server, digest, ttl, name)?.tools.pop()
    }

    /// What is known of a server, with this one tool, by its exact name, and no other.
    pub fn load_with(&self, server: &str, digest: &str, ttl: Duration, name: &str) -> Option<ServerSchema> {
        let (mut file, head, mut bytes) = self.open(server, digest, ttl)?;
        let (skip, rest) = (usize::try_from(head.rows).ok()?, usize::try_from(head.rest).ok()?);
        read_up_to(&mut file, &mut bytes, skip.checked_add(rest)?)?;
        // As a tool's line begins; where it does not, the whole is read.
        let start = format!("{{\"name\":{}", serde_json::to_string(name).ok()?);
        let line = bytes.get(skip..skip + rest)?.split(|b| *b == b'\n').find(|line| {
            line.strip_prefix(start.as_bytes()).is_some_and(|rest| matches!(rest.first(), Some(b',' | b'}')))
        });
        let tool = serde_json::from_slice::<Tool>(line?).ok().filter(|tool| tool.name == name)?;
        let meta = bytes.get(skip..)?.split(|b| *b == b'\n').next()?;
        Some(schema(head, serde_json::from_slice(meta).ok()?, vec![tool]))
    }

    /// Stores a schema under its server and digest, readable for its owner alone,
    /// and forgets the oldest other digests of the same server.
    pub fn store(&self, schema: &ServerSchema) -> io::Result<()> {
        let light = rows::rows(schema);
        let tokens = rows::tokens(&light);
        let mut rows = serde_json::to_vec(&light)?;
        rows.push(b'\n');
        let mut rest = serde_json::to_vec(&Meta {
            protocol: schema.protocol.clone(),
            server_info: schema.server_info.clone(),
            capabilities: schema.capabilities.clone(),
            instructions: schema.instructions.clone(),
            ttl_ms: schema.ttl_ms,
            private: schema.private,
        })?;
        rest.push(b'\n');
        for tool in &schema.tools {
            serde_json::to_writer(&mut rest, tool)?;
            rest.push(b'\n');
        }
        let mut content = serde_json::to_vec(&Head {
            mcpx: VERSION,
            server: schema.server.clone(),
            digest: schema.digest.clone(),
            at: schema.fetched_at,
            tools: schema.tools.len(),
            tokens,
            about: rows::about_server(schema),
            until: schema.promised_until(),
            rows: rows.len() as u64,
            rest: rest.len() as u64,
        })?;
        content.push(b'\n');
        content.append(&mut rows);
        content.append(&mut rest);
        create_private(&self.dir)?;
        // Not synced: what a power cut takes from a cache is fetched again.
        write_atomic(&self.path(&schema.server, &schema.digest), &content, 0o600, false)?;
        self.prune(&schema.server, &schema.digest);
        Ok(())
    }

    /// Forgets what is stored of a server under one digest.
    pub fn forget(&self, server: &str, digest: &str) {
        let _ = fs::remove_file(self.path(server, digest));
    }

    fn path(&self, server: &str, digest: &str) -> PathBuf {
        self.dir.join(format!("{}{}.json", prefix(server), safe(digest)))
    }

    /// Opens a file and reads its head; what was read beyond the head comes back too.
    fn open(&self, server: &str, digest: &str, ttl: Duration) -> Option<(File, Head, Vec<u8>)> {
        let mut file = File::open(self.path(server, digest)).ok()?;
        let mut bytes = vec![0; HEAD];
        let mut read = 0;
        let end = loop {
            let n = match file.read(&mut bytes[read..]) {
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            if let Some(at) = bytes[read..read + n].iter().position(|b| *b == b'\n') {
                read += n;
                break read - n + at;
            }
            read += n;
            // A head of more than a mebibyte is none of ours.
            if n == 0 || read > 1 << 20 {
                return None;
            }
            if read == bytes.len() {
                bytes.resize(read * 2, 0);
            }
        };
        let head: Head = serde_json::from_slice(&bytes[..end]).ok()?;
        let expected = (end as u64 + 1).checked_add(head.rows)?.checked_add(head.rest)?;
        let now = now_ms();
        let fits = head.mcpx == VERSION
            && head.server == server
            && head.digest == digest
            && u128::from(now.saturating_sub(head.at)) <= ttl.as_millis()
            && head.until.is_none_or(|until| now < until)
            // A file that was cut short, or grew.
            && file.metadata().ok()?.len() == expected;
        if !fits {
            return None;
        }
        bytes.truncate(read);
        bytes.drain(..=end);
        Some((file, head, bytes))
    }

    /// Removes the oldest files of a server beyond [`KEPT`], and what a crash left of a write.
    fn prune(&self, server: &str, digest: &str) {
        let (prefix, current) = (prefix(server), self.path(server, digest));
        let Ok(entries) = fs::read_dir(&self.dir) else { return };
        let mut others: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let modified = || entry.metadata().and_then(|m| m.modified()).ok();
            if name.starts_with(&prefix) && name.ends_with(".json") && entry.path() != current {
                others.push((modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
            } else if name.starts_with('.') && name.ends_with(".tmp") {
                let age = modified().and_then(|m| m.elapsed().ok()).unwrap_or_default();
                if age > ABANDONED {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        others.sort();
        let surplus = others.len().saturating_sub(KEPT - 1);
        for (_, path) in &others[..surplus] {
            let _ = fs::remove_file(path);
        }
    }
}

/// What the names of all files of one server begin with: its name as far as a file
/// name can show it, and a digest that tells it from names that look the same then.
fn prefix(server: &str) -> String {
    let shown: String = server
        .chars()
        .take(40)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect();
    format!("{shown}.{}.", digest([server.as_bytes()], 8))
}

fn safe(definition: &str) -> String {
    let plain = (1..=64).contains(&definition.len()) && definition.bytes().all(|b| b.is_ascii_alphanumeric());
    if plain { definition.to_owned() } else { digest([definition.as_bytes()], 16) }
}

fn create_private(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

fn schema(head: Head, meta: Meta, tools: Vec<Tool>) -> ServerSchema {
    ServerSchema {
        server: head.server,
        digest: head.digest,
        fetched_at: head.at,
        protocol: meta.protocol,
        server_info: meta.server_info,
        capabilities: meta.capabilities,
        instructions: meta.instructions,
        ttl_ms: meta.ttl_ms,
        private: meta.private,
        tools,
    }
}

/// Reads until `bytes` holds `length` bytes; `None` when the file ends before or cannot be read.
fn read_up_to(file: &mut File, bytes: &mut Vec<u8>, length: usize) -> Option<()> {
    if let Some(missing) = length.checked_sub(bytes.len()).filter(|m| *m > 0) {
        bytes.reserve_exact(missing);
        file.take(missing as u64).read_to_end(bytes).ok()?;
    }
    (bytes.len() >= length).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    const DAY: Duration = Duration::from_secs(86_400);

    struct Temp(PathBuf);
    impl Temp {
        fn new(name: &str) -> Temp {
            let dir = std::env::temp_dir().join(format!("mcpx-cache-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&dir);
            fs::create_dir_all(&dir).unwrap();
            Temp(dir)
        }
    }
    impl Drop for Temp {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn schema(server: &str, digest: &str, tools: usize) -> ServerSchema {
        let tool = |i: usize| Tool {
            description: Some(format!("Does the thing number {i}. In its own way.\nSecond line.")),
            input_schema: json!({"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"]}),
            ..Tool::named(&format!("do_thing_{i}"))
        };
        ServerSchema {
            server: server.into(),
            digest: digest.into(),
            fetched_at: now_ms(),
            protocol: "2025-11-25".into(),
            server_info: Some(json!({"name":"x","description":"A server for tests"})),
            capabilities: Some(json!({"tools":{}})),
            instructions: Some("Be nice.".into()),
            ttl_ms: None,
            private: false,
            tools: (0..tools).map(tool).collect(),
        }
    }

    #[test]
    fn what_was_stored_comes_back() {
        let temp = Temp::new("round");
        let cache = Cache::new(&temp.0);
        let s = schema("my.server/ö", "0123456789abcdef", 3);
        assert!(cache.load("my.server/ö", "0123456789abcdef", DAY).is_none());
        cache.store(&s).unwrap();
        let back = cache.load(&s.server, &s.digest, DAY).unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), serde_json::to_value(&s).unwrap());
        let summary = cache.summary(&s.server, &s.digest, DAY).unwrap();
        assert_eq!((summary.tools, summary.description.as_deref()), (3, Some("A server for tests")));
        assert_eq!(summary.fetched_at, s.fetched_at);
        let rows = cache.load_rows(&s.server, &s.digest, DAY).unwrap();
        assert_eq!(rows, rows::rows(&s));
        assert_eq!(rows[1].sentence(80), "Does the thing number 1");
        let files: Vec<_> = fs::read_dir(cache.dir()).unwrap().flatten().collect();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(cache.dir()).unwrap().permissions().mode() & 0o777, 0o700);
        let tool = cache.load_tool(&s.server, &s.digest, DAY, "do_thing_1").unwrap();
        let with = cache.load_with(&s.server, &s.digest, DAY, "do_thing_1").unwrap();
        let mut whole = cache.load(&s.server, &s.digest, DAY).unwrap();
        whole.tools.retain(|t| t.name == "do_thing_1");
        assert_eq!(serde_json::to_value(&with).unwrap(), serde_json::to_value(&whole).unwrap());
        assert_eq!(serde_json::to_value(&tool).unwrap(), serde_json::to_value(&s.tools[1]).unwrap());
        assert!(cache.load_tool(&s.server, &s.digest, DAY, "do_thing_").is_none());
        assert!(cache.load(&s.server, "another", DAY).is_none());
        assert!(cache.load("my.server_ö", &s.digest, DAY).is_none());
        cache.forget(&s.server, &s.digest);
        assert!(cache.summary(&s.server, &s.digest, DAY).is_none());
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        let temp = Temp::new("names");
        let cache = Cache::new(&temp.0);
        for name in ["../../etc/passwd", "", "a/b", "..", &"x".repeat(500), "\0"] {
            let s = schema(name, "../d", 1);
            cache.store(&s).unwrap();
            assert!(cache.load(name, "../d", DAY).is_some());
        }
        assert_eq!(fs::read_dir(cache.dir()).unwrap().count(), 6);
    }

    #[test]
    fn a_stale_file_is_a_miss() {
        let temp = Temp::new("ttl");
        let cache = Cache::new(&temp.0);
        let mut s = schema("s", "d", 1);
        s.fetched_at -= 10_000;
        cache.store(&s).unwrap();
        assert!(cache.summary("s", "d", Duration::from_secs(9)).is_none());
        assert!(cache.load("s", "d", Duration::from_secs(60)).is_some());
        assert!(cache.load("s", "d", Duration::MAX).is_some());
    }

    #[test]
    fn damage_of_any_kind_is_a_miss() {
        let temp = Temp::new("damage");
        let cache = Cache::new(&temp.0);
        cache.store(&schema("s", "d", 2)).unwrap();
        let path = cache.path("s", "d");
        let whole = fs::read(&path).unwrap();
        for end in 0..whole.len() {
            fs::write(&path, &whole[..end]).unwrap();
            assert!(cache.summary("s", "d", DAY).is_none(), "cut at {end}");
            assert!(cache.load("s", "d", DAY).is_none(), "cut at {end}");
            assert!(cache.load_rows("s", "d", DAY).is_none(), "cut at {end}");
        }
        let text = String::from_utf8(whole.clone()).unwrap();
        let newer = text.replacen(&format!("\"mcpx\":{VERSION}"), "\"mcpx\":9", 1);
        let other = text.replacen("\"server\":\"s\"", "\"server\":\"t\"", 1);
        let huge = text.replacen("\"rows\":", "\"rows\":1844674407370955", 1);
        let grown = format!("{text} ");
        let noise = "\u{1}".repeat(whole.len());
        for bad in [newer.as_str(), &other, &huge, &grown, &noise, "{}\n", "\n\n\n", "[]", "null\n"] {
            fs::write(&path, bad).unwrap();
            assert!(cache.summary("s", "d", DAY).is_none(), "{bad}");
            assert!(cache.load("s", "d", DAY).is_none(), "{bad}");
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(cache.load("s", "d", DAY).is_none());
        fs::remove_dir(&path).unwrap();
        cache.store(&schema("s", "d", 2)).unwrap();
        assert!(cache.load("s", "d", DAY).is_some());
    }

    #[test]
    fn old_digests_are_pruned_and_other_servers_are_not() {
        let temp = Temp::new("prune");
        let cache = Cache::new(&temp.0);
        cache.store(&schema("other", "d", 1)).unwrap();
        cache.store(&schema("s.x", "d", 1)).unwrap();
        for i in 0..KEPT + 4 {
            cache.store(&schema("s", &format!("d{i}"), 1)).unwrap();
            let file = File::options().append(true).open(cache.path("s", &format!("d{i}"))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(i as u64)).unwrap();
        }
        let kept = (0..KEPT + 4).filter(|i| cache.load("s", &format!("d{i}"), DAY).is_some());
        assert_eq!(kept.collect::<Vec<_>>(), (4..KEPT + 4).collect::<Vec<_>>());
        assert!(cache.load("other", "d", DAY).is_some() && cache.load("s.x", "d", DAY).is_some());
    }

    #[test]
    fn a_schema_as_deep_as_the_wire_allows_survives() {
        let temp = Temp::new("deep");
        let cache = Cache::new(&temp.0);
        // 127 levels are what serde_json reads; the tool itself takes two of them on the wire.
        let text = format!("{}{}{}", "{\"items\":".repeat(124), "{}", "}".repeat(124));
        let mut s = schema("s", "d", 1);
        s.tools[0].input_schema = serde_json::from_str(&text).unwrap();
        cache.store(&s).unwrap();
        assert!(cache.load("s", "d", DAY).is_some());
    }

    #[test]
    fn two_hundred_servers_are_read() {
        let temp = Temp::new("speed");
        let cache = Cache::new(&temp.0);
        let names: Vec<String> = (0..200).map(|i| format!("server-{i}")).collect();
        for name in &names {
            cache.store(&schema(name, "0123456789abcdef", 25)).unwrap();
        }
        assert!(names.iter().all(|n| cache.summary(n, "0123456789abcdef", DAY).is_some()));
        let rows = names.iter().map(|n| cache.load_rows(n, "0123456789abcdef", DAY).unwrap().len());
        assert_eq!(rows.sum::<usize>(), 5000);
    }
}
