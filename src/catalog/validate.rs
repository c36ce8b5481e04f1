//! Checks a tool's arguments against its input schema before they are sent, to
//! answer at once and with the path of what is wrong. Checks less than JSON Schema
//! asks: what it does not know (`pattern`, `format`, `not`, `if`, …) it lets pass,
//! so that it never refuses what a complete validator would accept.

use super::names::{is_member, meant};
use super::refs::Refs;
use serde_json::{Map, Number, Value};

/// How many levels of schemas are followed; beyond it everything passes. A level
/// takes a few hundred bytes of stack, and the daemon's threads have 256 KiB.
const DEPTH: usize = 64;

/// How many faults one answer names; a caller mends them in one go.
const FAULTS: usize = 4;

/// How many schemas one validation looks at in all; beyond it everything passes.
/// Keeps a hostile schema of nested unions from taking exponential time.
const WORK: usize = 200_000;

/// Checks `args` against `schema`. The error names each fault with its path,
/// parted by `; `: `arguments.items[2].name: expected a string, got a number`.
pub fn arguments(schema: &Value, args: &Value) -> Result<(), String> {
    if !args.is_object() {
        return Err(format!("arguments: expected an object, got {}", type_of(args)));
    }
    let mut check = Check { refs: Refs::new(schema), faults: Vec::new(), work: WORK, open: Vec::new() };
    check.value(schema, args, &Path::Root, DEPTH);
    if check.faults.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = check.faults.into_iter().map(|f| f.text).collect();
    Err(texts.join("; "))
}

/// Where in the arguments a value stands; a chain on the stack, made into text only for a fault.
enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl Path<'_> {
    fn depth(&self) -> usize {
        match self {
            Path::Root => 0,
            Path::Key(up, _) | Path::Index(up, _) => up.depth() + 1,
        }
    }
    fn write(&self, out: &mut String) {
        match self {
            Path::Root => out.push_str("arguments"),
            Path::Key(up, key) => {
                up.write(out);
                if is_member(key) {
                    out.push('.');
                    out.push_str(key);
                } else {
                    out.push('[');
                    out.push_str(&quoted(key));
                    out.push(']');
                }
            }
            Path::Index(up, i) => {
                up.write(out);
                out.push_str(&format!("[{i}]"));
            }
        }
    }
}

struct Fault {
    text: String,
    depth: usize,
}

struct Check<'a> {
    refs: Refs<'a>,
    faults: Vec<Fault>,
    work: usize,
    /// The references that are being followed, each with the value it is about.
    open: Vec<(*const Value, *const Value)>,
}

