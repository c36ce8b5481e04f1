//! Lays rows out in columns that fit a terminal, or in full where there is
//! none. Knows nothing of what the rows are about.

use std::fmt::Write;

/// A column is not squeezed below this many cells, lest nothing of it can be read.
const NARROWEST: usize = 6;
/// Between two columns.
const GAP: usize = 2;
/// So many columns stay however narrow the terminal is: what a row is about, and one thing to say of it.
const KEPT: usize = 2;

/// How a cell is shown where colours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    #[default]
    Plain,
    /// Less important.
    Dim,
    /// Something is wrong.
    Bad,
    /// A name.
    Strong,
}

/// One cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    tone: Tone,
    right: bool,
}

impl Cell {
    /// A plain cell. Line ends and control characters become blanks: a row is one line.
    pub fn new(text: impl AsRef<str>) -> Cell {
        Cell { text: one_line(text.as_ref()), ..Cell::default() }
    }
    /// A number, set to the right.
    pub fn number(n: impl ToString) -> Cell {
        Cell { text: n.to_string(), right: true, ..Cell::default() }
    }
    /// Nothing, or a nought.
    fn says_nothing(&self) -> bool {
        matches!(self.text.as_str(), "" | "0" | "-")
    }
    /// Gives the cell a tone.
    pub fn tone(mut self, tone: Tone) -> Cell {
        self.tone = tone;
        self
    }
}

/// The text on one line: every run of white space and control characters is one blank.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        if c.is_whitespace() || c.is_control() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Rows under a header.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(header: &[&'static str]) -> Table {
        Table { header: header.to_vec(), rows: Vec::new() }
    }
    /// Adds a row, a cell for each column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells);
    }
    /// The table as text, each line ended. `width` is the terminal's, or `None` where nothing is cut. Columns for
    /// which it is too narrow are left out, first those in which no row says anything.
    pub fn render(&self, width: Option<usize>, color: bool) -> String {
        let mut widths: Vec<usize> = self.header.iter().map(|h| h.len()).collect();
        for row in &self.rows {
            for (w, cell) in widths.iter_mut().zip(row) {
                *w = (*w).max(display_width(&cell.text));
            }
        }
        let mut shown: Vec<usize> = (0..widths.len()).collect();
        if let Some(width) = width {
            let least =
                |shown: &[usize]| shown.iter().map(|i| widths[*i].min(NARROWEST) + GAP).sum::<usize>();
            while shown.len() > KEPT && least(&shown) > width + GAP {
                let says_nothing = |i: usize| self.rows.iter().all(|row| row[i].says_nothing());
                let place = shown.iter().rposition(|i| *i >= KEPT && says_nothing(*i));
                shown.remove(place.unwrap_or(shown.len() - 1));
            }
            let mut squeezed: Vec<usize> = shown.iter().map(|i| widths[*i]).collect();
            let room = width.saturating_sub(GAP * squeezed.len().saturating_sub(1));
            squeeze(&mut squeezed, room);
            for (i, w) in shown.iter().zip(squeezed) {
                widths[*i] = w;
            }
        }
        let mut out = String::new();
        let header: Vec<Cell> = self
            .header
            .iter()
            .enumerate()
            .map(|(i, h)| {
                let right = !self.rows.is_empty() && self.rows.iter().all(|r| r[i].right);
                Cell { text: (*h).to_owned(), tone: Tone::Dim, right }
            })
            .collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let start = out.len();
            for (place, i) in shown.iter().enumerate() {
                let (cell, width) = (&row[*i], widths[*i]);
                if place > 0 {
                    out.push_str("  ");
                }
                let text = fit(&cell.text, width);
                let pad = width - display_width(&text);
                let last = place + 1 == shown.len();
                if cell.right {
                    let _ = write!(out, "{:pad$}", "");
                }
                out.push_str(&paint(&text, cell.tone, color));
                if !cell.right && !last {
                    let _ = write!(out, "{:pad$}", "");
                }
            }
            let end = out.trim_end_matches(' ').len();
            out.truncate(end.max(start));
            out.push('\n');
        }
        out
    }
}

