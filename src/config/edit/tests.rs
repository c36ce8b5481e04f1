//! Tests of changing a file: texts, then files on disk.

use super::*;
use crate::config::tests::Scratch;
use serde_json::json;
use std::os::unix::fs::symlink;

fn edited(text: &str, change: impl FnOnce(&mut Edit)) -> String {
    let scratch = Scratch::new();
    let mut edit = Edit::open(&scratch.file("c.json", text)).unwrap();
    change(&mut edit);
    edit.text().to_owned()
}
fn set(text: &str, path: &[&str], value: Value) -> String {
    edited(text, |e| e.set(path, value).unwrap())
}
fn removed(text: &str, path: &[&str]) -> String {
    edited(text, |e| assert!(e.remove(path).unwrap()))
}

const FILE: &str = "\
// The head.
{
    /* before */ \"pool\": { \"max\": 3 }, // of the pool
    // Servers
    \"mcpServers\": {
        \"a\": {\"command\": \"x\",}, // the first
        // The second:
        \"b\": {
            \"command\": \"y\", // why
            \"args\": [
                \"-v\", // loud
            ],
        },
        // none after this
    }, // end
    // The foot.
}
// After all.
";

#[test]
fn a_value_is_replaced_where_it_stands() {
    let new = set(FILE, &["pool", "max"], json!(7));
    assert_eq!(new, FILE.replace("\"max\": 3", "\"max\": 7"));
    let new = set(FILE, &["mcpServers", "b", "args"], json!(["-q"]));
    assert_eq!(new, FILE.replace("[\n                \"-v\", // loud\n            ]", "[\"-q\"]"));
    // The same value again changes nothing, not even the layout.
    assert_eq!(set(FILE, &["mcpServers", "b", "args"], json!(["-v"])), FILE);
}

#[test]
fn a_member_is_added_in_the_style_of_its_neighbours() {
    assert_eq!(set(FILE, &["pool", "queue"], json!(5)), FILE.replace("3 }", "3, \"queue\": 5 }"));
    assert_eq!(
        set(FILE, &["mcpServers", "a", "enabled"], json!(false)),
        FILE.replace("\"x\",}", "\"x\", \"enabled\": false,}")
    );
    assert_eq!(
        set(FILE, &["mcpServers", "c"], json!({"url": "http://h", "headers": {}})),
        FILE.replace(
            "        },\n        // none",
            "        },\n        \"c\": {\n            \"url\": \"http://h\",\n            \"headers\": {},\n        },\n        // none"
        )
    );
    assert_eq!(
        set(FILE, &["output", "json"], json!(true)),
        FILE.replace("// end\n", "// end\n    \"output\": {\n        \"json\": true,\n    },\n")
    );
}

#[test]
fn other_layouts_keep_theirs() {
    for (text, path, wanted) in [
        ("{}", &["a"][..], "{\n  \"a\": 1\n}"),
        ("{}\n", &["a", "b"], "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"),
        ("\u{feff}{}", &["a"], "\u{feff}{\n  \"a\": 1\n}"),
        ("{\"x\":2}", &["a"], "{\"x\":2, \"a\": 1}"),
        ("{\"x\":{}}", &["x", "a"], "{\"x\":{\"a\": 1}}"),
        ("{\n\t\"x\": {}\n}", &["x", "a"], "{\n\t\"x\": {\n\t\t\"a\": 1\n\t}\n}"),
        ("{\r\n \"x\": 2\r\n}\r\n", &["a"], "{\r\n \"x\": 2,\r\n \"a\": 1\r\n}\r\n"),
        ("{\n  \"x\": 2 // c\n}", &["a"], "{\n  \"x\": 2, // c\n  \"a\": 1\n}"),
        ("{\n  \"x\": 2 /* c */\n}", &["a"], "{\n  \"x\": 2, /* c */\n  \"a\": 1\n}"),
        ("{\n  \"x\": 2\n  // c\n}", &["a"], "{\n  \"x\": 2,\n  \"a\": 1\n  // c\n}"),
        ("{\n  // c\n}", &["a"], "{\n  // c\n  \"a\": 1\n}"),
        ("{ // c\n}\n", &["a"], "{ // c\n  \"a\": 1\n}\n"),
        ("{ /* c */ }", &["a"], "{ /* c */ \"a\": 1 }"),
        (
            "{\n  \"x\": \"{,//\\\"\"\n  , \"y\": 1 }",
            &["a"],
            "{\n  \"x\": \"{,//\\\"\"\n  , \"y\": 1, \"a\": 1 }",
        ),
        ("{\"a\": 0, \"a\": 2}", &["a"], "{\"a\": 0, \"a\": 1}"),
        ("{\"k\\u0041\": 0}", &["kA"], "{\"k\\u0041\": 1}"),
        ("", &["a"], "{\n  \"a\": 1\n}\n"),
    ] {
        assert_eq!(set(text, path, json!(1)), wanted, "{text:?}");
    }
}

