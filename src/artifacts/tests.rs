//! The store through its own interface, on real files.

use super::*;
use crate::error::Kind;
use crate::paths::Dirs;
use crate::util::Env;
use crate::util::scratch::Scratch;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

const ROOMY: Limits = Limits { one: 1 << 20, quota: 0, ttl: Duration::ZERO };

fn store(scratch: &Scratch) -> Store {
    let root = scratch.path("");
    let root = root.to_str().unwrap();
    let env = Env::from_pairs([("HOME", root), ("MCPX_STATE_DIR", root)]);
    Store::new(&Dirs::from_env(&env, 0).unwrap())
}

fn give(
    store: &Store,
    name: &str,
    run: &str,
    content: &[u8],
    limits: &Limits,
) -> crate::error::Result<Artifact> {
    let mut incoming = store.begin(limits)?;
    incoming.take(content)?;
    let label = Label { name: name.into(), run: Some(run.into()), ..Label::default() };
    store.keep(incoming, label, limits, &|_| false).map(|(artifact, _)| artifact)
}

fn content(store: &Store, artifact: &Artifact) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.open(artifact).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn the_same_content_is_kept_once_and_the_same_artifact_is_the_same() {
    let scratch = Scratch::new("artifacts");
    let store = store(&scratch);
    assert!(store.list().unwrap().is_empty());
    let a = give(&store, "a.txt", "r1", b"hello", &ROOMY).unwrap();
    let again = give(&store, "a.txt", "r1", b"hello", &ROOMY).unwrap();
    let b = give(&store, "../b.txt", "r2", b"hello", &ROOMY).unwrap();
    assert_eq!((&a.id, a.size, a.mime.as_str()), (&again.id, 5, "text/plain"));
    assert_eq!(a.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    assert!(a.id != b.id && b.name == "b.txt" && a.sha256 == b.sha256);
    assert_eq!(store.list().unwrap().len(), 2);
    assert_eq!(store.used().unwrap(), 5);
    let path = a.path.clone().unwrap();
    assert!(path.ends_with("a.txt") && path.starts_with(scratch.path("artifacts")));
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.permissions().mode() & 0o777, meta.nlink()), (0o600, 3));
    let mut dirs = vec![scratch.path("artifacts")];
    while let Some(dir) = dirs.pop() {
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700, "{dir:?}");
        dirs.extend(std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()));
    }
    store.remove(&a).unwrap();
    assert_eq!(content(&store, &b), b"hello");
    store.remove(&b).unwrap();
    assert_eq!((store.used().unwrap(), store.list().unwrap().len()), (0, 0));
    assert_eq!(store.open(&b).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(std::fs::read_dir(scratch.path("artifacts/incoming")).unwrap().count(), 0);
}

#[test]
fn one_is_found_by_id_digest_uri_or_name_and_by_no_path() {
    let scratch = Scratch::new("artifacts-find");
    let store = store(&scratch);
    let a = give(&store, "one.txt", "r", b"one", &ROOMY).unwrap();
    let b = give(&store, "two.txt", "r", b"two", &ROOMY).unwrap();
    for word in [&a.id, &a.uri, &a.sha256, &a.sha256[..8], &a.id[..8], "one.txt"] {
        assert_eq!(store.find(word).unwrap().id, a.id, "{word}");
    }
    assert_eq!(store.find("two.txt").unwrap().id, b.id);
    for word in ["", "..", "../entries", "../../etc/passwd", "mcpx-artifact:../x", "zzzz", "abc"] {
        assert_eq!(store.find(word).unwrap_err().kind(), Kind::NotFound, "{word}");
    }
    assert!(store.find("tow.txt").unwrap_err().hint_text().unwrap().contains("two.txt"));
    // A record that was tampered with leads nowhere.
    let record = scratch.path("artifacts/entries").join(format!("{}.json", a.id));
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("one.txt", "../../../one.txt")).unwrap();
    assert!(store.find(&a.id).is_err());
}

