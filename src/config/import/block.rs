//! Turns one host's entry for a server into a block of mcpx's own. What has no
//! counterpart is said, not guessed.

use serde_json::{Map, Value, json};

/// Which of the words of other hosts mean something in an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Words {
    /// opencode: `command` is a list, `environment` the variables, `{env:X}` and `{file:X}` the placeholders.
    opencode: bool,
    /// Codex: variables as headers, `enabled_tools`, seconds.
    codex: bool,
    /// Gemini: `url` is SSE beside `httpUrl`, `$X` is a placeholder, milliseconds.
    gemini: bool,
}

impl Words {
    pub const COMMON: Words = Words { opencode: false, codex: false, gemini: false };
    pub const VSCODE: Words = Words::COMMON;
    pub const CODEX: Words = Words { codex: true, ..Words::COMMON };
    pub const OPENCODE: Words = Words { opencode: true, ..Words::COMMON };
    pub const GEMINI: Words = Words { gemini: true, ..Words::COMMON };
}

/// Members that say nothing of how a server is reached or offered: consent, looks, and what is read below.
const PASSED_OVER: &[&str] = &[
    "alwaysAllow",
    "autoApprove",
    "bearer_token_env_var",
    "command",
    "args",
    "cwd",
    "description",
    "dev",
    "disabled",
    "disabledTools",
    "disabled_tools",
    "enabled",
    "enabled_tools",
    "env",
    "env_http_headers",
    "environment",
    "excludeTools",
    "gallery",
    "headers",
    "httpUrl",
    "http_headers",
    "icon",
    "includeTools",
    "name",
    "note",
    "serverUrl",
    "startup_timeout_ms",
    "startup_timeout_sec",
    "timeout",
    "tool_timeout_sec",
    "trust",
    "type",
    "url",
    "version",
];

/// Converts an entry; the reason when it cannot be.
pub(super) fn convert(entry: &Value, words: Words, notes: &mut Vec<String>) -> Result<Value, String> {
    let Some(entry) = entry.as_object() else { return Err("its entry is no object".into()) };
    let off = entry.get("enabled") == Some(&json!(false)) || entry.get("disabled") == Some(&json!(true));
    if off && !["command", "url", "serverUrl", "httpUrl"].iter().any(|key| entry.contains_key(*key)) {
        return Ok(off_switch());
    }
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let kind = text("type").unwrap_or("");
    if !matches!(
        kind,
        "" | "stdio" | "local" | "http" | "streamable-http" | "streamableHttp" | "sse" | "remote"
    ) {
        return Err(format!("its type \"{kind}\" is none that mcpx speaks"));
    }
    let mut texts = Texts { words, notes };
    let mut block = Map::new();
    let url = match words.gemini {
        true => text("httpUrl").or(text("url")),
        false => text("url").or(text("serverUrl")).or(text("httpUrl")),
    };
    let sse = kind == "sse" || words.gemini && text("httpUrl").is_none() && text("url").is_some();
    if let Some(url) = url.filter(|_| kind != "stdio" && kind != "local") {
        block.insert("url".into(), texts.fill("url", url).into());
        let mut headers = texts.pairs("headers", entry.get("headers").or(entry.get("http_headers")))?;
        for (name, variable) in entry.get("env_http_headers").and_then(Value::as_object).into_iter().flatten()
        {
            headers.insert(name.clone(), variable_of(variable)?.into());
        }
        if let Some(variable) = entry.get("bearer_token_env_var") {
            headers.insert("Authorization".into(), format!("Bearer {}", variable_of(variable)?).into());
        }
        if !headers.is_empty() {
            block.insert("headers".into(), headers.into());
        }
        if sse {
            texts.notes.push(
                "it is reached over SSE there; mcpx speaks streamable HTTP, which its address may not".into(),
            );
        }
        if text("command").is_some() {
            texts.notes.push("it has a command beside its address, which is left out".into());
        }
    } else {
        program(entry, &mut texts, &mut block)?;
    }
    if let Some(text) = text("description") {
        block.insert("description".into(), text.into());
    }
    let on = match (entry.get("enabled"), entry.get("disabled")) {
        (Some(Value::Bool(on)), _) => Some(*on),
        (_, Some(Value::Bool(off))) => Some(!off),
        _ => None,
    };
    if on == Some(false) {
        block.insert("enabled".into(), false.into());
    }
    let own = options(entry, words);
    if !own.is_empty() {
        block.insert("mcpx".into(), own.into());
    }
    for key in entry.keys().filter(|k| !PASSED_OVER.contains(&k.as_str())) {
        notes.push(format!("\"{key}\" has no counterpart in mcpx, and is left out"));
    }
    Ok(block.into())
}