#[test]
fn a_member_is_removed_with_its_line() {
    for (text, path, wanted) in [
        ("{\"a\": 1}", &["a"][..], "{}"),
        ("{ \"a\": 1, \"b\": 2 }", &["a"], "{ \"b\": 2 }"),
        ("{ \"a\": 1, \"b\": 2 }", &["b"], "{ \"a\": 1 }"),
        ("{ \"a\": 1, \"b\": 2, }", &["b"], "{ \"a\": 1, }"),
        ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", &["b"], "{\n  \"a\": 1\n}\n"),
        ("{\n  \"a\": 1,\n  \"b\": 2,\n}\n", &["b"], "{\n  \"a\": 1,\n}\n"),
        ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", &["a"], "{\n  \"b\": 2\n}\n"),
        ("{\n  \"a\": 1, // a\n  // c\n  \"b\": 2 // b\n}\n", &["b"], "{\n  \"a\": 1 // a\n  // c\n}\n"),
        ("{\n  \"a\": 1\n}\n", &["a"], "{}\n"),
        ("{\n  // c\n  \"a\": 1\n}\n", &["a"], "{\n  // c\n}\n"),
        ("{\"a\": 1, \"b\": 2, \"a\": 3}", &["a"], "{\"b\": 2}"),
        ("{\n\"a\": 1, \"b\": 2,\n\"c\": 3}", &["b"], "{\n\"a\": 1,\n\"c\": 3}"),
    ] {
        assert_eq!(removed(text, path), wanted, "{text:?}");
    }
    let new = removed(FILE, &["mcpServers", "a"]);
    assert_eq!(new, FILE.replace("        \"a\": {\"command\": \"x\",}, // the first\n", ""));
    edited(FILE, |e| assert!(!e.remove(&["mcpServers", "none"]).unwrap()));
    edited("{\"a\": {}, \"b\": {/* c */}}", |e| {
        assert!(e.prune(&["a"]).unwrap() && !e.prune(&["b"]).unwrap() && !e.prune(&["x"]).unwrap());
        assert_eq!(e.text(), "{\"b\": {/* c */}}");
    });
}

#[test]
fn any_sequence_of_changes_gives_what_the_same_changes_of_a_value_give() {
    let mut state = 42u64;
    let mut random = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    };
    let scratch = Scratch::new();
    for start in [FILE, "{}", "{\"a\": {\"b\": 1}}", "// c\n{ // d\n}", "{\r\n\t\"a\": [1],\r\n}"] {
        let mut edit = Edit::open(&scratch.file("f", start)).unwrap();
        let mut model = jsonc::parse(start, Path::new("f")).unwrap().value;
        for _ in 0..200 {
            let keys = ["a", "mcpServers", "k \"é"];
            let (one, two) = (keys[random(3) as usize], keys[random(3) as usize]);
            let values = [json!(1), json!({}), json!([{"x": null}, "\n"]), json!({"u": {"v": []}})];
            let value = values[random(4) as usize].clone();
            match random(3) {
                0 => {
                    let there = edit.remove(&[one, two]).unwrap();
                    let object = model.get_mut(one).and_then(Value::as_object_mut);
                    assert_eq!(object.and_then(|o| o.shift_remove(two)).is_some(), there);
                }
                1 => {
                    edit.set(&[one], value.clone()).unwrap();
                    model[one] = value;
                }
                _ if model.get(one).is_none_or(Value::is_object) => {
                    edit.set(&[one, two], value.clone()).unwrap();
                    model[one][two] = value;
                }
                _ => assert!(edit.set(&[one, two], value).is_err()),
            }
            let read = jsonc::parse(edit.text(), Path::new("f")).unwrap().value;
            assert_eq!(read.to_string(), model.to_string(), "{}", edit.text());
        }
        for comment in ["// The head.", "/* before */", "// The foot.", "// After all.", "// c\n"] {
            assert_eq!(start.contains(comment), edit.text().contains(comment), "{comment}");
        }
    }
}

#[test]
fn the_file_keeps_its_mode_and_its_links() {
    let scratch = Scratch::new();
    let real = scratch.file("real/c.json", "{}");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o660)).unwrap();
    let link = scratch.path("w/link.json");
    symlink("../real/c.json", &link).unwrap();
    let mut edit = Edit::open(&link).unwrap();
    edit.set(&["a"], json!(1)).unwrap();
    assert!(edit.exists() && edit.save().unwrap());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\n  \"a\": 1\n}");
    assert_eq!(fs::metadata(&real).unwrap().mode() & 0o7777, 0o660);
    assert_eq!(fs::read_dir(scratch.path("real")).unwrap().count(), 1);
    // Nothing to write: the file is not touched.
    let before = fs::metadata(&real).unwrap().ino();
    assert!(!Edit::open(&link).unwrap().save().unwrap());
    assert_eq!(fs::metadata(&real).unwrap().ino(), before);
}

