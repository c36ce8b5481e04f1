//! What serde says of JSON that does not fit, in the words of JSON: its own
//! name types of Rust, which mean nothing to who wrote the JSON.

use std::fmt::Display;

/// Where what was wanted begins; what stands before may be quoted from the JSON.
const WANTED: &str = ", expected ";

/// The message without types of ours: `expected an object` for `expected struct Page`.
pub fn json_words(e: impl Display) -> String {
    let text = e.to_string();
    let Some(at) = text.rfind(WANTED) else { return text };
    let (before, wanted) = text.split_at(at + WANTED.len());
    let (wanted, place) = match wanted.find(" at line ") {
        Some(end) => wanted.split_at(end),
        None => (wanted, ""),
    };
    let first = wanted.split(' ').next().unwrap_or_default();
    let wanted = match first {
        _ if wanted.starts_with("internally tagged enum") || wanted.starts_with("adjacently tagged enum") => {
            "an object"
        }
        "struct" | "map" => "an object",
        "tuple" | "sequence" => "an array",
        "a" if wanted.starts_with("a map") => "an object",
        "a" if wanted.starts_with("a sequence") || wanted.starts_with("a tuple") => "an array",
        "enum" => "one of its words",
        "unit" => "null",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        _ => wanted,
    };
    let before = match before.strip_prefix("invalid type: ") {
        Some(rest) => {
            let rest = rest.strip_prefix("sequence,").map(|r| format!("array,{r}")).unwrap_or_else(|| {
                rest.strip_prefix("map,").map_or_else(|| rest.to_owned(), |r| format!("object,{r}"))
            });
            format!("invalid type: {rest}")
        }
        None => before.to_owned(),
    };
    format!("{before}{wanted}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug)]
    #[allow(dead_code, reason = "only what cannot be read into it matters")]
    struct Page {
        #[serde(default)]
        items: Vec<u64>,
        #[serde(default)]
        next: Option<String>,
    }

    #[test]
    fn no_type_of_ours_is_named() {
        let said = |text: &str| json_words(serde_json::from_str::<Page>(text).unwrap_err());
        assert_eq!(said("\"x\""), "invalid type: string \"x\", expected an object at line 1 column 3");
        let quoted = said("\", expected u64\"");
        assert!(
            quoted.starts_with("invalid type: string \", expected u64\", expected an object"),
            "{quoted}"
        );
        assert!(said("{\"items\":{}}").starts_with("invalid type: object, expected an array"));
        assert!(said("{\"items\":[-1]}").contains("expected a whole number, not negative at line"));
        assert!(said("{\"next\":1}").contains("expected a string"));
        assert!(said("{").starts_with("EOF while parsing an object"));
    }
}
