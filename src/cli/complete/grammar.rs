//! Reads the `words` of a command's usage line as a grammar: which word may
//! stand at which place. Knows nothing of what a placeholder stands for.

/// What may stand at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The word itself.
    Literal(&'static str),
    /// A placeholder, without its brackets: `namespace`, `namespace>.<tool`.
    Placeholder(&'static str),
}

/// One way to go on: places, the last of which may repeat.
struct Way {
    places: Vec<Vec<Choice>>,
    repeats: bool,
}

/// What may stand after these words. `words` is as in a usage line: `[a|b]` are words, `<x>` is a
/// placeholder, `…` repeats, and ` | ` (with blanks) is between two ways.
pub fn after(words: &'static str, before: &[String]) -> Vec<Choice> {
    let mut out = Vec::new();
    for way in words.split(" | ").map(way) {
        let at = before.len();
        let place = |i: usize| match way.places.get(i) {
            None if way.repeats => way.places.last(),
            found => found,
        };
        let fits = before.iter().enumerate().all(|(i, word)| {
            let fit =
                |c: &Choice| matches!(c, Choice::Placeholder(_)) || *c == Choice::Literal(leak(word, c));
            place(i).is_some_and(|choices| choices.iter().any(fit))
        });
        if fits && let Some(choices) = place(at) {
            for choice in choices {
                if !out.contains(choice) {
                    out.push(*choice);
                }
            }
        }
    }
    out
}

/// The choice's own text where the word is the same: it lives as long as the table.
fn leak(word: &str, choice: &Choice) -> &'static str {
    match choice {
        Choice::Literal(text) if *text == word => text,
        _ => "",
    }
}

fn way(text: &'static str) -> Way {
    let mut repeats = false;
    let mut places = Vec::new();
    for item in text.split_whitespace() {
        let item = item.trim_matches(['[', ']']);
        repeats = item.ends_with('…');
        let item = item.trim_end_matches('…').trim_end_matches([']', '[']);
        if item.is_empty() {
            places.push(vec![Choice::Placeholder("…")]);
            continue;
        }
        let choice = |word: &'static str| match word.strip_prefix('<').and_then(|w| w.strip_suffix('>')) {
            Some(name) => Choice::Placeholder(name),
            None => Choice::Literal(word),
        };
        places.push(item.split('|').map(choice).collect());
    }
    Way { places, repeats }
}

#[cfg(test)]
mod tests {
    use super::Choice::{Literal, Placeholder};
    use super::*;

    fn at(words: &'static str, before: &[&str]) -> Vec<Choice> {
        after(words, &before.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn usage_lines_say_what_may_come_next() {
        assert!(at("", &[]).is_empty());
        assert_eq!(at("[<namespace>…]", &["a", "b"]), [Placeholder("namespace")]);
        assert_eq!(at("<namespace>.<tool> [<arguments>…]", &[]), [Placeholder("namespace>.<tool")]);
        assert_eq!(at("<namespace>.<tool> [<arguments>…]", &["a.b", "c=1"]), [Placeholder("arguments")]);
        assert_eq!(at("<file>|<name> [<arguments>…]", &[]), [Placeholder("file"), Placeholder("name")]);
        assert_eq!(at("<code>|- [<arguments>…]", &[]), [Placeholder("code"), Literal("-")]);
        let settings = "[list [<family>] | get <key> | set <key> <value>]";
        assert_eq!(at(settings, &[]), [Literal("list"), Literal("get"), Literal("set")]);
        assert_eq!(at(settings, &["list"]), [Placeholder("family")]);
        assert_eq!(at(settings, &["set", "pool.max"]), [Placeholder("value")]);
        assert!(at(settings, &["get", "pool.max"]).is_empty());
        assert!(at(settings, &["odd"]).is_empty());
        assert_eq!(at("[add <name> … | list]", &["add", "x", "y"]), [Placeholder("…")]);
        assert_eq!(at("[show|add <server> | list]", &["add"]), [Placeholder("server")]);
    }
}
