//! Renders the operations table as TypeScript: a type for each record, a typed
//! method for each operation, and the table that carries them out. The editor's
//! plugin is built on it. Knows nothing of how a request travels.

use super::docs::all_records;
use super::ops::{self, Field, Operation, Place, Returns, Shape};
use crate::settings::{self, Kind};
use serde_json::Value;
use std::fmt::Write;

/// Names that mean something else to whoever reads TypeScript.
const TAKEN: &[&str] = &["Error", "Event"];

/// The whole of `src/plugin/opencode/mcpx/v1.ts`.
pub fn module() -> String {
    let mut out = String::from(
        "// Made from src/api/ops/ and defaults.json by `make docs`; edit those, not this file.\n\
         // What the daemon can be asked, with types; docs/api.md says what each field means.\n\
         // Knows nothing of how a request travels.\n\n\
         /** The defaults of the settings `plugin.*`. */\nexport const PLUGIN_DEFAULTS = ",
    );
    let defaults: Value = serde_json::from_str(settings::defaults_json()).unwrap_or_default();
    let _ = writeln!(out, "{};\n", pretty(&defaults["plugin"]));
    out.push_str("/** The words that those of them take which take a few words only. */\n");
    out.push_str("export const PLUGIN_CHOICES: Record<string, readonly string[]> = {\n");
    for setting in settings::ALL.iter().filter(|s| s.family() == "plugin") {
        if let Kind::Enum(choices) = setting.kind() {
            let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let name = setting.key().trim_start_matches("plugin.");
            let _ = writeln!(out, "  {name}: [{}],", words.join(", "));
        }
    }
    out.push_str("};\n\n");
    for record in all_records() {
        let _ = writeln!(out, "export interface {} {{", type_name(record.name));
        for field in record.fields {
            member(&mut out, field);
        }
        out.push_str("}\n\n");
    }
    for op in typed() {
        if !op.params.is_empty() {
            let _ = writeln!(out, "export interface {} {{", params_name(op));
            for param in op.params {
                member(&mut out, &param.field);
            }
            out.push_str("}\n\n");
        }
    }
    out.push_str(SENDER);
    out.push_str(
        "/** Every operation. A stream, and the channel, are not among them. */\nexport interface V1 {\n",
    );
    for op in typed() {
        let _ = writeln!(out, "  /** `{} {}`: {}. */", op.method.word(), op.path, comment(op.help));
        let params = if op.params.is_empty() {
            "_?: undefined".to_owned()
        } else {
            let optional = if op.params.iter().any(|p| p.field.required) { "" } else { "?" };
            format!("params{optional}: {}", params_name(op))
        };
        let answer = match &op.returns {
            Returns::Record(record) | Returns::Events(record) => type_name(record.name),
            Returns::Document(_) | Returns::Frames => "Record<string, unknown>".into(),
            Returns::Text(_) => "string".into(),
        };
        let _ = writeln!(out, "  {}({params}, how?: How): Promise<{answer}>;", op.name);
    }
    out.push_str("}\n\n/** Where each operation is, and where its parameters travel. */\n");
    out.push_str("export const OPERATIONS: Record<keyof V1, Operation> = {\n");
    for op in typed() {
        let names = |place: Place| -> String {
            let of = op.params.iter().filter(|p| p.place == place);
            of.map(|p| format!("\"{}\"", p.field.name)).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(
            out,
            "  {}: {{ method: \"{}\", path: \"{}\", query: [{}], body: [{}] }},",
            op.name,
            op.method.word(),
            op.path,
            names(Place::Query),
            names(Place::Body)
        );
    }
    out.push_str("};\n\n");
    out.push_str(METHODS);
    out
}

/// The operations that are one request and one answer.
fn typed() -> impl Iterator<Item = &'static Operation> {
    ops::all().filter(|op| !matches!(op.returns, Returns::Frames | Returns::Text(_)))
}

/// Without a word on its meaning: every binary carries this text, and `docs/api.md` says it.
fn member(out: &mut String, field: &Field) {
    let optional = if field.required { "" } else { "?" };
    let _ = writeln!(out, "  {}{optional}: {};", field.name, shape(&field.shape));
}

fn shape(shape: &Shape) -> String {
    match shape {
        Shape::Any => "unknown".into(),
        Shape::Boolean => "boolean".into(),
        Shape::Integer => "number".into(),
        Shape::List(inner) => format!("{}[]", self::shape(inner)),
        Shape::Object => "Record<string, unknown>".into(),
        Shape::Record(record) => type_name(record.name),
        Shape::Text => "string".into(),
    }
}

fn type_name(name: &str) -> String {
    if TAKEN.contains(&name) { format!("{name}Record") } else { name.to_owned() }
}

fn params_name(op: &Operation) -> String {
    let mut letters = op.name.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}Params", letters.as_str())
}

fn comment(text: &str) -> String {
    text.replace("*/", "*\\/")
}

/// JSON on several lines, as a TypeScript literal.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

const SENDER: &str = "\
/** How one request is sent. */
export interface How {
  /** Ends it. */
  signal?: AbortSignal;
  /** How long it may take, in milliseconds; 0 is without end. */
  timeoutMs?: number;
}

export interface Operation {
  method: string;
  path: string;
  query: string[];
  body: string[];
}

/** A request, ready to travel: the path with its query, and the body to be sent as JSON. */
export interface Wire {
  method: string;
  path: string;
  body?: Record<string, unknown>;
}

/** Sends a request and reads its JSON answer; rejects where the daemon reports an error. */
export type Send = (request: Wire, how?: How) => Promise<unknown>;

";

const METHODS: &str = "\
/** An operation with its parameters, as it travels. */
export function wire(op: Operation, params: Record<string, unknown> = {}): Wire {
  const path = op.path.replace(/\\{(\\w+)\\}/g, (_, name: string) => encodeURIComponent(String(params[name] ?? \"\")));
  const query = new URLSearchParams();
  for (const name of op.query) {
    for (const one of [params[name]].flat()) if (one !== undefined) query.append(name, String(one));
  }
  const body: Record<string, unknown> = {};
  for (const name of op.body) if (params[name] !== undefined) body[name] = params[name];
  const tail = query.toString();
  return { method: op.method, path: tail ? `${path}?${tail}` : path, ...(op.body.length ? { body } : {}) };
}

/** The operations, over something that sends. */
export function v1(send: Send): V1 {
  const methods: Record<string, unknown> = {};
  for (const [name, op] of Object.entries(OPERATIONS)) {
    methods[name] = (params?: Record<string, unknown>, how?: How) => send(wire(op, params), how);
  }
  return methods as unknown as V1;
}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_module_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plugin/opencode/mcpx/v1.ts");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == module(), "{path} is not what the table gives: run `make docs`");
    }

    #[test]
    fn each_operation_is_there_once_and_typed() {
        let text = module();
        for op in typed() {
            assert_eq!(text.matches(&format!("\n  {}(", op.name)).count(), 1, "{}", op.name);
            assert_eq!(text.matches(&format!("\n  {}: {{ method", op.name)).count(), 1, "{}", op.name);
        }
        for taken in TAKEN {
            assert!(!text.contains(&format!("interface {taken} ")), "{taken}");
        }
    }
}
