//! Key paths that lead into a setting which is an object: `script.profiles.ci.net`.
//! Knows nothing of where the object is kept.

use super::super::super::args::usage;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::settings::{self, ALL, Declared, Kind};
use crate::util::did_you_mean;
use serde_json::{Map, Value, json};

/// The setting that a key names, and the members that follow inside it.
///
/// # Errors
/// `Usage`, with the nearest key.
pub fn known(key: &str) -> Result<(&'static dyn Declared, Vec<&str>)> {
    let inside = |d: &&&'static dyn Declared| {
        matches!(d.kind(), Kind::Json) && key.strip_prefix(d.key()).is_some_and(|rest| rest.starts_with('.'))
    };
    let Some(setting) = ALL.iter().find(inside) else { return Ok((settings::known(key)?, Vec::new())) };
    let path: Vec<&str> = key[setting.key().len() + 1..].split('.').collect();
    if path.iter().any(|name| name.is_empty()) {
        return Err(usage(format!("{key}: a name between the dots is empty")));
    }
    Ok((*setting, path))
}

/// A member's value as typed: JSON where it is JSON, else text.
pub fn value(typed: &str) -> Value {
    serde_json::from_str(typed).unwrap_or_else(|_| typed.into())
}

/// Puts a value into an object, and makes the objects on the way.
///
/// # Errors
/// `Usage` when something on the way is there and is no object.
pub fn put(whole: &mut Value, key: &str, path: &[&str], value: Value) -> Result<()> {
    let Some((name, rest)) = path.split_first() else {
        *whole = value;
        return Ok(());
    };
    if whole.is_null() {
        *whole = Value::Object(Map::new());
    }
    let what = settings::shape(whole);
    let Some(object) = whole.as_object_mut() else {
        return Err(usage(format!("{key} is {what}, and has no members")));
    };
    put(object.entry(*name).or_insert(Value::Null), &format!("{key}.{name}"), rest, value)
}

/// What is left of a running daemon's own object once a member is as it is without it: as files have
/// it, or absent. Nothing when that leaves no difference, or all of it is to go.
pub fn without(row: &Value, path: &[&str]) -> Option<Value> {
    let under = row["displaced"].get(0).map(|d| &d["value"]).cloned().unwrap_or_default();
    // What is not the daemon's own it does not take back.
    if path.is_empty() || row["source"] != "runtime" {
        return None;
    }
    let mut rest = row["value"].clone();
    let was = path.iter().try_fold(&under, |v, name| v.get(*name));
    let (last, way) = path.split_last()?;
    let object = way.iter().try_fold(&mut rest, |v, name| v.get_mut(*name)).and_then(Value::as_object_mut);
    if let Some(object) = object {
        match was {
            Some(value) => drop(object.insert((*last).to_owned(), value.clone())),
            None => drop(object.remove(*last)),
        }
    }
    (rest != under).then_some(rest)
}

/// The row of one member, made from the row of the whole setting.
///
/// # Errors
/// `NotFound`, with the nearest name, when the object in force has no such member.
pub fn member(row: &Value, key: &str, path: &[&str]) -> Result<Value> {
    // A profile that is built in is there whatever files say of others; one of the same name replaces it.
    if key == settings::SCRIPT_PROFILES.key()
        && let Some(name) = path.first()
        && row["value"].get(*name).is_none()
        && let Some(built_in) =
            row["displaced"].as_array().into_iter().flatten().rfind(|d| d["source"] == "default")
        && built_in["value"].get(*name).is_some()
    {
        return member(built_in, key, path);
    }
    let mut value = &row["value"];
    let mut so_far = key.to_owned();
    for name in path {
        let Some(inner) = value.get(*name) else {
            let error = Error::new(ErrorKind::NotFound, format!("{so_far} has no member \"{name}\""));
            let names = value.as_object().map(|o| o.keys().map(String::as_str).collect::<Vec<_>>());
            return Err(match did_you_mean(name, names.unwrap_or_default()) {
                Some(near) => error.hint(near),
                None => error.hint(format!("mcpx settings get {so_far} shows what it has")),
            });
        };
        so_far = format!("{so_far}.{name}");
        value = inner;
    }
    let at = |whole: &Value| path.iter().try_fold(whole, |v, name| v.get(*name)).cloned();
    let displaced: Vec<Value> = row["displaced"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|d| {
            let value = at(&d["value"])?;
            Some(json!({"value": value, "text": text(&value), "source": d["source"]}))
        })
        .collect();
    Ok(json!({
        "key": so_far, "value": value, "text": text(value), "source": row["source"], "displaced": displaced,
    }))
}

