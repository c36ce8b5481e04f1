//! Writes how a script ended as a JUnit report, which is what CI systems read.
//! Knows nothing of how the script was run.

use super::out::complain;
use super::running::log_line;
use crate::error::{Error, Kind, Result, system_words};
use crate::proc;
use crate::script::{Fed, Outcome};
use crate::util::{iso8601, now_ms, write_atomic};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How many lines of standard error a failure quotes.
const QUOTED: usize = 20;

/// What has been seen of a script that is to be reported on.
pub struct Report {
    path: PathBuf,
    /// The script, as it was typed.
    name: String,
    begun: u64,
    seen: Arc<Mutex<Seen>>,
}

/// What it wrote, up to a limit each.
#[derive(Default)]
pub struct Seen {
    limit: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Seen {
    /// Keeps a piece of what the script wrote; of a record its line.
    pub fn keep(&mut self, piece: &Fed) {
        let line;
        let (kept, bytes) = match piece {
            Fed::Stdout(bytes) => (&mut self.stdout, *bytes),
            Fed::Stderr(bytes) => (&mut self.stderr, *bytes),
            Fed::Artifact(_) => return,
            Fed::Log(record) => {
                line = log_line(record, false);
                (&mut self.stderr, line.as_bytes())
            }
        };
        let room = self.limit.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// How a script ended.
#[derive(Clone, Copy)]
enum End<'a> {
    Well,
    /// It failed by itself.
    Failed(&'a str),
    /// It did not get that far, or was ended.
    Broken(&'a Error),
}

impl Report {
    /// A report on a script of that name; `limit` bounds what is kept of its output, in bytes.
    /// Makes the directory that it goes into.
    ///
    /// # Errors
    /// `Unwritable`, said before the script runs, not after.
    pub fn new(path: PathBuf, name: &str, limit: u64) -> Result<Report> {
        let refused = |what: String| {
            Error::new(Kind::Unwritable, format!("writing the --report {}: {what}", path.display()))
                .hint("name a file that can be written")
        };
        if path.is_dir() {
            return Err(refused("it is a directory".into()));
        }
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)
                .map_err(|e| refused(format!("making its directory: {}", system_words(&e))))?;
            proc::may_write(dir)
                .map_err(|e| refused(format!("writing into {}: {}", dir.display(), system_words(&e))))?;
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let seen = Arc::new(Mutex::new(Seen { limit, ..Seen::default() }));
        Ok(Report { path, name: name.to_owned(), begun: now_ms(), seen })
    }

    /// Where what is seen of it goes.
    pub fn seen(&self) -> Arc<Mutex<Seen>> {
        self.seen.clone()
    }

    /// Writes the report on a script that has run, or could not.
    ///
    /// # Errors
    /// The run's own, or `Unwritable` when the report cannot be.
    pub fn finish(self, outcome: Result<Outcome>) -> Result<Outcome> {
        let mut seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let text = match &outcome {
            Err(e) => self.render(now_ms().saturating_sub(self.begun), None, End::Broken(e), &seen),
            Ok(outcome) => {
                if let Some(captured) = &outcome.captured {
                    seen.stdout.clone_from(&captured.stdout);
                    seen.stderr.clone_from(&captured.stderr);
                }
                let said = outcome.error().map(|e| e["message"].as_str().unwrap_or_default().to_owned());
                let end = match (&outcome.ended, &said) {
                    (Some(e), _) => End::Broken(e),
                    (None, Some(message)) => End::Failed(message),
                    (None, None) => End::Well,
                };
                self.render(millis(outcome.duration), Some(outcome), end, &seen)
            }
        };
        let written = write_atomic(&self.path, text.as_bytes(), 0o644, false)
            .map_err(|e| Error::unwritable(format!("the --report {}", self.path.display()), &e));
        match (written, &outcome) {
            (Ok(()), _) => outcome,
            (Err(e), Ok(run)) if run.exit_code == 0 => Err(e),
            // What the script ended with says more.
            (Err(e), _) => {
                complain(&e);
                outcome
            }
        }
    }

    fn render(&self, ms: u64, outcome: Option<&Outcome>, end: End, seen: &Seen) -> String {
        let time = format!("{}.{:03}", ms / 1000, ms % 1000);
        let (failures, errors) = match end {
            End::Well => (0, 0),
            End::Failed(_) => (1, 0),
            End::Broken(_) => (0, 1),
        };
        let name = escape(&self.name);
        let counts = format!("tests=\"1\" failures=\"{failures}\" errors=\"{errors}\"");
        let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(text, "<testsuites name=\"mcpx run\" {counts} time=\"{time}\">");
        let _ = writeln!(
            text,
            "  <testsuite name=\"mcpx run\" {counts} skipped=\"0\" time=\"{time}\" timestamp=\"{}\">",
            escape(&iso8601(self.begun))
        );
        if let Some(outcome) = outcome {
            let _ = writeln!(
                text,
                "    <properties>\n      <property name=\"runtime\" value=\"{}\"/>\n      \
                 <property name=\"exitCode\" value=\"{}\"/>\n    </properties>",
                escape(&outcome.runtime),
                outcome.exit_code
            );
        }
        let _ = writeln!(text, "    <testcase classname=\"mcpx.run\" name=\"{name}\" time=\"{time}\">");
        let quoted = last_lines(&String::from_utf8_lossy(&seen.stderr));
        match end {
            End::Well => {}
            End::Failed(message) => {
                let _ = writeln!(
                    text,
                    "      <failure message=\"{}\" type=\"script\">{}</failure>",
                    escape(message),
                    escape(&quoted)
                );
            }
            End::Broken(e) => {
                let hint = e.hint_text().map(|hint| format!("{hint}\n")).unwrap_or_default();
                let _ = writeln!(
                    text,
                    "      <error message=\"{}\" type=\"{}\">{}</error>",
                    escape(e.message()),
                    escape(e.kind().row().word),
                    escape(&format!("{hint}{quoted}"))
                );
            }
        }
        for (tag, bytes) in [("system-out", &seen.stdout), ("system-err", &seen.stderr)] {
            if !bytes.is_empty() {
                let _ = writeln!(text, "      <{tag}>{}</{tag}>", escape(&String::from_utf8_lossy(bytes)));
            }
        }
        text.push_str("    </testcase>\n  </testsuite>\n</testsuites>\n");
        text
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(QUOTED)..].join("\n")
}

/// A text as XML 1.0 has it: what it cannot hold at all is replaced (XML 1.0, 2.2).
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Escaped, or an attribute would lose them.
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' => out.push(c),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(end: End, stderr: &[u8]) -> String {
        let report = Report::new("/tmp/report.xml".into(), "a \"b\" & <c>", 1000).unwrap();
        report.render(61_005, None, end, &Seen { stderr: stderr.to_vec(), ..Seen::default() })
    }

    #[test]
    fn a_report_counts_what_happened() {
        let well = rendered(End::Well, b"");
        assert!(well.contains("failures=\"0\" errors=\"0\"") && well.contains("time=\"61.005\""), "{well}");
        assert!(well.contains("name=\"a &quot;b&quot; &amp; &lt;c&gt;\"") && !well.contains("<failure"));
        let failed = rendered(End::Failed("it <broke>"), b"one\ntwo");
        assert!(failed.contains("<failure message=\"it &lt;broke&gt;\" type=\"script\">one\ntwo</failure>"));
        assert!(failed.contains("failures=\"1\" errors=\"0\"") && failed.contains("<system-err>one\ntwo<"));
        let late = Error::new(Kind::Timeout, "too long").hint("wait");
        let broken = rendered(End::Broken(&late), b"");
        assert!(broken.contains("<error message=\"too long\" type=\"timeout\">wait\n</error>"), "{broken}");
    }

    #[test]
    fn only_what_xml_can_hold_gets_into_it() {
        assert_eq!(escape("\x1b[31m\0\r\n\u{ffff}]]>"), "\u{fffd}[31m\u{fffd}&#13;\n\u{fffd}]]&gt;");
        let text = rendered(End::Well, b"\xff\x08");
        assert!(text.chars().all(|c| c == '\n' || c >= ' '), "{text:?}");
    }

    #[test]
    fn output_is_kept_up_to_the_limit() {
        let mut seen = Seen { limit: 5, ..Seen::default() };
        seen.keep(&Fed::Stdout(b"1234"));
        seen.keep(&Fed::Stdout(b"5678"));
        seen.keep(&Fed::Stderr(b"err"));
        assert_eq!((&seen.stdout[..], &seen.stderr[..]), (&b"12345"[..], &b"err"[..]));
    }
}
