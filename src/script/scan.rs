//! Looks through JavaScript or TypeScript for its imports and exports, far
//! enough to tell a module from a program and to find the specifiers. A lexer,
//! no parser: comments, texts, templates and regular expressions are skipped.

use std::ops::Range;

/// What was found in a piece of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// It imports or exports statically, or uses `import.meta`: only a module may.
    pub module: bool,
    /// It exports, uses `import.meta`, or imports in a form that is not among `imports`.
    pub fixed: bool,
    /// The specifiers of imports and re-exports that are plain texts, in order:
    /// where each stands (without its quotes) and what it says.
    pub specifiers: Vec<(Range<usize>, String)>,
    /// The static imports.
    pub imports: Vec<Import>,
}

/// A static import: where its parts stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// All of it, with its semicolon.
    pub whole: Range<usize>,
    /// What stands between `import` and `from`; empty when it imports no names.
    pub clause: Range<usize>,
    /// The specifier, with its quotes.
    pub specifier: Range<usize>,
    /// The attributes behind `with`, in their braces.
    pub with: Option<Range<usize>>,
}

/// Scans a piece of code.
pub fn scan(code: &str) -> Scan {
    // Most inline code has none, and then there is nothing to look for.
    if !code.contains("import") && !code.contains("export") {
        return Scan::default();
    }
    let mut tokens =
        Lexer { code: code.as_bytes(), at: 0, before: Before::Start, depth: 0, templates: Vec::new() };
    let mut found = Scan::default();
    while let Some(token) = tokens.next() {
        let Token::Word(word) = token else { continue };
        match &code[word.clone()] {
            "import" => import(&mut tokens, code, word, &mut found),
            "export" if tokens.depth == 0 => export(&mut tokens, code, &mut found),
            _ => {}
        }
    }
    found
}

/// After `import`, which stands at `word`.
fn import(tokens: &mut Lexer, code: &str, word: Range<usize>, found: &mut Scan) {
    let depth = tokens.depth;
    let before = found.specifiers.len();
    match tokens.next() {
        Some(Token::Punct(b'(')) => {
            if let Some(Token::Text(range)) = tokens.peek() {
                specifier(code, range, found);
            }
        }
        Some(Token::Punct(b'.')) => {
            tokens.skip_blank();
            let meta = code[tokens.at..].starts_with("meta");
            found.module |= meta;
            found.fixed |= meta;
        }
        Some(Token::Text(range)) if depth == 0 => {
            found.module = true;
            specifier(code, range, found);
        }
        Some(Token::Word(_) | Token::Punct(b'{' | b'*')) if depth == 0 => {
            found.module = true;
            from(tokens, code, found);
        }
        _ => return,
    }
    // One specifier more, and nothing in between that is no import.
    match found.specifiers.get(before) {
        Some((range, _)) if found.specifiers.len() == before + 1 => {
            let specifier = range.start - 1..range.end + 1;
            let head = code[word.end..specifier.start].trim_end();
            let clause = word.end..word.end + head.strip_suffix("from").unwrap_or(head).len();
            let mut whole = word.start..specifier.end;
            let with = attributes(tokens, code);
            whole.end = with.as_ref().map_or(whole.end, |with| with.end);
            if let Some(Token::Punct(b';')) = tokens.peek() {
                tokens.next();
                whole.end = tokens.at;
            }
            found.imports.push(Import { whole, clause, specifier, with });
        }
        _ => found.fixed |= found.module,
    }
}

/// The attributes of an import, behind its specifier.
fn attributes(tokens: &mut Lexer, code: &str) -> Option<Range<usize>> {
    let mut ahead = tokens.clone();
    let Some(Token::Word(word)) = ahead.next() else { return None };
    if !matches!(&code[word], "with" | "assert") {
        return None;
    }
    let depth = ahead.depth;
    let Some(Token::Punct(b'{')) = ahead.next() else { return None };
    let start = ahead.at - 1;
    while ahead.depth > depth {
        ahead.next()?;
    }
    *tokens = ahead;
    Some(start..tokens.at)
}

/// After `export` at the top.
fn export(tokens: &mut Lexer, code: &str, found: &mut Scan) {
    match tokens.peek() {
        Some(Token::Punct(b'{' | b'*')) => {
            found.module = true;
            found.fixed = true;
            from(tokens, code, found);
        }
        Some(Token::Word(_) | Token::Punct(b'@')) => {
            found.module = true;
            found.fixed = true;
        }
        _ => {}
    }
}

