//! Matches a small, documented subset of regular expressions in linear time:
//! a pattern becomes a program whose threads all advance together, one step a
//! character, so that no pattern can take long. Knows nothing of what is matched.

/// What the subset is, for the documentation and for messages.
pub(super) const SUBSET: &str = "literals, . * + ? | ( ) [ ] ^ $ \\d \\w \\s";

/// The longest pattern, in characters: far beyond any that a person writes, and
/// what bounds the time that one character of a name can take.
const MAX_LENGTH: usize = 1000;

/// How deep groups may be nested.
const MAX_DEPTH: usize = 50;

/// A compiled expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Regex {
    program: Vec<Step>,
    fold: bool,
}

/// One step of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Takes one character of this set.
    Take(Set),
    /// Goes on at both.
    Split(usize, usize),
    /// Goes on there.
    Jump(usize),
    /// Only at the beginning.
    Start,
    /// Only at the end.
    End,
    /// It matches.
    Match,
}

/// A set of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Set {
    ranges: Vec<(char, char)>,
    negated: bool,
}

impl Set {
    fn one(c: char) -> Set {
        Set { ranges: vec![(c, c)], negated: false }
    }
    /// Every character.
    fn any() -> Set {
        Set { ranges: Vec::new(), negated: true }
    }
    fn has(&self, c: char) -> bool {
        self.ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != self.negated
    }
    /// Also the other case of each ASCII letter.
    fn fold(&mut self) {
        for (from, to) in self.ranges.clone() {
            for (first, last, other) in [('a', 'z', 'A'), ('A', 'Z', 'a')] {
                let (low, high) = (from.max(first), to.min(last));
                if low <= high {
                    let shift = |c: char| char::from(other as u8 + (c as u8 - first as u8));
                    self.ranges.push((shift(low), shift(high)));
                }
            }
        }
    }
}

/// What a letter behind a backslash stands for; the capital one is its opposite.
fn class(letter: char) -> Option<Set> {
    let ranges = match letter.to_ascii_lowercase() {
        'd' => vec![('0', '9')],
        'w' => vec![('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')],
        's' => vec![(' ', ' '), ('\t', '\r'), ('\u{a0}', '\u{a0}'), ('\u{2028}', '\u{2029}')],
        _ => return None,
    };
    Some(Set { ranges, negated: letter.is_ascii_uppercase() })
}

/// An expression as it was read.
enum Node {
    Empty,
    Set(Set),
    Start,
    End,
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    /// At least once or not, and more than once or not.
    Repeat(Box<Node>, bool, bool),
}

impl Regex {
    /// Compiles an expression; `fold` ignores the case of ASCII letters.
    pub fn new(text: &str, fold: bool) -> Result<Regex, String> {
        if text.chars().count() > MAX_LENGTH {
            return Err(format!("is longer than {MAX_LENGTH} characters"));
        }
        let mut parser = Parser { rest: text.chars().peekable(), depth: 0 };
        let node = parser.either()?;
        if parser.rest.next().is_some() {
            return Err("has a ) without its (".into());
        }
        let mut program = Vec::new();
        emit(&node, &mut program);
        program.push(Step::Match);
        if fold {
            for step in &mut program {
                if let Step::Take(set) = step {
                    set.fold();
                }
            }
        }
        Ok(Regex { program, fold })
    }

    /// Whether it matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        let (mut now, mut next) = (Threads::new(self), Threads::new(self));
        let mut chars = text.chars().peekable();
        let mut first = true;
        loop {
            let end = chars.peek().is_none();
            // A match may begin at every character.
            if now.add(&self.program, 0, first, end) {
                return true;
            }
            let Some(c) = chars.next() else { return false };
            first = false;
            let end = chars.peek().is_none();
            for &at in &now.list {
                if let Step::Take(set) = &self.program[at]
                    && set.has(c)
                    && next.add(&self.program, at + 1, false, end)
                {
                    return true;
                }
            }
            std::mem::swap(&mut now, &mut next);
            next.clear();
        }
    }
}

/// The places where a program stands, each once.
struct Threads {
    list: Vec<usize>,
    seen: Vec<bool>,
    stack: Vec<usize>,
}

impl Threads {
    fn new(regex: &Regex) -> Threads {
        Threads { list: Vec::new(), seen: vec![false; regex.program.len()], stack: Vec::new() }
    }
    fn clear(&mut self) {
        self.list.clear();
        self.seen.fill(false);
    }
    /// Adds a place and all that can be reached from it without a character; whether one is the match.
    fn add(&mut self, program: &[Step], at: usize, start: bool, end: bool) -> bool {
        self.stack.push(at);
        while let Some(at) = self.stack.pop() {
            if std::mem::replace(&mut self.seen[at], true) {
                continue;
            }
            match &program[at] {
                Step::Take(_) => self.list.push(at),
                Step::Split(a, b) => self.stack.extend([*b, *a]),
                Step::Jump(to) => self.stack.push(*to),
                Step::Start if start => self.stack.push(at + 1),
                Step::End if end => self.stack.push(at + 1),
                Step::Start | Step::End => {}
                Step::Match => return true,
            }
        }
        false
    }
}