#[test]
fn a_file_that_does_not_exist_is_made_where_its_link_leads() {
    let scratch = Scratch::new();
    let mut edit = Edit::open(&scratch.path("w/deep/er/c.json")).unwrap();
    assert!(!edit.exists());
    edit.set(&["a"], json!(1)).unwrap();
    assert!(edit.save().unwrap());
    symlink("deep/new.json", scratch.path("w/link")).unwrap();
    let mut edit = Edit::open(&scratch.path("w/link")).unwrap();
    edit.set(&["a"], json!(1)).unwrap();
    edit.save().unwrap();
    assert!(fs::symlink_metadata(scratch.path("w/link")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(scratch.path("w/deep/new.json")).unwrap(), "{\n  \"a\": 1\n}\n");
}

#[test]
fn what_changed_meanwhile_is_not_overwritten() {
    let scratch = Scratch::new();
    let change = |meanwhile: &dyn Fn(&Path)| {
        let path = scratch.file("c.json", "{}");
        let mut edit = Edit::open(&path).unwrap();
        edit.set(&["a"], json!(1)).unwrap();
        meanwhile(&path);
        edit.save().unwrap_err()
    };
    let e = change(&|path| fs::write(path, "{\"b\": 2}").unwrap());
    assert!(
        e.message().ends_with("c.json: another program changed it meanwhile; nothing was changed"),
        "{e}"
    );
    assert_eq!(
        (e.kind(), fs::read_to_string(scratch.path("c.json")).unwrap().as_str()),
        (Kind::Config, "{\"b\": 2}")
    );
    let e = change(&|path| fs::remove_file(path).unwrap());
    assert!(e.message().contains("it is gone since it was read"), "{e}");
    assert!(!scratch.path("c.json").exists());
    let mut edit = Edit::open(&scratch.path("n.json")).unwrap();
    edit.set(&["a"], json!(1)).unwrap();
    scratch.file("n.json", "[]");
    let e = edit.save().unwrap_err();
    assert!(e.message().contains("another program made it meanwhile"), "{e}");
    assert_eq!(fs::read_to_string(scratch.path("n.json")).unwrap(), "[]");
    let names: Vec<_> = fs::read_dir(scratch.path("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(names.iter().all(|n| !n.to_string_lossy().ends_with(".tmp")), "{names:?}");
}

#[test]
fn what_cannot_be_changed_says_why() {
    let scratch = Scratch::new();
    let path = scratch.file("ro.json", "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let mut edit = Edit::open(&path).unwrap();
    edit.set(&["a"], json!(1)).unwrap();
    let e = edit.save().unwrap_err();
    assert!(e.kind() == Kind::Unwritable && e.message().contains("the file is read-only"), "{e}");
    for (text, part) in [
        ("{\"a\": ", "c.json:1:7: the file ends"),
        ("[]", "must be an object, not a list"),
        ("{}{}", "expected the end"),
    ] {
        let e = Edit::open(&scratch.file("c.json", text)).unwrap_err();
        assert!(e.kind() == Kind::Config && e.message().contains(part), "{e}");
    }
    let e = Edit::open(&scratch.file("bin", [0xff])).unwrap_err();
    assert!(e.message().contains("not valid UTF-8"), "{e}");
    assert!(Edit::open(&scratch.path("w")).unwrap_err().message().contains("not a regular file"));
    let mut edit = Edit::open(&scratch.file("c.json", "{\n\"a\": {\"b\": 1}}")).unwrap();
    let e = edit.set(&["a", "b", "c"], json!(1)).unwrap_err();
    assert!(e.message().contains("c.json:2: \"a.b\" is not an object"), "{e}");
}

#[test]
fn edits_of_one_directory_wait_for_one_another() {
    let scratch = Scratch::new();
    let path = scratch.file("c.json", "{}");
    std::thread::scope(|scope| {
        for i in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let mut edit = Edit::open(path).unwrap();
                edit.set(&[&format!("k{i}")], json!(i)).unwrap();
                edit.save().unwrap();
            });
        }
    });
    let value = jsonc::parse(&fs::read_to_string(&path).unwrap(), &path).unwrap().value;
    assert_eq!(value.as_object().unwrap().len(), 8);
}

#[test]
fn ten_thousand_members_are_no_trouble() {
    let members: String = (0..10_000).map(|i| format!("  \"k{i}\": {{\"x\": {i}}},\n")).collect();
    let text = format!("{{\n{members}}}\n");
    let new = edited(&text, |e| {
        e.set(&["k9999", "x"], json!(1)).unwrap();
        e.set(&["new"], json!(2)).unwrap();
        assert!(e.remove(&["k0"]).unwrap());
    });
    assert!(new.ends_with("\"k9999\": {\"x\": 1},\n  \"new\": 2,\n}\n"));
    assert!(new.starts_with("{\n  \"k1\":"));
}