/// Up to `from "…"`, if the declaration has one.
fn from(tokens: &mut Lexer, code: &str, found: &mut Scan) {
    while let Some(token) = tokens.peek() {
        match token {
            Token::Word(word) if &code[word.clone()] == "from" => {
                tokens.next();
                if let Some(Token::Text(range)) = tokens.peek() {
                    tokens.next();
                    return specifier(code, range, found);
                }
            }
            // Another statement has begun.
            Token::Word(word)
                if matches!(&code[word.clone()], "import" | "export" | "const" | "let" | "var") =>
            {
                return;
            }
            Token::Punct(b';' | b'(' | b'=') => return,
            _ => {
                tokens.next();
            }
        }
    }
}

fn specifier(code: &str, range: Range<usize>, found: &mut Scan) {
    // Nobody escapes a specifier; one that is cannot be compared as it stands.
    if !code[range.clone()].contains('\\') {
        found.specifiers.push((range.clone(), code[range].to_owned()));
    }
}

#[derive(Clone, Debug)]
enum Token {
    /// An identifier or keyword.
    Word(Range<usize>),
    /// What stands between a text's quotes.
    Text(Range<usize>),
    /// One character of punctuation.
    Punct(u8),
    /// Something else: a number, a template, a regular expression.
    Other,
}

/// What a slash depends on: after a value it divides, after anything else it opens a regular expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Start,
    Value,
    Operator,
    Dot,
}

#[derive(Clone)]
struct Lexer<'a> {
    code: &'a [u8],
    at: usize,
    before: Before,
    /// Open brackets of any sort.
    depth: usize,
    /// The depths at which templates are interrupted by `${`.
    templates: Vec<usize>,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<Token> {
        self.clone().next()
    }

    fn next(&mut self) -> Option<Token> {
        self.skip_blank();
        let &c = self.code.get(self.at)?;
        let start = self.at;
        if is_word(c) && !c.is_ascii_digit() {
            while self.code.get(self.at).is_some_and(|&c| is_word(c)) {
                self.at += 1;
            }
            let word = start..self.at;
            let property = self.before == Before::Dot;
            self.before = if !property && takes_expression(&self.code[word.clone()]) {
                Before::Operator
            } else {
                Before::Value
            };
            // `a.import` is no keyword.
            return Some(if property { Token::Other } else { Token::Word(word) });
        }
        self.at += 1;
        match c {
            b'0'..=b'9' => {
                while self.code.get(self.at).is_some_and(|&c| is_word(c) || c == b'.') {
                    self.at += 1;
                }
            }
            b'"' | b'\'' => {
                self.skip_text(c);
                self.before = Before::Value;
                return Some(Token::Text(start + 1..self.at.saturating_sub(1).max(start + 1)));
            }
            b'`' => self.skip_template(),
            b'/' if self.before != Before::Value => self.skip_regex(),
            _ => return Some(self.punctuation(c)),
        }
        self.before = Before::Value;
        Some(Token::Other)
    }

    fn punctuation(&mut self, c: u8) -> Token {
        self.before = Before::Operator;
        match c {
            b'(' | b'[' | b'{' => self.depth += 1,
            b')' | b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.before = Before::Value;
                if c == b'}' && self.templates.last() == Some(&self.depth) {
                    self.templates.pop();
                    self.skip_template();
                }
            }
            b'.' if self.code.get(self.at) != Some(&b'.') => self.before = Before::Dot,
            _ => {}
        }
        Token::Punct(c)
    }

    fn skip_blank(&mut self) {
        while let Some(&c) = self.code.get(self.at) {
            match (c, self.code.get(self.at + 1)) {
                (b' ' | b'\t' | b'\r' | b'\n', _) => self.at += 1,
                (b'/', Some(b'/')) => self.skip_to(b"\n"),
                (b'/', Some(b'*')) => {
                    self.at += 2;
                    self.skip_to(b"*/");
                }
                (b'#', Some(b'!')) if self.at == 0 => self.skip_to(b"\n"),
                _ => return,
            }
        }
    }

    fn skip_to(&mut self, end: &[u8]) {
        let rest = &self.code[self.at..];
        let found = rest.windows(end.len()).position(|w| w == end);
        self.at = found.map_or(self.code.len(), |i| self.at + i + end.len());
    }

    fn skip_text(&mut self, quote: u8) {
        while let Some(&c) = self.code.get(self.at) {
            self.at += 1;
            match c {
                b'\\' => self.at += 1,
                b'\n' => return,
                _ if c == quote => return,
                _ => {}
            }
        }
    }

    /// To the template's end, or into its next `${`.
    fn skip_template(&mut self) {
        self.before = Before::Value;
        while let Some(&c) = self.code.get(self.at) {
            self.at += 1;
            match c {
                b'\\' => self.at += 1,
                b'`' => return,
                b'$' if self.code.get(self.at) == Some(&b'{') => {
                    self.at += 1;
                    self.templates.push(self.depth);
                    self.depth += 1;
                    self.before = Before::Operator;
                    return;
                }
                _ => {}
            }
        }
    }

    fn skip_regex(&mut self) {
        let mut class = false;
        while let Some(&c) = self.code.get(self.at) {
            self.at += 1;
            match c {
                b'\\' => self.at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => return,
                b'\n' => return,
                _ => {}
            }
        }
    }
}