/// A member's value as one types it.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_lead_into_an_object_and_into_nothing_else() {
        let (setting, path) = known("script.profiles.ci.net").unwrap();
        assert_eq!((setting.key(), path), ("script.profiles", vec!["ci", "net"]));
        assert!(known("pool.max").is_ok_and(|(_, path)| path.is_empty()));
        assert!(known("hooks.note.command").is_ok_and(|(d, path)| d.key() == "hooks" && path.len() == 2));
        for wrong in ["pool.max.more", "script.profiles.", "script.profiles..a", "script.profile.ci"] {
            assert_eq!(known(wrong).err().unwrap().kind(), ErrorKind::Usage, "{wrong}");
        }
    }

    #[test]
    fn a_profile_that_is_built_in_is_shown_beside_those_of_files() {
        let built_in = json!({"value": {"read": {"deno": ["--allow-read"]}, "ci": 1}, "source": "default"});
        let row = json!({"value": {"ci": {"net": true}}, "source": "f:1", "displaced": [built_in]});
        let shown = member(&row, "script.profiles", &["read", "deno"]).unwrap();
        assert_eq!(shown["value"], json!(["--allow-read"]));
        assert_eq!(
            (&shown["source"], &shown["key"]),
            (&json!("default"), &json!("script.profiles.read.deno"))
        );
        assert_eq!(member(&row, "script.profiles", &["ci", "net"]).unwrap()["source"], "f:1");
        assert!(member(&row, "script.profiles", &["ci", "deno"]).is_err());
        assert!(member(&row, "hooks", &["read"]).is_err(), "nothing else is kept beside");
    }

    #[test]
    fn a_value_is_put_where_the_path_leads() {
        let mut whole = json!({"a": {"x": 1}});
        put(&mut whole, "k", &["a", "y"], value("[1, 2]")).unwrap();
        put(&mut whole, "k", &["b", "c"], value("plain text")).unwrap();
        assert_eq!(whole, json!({"a": {"x": 1, "y": [1, 2]}, "b": {"c": "plain text"}}));
        let e = put(&mut whole, "k", &["a", "x", "z"], Value::Null).unwrap_err();
        assert!(e.message().contains("k.a.x is a number"), "{e}");
    }

    #[test]
    fn a_member_is_taken_back_to_what_it_is_without_it() {
        let row = |value: Value| json!({"value": value, "source": "runtime", "displaced": [{"value": {"a": {"n": 1}}}]});
        let left = |value: Value, path: &[&str]| without(&row(value), path);
        assert_eq!(left(json!({"a": {"n": 2}, "b": 3}), &["a", "n"]), Some(json!({"a": {"n": 1}, "b": 3})));
        assert_eq!(left(json!({"a": {"n": 1}, "b": 3}), &["b"]), None, "as it was");
        assert_eq!(
            left(json!({"a": {"n": 1}, "b": 3, "c": 4}), &["c"]),
            Some(json!({"a": {"n": 1}, "b": 3}))
        );
        assert_eq!(left(json!({"a": {"n": 2}}), &[]), None);
        assert_eq!(left(json!({"b": 3}), &["a"]), Some(json!({"a": {"n": 1}, "b": 3})));
        let mut file = row(json!({"a": 1}));
        file["source"] = "f:1".into();
        assert_eq!(without(&file, &["a"]), None);
    }
}
