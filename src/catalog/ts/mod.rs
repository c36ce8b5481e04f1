//! TypeScript made from JSON Schema.

use super::{ServerSchema, Tool};

/// How a tool is called, on one line.
pub fn signature(tool: &Tool) -> String {
    format!("{}(args: object): Promise<any>", super::names::member(&tool.name))
}

/// A namespace's declarations.
pub fn namespace(_schema: &ServerSchema, _ident: &str, _brief: bool) -> String {
    String::new()
}

/// The generated client's type declarations.
pub fn client_dts(_servers: &[(&str, &ServerSchema)]) -> String {
    String::new()
}
