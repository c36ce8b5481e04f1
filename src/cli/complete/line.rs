//! Takes a bash command line apart, and puts words back so that bash takes
//! them whole. Knows nothing of what the words mean.

/// The words of a line up to the cursor; the last one is being typed, and may be empty.
pub struct Line {
    /// The words, without quotes and backslashes; the program is the first.
    pub words: Vec<String>,
    /// The quote that is open at the cursor.
    pub quote: Option<char>,
}

/// Takes a line apart as a POSIX shell does. What a variable stands for is not known.
pub fn parse(line: &str) -> Line {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(chars.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.push(word.unwrap_or_default());
    Line { words, quote }
}

/// What bash is to put in place of what it takes for the current word. It ends words at `breaks`
/// (`COMP_WORDBREAKS`), so that of `--flag=val` it replaces `val` alone.
pub fn replacement(candidate: &str, typed: &str, breaks: &str, quote: Option<char>) -> String {
    let start = match quote {
        // Within quotes nothing breaks a word.
        Some(_) => 0,
        None => typed
            .char_indices()
            .rev()
            .find(|(_, c)| matches!(c, '=' | ':') && breaks.contains(*c))
            .map_or(0, |(at, c)| at + c.len_utf8()),
    };
    let rest = candidate.get(start..).unwrap_or(candidate);
    match quote {
        Some('\'') => rest.replace('\'', "'\\''"),
        Some(_) => escaped(rest, |c| matches!(c, '"' | '\\' | '$' | '`')),
        None => escaped(rest, |c| !(c.is_alphanumeric() || "-_./:=@%+,".contains(c))),
    }
}

fn escaped(text: &str, special: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if special(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        for (line, words, quote) in [
            ("mcpx ", &["mcpx", ""][..], None),
            ("mcpx ca", &["mcpx", "ca"], None),
            ("mcpx call 'a b", &["mcpx", "call", "a b"], Some('\'')),
            ("mcpx call a\\ b \"c'", &["mcpx", "call", "a b", "c'"], Some('"')),
            ("mcpx --preset=a,b", &["mcpx", "--preset=a,b"], None),
        ] {
            let parsed = parse(line);
            assert_eq!((parsed.words, parsed.quote), (words.iter().map(|w| (*w).into()).collect(), quote));
        }
    }

    #[test]
    fn a_replacement_begins_where_bash_breaks_the_word() {
        const BREAKS: &str = " \t\n\"'><=;|&(:";
        assert_eq!(replacement("--color=never", "--color=ne", BREAKS, None), "never");
        assert_eq!(replacement("--color=never", "--color=ne", " ", None), "--color=never");
        assert_eq!(replacement("a b.c", "a", BREAKS, None), "a\\ b.c");
        assert_eq!(replacement("a b.c", "a", BREAKS, Some('"')), "a b.c");
        assert_eq!(replacement("it's", "it", BREAKS, Some('\'')), "it'\\''s");
    }
}
