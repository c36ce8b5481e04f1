//! Names for the tools and prompts of many servers in one list: what every host
//! takes (letters, digits, `_` and `-`, at most 64), never two alike, and the
//! same tomorrow, whatever else is configured. Knows nothing of lists.

use crate::util;

/// The longest name that every host takes.
const LONGEST: usize = 64;
/// Digits of the digest that tells apart what would be alike otherwise.
const DIGITS: usize = 8;
/// Between the server and what it offers.
const BETWEEN: &str = "__";

/// `server__tool`. Where that is too long, has other characters, or could be
/// read in two ways, it is cut to size and ends in a digest of the two names.
pub fn safe(server: &str, tool: &str) -> String {
    let plain = format!("{server}{BETWEEN}{tool}");
    let one_reading = !server.contains(BETWEEN) && !server.ends_with('_') && !server.is_empty();
    if one_reading && !tool.is_empty() && plain.len() <= LONGEST && plain.chars().all(is_safe) {
        return plain;
    }
    let digest = util::digest([server.as_bytes(), b"\0", tool.as_bytes()], DIGITS);
    let tamed = |text: &str| text.chars().map(|c| if is_safe(c) { c } else { '_' }).collect::<String>();
    let room = LONGEST - DIGITS - 1;
    // Both ends tell something: a long server's name gives way first, to half the room.
    let (server, tool) = (tamed(server), tamed(tool));
    let for_tool = tool.len().min(room / 2 + room.saturating_sub(room / 2 + BETWEEN.len() + server.len()));
    let for_server = room.saturating_sub(for_tool + BETWEEN.len()).min(server.len());
    format!("{}{BETWEEN}{}_{digest}", &server[..for_server], &tool[..for_tool])
}

/// Whether every host takes the name as it is.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(is_safe)
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn plain_names_stay_plain() {
        assert_eq!(safe("demo", "echo"), "demo__echo");
        assert_eq!(safe("my-server", "get_it-now"), "my-server__get_it-now");
        assert_eq!(safe("a", "_b"), "a___b");
    }

    #[test]
    fn any_two_names_give_a_safe_one_and_different_ones_give_different_ones() {
        let long = "x".repeat(100);
        let longer = "x".repeat(101);
        let pairs = [
            ("demo", "echo"),
            ("a", "_b"),
            ("a_", "b"),
            ("a", "b__c"),
            ("a__b", "c"),
            ("ünïcode", "größe"),
            ("unicode", "gr__e"),
            ("io.example/server", "do.it"),
            ("io.example/server", "do it"),
            ("", ""),
            ("a", ""),
            ("", "a"),
            ("s", &long),
            ("s", &longer),
            (&long, "t"),
            (&longer, "t"),
            (&long, &longer),
            ("日本", "日本"),
        ];
        let mut seen = HashSet::new();
        for (server, tool) in pairs {
            let name = safe(server, tool);
            assert!(!name.is_empty() && name.len() <= LONGEST, "{name}");
            assert!(name.chars().all(is_safe), "{name}");
            assert_eq!(name, safe(server, tool));
            assert!(seen.insert(name.clone()), "{name} is there twice");
        }
        assert!(safe(&long, "do_this").contains("__do_this_"), "{}", safe(&long, "do_this"));
    }
}
