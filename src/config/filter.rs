//! Which tools of a server are offered: the patterns of its `"mcpx"` block, and
//! the one rule that puts them together. Knows nothing of schemas.

use super::regex::Regex;
use std::path::PathBuf;
use std::sync::Arc;

/// A pattern for a tool's name: the whole name, a glob (`*` is any text, `?`
/// one character), or `/a regular expression/` (`/…/i` ignores case).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    how: How,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    Exact,
    Glob,
    Regex(Regex),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence that begins with the pattern.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let inner = text.strip_prefix('/').and_then(|t| {
            let (inner, fold) = match t.strip_suffix("/i") {
                Some(inner) => (inner, true),
                None => (t.strip_suffix('/')?, false),
            };
            Some((inner, fold))
        });
        let how = match inner {
            Some((inner, fold)) => How::Regex(Regex::new(inner, fold)?),
            None if text.is_empty() => return Err("is empty".into()),
            None if text.contains(['*', '?']) => How::Glob,
            None => How::Exact,
        };
        Ok(Pattern { text: text.to_owned(), how })
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a tool's exact name fits.
    pub fn fits(&self, name: &str) -> bool {
        match &self.how {
            How::Exact => self.text == name,
            How::Glob => glob(&self.text, name),
            How::Regex(regex) => regex.is_match(name),
        }
    }
}

/// Whether a glob fits the whole of a text, in at most the product of both lengths.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on when the last star has to take one character more.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// One list of patterns, and the line that it is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    /// The patterns, in order.
    pub all: Vec<Pattern>,
    /// The line of the member in its file.
    pub line: u32,
    /// That file, where it is another than the definition's.
    pub source: Option<Arc<PathBuf>>,
}

impl Patterns {
    /// The first pattern that fits.
    fn find(&self, name: &str) -> Option<&Pattern> {
        self.all.iter().find(|p| p.fits(name))
    }
    fn texts(&self) -> String {
        self.all.iter().map(|p| format!("\"{}\"", p.text)).collect::<Vec<_>>().join(", ")
    }
}

/// Which of a server's tools are offered: those that `tools` names (all, when
/// it is absent), without those that `excludeTools` names, and in any case those
/// that `extraIncludeTools` names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// `tools`.
    pub only: Option<Patterns>,
    /// `excludeTools`.
    pub exclude: Option<Patterns>,
    /// `extraIncludeTools`.
    pub extra: Option<Patterns>,
}

/// Why a tool is not offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// The words of the filter.
    pub why: String,
    /// Its line in the file.
    pub line: u32,
    /// That file, where it is another than the definition's.
    pub source: Option<Arc<PathBuf>>,
}

impl ToolFilter {
    /// Whether nothing is filtered.
    pub fn is_open(&self) -> bool {
        self.only.is_none() && self.exclude.is_none()
    }

    /// Whether a tool is offered.
    pub fn offers(&self, name: &str) -> bool {
        let within = |list: &Option<Patterns>| list.as_ref().map(|l| l.find(name).is_some());
        within(&self.extra) == Some(true)
            || within(&self.only) != Some(false) && within(&self.exclude) != Some(true)
    }

    /// These lists, and those of `further` that are missing here.
    pub(super) fn over(self, further: ToolFilter) -> ToolFilter {
        ToolFilter {
            only: self.only.or(further.only),
            exclude: self.exclude.or(further.exclude),
            extra: self.extra.or(further.extra),
        }
    }

    /// Why a tool is not offered; `None` when it is.
    pub fn withholds(&self, name: &str) -> Option<Withheld> {
        if self.offers(name) {
            return None;
        }
        if let Some((list, pattern)) = self.exclude.as_ref().and_then(|l| Some((l, l.find(name)?))) {
            let why = match pattern.text() == name {
                true => format!("\"excludeTools\" names \"{name}\""),
                false => format!("\"{}\" of \"excludeTools\" fits it", pattern.text()),
            };
            return Some(Withheld { why, line: list.line, source: list.source.clone() });
        }
        let list = self.only.as_ref()?;
        let why = match list.all.len() {
            0 => "\"tools\" is an empty list".to_owned(),
            1..=LISTED => format!("\"tools\" offers only {}", list.texts()),
            n => format!("none of the {n} patterns of \"tools\" fits it"),
        };
        Some(Withheld { why, line: list.line, source: list.source.clone() })
    }
}

/// So many patterns are quoted in a message.
const LISTED: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(patterns: &[&str]) -> Option<Patterns> {
        Some(Patterns {
            all: patterns.iter().map(|p| Pattern::new(p).unwrap()).collect(),
            line: 7,
            source: None,
        })
    }

    #[test]
    fn a_pattern_is_a_name_a_glob_or_an_expression() {
        for (pattern, yes, no) in [
            ("get", &["get"][..], &["get_x", "Get"][..]),
            ("get_*", &["get_", "get_x"], &["xget_", "get"]),
            ("*_all*", &["a_all", "_all_b"], &["all"]),
            ("a?c", &["abc", "aäc"], &["ac", "abbc"]),
            ("*", &["", "x"], &[]),
            ("a*b*c", &["abc", "aXbXbYc"], &["ab", "acb"]),
            ("/^get/", &["get_x"], &["xget"]),
            ("/GET/i", &["xget"], &["gt"]),
            ("/", &["/"], &["a"]),
            ("/*", &["/a"], &["a"]),
            ("[ab]", &["[ab]"], &["a"]),
        ] {
            let pattern = Pattern::new(pattern).unwrap();
            assert!(yes.iter().all(|n| pattern.fits(n)), "{}", pattern.text());
            assert!(!no.iter().any(|n| pattern.fits(n)), "{}", pattern.text());
        }
        assert!(Pattern::new("").is_err());
        assert!(Pattern::new("/a{2}/").unwrap_err().contains('{'));
        // A glob with many stars does not blow up either.
        let many = Pattern::new(&format!("{}b", "*a".repeat(200))).unwrap();
        assert!(!many.fits(&"a".repeat(5000)));
    }

    #[test]
    fn the_three_lists_make_one_rule() {
        let filter = ToolFilter {
            only: list(&["get_*", "put"]),
            exclude: list(&["get_secret", "/^put$/"]),
            extra: list(&["get_secret", "drop"]),
        };
        for (name, offered) in
            [("get_a", true), ("get_secret", true), ("put", false), ("drop", true), ("other", false)]
        {
            assert_eq!(filter.offers(name), offered, "{name}");
            assert_eq!(filter.withholds(name).is_none(), offered, "{name}");
        }
        assert!(filter.withholds("put").unwrap().why.contains("\"/^put$/\" of \"excludeTools\""));
        assert!(filter.withholds("other").unwrap().why.contains("only \"get_*\", \"put\""));
        assert_eq!(filter.withholds("other").unwrap().line, 7);
        let open = ToolFilter { extra: list(&["x"]), ..ToolFilter::default() };
        assert!(open.is_open() && open.offers("anything"));
        let none = ToolFilter { only: list(&[]), ..ToolFilter::default() };
        assert!(none.withholds("a").unwrap().why.contains("empty"));
    }
}