fn is_word(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'$' || c >= 0x80
}

/// Words after which an expression follows, so that a slash opens a regular expression.
fn takes_expression(word: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "await",
        "case",
        "default",
        "delete",
        "do",
        "else",
        "export",
        "extends",
        "from",
        "import",
        "in",
        "instanceof",
        "new",
        "of",
        "return",
        "throw",
        "typeof",
        "void",
        "yield",
    ];
    std::str::from_utf8(word).is_ok_and(|w| WORDS.contains(&w))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specifiers(code: &str) -> Vec<String> {
        scan(code)
            .specifiers
            .into_iter()
            .map(|(range, text)| {
                assert_eq!(&code[range], text);
                text
            })
            .collect()
    }

    #[test]
    fn modules_are_told_from_programs() {
        for code in [
            "import x from 'a'",
            "import 'a'",
            "import * as x from \"a\";",
            "import {a,\n b} from 'a'",
            "import type { T } from './t.ts'\nfoo()",
            "export default async () => 1",
            "export const a = 1",
            "export { a }",
            "export * from 'b'",
            "const a = 1; export { a as b }",
            "// c\n/* import */ import a from 'a'",
            "#!/usr/bin/env node\nimport a from 'a'",
            "console.log(import.meta.url)",
            "if (x) { y(import.meta) }",
            "const r = /[/]import/.test(x)\nimport 'a'",
        ] {
            assert!(scan(code).module, "{code}");
        }
        for code in [
            "await import('a')",
            "const x = {import: 1, export: 2}; x.import + x.export",
            "'import x from \"a\"'",
            "`import ${x} from 'a'`",
            "`${`${'export'}`} export const a`",
            "// import a from 'a'\n1",
            "/* export default 1 */ 2",
            "/import 'a'/.test('b')",
            "demo.import({a: 1})",
            "x?.export",
            "importData(); exported = 1",
            "return /export default/",
            "a / b; /* */ import('x')",
        ] {
            assert!(!scan(code).module, "{code}");
        }
    }

    #[test]
    fn specifiers_are_found_where_they_stand() {
        assert_eq!(specifiers("import a, {b as c} from './x.js'; import './y'"), ["./x.js", "./y"]);
        assert_eq!(specifiers("const m = await import(\"./z.ts\")"), ["./z.ts"]);
        assert_eq!(
            specifiers("export * from 'a'; export {b} from \"c\"\nexport const from = 'no'"),
            ["a", "c"]
        );
        assert_eq!(specifiers("import(`./x`); import(y); import('./' + z)"), ["./"]);
        assert_eq!(specifiers("import x = require('a'); import b from 'b'"), ["b"]);
        assert_eq!(specifiers("export { a }\nimport d from 'd'"), ["d"]);
        assert_eq!(specifiers("import d, * as e from 'e' with {type: 'json'}"), ["e"]);
    }

    #[test]
    fn unfinished_code_ends_the_scan_and_no_more() {
        for code in
            ["import {", "import '", "export * from `", "import /a", "`${import", "import x from \"a\\"]
        {
            scan(code);
        }
    }
}
