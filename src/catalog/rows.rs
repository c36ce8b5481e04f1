//! One light record for each tool, enough to list and to search it. Made from a
//! schema once, when it is stored; knows nothing of the files it is stored in.

use super::{ServerSchema, Tool, names, ts};
use serde::{Deserialize, Serialize};

/// A description is searched, and kept in a row, up to this many bytes: what a
/// tool is about stands in its first sentences, and 5,000 rows are read for one search.
const ABOUT: usize = 400;

/// A tool as listings and `search` see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The exact name.
    #[serde(rename = "n")]
    pub name: String,
    /// The beginning of the description (else the title), on one line.
    #[serde(rename = "d", default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// How it is called, on one line, without the namespace: [`ts::signature`].
    #[serde(rename = "s", default)]
    pub signature: String,
}

impl Row {
    /// The row of one tool by itself; in a list with similar names it may be called
    /// otherwise (see [`rows`]).
    pub fn of(tool: &Tool) -> Row {
        Row::called(tool, &names::member(&tool.name))
    }
    fn called(tool: &Tool, member: &str) -> Row {
        let text = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        Row {
            name: tool.name.clone(),
            about: one_line(text, ABOUT),
            signature: ts::signature(tool, "", member),
        }
    }
    /// The first sentence of the description, at most `max` characters.
    pub fn sentence(&self, max: usize) -> String {
        first_sentence(&self.about, max)
    }
}

/// The rows of a server's tools, in its own order.
pub fn rows(schema: &ServerSchema) -> Vec<Row> {
    let members = names::unique_members(schema.tools.iter().map(|t| t.name.as_str()));
    schema.tools.iter().zip(&members).map(|(tool, member)| Row::called(tool, member)).collect()
}

/// About how many tokens a list of these tools' signatures takes, a line each.
pub fn tokens(rows: &[Row]) -> usize {
    rows.iter().map(|row| super::budget::tokens(&row.signature) + 1).sum()
}

/// What a server says of itself, on one line: the description it gives in
/// `serverInfo`, else the first sentence of its instructions, else its title.
pub fn about_server(schema: &ServerSchema) -> Option<String> {
    let info = |key: &str| schema.server_info.as_ref().and_then(|i| i.get(key)).and_then(|v| v.as_str());
    [info("description"), schema.instructions.as_deref(), info("title")]
        .into_iter()
        .flatten()
        .map(|text| first_sentence(text, 200))
        .find(|text| !text.is_empty())
}

/// The text up to the end of its first sentence, paragraph or list, on one line
/// and without control characters; cut at a word with `…` when longer than `max` characters.
pub fn first_sentence(text: &str, max: usize) -> String {
    // A manual in Markdown begins with a heading, whose marks say nothing.
    let text = text.trim_start();
    let text = text.trim_start_matches('#').trim_start();
    let paragraph = ["\n\n", "\r\n\r\n", "\n- ", "\n* ", "\n#"]
        .iter()
        .filter_map(|end| text.find(end))
        .min()
        .map_or(text, |end| &text[..end]);
    // Far more than is shown; spares going through a whole manual.
    let line = one_line(paragraph, max.saturating_mul(8).saturating_add(64));
    let mut end = line.len();
    for (at, mark) in line.match_indices(['.', '!', '?', '。', '！', '？']) {
        let after = at + mark.len();
        let wide = mark.len() > 1;
        let next = line[after..].chars().next();
        let ends = wide || next.is_none() || next == Some(' ') && !abbreviation(&line[..at]);
        if ends {
            end = if wide || mark != "." { after } else { at };
            break;
        }
    }
    cut(&line[..end], max)
}

/// Whether a dot after this belongs to a word such as `e.g.` and not to the sentence.
fn abbreviation(before: &str) -> bool {
    let word = before.rsplit(' ').next().unwrap_or_default();
    let initials = word.contains('.') && word.split('.').all(|part| part.chars().count() <= 2);
    initials || matches!(word, "etc" | "vs" | "cf" | "approx" | "incl" | "max" | "min" | "no")
}

/// The text's beginning on one line: runs of white space and control characters
/// become one space; ends with `…` when `max` bytes did not suffice.
pub fn one_line(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    let mut gap = false;
    for c in text.chars() {
        if c.is_whitespace() || is_unseen(c) {
            gap = !out.is_empty();
            continue;
        }
        if out.len() + usize::from(gap) + c.len_utf8() > max {
            out.push('…');
            return out;
        }
        if gap {
            out.push(' ');
            gap = false;
        }
        out.push(c);
    }
    out
}

/// At most `max` characters, cut between words where that loses little.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let head: String = text.chars().take(max.saturating_sub(1)).collect();
    let at = head.rfind(' ').filter(|at| *at * 3 > head.len() * 2).unwrap_or(head.len());
    format!("{}…", head[..at].trim_end_matches([' ', ',', ';', ':']))
}

/// Characters that steer a terminal or turn the direction of text instead of
/// showing something: a description must not be able to.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_taken() {
        for (text, expected) in [
            ("Echoes the input. And more.", "Echoes the input"),
            ("Reads v1.2 files, e.g. a.txt. Then stops.", "Reads v1.2 files, e.g. a.txt"),
            ("Really? Yes.", "Really?"),
            ("  No end\n here ", "No end here"),
            ("Title\n\nBody.", "Title"),
            ("## The server – a manual\n\nBody.", "The server – a manual"),
            ("Lists:\n- one\n- two", "Lists:"),
            ("読みます。次。", "読みます。"),
            ("Clear\u{1b}[2J the\u{202e} screen", "Clear [2J the screen"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text, 80), expected);
        }
        assert_eq!(first_sentence("one two three four five", 15), "one two three…");
        assert_eq!(first_sentence(&"x".repeat(100), 5), "xxxx…");
        assert_eq!(first_sentence("äöüß", 4), "äöüß");
    }

    #[test]
    fn a_line_never_exceeds_its_limit() {
        assert_eq!(one_line("a\r\n\tb", 10), "a b");
        assert_eq!(one_line("ääää", 5), "ää…");
        assert_eq!(one_line("abc", 3), "abc");
    }

    #[test]
    fn a_server_describes_itself() {
        let mut schema: ServerSchema = serde_json::from_value(serde_json::json!({
            "server":"s","digest":"d","fetchedAt":1,"protocol":"2025-11-25",
            "serverInfo":{"name":"s","title":"S"},"tools":[],
        }))
        .unwrap();
        assert_eq!(about_server(&schema).as_deref(), Some("S"));
        schema.instructions = Some("Use it well. Or not.".into());
        assert_eq!(about_server(&schema).as_deref(), Some("Use it well"));
        schema.server_info = Some(serde_json::json!({"description":"Does things"}));
        assert_eq!(about_server(&schema).as_deref(), Some("Does things"));
    }
}
