//! The arguments of a program as a declaration writes them: texts with
//! placeholders, groups that stand or fall together, switches. Turns them and a
//! call's values into an argument list; no shell sees any of it.

use serde_json::{Map, Value};
use std::collections::HashSet;

/// A text with placeholders: `--grep={pattern}`; `{{` and `}}` stand for braces.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Slot(String),
}

/// One entry of a declaration's `args`.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Left out as a whole when a value of it is missing; repeated for each
    /// element of a list.
    Group(Vec<Template>),
    /// Decided by a value that is true or not.
    If { name: String, then: Vec<Template>, otherwise: Vec<Template> },
}

impl Template {
    /// Parses a text.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(after) = after.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let end = after.find('}').filter(|_| brace == "{");
            let Some(end) = end else {
                return Err(format!("\"{text}\" has a {brace} alone; write {brace}{brace} for a plain one"));
            };
            let name = &after[..end];
            if name.is_empty() || name.contains('{') {
                return Err(format!(
                    "\"{text}\": {{{name}}} names no argument; write {{{{ for a plain brace"
                ));
            }
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Slot(name.to_owned()));
            rest = &after[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() || parts.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template(parts))
    }

    /// The names of its placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Slot(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Its text with the values put in; `None` when one is missing.
    pub fn fill(&self, values: &Map<String, Value>) -> Option<String> {
        self.fill_with(&|name| values.get(name))
    }

    fn fill_with<'v>(&self, value: &dyn Fn(&str) -> Option<&'v Value>) -> Option<String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Slot(name) => out.push_str(&plain(value(name).filter(|v| !v.is_null())?)),
            }
        }
        Some(out)
    }

    fn begins_with_slot(&self) -> bool {
        matches!(self.0.first(), Some(Part::Slot(_)))
    }
}

/// A value as a text: texts as they are, everything else as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Entry {
    /// Parses one entry: a text, a list of texts, or `{"if": name, "then": …, "else": …}`.
    pub fn parse(value: &Value) -> Result<Entry, String> {
        if let Value::Object(members) = value {
            if let Some(odd) = members.keys().find(|k| !["if", "then", "else"].contains(&k.as_str())) {
                return Err(format!("unknown key \"{odd}\" beside \"if\", \"then\" and \"else\""));
            }
            let name =
                members.get("if").and_then(Value::as_str).ok_or("\"if\": expected an argument's name")?;
            let branch = |key: &str| members.get(key).map_or(Ok(Vec::new()), group);
            let (then, otherwise) = (branch("then")?, branch("else")?);
            if then.is_empty() && otherwise.is_empty() {
                return Err("an entry with \"if\" needs a \"then\" or an \"else\"".into());
            }
            return Ok(Entry::If { name: name.to_owned(), then, otherwise });
        }
        group(value).map(Entry::Group)
    }

    fn templates(&self) -> impl Iterator<Item = &Template> {
        let (first, second): (&[Template], &[Template]) = match self {
            Entry::Group(all) => (all, &[]),
            Entry::If { then, otherwise, .. } => (then, otherwise),
        };
        first.iter().chain(second)
    }

    /// The arguments that it names.
    pub fn names(&self) -> Vec<&str> {
        let condition = match self {
            Entry::If { name, .. } => Some(name.as_str()),
            Entry::Group(_) => None,
        };
        condition.into_iter().chain(self.templates().flat_map(Template::names)).collect()
    }
}

fn group(value: &Value) -> Result<Vec<Template>, String> {
    let odd = || "expected a text, a list of texts, or an object with \"if\" and \"then\"".to_owned();
    match value {
        Value::String(text) => Ok(vec![Template::parse(text)?]),
        Value::Array(list) if !list.is_empty() => {
            list.iter().map(|one| Template::parse(one.as_str().ok_or_else(odd)?)).collect()
        }
        _ => Err(odd()),
    }
}

/// The argument list for these values. A value cannot become a flag: where one
/// begins an argument, it must not begin with `-`, unless an entry `--` stands
/// before it or its name is in `dashes`.
pub fn arguments(
    entries: &[Entry],
    values: &Map<String, Value>,
    dashes: &HashSet<String>,
) -> Result<Vec<String>, String> {
    let mut list = List { out: Vec::new(), dashes, flags_ended: false };
    for entry in entries {
        match entry {
            Entry::Group(group) => list.group(group, values)?,
            Entry::If { name, then, otherwise } => {
                let on = !matches!(values.get(name), None | Some(Value::Null | Value::Bool(false)));
                list.group(if on { then } else { otherwise }, values)?;
            }
        }
    }
    Ok(list.out)
}

struct List<'a> {
    out: Vec<String>,
    dashes: &'a HashSet<String>,
    flags_ended: bool,
}