/// Appends a node's steps; each node is written once, so a program is about as long as its pattern.
fn emit(node: &Node, program: &mut Vec<Step>) {
    match node {
        Node::Empty => {}
        Node::Set(set) => program.push(Step::Take(set.clone())),
        Node::Start => program.push(Step::Start),
        Node::End => program.push(Step::End),
        Node::Sequence(all) => all.iter().for_each(|n| emit(n, program)),
        Node::Either(all) => {
            let mut jumps = Vec::new();
            for (i, node) in all.iter().enumerate() {
                if i + 1 == all.len() {
                    emit(node, program);
                    break;
                }
                let split = program.len();
                program.push(Step::Match);
                emit(node, program);
                jumps.push(program.len());
                program.push(Step::Match);
                program[split] = Step::Split(split + 1, program.len());
            }
            let end = program.len();
            jumps.into_iter().for_each(|at| program[at] = Step::Jump(end));
        }
        Node::Repeat(node, needed, many) => {
            let start = program.len();
            if !needed {
                program.push(Step::Match);
            }
            emit(node, program);
            let end = program.len();
            match (needed, many) {
                (true, _) => program.push(Step::Split(start, end + 1)),
                (false, true) => {
                    program.push(Step::Jump(start));
                    program[start] = Step::Split(start + 1, end + 1);
                }
                (false, false) => program[start] = Step::Split(start + 1, end),
            }
        }
    }
}

struct Parser<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    depth: usize,
}

