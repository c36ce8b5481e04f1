//! Describes the configured servers as records, secrets masked. Knows nothing
//! of what runs.

use super::wire::ServerRow;
use crate::catalog::names;
use crate::config::{Config, Selection, servers};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::path::Path;

/// A row for each configured server, in the configuration's order. `reveal` leaves secrets as they are.
pub fn rows(config: &Config, selection: &Selection, reveal: bool) -> Vec<ServerRow> {
    // Each file is read once, however many servers it defines.
    let mut files: HashMap<&Path, Map<String, Value>> = HashMap::new();
    let idents = names::unique_idents(config.servers.iter().map(|s| s.name.as_str()));
    let mut rows = Vec::with_capacity(config.servers.len());
    for (def, ident) in config.servers.iter().zip(idents) {
        // A file that went away meanwhile leaves the row without its definition.
        let read = || servers::blocks(&def.source).unwrap_or_default();
        let blocks = files.entry(def.source.as_path()).or_insert_with(read);
        let block = blocks.get(&def.name).cloned().unwrap_or_default();
        rows.push(ServerRow {
            name: def.name.clone(),
            ident,
            enabled: def.enabled,
            selected: selection.takes(def),
            description: def.description.clone(),
            alias_of: def.alias_of.clone(),
            profiles: def.options.profiles.clone(),
            definition: if reveal { block } else { servers::masked(&block) },
            source: def.source.as_ref().clone(),
            line: def.line,
            error: def.problem.as_ref().map(|e| e.to_json()),
        });
    }
    rows
}