impl List<'_> {
    fn group(&mut self, group: &[Template], values: &Map<String, Value>) -> Result<(), String> {
        let names: HashSet<&str> = group.iter().flat_map(Template::names).collect();
        if names.iter().any(|name| values.get(*name).is_none_or(Value::is_null)) {
            return Ok(());
        }
        let lists: Vec<(&str, &Vec<Value>)> =
            names.iter().filter_map(|name| Some((*name, values.get(*name)?.as_array()?))).collect();
        match lists.as_slice() {
            [] => self.once(group, &|name| values.get(name)),
            [(listed, elements)] => elements.iter().try_for_each(|element| {
                self.once(group, &|name| if name == *listed { Some(element) } else { values.get(name) })
            }),
            _ => Err(format!("{} and {} are lists, and stand in one group", lists[0].0, lists[1].0)),
        }
    }

    fn once<'v>(
        &mut self,
        group: &[Template],
        value: &dyn Fn(&str) -> Option<&'v Value>,
    ) -> Result<(), String> {
        for template in group {
            let Some(text) = template.fill_with(value) else { continue };
            let first = template.names().next().unwrap_or("an argument");
            if text.contains('\0') {
                return Err(format!("{first}: must not contain a NUL character"));
            }
            let allowed = self.flags_ended || template.names().all(|name| self.dashes.contains(name));
            if template.begins_with_slot() && text.starts_with('-') && !allowed {
                return Err(format!(
                    "{first}: must not begin with \"-\", because the program would take it for a flag"
                ));
            }
            self.flags_ended |= text == "--" && !template.begins_with_slot();
            self.out.push(text);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(args: Value, values: Value) -> Result<Vec<String>, String> {
        let entries: Vec<Entry> =
            args.as_array().unwrap().iter().map(Entry::parse).collect::<Result<_, _>>()?;
        let dashes = HashSet::from(["free".to_owned()]);
        arguments(&entries, values.as_object().unwrap(), &dashes)
    }

    #[test]
    fn values_are_put_in_and_stay_one_argument() {
        let args = json!(["log", "--grep={text}", "{a}:{b}", "{{x}}", "{n}"]);
        let values = json!({"text": "$(rm -rf /); \"x\" y", "a": "1", "b": {"k": [1]}, "n": 3});
        let wanted = ["log", "--grep=$(rm -rf /); \"x\" y", "1:{\"k\":[1]}", "{x}", "3"];
        assert_eq!(list(args, values).unwrap(), wanted);
    }

    #[test]
    fn what_is_missing_takes_its_group_along() {
        let args =
            json!(["log", ["-n", "{count}"], "{path}", {"if": "all", "then": "--all", "else": ["-1"]}]);
        assert_eq!(list(args.clone(), json!({})).unwrap(), ["log", "-1"]);
        assert_eq!(list(args.clone(), json!({"all": false, "count": null})).unwrap(), ["log", "-1"]);
        let all = json!({"all": true, "count": 2, "path": "a b"});
        assert_eq!(list(args, all).unwrap(), ["log", "-n", "2", "a b", "--all"]);
    }

    #[test]
    fn lists_repeat_their_group() {
        let args = json!([["-e", "{words}"], "--x={words}", "{files}"]);
        let values = json!({"words": ["a", "b"], "files": []});
        assert_eq!(list(args, values).unwrap(), ["-e", "a", "-e", "b", "--x=a", "--x=b"]);
        let two = list(json!([["{a}", "{b}"]]), json!({"a": [1], "b": [2]})).unwrap_err();
        assert!(two.contains("one group"), "{two}");
    }

    #[test]
    fn a_value_never_becomes_a_flag() {
        for (args, values) in [
            (json!(["{path}"]), json!({"path": "--output=/etc/passwd"})),
            (json!(["{path}"]), json!({"path": "-"})),
            (json!([["-n", "{n}"]]), json!({"n": -1})),
            (json!(["{a}{b}"]), json!({"a": "", "b": "-x"})),
            (json!(["{files}"]), json!({"files": ["ok", "-rf"]})),
            // A value that is `--` ends nothing.
            (json!(["{free}", "{path}"]), json!({"free": "--", "path": "-x"})),
        ] {
            let refused = list(args, values).unwrap_err();
            assert!(refused.contains("must not begin with \"-\""), "{refused}");
        }
        let values = json!({"path": "-x", "free": "-y"});
        assert_eq!(list(json!(["--p={path}"]), values.clone()).unwrap(), ["--p=-x"]);
        assert_eq!(list(json!(["{free}", "--", "{path}"]), values).unwrap(), ["-y", "--", "-x"]);
        assert!(list(json!(["{path}"]), json!({"path": "a\u{0}b"})).unwrap_err().contains("NUL"));
    }

    #[test]
    fn what_is_no_template_is_said() {
        for (text, part) in
            [("{", "alone"), ("a}", "alone"), ("{}", "names no argument"), ("{a{b}", "names no argument")]
        {
            let what = Template::parse(text).unwrap_err();
            assert!(what.contains(part), "{text}: {what}");
        }
        for value in [json!(7), json!([]), json!([1]), json!({"if": "a"}), json!({"when": "a"})] {
            assert!(Entry::parse(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn mutated_templates_keep_their_text_and_their_names() {
        let corpus: [&[u8]; 4] = [b"--name={name}", b"{{literal}} {a}{b}", b"{", b"a}}{x y}"];
        crate::util::mutate::each(&corpus, |text| {
            let text = String::from_utf8_lossy(text);
            let Ok(template) = Template::parse(&text) else { return };
            let values: Map<String, Value> =
                template.names().map(|name| (name.to_owned(), Value::from(format!("<{name}>")))).collect();
            let filled = template.fill(&values).expect("every name has a value");
            let names: usize = template.names().map(|name| name.len()).sum();
            assert!(names <= text.len() && filled.len() <= text.len());
        });
    }
}
