//! An object whose members stay as they were written: for results that pass
//! through but for one member. Knows nothing of what they mean.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;

/// The members of an object, in their order.
#[derive(Debug, Default)]
pub struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// Reads an object; none when the text is something else.
    pub fn read(text: &str) -> Option<Members> {
        serde_json::from_str(text).ok()
    }

    /// The member of that name.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| &**value)
    }

    /// The member of that name, when it is a text.
    pub fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Gives a member another value, where it is and can be one.
    pub fn set(&mut self, name: &str, value: &impl Serialize) {
        let Ok(value) = to_raw_value(value) else { return };
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Adds a member that is not there.
    pub fn supply(&mut self, name: &str, value: &impl Serialize) {
        if self.get(name).is_none() {
            self.set(name, value);
        }
    }
}

impl fmt::Display for Members {
    /// As JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = map.next_entry()? {
                    all.push(member);
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_touched_stays_as_it_was_written() {
        let mut members = Members::read(r#"{"z": 1.50, "uri":"a","b": {"y" : 1e3}}"#).unwrap();
        assert_eq!(members.text("uri").as_deref(), Some("a"));
        assert_eq!(members.text("z"), None);
        members.set("uri", &"c");
        members.supply("z", &2);
        members.supply("new", &true);
        assert_eq!(members.to_string(), r#"{"z":1.50,"uri":"c","b":{"y" : 1e3},"new":true}"#);
        for other in ["[]", "1", "", "{"] {
            assert!(Members::read(other).is_none(), "{other}");
        }
    }
}