impl Parser<'_> {
    fn either(&mut self) -> Result<Node, String> {
        let mut all = vec![self.sequence()?];
        while self.rest.next_if_eq(&'|').is_some() {
            all.push(self.sequence()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Either(all) })
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut all = Vec::new();
        while let Some(c) = self.rest.next_if(|c| !matches!(c, '|' | ')')) {
            let node = self.atom(c)?;
            let repeat = self.rest.next_if(|c| matches!(c, '*' | '+' | '?'));
            let Some(sign) = repeat else {
                all.push(node);
                continue;
            };
            if matches!(node, Node::Start | Node::End) {
                return Err(format!("repeats ^ or $ by {sign}"));
            }
            if let Some(second) = self.rest.next_if(|c| matches!(c, '*' | '+' | '?')) {
                return Err(format!("has {second} behind {sign}; only {SUBSET} are known"));
            }
            all.push(Node::Repeat(Box::new(node), sign == '+', sign != '?'));
        }
        Ok(match all.len() {
            0 => Node::Empty,
            1 => all.remove(0),
            _ => Node::Sequence(all),
        })
    }

    fn atom(&mut self, c: char) -> Result<Node, String> {
        match c {
            '(' => {
                if self.rest.next_if_eq(&'?').is_some() && self.rest.next() != Some(':') {
                    return Err(format!("has a (? that is not (?: ; only {SUBSET} are known"));
                }
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(format!("nests groups deeper than {MAX_DEPTH}"));
                }
                let inner = self.either()?;
                self.depth -= 1;
                match self.rest.next() {
                    Some(')') => Ok(inner),
                    _ => Err("has a ( without its )".into()),
                }
            }
            '[' => self.set().map(Node::Set),
            '.' => Ok(Node::Set(Set::any())),
            '^' => Ok(Node::Start),
            '$' => Ok(Node::End),
            '\\' => self.escape().map(Node::Set),
            '*' | '+' | '?' => Err(format!("has a {c} with nothing before it to repeat")),
            '{' | '}' => Err(format!("has a {c}; write \\{c} for the character, counts are not known here")),
            c => Ok(Node::Set(Set::one(c))),
        }
    }

    /// What follows a backslash: a class, or a character that is no letter and no digit.
    fn escape(&mut self) -> Result<Set, String> {
        match self.rest.next() {
            None => Err("ends in a backslash".into()),
            Some(c) if class(c).is_some() => Ok(class(c).unwrap_or_default()),
            Some(c) if c.is_alphanumeric() => Err(format!("has a \\{c}; only {SUBSET} are known")),
            Some(c) => Ok(Set::one(c)),
        }
    }

    /// What stands between brackets, the first one taken already.
    fn set(&mut self) -> Result<Set, String> {
        let mut set = Set { negated: self.rest.next_if_eq(&'^').is_some(), ..Set::default() };
        let open = || "has a [ without its ]".to_owned();
        loop {
            let c = match self.rest.next().ok_or_else(open)? {
                ']' if set.ranges.is_empty() => return Err("has an empty []".into()),
                ']' => return Ok(set),
                '\\' => {
                    let escaped = self.escape()?;
                    match escaped.ranges[..] {
                        [(from, to)] if from == to && !escaped.negated => from,
                        _ if escaped.negated => {
                            return Err("has a class like \\D inside [ ]; write it as [^\\d]".into());
                        }
                        _ => {
                            set.ranges.extend(escaped.ranges);
                            continue;
                        }
                    }
                }
                c => c,
            };
            // A dash is a range unless it is the last.
            let mut ahead = self.rest.clone();
            if ahead.next() == Some('-') && ahead.next().is_some_and(|c| c != ']') {
                self.rest.next();
                let to = match self.rest.next().ok_or_else(open)? {
                    '\\' => match self.escape()?.ranges[..] {
                        [(from, to)] if from == to => from,
                        _ => return Err("has a range in [ ] that ends in a class".into()),
                    },
                    to => to,
                };
                if to < c {
                    return Err(format!("has the range {c}-{to}, which is backwards"));
                }
                set.ranges.push((c, to));
            } else {
                set.ranges.push((c, c));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subset_matches_as_regular_expressions_do() {
        for (pattern, yes, no) in [
            ("abc", &["abc", "xabcx"][..], &["ab", "acb", ""][..]),
            ("^abc$", &["abc"], &["xabc", "abcx", ""]),
            ("^a.c$", &["abc", "aäc"], &["ac", "abbc"]),
            ("^ab*c$", &["ac", "abc", "abbbc"], &["abd", "bc"]),
            ("^ab+c$", &["abc", "abbc"], &["ac"]),
            ("^ab?c$", &["ac", "abc"], &["abbc"]),
            ("^(get|list)_", &["get_a", "list_b"], &["set_get_", "getx"]),
            ("^(?:a|b|)$", &["a", "b", ""], &["ab"]),
            ("^(ab)+$", &["ab", "abab"], &["aba", ""]),
            ("^[a-c_x-]+$", &["abc", "a-_x"], &["d", ""]),
            ("^[^a-c]$", &["d", "ä"], &["a", ""]),
            ("^\\d\\w\\s$", &["1_ ", "9Z\t"], &["a_ ", "1- "]),
            ("^[\\d.]+$", &["1.2"], &["1,2"]),
            ("^\\D\\W\\S$", &["a-b"], &["1-b", "aab", "a- "]),
            ("^a\\.b\\/c\\[$", &["a.b/c["], &["axb/c["]),
            ("^(a*)*b$", &["b", "aab"], &["aa"]),
            ("a|^b|c$", &["xa", "bx", "xc"], &["xbx", "cx"]),
            ("", &["", "anything"], &[]),
            ("^$", &[""], &["a"]),
            ("(^a|b)c", &["ac", "xbc"], &["xac"]),
        ] {
            let regex = Regex::new(pattern, false).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            for text in yes {
                assert!(regex.is_match(text), "/{pattern}/ should match {text:?}");
            }
            for text in no {
                assert!(!regex.is_match(text), "/{pattern}/ should not match {text:?}");
            }
        }
        assert!(Regex::new("^[a-f]x$", true).unwrap().is_match("CX"));
        assert!(!Regex::new("^[^a]$", true).unwrap().is_match("A"));
    }

    #[test]
    fn what_is_not_in_the_subset_is_refused_with_the_reason() {
        for (pattern, part) in [
            ("a{2}", "\\{"),
            ("(a", "( without"),
            ("a)", ") without"),
            ("[a", "[ without"),
            ("[]", "empty"),
            ("[z-a]", "backwards"),
            ("*a", "nothing before"),
            ("a**", "behind"),
            ("a+?", "behind"),
            ("^*", "repeats"),
            ("(?=a)", "(?"),
            ("\\b", "\\b"),
            ("\\1", "\\1"),
            ("a\\", "backslash"),
            ("[\\D]", "class"),
            (&"(".repeat(60), "deeper"),
            (&"a".repeat(1001), "longer"),
        ] {
            let message = Regex::new(pattern, false).unwrap_err();
            assert!(message.contains(part), "{pattern}: {message}");
        }
    }

    #[test]
    fn no_pattern_takes_more_than_linear_time() {
        // A backtracking engine would need 2^200 steps for the first of these.
        let text = "a".repeat(2000);
        for pattern in ["^(a|a)*b$", "^(a*)*b$", "^(a+)+b$", "(a|aa)+$b", "(.*)*(.*)*(.*)*x"] {
            assert!(!Regex::new(pattern, false).unwrap().is_match(&text), "{pattern}");
        }
        let long = format!("^{}{}$", "a?".repeat(300), "a".repeat(300));
        assert!(Regex::new(&long, false).unwrap().is_match(&"a".repeat(300)));
    }
}