impl<'a> Check<'a> {
    fn fault(&mut self, path: &Path<'_>, what: String) {
        if self.faults.len() < FAULTS {
            let mut text = String::new();
            path.write(&mut text);
            text.push_str(": ");
            text.push_str(&what);
            if !self.faults.iter().any(|f| f.text == text) {
                self.faults.push(Fault { text, depth: path.depth() });
            }
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, path: &Path<'_>, depth: usize) {
        let map = match schema {
            Value::Bool(false) => {
                self.fault(path, "nothing is allowed here".to_owned());
                return;
            }
            Value::Object(map) => map,
            _ => return,
        };
        if depth == 0 || self.work == 0 {
            return;
        }
        self.work -= 1;
        if value.is_null() && map.get("nullable") == Some(&Value::Bool(true)) {
            return;
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            if let Some(target) = self.refs.find(reference) {
                // The same schema about the same value, asked while it is being answered, has nothing to add.
                let question = (std::ptr::from_ref(target), std::ptr::from_ref(value));
                if !self.open.contains(&question) {
                    self.open.push(question);
                    self.value(target, value, path, depth - 1);
                    self.open.pop();
                }
            }
            if self.refs.old_draft() {
                return;
            }
        }
        if self.type_is_wrong(map, value, path) {
            return;
        }
        self.one_of_values(map, value, path);
        match value {
            Value::Object(object) => self.object(map, object, path, depth),
            Value::Array(list) => self.array(map, list, path, depth),
            Value::String(text) => self.string(map, text, path),
            Value::Number(number) => self.number(map, number, path),
            _ => {}
        }
        for part in list_of(map, "allOf") {
            self.value(part, value, path, depth - 1);
        }
        self.union(list_of(map, "anyOf"), value, path, depth);
        // `oneOf` is checked as `anyOf`: what tells two branches apart may be a
        // keyword that is not checked here.
        self.union(list_of(map, "oneOf"), value, path, depth);
    }

    fn type_is_wrong(&mut self, map: &Map<String, Value>, value: &Value, path: &Path<'_>) -> bool {
        let one;
        let types: &[Value] = match map.get("type") {
            Some(Value::Array(list)) if !list.is_empty() => list,
            Some(text @ Value::String(_)) => {
                one = [text.clone()];
                &one
            }
            _ => return false,
        };
        let mut words = Vec::with_capacity(types.len());
        for t in types {
            let Some(word) = t.as_str() else { return false };
            let fits = match word {
                "string" => value.is_string(),
                "number" => value.is_number(),
                "integer" => is_whole(value),
                "boolean" => value.is_boolean(),
                "object" => value.is_object(),
                "array" => value.is_array(),
                "null" => value.is_null(),
                // Not a JSON Schema type: what it admits is unknown.
                _ => return false,
            };
            if fits {
                return false;
            }
            words.push(with_article(word));
        }
        let got = match value {
            Value::Number(n) if types.iter().any(|t| t == "integer") => n.to_string(),
            _ => type_of(value).to_owned(),
        };
        self.fault(path, format!("expected {}, got {got}", joined(&words, "or")));
        true
    }

    fn one_of_values(&mut self, map: &Map<String, Value>, value: &Value, path: &Path<'_>) {
        if let Some(constant) = map.get("const")
            && !same(constant, value)
        {
            self.fault(path, format!("expected {}, got {}", shown(constant), shown(value)));
        }
        let Some(Value::Array(allowed)) = map.get("enum") else { return };
        if allowed.iter().any(|a| same(a, value)) {
            return;
        }
        let near = value
            .as_str()
            .and_then(|typed| meant(typed, allowed.iter().filter_map(Value::as_str)))
            .map_or(String::new(), |near| format!(", did you mean {}?", quoted(near)));
        const SHOWN: usize = 12;
        let mut words: Vec<String> = allowed.iter().take(SHOWN).map(shown).collect();
        if allowed.len() > SHOWN {
            words.push(format!("{} more", allowed.len() - SHOWN));
        }
        let expected = match words.as_slice() {
            [] => "nothing (the schema allows no value)".to_owned(),
            [only] => only.clone(),
            _ => format!("one of {}", words.join(", ")),
        };
        self.fault(path, format!("expected {expected}, got {}{near}", shown(value)));
    }

    fn object(
        &mut self,
        map: &'a Map<String, Value>,
        object: &Map<String, Value>,
        path: &Path<'_>,
        depth: usize,
    ) {
        let missing: Vec<String> = list_of(map, "required")
            .iter()
            .filter_map(Value::as_str)
            .filter(|key| !object.contains_key(*key))
            .map(quoted)
            .collect();
        if !missing.is_empty() {
            self.fault(path, format!("missing {}", joined(&missing, "and")));
        }
        let known = map.get("properties").and_then(Value::as_object);
        // Regular expressions are not matched here: with `patternProperties` any other key may be one of theirs.
        let patterns = map.get("patternProperties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
        let rest = map.get("additionalProperties").filter(|_| !patterns);
        for (key, value) in object {
            let here = Path::Key(path, key);
            match (known.and_then(|k| k.get(key)), rest) {
                (Some(schema), _) => self.value(schema, value, &here, depth - 1),
                (None, Some(Value::Bool(false))) => {
                    let names = || known.into_iter().flat_map(|k| k.keys()).map(String::as_str);
                    let near = meant(key, names()).map(|n| format!("did you mean {}?", quoted(n)));
                    let hint = near.unwrap_or_else(|| match names().count() {
                        0 => "none are expected".to_owned(),
                        1..=12 => {
                            format!("known are {}", joined(&names().map(quoted).collect::<Vec<_>>(), "and"))
                        }
                        n => format!("{n} others are known"),
                    });
                    self.fault(path, format!("unknown {}, {hint}", quoted(key)));
                }
                (None, Some(schema)) => self.value(schema, value, &here, depth - 1),
                (None, None) => {}
            }
        }
        self.size(map, ["minProperties", "maxProperties"], object.len(), "property", "properties", path);
    }

    fn array(&mut self, map: &'a Map<String, Value>, list: &[Value], path: &Path<'_>, depth: usize) {
        let items = map.get("items");
        let (tuple, rest): (&[Value], Option<&Value>) = match items {
            Some(Value::Array(tuple)) => (tuple, map.get("additionalItems")),
            _ if !self.refs.has_prefix_items() => (&[], items),
            _ => (list_of(map, "prefixItems"), items),
        };
        for (i, value) in list.iter().enumerate() {
            let here = Path::Index(path, i);
            if let Some(schema) = tuple.get(i) {
                self.value(schema, value, &here, depth - 1);
            } else if rest == Some(&Value::Bool(false)) {
                self.fault(
                    path,
                    format!("expected at most {}, got {}", count(tuple.len(), "item", "items"), list.len()),
                );
                break;
            } else if let Some(schema) = rest {
                self.value(schema, value, &here, depth - 1);
            }
        }
        self.size(map, ["minItems", "maxItems"], list.len(), "item", "items", path);
    }

    fn string(&mut self, map: &Map<String, Value>, text: &str, path: &Path<'_>) {
        if map.contains_key("minLength") || map.contains_key("maxLength") {
            let keys = ["minLength", "maxLength"];
            self.size(map, keys, text.chars().count(), "character", "characters", path);
        }
    }

    fn size(
        &mut self,
        map: &Map<String, Value>,
        [least, most]: [&str; 2],
        size: usize,
        one: &str,
        many: &str,
        path: &Path<'_>,
    ) {
        let limit = |key| map.get(key).and_then(Value::as_f64);
        if let Some(least) = limit(least).filter(|l| (size as f64) < *l) {
            self.fault(path, format!("expected at least {}, got {size}", count_f(least, one, many)));
        }
        if let Some(most) = limit(most).filter(|m| size as f64 > *m) {
            self.fault(path, format!("expected at most {}, got {size}", count_f(most, one, many)));
        }
    }

    fn number(&mut self, map: &Map<String, Value>, number: &Number, path: &Path<'_>) {
        let Some(n) = number.as_f64() else { return };
        let limit = |key| map.get(key).and_then(Value::as_f64);
        // Draft-04 wrote `exclusiveMinimum: true` beside `minimum`.
        let strict = |key| map.get(key) == Some(&Value::Bool(true));
        // Two large integers may look alike as floating-point numbers.
        let met = |key| matches!(map.get(key), Some(Value::Number(l)) if same_number(l, number));
        let bounds = [
            ("minimum", limit("minimum").filter(|l| n < *l), "at least"),
            (
                "minimum",
                limit("minimum").filter(|_| strict("exclusiveMinimum") && met("minimum")),
                "more than",
            ),
            (
                "exclusiveMinimum",
                limit("exclusiveMinimum").filter(|l| n < *l || met("exclusiveMinimum")),
                "more than",
            ),
            ("maximum", limit("maximum").filter(|l| n > *l), "at most"),
            (
                "maximum",
                limit("maximum").filter(|_| strict("exclusiveMaximum") && met("maximum")),
                "less than",
            ),
            (
                "exclusiveMaximum",
                limit("exclusiveMaximum").filter(|l| n > *l || met("exclusiveMaximum")),
                "less than",
            ),
        ];
        for (key, broken, words) in bounds {
            if broken.is_some() {
                let bound = map.get(key).map_or(String::new(), Value::to_string);
                self.fault(path, format!("expected {words} {bound}, got {number}"));
            }
        }
    }

    /// One branch must accept the value. If none does, the faults of the branch that came furthest are told.
    fn union(&mut self, branches: &'a [Value], value: &Value, path: &Path<'_>, depth: usize) {
        if branches.is_empty() {
            return;
        }
        let before = std::mem::take(&mut self.faults);
        let mut tries: Vec<Vec<Fault>> = Vec::with_capacity(branches.len());
        for branch in branches {
            self.value(branch, value, path, depth - 1);
            let faults = std::mem::take(&mut self.faults);
            if faults.is_empty() {
                self.faults = before;
                return;
            }
            tries.push(faults);
        }
        self.faults = before;
        let furthest = |faults: &[Fault]| faults.iter().map(|f| f.depth).max().unwrap_or(0);
        let here = path.depth();
        let mut prefix = String::new();
        path.write(&mut prefix);
        prefix.push_str(": expected ");
        let wrong_type = |faults: &[Fault]| {
            faults.len() == 1 && faults[0].depth == here && faults[0].text.starts_with(&prefix)
        };
        if tries.iter().all(|t| wrong_type(t)) {
            // Every branch fails at its very type or value: name them all.
            let got = type_of(value);
            let mut wanted: Vec<String> = Vec::new();
            for faults in &tries {
                let rest = &faults[0].text[prefix.len()..];
                let word = rest.rsplit_once(", got ").map_or(rest, |(w, _)| w).to_owned();
                if !wanted.contains(&word) {
                    wanted.push(word);
                }
            }
            self.fault(path, format!("expected {}, got {got}", joined(&wanted, "or")));
            return;
        }
        // Branches whose constants (a discriminator) fit come before others, then fewer faults, then deeper ones.
        let rank = |faults: &[Fault]| {
            let constant = faults.iter().filter(|f| f.text.contains(": expected \"")).count();
            (constant, usize::from(wrong_type(faults)), usize::MAX - furthest(faults), faults.len())
        };
        if let Some(best) = tries.into_iter().min_by_key(|t| rank(t)) {
            let room = FAULTS.saturating_sub(self.faults.len());
            self.faults.extend(best.into_iter().take(room));
        }
    }
}

fn list_of<'v>(map: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    match map.get(key) {
        Some(Value::Array(list)) => list,
        _ => &[],
    }
}

/// JSON Schema's integers: any number without a fraction, `1.0` and `1e300` included.
fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
}

/// JSON Schema's equality: numbers by value, objects without regard to order.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => same_number(x, y),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, x)| y.get(k).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}

fn same_number(x: &Number, y: &Number) -> bool {
    x == y || (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn with_article(word: &str) -> String {
    match word {
        "null" => word.to_owned(),
        "integer" | "object" | "array" => format!("an {word}"),
        _ => format!("a {word}"),
    }
}

fn joined(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., tail] => format!("{} {last} {tail}", head.join(", ")),
    }
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn count_f(n: f64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1.0 { one } else { many })
}

fn quoted(text: &str) -> String {
    shown(&Value::String(text.to_owned()))
}

/// The value as JSON, cut when long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = match value {
        // Not written out whole only to be cut: it may be megabytes.
        Value::Array(_) => return type_of(value).to_owned(),
        Value::Object(_) => return type_of(value).to_owned(),
        Value::String(s) if s.len() > LONGEST * 4 => {
            let head: String = s.chars().take(LONGEST).collect();
            return format!("{}…", Value::String(head));
        }
        other => other.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).collect::<String>() + "…"
}

#[cfg(test)]
mod tests;
