//! Mutations of a corpus, the same every time, for the tests of whatever reads
//! bytes from outside. Knows nothing of what they mean.

use super::Env;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// So many inputs of an ordinary test run: together they take a second or two.
const ROUNDS: u64 = 2000;

/// So many for each round of `make soak` (`MCPX_SOAK`).
const SOAKED: u64 = 500;

/// How long the inputs are that repeat one text: a reader whose work grows with the
/// square of its input would take minutes for one of them.
const LONG: usize = 128 * 1024;

/// What the formats are made of.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud800",
    b":",
    b",",
    b"/",
    b"//",
    b"/*",
    b"*/",
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\t",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    "ü".as_bytes(),
    "\u{2028}".as_bytes(),
    b"=",
    b"%",
    b"%zz",
    b"{x}",
    b"${",
    b"1e999",
    b"-",
    b"0",
    b"99999999999999999999",
    b"null",
    b"data:",
    b"id:",
    b"a\":",
    b"\"$ref\":\"#\"",
    b"chunked",
    b"Content-Length: ",
    b"Bearer ",
    b"\"allOf\":[",
];

/// Numbers that look random: xorshift.
pub struct Dice(u64);

impl Dice {
    /// Always the same.
    fn new() -> Dice {
        Dice(0x9e37_79b9_7f4a_7c15)
    }
    /// One below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).unwrap_or(0)
    }
}

/// Runs the check on each entry, on each beginning of it, on long repetitions, and on mutations.
pub fn each(corpus: &[&[u8]], check: impl Fn(&[u8])) {
    let attempt = |what: &str, bytes: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(bytes))) {
            let why = panic.downcast_ref::<String>().map(String::as_str);
            let why = why.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            let shown: String = String::from_utf8_lossy(bytes).chars().take(2000).collect();
            panic!("{what}: {shown:?}: {why}");
        }
    };
    for whole in corpus {
        (0..=whole.len()).for_each(|cut| attempt("a beginning", &whole[..cut]));
    }
    for token in TOKENS.iter().chain(corpus).filter(|t| !t.is_empty()) {
        attempt("a repetition", &token.repeat(LONG / token.len()));
    }
    let soak = Env::current().text("MCPX_SOAK").and_then(|n| n.parse::<u64>().ok());
    let mut dice = Dice::new();
    for round in 0..soak.map_or(ROUNDS, |n| n.saturating_mul(SOAKED)) {
        attempt(&format!("round {round}"), &mutated(corpus, &mut dice));
    }
}

/// An entry after a few changes.
fn mutated(corpus: &[&[u8]], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = corpus[dice.below(corpus.len())].to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let to = at + dice.below((bytes.len() - at).min(64) + 1);
        match dice.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => drop(bytes.drain(at..to)),
            2 => {
                let part = bytes[at..to].repeat(1 + dice.below(20));
                bytes.splice(at..at, part);
            }
            3 => bytes.truncate(at),
            4 => {
                let other = corpus[dice.below(corpus.len())];
                let from = dice.below(other.len() + 1);
                bytes.splice(at..to, other[from..].iter().copied());
            }
            5 => bytes[at..to].reverse(),
            _ => {
                let token = TOKENS[dice.below(TOKENS.len())];
                bytes.splice(at..to, token.iter().copied());
            }
        }
    }
    bytes
}

/// Gives a text in pieces whose lengths vary, and counts what is read of it.
pub struct Pieces<'a> {
    rest: &'a [u8],
    dice: Dice,
    /// So often something was asked for.
    pub reads: usize,
}

impl<'a> Pieces<'a> {
    /// All of the text, bit by bit.
    pub fn new(text: &'a [u8]) -> Pieces<'a> {
        Pieces { rest: text, dice: Dice::new(), reads: 0 }
    }
}

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.reads += 1;
        let n = (1 + self.dice.below(64)).min(buf.len()).min(self.rest.len());
        buf[..n].copy_from_slice(&self.rest[..n]);
        self.rest = &self.rest[n..];
        Ok(n)
    }
}