/// What switches off a server that is defined elsewhere.
pub(super) fn off_switch() -> Value {
    json!({"enabled": false})
}

/// `command`, `args`, `env` and `cwd`.
fn program(
    entry: &Map<String, Value>,
    texts: &mut Texts<'_>,
    block: &mut Map<String, Value>,
) -> Result<(), String> {
    let mut words: Vec<&Value> = match entry.get("command") {
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one @ Value::String(_)) => vec![one],
        Some(_) => return Err("its command is no text".into()),
        None => return Err("it has neither a command nor an address".into()),
    };
    match entry.get("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(args)) => words.extend(args),
        Some(_) => return Err("its args are no list".into()),
    }
    let mut all = Vec::new();
    for (i, word) in words.into_iter().enumerate() {
        let field = if i == 0 { "command".to_owned() } else { format!("args[{}]", i - 1) };
        all.push(texts.scalar(&field, word)?);
    }
    let Some((command, args)) = all.split_first().filter(|(c, _)| !c.trim().is_empty()) else {
        return Err("its command is empty".into());
    };
    block.insert("command".into(), command.as_str().into());
    if !args.is_empty() {
        block.insert("args".into(), args.into());
    }
    let env = texts.pairs("env", entry.get("env").or(entry.get("environment")))?;
    if !env.is_empty() {
        block.insert("env".into(), env.into());
    }
    if let Some(cwd) = entry.get("cwd").and_then(Value::as_str) {
        block.insert("cwd".into(), texts.fill("cwd", cwd).into());
    }
    Ok(())
}

/// What belongs into the `"mcpx"` block.
fn options(entry: &Map<String, Value>, words: Words) -> Map<String, Value> {
    let mut own = Map::new();
    let list = |keys: [&str; 2]| keys.iter().find_map(|k| entry.get(*k)).filter(|v| v.is_array()).cloned();
    if let Some(tools) = list(["enabled_tools", "includeTools"]) {
        own.insert("tools".into(), tools);
    }
    let off = list(["disabled_tools", "excludeTools"]).or_else(|| entry.get("disabledTools").cloned());
    if let Some(tools) = off.filter(|v| v.as_array().is_some_and(|l| !l.is_empty())) {
        own.insert("excludeTools".into(), tools);
    }
    let millis = |key: &str, unit: f64| {
        let n = entry.get(key).and_then(Value::as_f64).map(|n| n * unit).filter(|n| *n >= 1.0)?;
        let n = n.round();
        Some(if n % 1000.0 == 0.0 { format!("{}s", n / 1000.0) } else { format!("{n}ms") })
    };
    let start = millis("startup_timeout_sec", 1000.0).or_else(|| millis("startup_timeout_ms", 1.0));
    if let (true, Some(time)) = (words.codex, start) {
        own.insert("startTimeout".into(), time.into());
    }
    let call = if words.codex { millis("tool_timeout_sec", 1000.0) } else { millis("timeout", 1.0) };
    // opencode's is for listing the tools, at the start; what others mean by it is not known.
    match (words.codex || words.gemini, words.opencode, call) {
        (true, _, Some(time)) => own.insert("callTimeout".into(), json!(time)),
        (_, true, Some(time)) => own.insert("startTimeout".into(), json!(time)),
        _ => None,
    };
    own
}

/// A reference to a variable that an entry names.
fn variable_of(value: &Value) -> Result<String, String> {
    let name = value.as_str().unwrap_or_default();
    match !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        true => Ok(format!("${{{name}}}")),
        false => Err("it names a variable that cannot be one".into()),
    }
}

/// Fills texts in, and notes what cannot be.
struct Texts<'a> {
    words: Words,
    notes: &'a mut Vec<String>,
}