#[test]
fn the_oldest_give_way_and_open_runs_keep_theirs() {
    let scratch = Scratch::new("artifacts-gc");
    let store = store(&scratch);
    let limits = Limits { one: 100, quota: 100, ttl: Duration::ZERO };
    let give = |name: &str, run: &str, fill: u8, open: &str| {
        let mut incoming = store.begin(&limits).unwrap();
        incoming.take(&[fill; 40]).unwrap();
        let label = Label { name: name.into(), run: Some(run.into()), ..Label::default() };
        store.keep(incoming, label, &limits, &|run| run == open)
    };
    let names = || store.list().unwrap().into_iter().map(|a| a.name).collect::<Vec<_>>();
    give("1", "open", 1, "open").unwrap();
    std::thread::park_timeout(Duration::from_millis(2));
    give("2", "done", 2, "open").unwrap();
    std::thread::park_timeout(Duration::from_millis(2));
    let (_, swept) = give("3", "open", 3, "open").unwrap();
    assert_eq!(
        swept.removed.iter().map(|(a, why)| (a.name.as_str(), *why)).collect::<Vec<_>>(),
        [("2", Why::Quota)]
    );
    assert_eq!(names(), ["1", "3"]);
    let full = give("4", "open", 4, "open").unwrap_err();
    assert_eq!(full.kind(), Kind::TooLarge);
    assert!(full.message().contains("artifacts.quota"), "{full}");
    assert_eq!(names(), ["1", "3"]);
    // Nothing is younger than a time to live of a millisecond, but for what an open run gave.
    std::thread::park_timeout(Duration::from_millis(5));
    let short = Limits { ttl: Duration::from_millis(1), ..limits };
    assert!(store.gc(&short, &|run| run == "open").unwrap().removed.is_empty());
    let swept = store.gc(&short, &|_| false).unwrap();
    assert_eq!((swept.removed.len(), swept.freed, swept.left), (2, 80, 0));
    assert!(swept.removed.iter().all(|(_, why)| *why == Why::Expired));
    let mut incoming = store.begin(&limits).unwrap();
    assert_eq!(incoming.take(&[0; 101]).unwrap_err().kind(), Kind::TooLarge);
}

#[test]
fn a_run_is_open_for_as_long_as_who_says_so_lives() {
    let scratch = Scratch::new("artifacts-open");
    let store = store(&scratch);
    give(&store, "x", "mine", b"x", &ROOMY).unwrap();
    store.note_open("mine", (1, 2)).unwrap();
    store.note_open("theirs", (3, 4)).unwrap();
    let alive = |pid: u32, _: u64| pid == 1 || pid == 3;
    assert!(store.is_noted("mine", &alive) && store.is_noted("theirs", &alive));
    assert!(!store.is_noted("theirs", &|_, _| false) && !store.is_noted("other", &alive));
    store.tidy_open((1, 2), &|run| run == "mine", &alive);
    assert!(store.is_noted("mine", &alive) && store.is_noted("theirs", &alive));
    store.tidy_open((1, 2), &|_| false, &|pid, _| pid != 3);
    assert!(!store.is_noted("mine", &alive) && !store.is_noted("theirs", &alive));
}

#[test]
fn content_that_was_cut_is_noticed_and_mended() {
    let scratch = Scratch::new("artifacts-cut");
    let store = store(&scratch);
    let a = give(&store, "a", "r", b"whole", &ROOMY).unwrap();
    std::fs::OpenOptions::new().write(true).truncate(true).open(a.path.as_ref().unwrap()).unwrap();
    let damaged = store.open(&a).unwrap_err();
    assert!(damaged.message().contains("damaged"), "{damaged}");
    let a = give(&store, "a", "r", b"whole", &ROOMY).unwrap();
    assert_eq!(content(&store, &a), b"whole");
}
