//! TypeScript made from JSON Schema, in three forms: declarations for a model or a
//! person to read, one line for a listing, and the module that types a script.
//! The same schemas give the same text, byte for byte.
//!
//! The result of a tool with an output schema is that schema's type; that of any
//! other tool is `any`, since its text may turn out to be JSON, which arrives parsed.

mod client;
mod convert;
#[cfg(test)]
mod corpus;
mod doc;
mod globals;
mod plan;
mod print;
mod sketch;
mod space;
mod tame;
mod text;
mod ty;

pub use client::client_dts;
pub use globals::{JS_GLOBALS, is_js_global};
pub use sketch::signature;

use super::ServerSchema;
use print::{Docs, Style};
use space::{Args, Call, Space, space};

/// A namespace's declarations: its named types, then each tool with its
/// description and those of its arguments. `brief` leaves all descriptions out and
/// gives each tool one line. Ends with a line end.
pub fn namespace(schema: &ServerSchema, ident: &str, brief: bool) -> String {
    let Space { defs, calls } = space(schema);
    let prefix = format!("{ident}.");
    let docs = if brief { Docs::None } else { Docs::Line };
    let outside = Style { prefix: &prefix, docs };
    let inside = Style { prefix: "", docs };
    let mut out = String::new();
    if is_js_global(ident) {
        out.push_str(&format!("// Write tools.{ident}, or import it: the bare name is JavaScript's own.\n"));
    }
    if !defs.is_empty() {
        out.push_str(&format!("declare namespace {ident} {{\n"));
        for def in &defs {
            if !brief && !def.doc.is_empty() {
                out.push_str(&format!("  // {}\n", def.doc));
            }
            out.push_str(&format!("  type {} = ", def.name));
            inside.write(&def.ty, 2, &mut out);
            out.push_str(";\n");
        }
        out.push_str("}\n");
    }
    if calls.is_empty() {
        out.push_str(&format!("declare const {ident}: {{}};\n"));
        return out;
    }
    out.push_str(&format!("declare const {ident}: {{\n"));
    for call in &calls {
        if !brief {
            text::doc(&call.doc, "  ", &mut out);
        }
        out.push_str("  ");
        write_method(call, &outside, &mut out);
        out.push_str(";\n");
    }
    out.push_str("};\n");
    out
}

/// `echo(args: { message: string }): Promise<any>`
fn write_method(call: &Call, style: &Style<'_>, out: &mut String) {
    out.push_str(&text::method(&call.member));
    match &call.args {
        Args::None => out.push_str("()"),
        Args::Optional(ty) => {
            out.push_str("(args?: ");
            style.write(ty, 2, out);
            out.push(')');
        }
        Args::Required(ty) => {
            out.push_str("(args: ");
            style.write(ty, 2, out);
            out.push(')');
        }
    }
    out.push_str(": Promise<");
    style.write(&call.result, 2, out);
    out.push('>');
}