impl Texts<'_> {
    /// An object of texts; numbers and booleans become texts, as they do in an environment.
    fn pairs(&mut self, field: &str, value: Option<&Value>) -> Result<Map<String, Value>, String> {
        let mut out = Map::new();
        match value {
            None | Some(Value::Null) => {}
            Some(Value::Object(pairs)) => {
                for (name, value) in pairs {
                    // VS Code and Codex write null for a variable that is to be taken away.
                    if value.is_null() {
                        self.notes.push(format!("{field}.{name} is null, and is left out"));
                        continue;
                    }
                    out.insert(name.clone(), self.scalar(&format!("{field}.{name}"), value)?.into());
                }
            }
            Some(_) => return Err(format!("its {field} is no object")),
        }
        Ok(out)
    }

    fn scalar(&mut self, field: &str, value: &Value) -> Result<String, String> {
        match value {
            Value::String(text) => Ok(self.fill(field, text)),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err(format!("its {field} is no text")),
        }
    }

    /// Writes a placeholder that has an exact counterpart as `${NAME}`; the others stay, and are noted.
    fn fill(&mut self, field: &str, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, placeholder, after)) = self.split(rest) {
            out.push_str(before);
            let inner = placeholder.trim_start_matches('$').trim_matches(['{', '}']);
            let name = inner.strip_prefix("env:").unwrap_or(inner);
            let plain = !name.is_empty()
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let known = inner.starts_with("env:") || !placeholder.starts_with("${") && !inner.contains(':');
            match plain && known {
                true => {
                    self.notes.push(format!("{field}: {placeholder} is written as ${{{name}}}"));
                    out.push_str(&format!("${{{name}}}"));
                }
                false if name_and_default(inner) && !EDITORS.contains(&inner) => out.push_str(placeholder),
                false => {
                    self.notes.push(format!(
                        "{field}: {placeholder} is filled in by the host only; put what it stands for there"
                    ));
                    out.push_str(placeholder);
                }
            }
            rest = after;
        }
        out.push_str(rest);
        out
    }

    /// The first placeholder: what is before it, itself, what follows.
    fn split<'t>(&self, text: &'t str) -> Option<(&'t str, &'t str, &'t str)> {
        let mut starts: Vec<(usize, usize)> = Vec::new();
        let closed = |at: usize| text[at..].find('}').map(|end| (at, at + end + 1));
        starts.extend(text.find("${").and_then(closed));
        if self.words.opencode {
            starts.extend(["{env:", "{file:"].iter().filter_map(|p| text.find(p)).filter_map(closed));
        }
        if self.words.gemini {
            let bare = text.match_indices('$').find_map(|(at, _)| {
                let name = &text[at + 1..];
                let length =
                    name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
                (length > 0 && !name.starts_with(|c: char| c.is_ascii_digit()))
                    .then_some((at, at + 1 + length))
            });
            starts.extend(bare);
        }
        // `${env:X}` holds no `{env:X}` of its own: the earlier one counts.
        let (at, end) = starts.into_iter().min()?;
        Some((&text[..at], &text[at..end], &text[end..]))
    }
}

/// Variables of editors, which look like those of the environment and are not.
const EDITORS: &[&str] = &[
    "cwd",
    "execPath",
    "file",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileDirname",
    "fileWorkspaceFolder",
    "pathSeparator",
    "relativeFile",
    "relativeFileDirname",
    "selectedText",
    "userHome",
    "workspaceFolder",
    "workspaceFolderBasename",
    "workspaceRoot",
];