/// Caps the widest columns at one width, the widest at which all fit, but leaves each readable.
fn squeeze(widths: &mut [usize], room: usize) {
    let widest = widths.iter().copied().max().unwrap_or(0);
    let capped = |cap: usize| widths.iter().map(|w| (*w).min(cap)).sum::<usize>();
    let cap = (NARROWEST..widest).rev().find(|cap| capped(*cap) <= room);
    let cap = if capped(widest) <= room { return } else { cap.unwrap_or(NARROWEST) };
    let mut spare = room.saturating_sub(capped(cap));
    for w in widths.iter_mut().filter(|w| **w > cap) {
        let extra = spare.min(*w - cap).min(1);
        spare -= extra;
        *w = cap + extra;
    }
}

/// The text, cut to `width` cells with an ellipsis where it is longer.
pub fn fit(text: &str, width: usize) -> String {
    if text.len() <= width || display_width(text) <= width {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), 0);
    for c in text.chars() {
        let w = char_width(c);
        if used + w > width.saturating_sub(1) {
            break;
        }
        used += w;
        out.push(c);
    }
    let end = out.trim_end().len();
    out.truncate(end);
    if width > 0 {
        out.push('…');
    }
    out
}

/// The text in its tone, as a terminal understands it (ECMA-48 select graphic rendition).
pub fn paint(text: &str, tone: Tone, color: bool) -> String {
    let code = match tone {
        Tone::Plain => return text.to_owned(),
        _ if !color || text.is_empty() => return text.to_owned(),
        Tone::Dim => "2",
        Tone::Bad => "31",
        Tone::Strong => "1",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

/// How many cells of a terminal the text takes.
pub fn display_width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char_width).sum() }
}

/// How many cells a character takes: the wide blocks of Unicode's East Asian Width, and marks that
/// take none. An approximation by block, good enough to keep columns straight.
fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xe0100..=0xe01ef => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0x33ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xa000..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe4f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut t = Table::new(&["NAME", "TOOLS", "DESCRIPTION"]);
        t.row(vec![
            Cell::new("demo"),
            Cell::number(9),
            Cell::new("says\nwhat it\t is told, and more than that"),
        ]);
        t.row(vec![Cell::new("日本"), Cell::number(12), Cell::new("x").tone(Tone::Bad)]);
        t
    }

    #[test]
    fn a_pipe_gets_everything() {
        assert_eq!(
            sample().render(None, false),
            "NAME  TOOLS  DESCRIPTION\n\
             demo      9  says what it is told, and more than that\n\
             日本     12  x\n"
        );
    }

    #[test]
    fn a_terminal_gets_what_fits() {
        for width in 25..80 {
            for line in sample().render(Some(width), false).lines() {
                assert!(display_width(line) <= width, "{width}: {line:?}");
            }
        }
        assert!(sample().render(Some(30), false).contains("demo      9  says what it is…"));
        let mut equal = [210, 79];
        squeeze(&mut equal, 58);
        assert_eq!(equal, [29, 29]);
        let mut some = [4, 5, 100, 90];
        squeeze(&mut some, 60);
        assert_eq!(some, [4, 5, 26, 25]);
        // Narrower than can be read: overflows rather than showing nothing.
        assert!(sample().render(Some(1), false).contains("demo"));
    }

    #[test]
    fn a_narrow_terminal_gets_fewer_columns() {
        let mut table = Table::new(&["SERVER", "KEY", "STATE", "PID", "UP", "CALLS", "QUEUE", "LAST ERROR"]);
        for name in ["demo", "a-server-of-a-long-name"] {
            let words = ["global", "ready", "12345", "1m05s", "17", "0", ""];
            let cells = std::iter::once(name).chain(words).map(Cell::new);
            table.row(cells.collect());
        }
        for width in 16..80 {
            for line in table.render(Some(width), false).lines() {
                assert!(display_width(line) <= width, "{width}: {line:?}");
            }
        }
        let at = |width| table.render(Some(width), false).lines().next().unwrap_or_default().to_owned();
        assert!(!at(48).contains("QUEUE") && at(48).contains("CALLS"), "{}", at(48));
        assert!(at(80).contains("LAST ERROR") && at(16).contains("SERVER"));
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        assert!(!sample().render(None, false).contains('\x1b'));
        assert!(sample().render(None, true).contains("\x1b[31mx\x1b[0m"));
    }

    #[test]
    fn wide_and_combining_characters_are_counted() {
        assert_eq!(display_width("e\u{301}"), 1);
        assert_eq!(display_width("한국어"), 6);
        assert_eq!(fit("한국어", 4), "한…");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 0), "");
    }
}
