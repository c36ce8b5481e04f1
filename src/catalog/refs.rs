//! Finding what a `$ref` inside a JSON Schema document points at: JSON pointers,
//! anchors, embedded ids. Local only: a reference to another document is never
//! fetched, it simply is not found.

use serde_json::Value;
use std::collections::HashMap;

/// One schema document and the names inside it. Cheap to make: the names are
/// gathered when the first reference that needs them is looked up.
pub struct Refs<'a> {
    root: &'a Value,
    named: std::cell::OnceCell<HashMap<String, &'a Value>>,
    old: bool,
    prefix: bool,
}

/// How deep the names of a document are looked for: what is deeper than serde_json
/// itself reads by default cannot have come off the wire.
const NAME_DEPTH: usize = 128;

impl<'a> Refs<'a> {
    /// The references of this document.
    pub fn new(root: &'a Value) -> Refs<'a> {
        let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let old = ["draft-03", "draft-04", "draft-06", "draft-07"].iter().any(|d| dialect.contains(d));
        let prefix = !old && !dialect.contains("2019-09");
        Refs { root, named: std::cell::OnceCell::new(), old, prefix }
    }

    /// The document's root.
    pub fn root(&self) -> &'a Value {
        self.root
    }

    /// The document says that it is draft-07 or older, where whatever stands
    /// beside a `$ref` does not count.
    pub fn old_draft(&self) -> bool {
        self.old
    }

    /// `prefixItems` means something: the document does not say that it is older than 2020-12.
    pub fn has_prefix_items(&self) -> bool {
        self.prefix
    }

    /// The schema a reference means: `#`, `#/json/pointer` (percent-encoded or
    /// not), `#anchor`, or the `$id` of a schema inside this document.
    pub fn find(&self, reference: &str) -> Option<&'a Value> {
        if let Some(fragment) = reference.strip_prefix('#') {
            if fragment.is_empty() {
                return Some(self.root);
            }
            if fragment.starts_with('/') {
                return pointer(self.root, fragment);
            }
        }
        let named = self.named.get_or_init(|| {
            let mut map = HashMap::new();
            gather(self.root, &mut map, 0);
            map
        });
        if let Some(schema) = named.get(reference) {
            return Some(schema);
        }
        let (base, fragment) = reference.split_once('#')?;
        let base = named.get(base)?;
        if fragment.is_empty() {
            Some(base)
        } else if fragment.starts_with('/') {
            pointer(base, fragment)
        } else {
            named.get(&format!("#{fragment}")).copied()
        }
    }
}

/// Follows a JSON pointer. An exact key wins over its percent-decoded form.
fn pointer<'a>(from: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = from;
    for token in path.split('/').skip(1) {
        let plain = token.replace("~1", "/").replace("~0", "~");
        at = match at {
            Value::Object(map) => match map.get(&plain) {
                Some(next) => next,
                None => map.get(&percent_decoded(token)?.replace("~1", "/").replace("~0", "~"))?,
            },
            Value::Array(list) => list.get(token.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// `None` when nothing is encoded, or what is encoded is not UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = (first == b'%' && tail.len() >= 2)
            .then(|| std::str::from_utf8(&tail[..2]).ok().and_then(|h| u8::from_str_radix(h, 16).ok()))
            .flatten();
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Notes every anchor (as `#name`) and id in the document; the first one of a name stays.
fn gather<'a>(at: &'a Value, into: &mut HashMap<String, &'a Value>, depth: usize) {
    if depth > NAME_DEPTH {
        return;
    }
    match at {
        Value::Object(map) => {
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = map.get(key).and_then(Value::as_str) {
                    into.entry(format!("#{name}")).or_insert(at);
                }
            }
            for key in ["$id", "id"] {
                // Draft-04 wrote ids, and older drafts anchors, as `id` and `$id: "#name"`.
                if let Some(id) = map.get(key).and_then(Value::as_str) {
                    let id = if id == "#" { id } else { id.strip_suffix('#').unwrap_or(id) };
                    if !id.is_empty() {
                        into.entry(id.to_owned()).or_insert(at);
                    }
                }
            }
            for (key, value) in map {
                // Values in there are data, not schemas.
                if !matches!(key.as_str(), "enum" | "const" | "default" | "examples" | "example") {
                    gather(value, into, depth + 1);
                }
            }
        }
        Value::Array(list) => {
            for value in list {
                gather(value, into, depth + 1);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_of_every_kind_are_found() {
        let doc = json!({
            "$id": "https://example.com/root.json",
            "$defs": {
                "a/b~c d": {"title": "odd"},
                "n": {"$anchor": "node", "title": "anchored"},
                "old": {"$id": "#old", "title": "old anchor"},
                "x": {"$id": "x.json", "title": "by id", "$defs": {"y": {"title": "in x"}}},
            },
            "properties": {"p": {"items": [{"title": "first"}]}},
            "enum": [{"$anchor": "data"}],
        });
        let refs = Refs::new(&doc);
        let title = |r: &str| refs.find(r).and_then(|v| v["title"].as_str());
        assert!(std::ptr::eq(refs.find("#").unwrap(), &doc));
        assert_eq!(title("#/$defs/a~1b~0c d"), Some("odd"));
        assert_eq!(title("#/$defs/a~1b~0c%20d"), Some("odd"));
        assert_eq!(title("#/properties/p/items/0"), Some("first"));
        assert_eq!(title("#node"), Some("anchored"));
        assert_eq!(title("#old"), Some("old anchor"));
        assert_eq!(title("x.json"), Some("by id"));
        assert_eq!(title("x.json#/$defs/y"), Some("in x"));
        assert!(std::ptr::eq(refs.find("https://example.com/root.json#").unwrap(), &doc));
        for missing in
            ["#/nope", "#data", "https://elsewhere.example/s.json", "", "#/properties/p/items/9", "#%"]
        {
            assert!(refs.find(missing).is_none(), "{missing}");
        }
    }
}