/// `NAME` or `NAME:-default`, which mcpx fills in itself.
fn name_and_default(inner: &str) -> bool {
    let name = inner.split(":-").next().unwrap_or_default();
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    first && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(entry: Value, words: Words) -> (Value, Vec<String>) {
        let mut notes = Vec::new();
        let block = convert(&entry, words, &mut notes).unwrap();
        (block, notes)
    }
    fn refused(entry: Value) -> String {
        convert(&entry, Words::COMMON, &mut Vec::new()).unwrap_err()
    }

    #[test]
    fn the_common_form_is_taken_as_it_is() {
        let entry = json!({
            "type": "stdio", "command": "npx", "args": ["-y", "x", 8080], "env": {"A": "${A}", "N": 1, "B": true, "C": "${C:-d}"},
            "cwd": "/w", "disabled": false, "alwaysAllow": ["x"], "timeout": 60,
        });
        let (block, notes) = converted(entry, Words::COMMON);
        assert_eq!(
            block,
            json!({
                "command": "npx", "args": ["-y", "x", "8080"], "cwd": "/w",
                "env": {"A": "${A}", "N": "1", "B": "true", "C": "${C:-d}"},
            })
        );
        assert!(notes.is_empty(), "{notes:?}");
        let (block, notes) =
            converted(json!({"serverUrl": "https://h", "type": "sse", "envFile": ".env"}), Words::COMMON);
        assert_eq!(block, json!({"url": "https://h"}));
        assert!(notes[0].contains("SSE") && notes[1].contains("\"envFile\""), "{notes:?}");
    }

    #[test]
    fn placeholders_are_translated_exactly_or_said() {
        let entry = json!({
            "command": "${workspaceFolder}/s",
            "args": ["${env:HOME}/a", "${input:token}", "$X", "{env:Y}", "${env:A-B}"],
        });
        let (block, notes) = converted(entry, Words::VSCODE);
        assert_eq!(block["command"], "${workspaceFolder}/s");
        assert_eq!(block["args"], json!(["${HOME}/a", "${input:token}", "$X", "{env:Y}", "${env:A-B}"]));
        let said = notes.join("\n");
        for part in [
            "command: ${workspaceFolder} is filled in by the host only",
            "args[0]: ${env:HOME} is written as ${HOME}",
            "args[1]: ${input:token} is filled in by the host only",
            "args[4]: ${env:A-B}",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn opencode_codex_and_gemini_have_words_of_their_own() {
        let entry = json!({
            "type": "local", "command": ["bun", "x", "{env:HOME}/y", "{file:~/k}"], "environment": {"K": "{env:KEY}"},
            "enabled": false, "timeout": 5000,
        });
        let (block, notes) = converted(entry, Words::OPENCODE);
        assert_eq!(
            block,
            json!({
                "command": "bun", "args": ["x", "${HOME}/y", "{file:~/k}"], "env": {"K": "${KEY}"}, "enabled": false,
                "mcpx": {"startTimeout": "5s"},
            })
        );
        assert!(notes.iter().any(|n| n.contains("{file:~/k} is filled in by the host only")), "{notes:?}");

        let entry = json!({
            "url": "https://h/mcp", "bearer_token_env_var": "TOKEN", "http_headers": {"X": "1"}, "env_http_headers": {"Y": "VAR"},
            "startup_timeout_sec": 20, "tool_timeout_sec": 1.5, "enabled_tools": ["a"], "disabled_tools": ["b"],
        });
        let (block, _) = converted(entry, Words::CODEX);
        assert_eq!(
            block,
            json!({
                "url": "https://h/mcp",
                "headers": {"X": "1", "Y": "${VAR}", "Authorization": "Bearer ${TOKEN}"},
                "mcpx": {"tools": ["a"], "excludeTools": ["b"], "startTimeout": "20s", "callTimeout": "1500ms"},
            })
        );

        let entry = json!({"httpUrl": "https://h", "url": "https://old", "headers": {"A": "Bearer $TOKEN"}, "timeout": 600_000, "trust": true, "excludeTools": ["x"]});
        let (block, notes) = converted(entry, Words::GEMINI);
        assert_eq!(
            block,
            json!({"url": "https://h", "headers": {"A": "Bearer ${TOKEN}"}, "mcpx": {"excludeTools": ["x"], "callTimeout": "600s"}})
        );
        assert_eq!(notes, ["headers.A: $TOKEN is written as ${TOKEN}"]);
    }

    #[test]
    fn what_cannot_be_taken_says_why() {
        assert_eq!(converted(json!({"disabled": true}), Words::COMMON).0, off_switch());
        for (entry, part) in [
            (json!("x"), "no object"),
            (json!({}), "neither a command nor an address"),
            (json!({"command": ""}), "empty"),
            (json!({"command": 1}), "no text"),
            (json!({"command": "x", "args": "y"}), "no list"),
            (json!({"command": "x", "env": []}), "no object"),
            (json!({"type": "ws", "url": "ws://h"}), "\"ws\""),
        ] {
            let why = refused(entry.clone());
            assert!(why.contains(part), "{entry}: {why}");
        }
    }
}
