//! Applies a server's tool filter to what is known of its tools: the one place
//! between the cache, which holds everything, and whoever lists, searches,
//! types or calls. Knows nothing of how patterns are matched.

use super::cache::{Cache, Summary};
use super::rows::{self, Row};
use super::{ServerSchema, Tool, names};
use crate::config::ServerDef;
use crate::error::{Error, Kind};
use std::time::Duration;

/// The schema without the tools that are withheld.
pub fn schema(def: &ServerDef, mut schema: ServerSchema) -> ServerSchema {
    let filter = &def.options.tools;
    if !filter.is_open() {
        schema.tools.retain(|tool| filter.offers(&tool.name));
    }
    schema
}

/// Why a tool of this exact name cannot be called; `None` when it is offered.
pub fn refusal(def: &ServerDef, tool: &str) -> Option<Error> {
    let withheld = def.options.tools.withholds(tool)?;
    let file = withheld.source.as_ref().unwrap_or(&def.source);
    let place = format!("{}:{}", file.display(), withheld.line);
    let message = format!("the tool {}.{tool} is not offered: {} ({place})", def.name, withheld.why);
    let hint = "change the filter there, or add the tool to \"extraIncludeTools\"";
    Some(Error::new(Kind::Refused, message).server(&def.name).tool(tool).hint(hint))
}

/// What the cache knows of a server, filtered.
pub fn load(cache: &Cache, def: &ServerDef, ttl: Duration) -> Option<ServerSchema> {
    cache.load(&def.name, &def.digest, ttl).map(|whole| schema(def, whole))
}

/// One tool, by its exact name, when it is offered.
pub fn load_tool(cache: &Cache, def: &ServerDef, ttl: Duration, name: &str) -> Option<Tool> {
    if !def.options.tools.offers(name) {
        return None;
    }
    cache.load_tool(&def.name, &def.digest, ttl, name)
}

/// What the cache knows of a server, with this one tool, by its exact name, when it is offered.
pub fn load_with(cache: &Cache, def: &ServerDef, ttl: Duration, name: &str) -> Option<ServerSchema> {
    if !def.options.tools.offers(name) {
        return None;
    }
    cache.load_with(&def.name, &def.digest, ttl, name)
}

/// The rows of the tools that are offered.
pub fn load_rows(cache: &Cache, def: &ServerDef, ttl: Duration) -> Option<Vec<Row>> {
    let mut all = cache.load_rows(&def.name, &def.digest, ttl)?;
    let filter = &def.options.tools;
    if filter.is_open() {
        return Some(all);
    }
    // Two tools whose names look alike in a program are told apart there by a number;
    // with one of them withheld the other needs none, and its row is another.
    let before = names::unique_members(all.iter().map(|r| r.name.as_str()));
    let kept: Vec<&String> =
        all.iter().zip(&before).filter(|(r, _)| filter.offers(&r.name)).map(|(_, m)| m).collect();
    let after = names::unique_members(all.iter().map(|r| r.name.as_str()).filter(|n| filter.offers(n)));
    if kept.into_iter().ne(&after) {
        return load(cache, def, ttl).map(|s| rows::rows(&s));
    }
    all.retain(|row| filter.offers(&row.name));
    Some(all)
}

/// What `ls` needs: the number of tools is of those that are offered.
pub fn summary(cache: &Cache, def: &ServerDef, ttl: Duration) -> Option<Summary> {
    let mut summary = cache.summary(&def.name, &def.digest, ttl)?;
    let filter = &def.options.tools;
    if !filter.is_open() {
        let rows = cache.load_rows(&def.name, &def.digest, ttl)?;
        let offered: Vec<Row> = rows.into_iter().filter(|row| filter.offers(&row.name)).collect();
        summary.tools = offered.len();
        summary.tokens = rows::tokens(&offered);
    }
    Some(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LoadOptions, load as load_config};
    use crate::paths::Dirs;
    use crate::util::{Env, now_ms};
    use serde_json::json;
    use std::path::PathBuf;
    use std::sync::Arc;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A server whose block says this, in a directory of the test's own.
    fn server(test: &str, options: serde_json::Value) -> (PathBuf, Arc<ServerDef>) {
        let dir = std::env::temp_dir().join(format!("mcpx-filter-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("c.json");
        let text = json!({"mcpServers": {"s": {"command": "x", "mcpx": options}}}).to_string();
        crate::util::write_atomic(&file, text.as_bytes(), 0o600, false).unwrap();
        let env = Env::from_pairs([("HOME", &dir)]);
        let uid = crate::proc::uid();
        let dirs = Dirs::from_env(&env, uid).unwrap();
        let options = LoadOptions { explicit: Some(file), dir: &dir, env: &env, dirs: &dirs, uid };
        let def = load_config(&options).unwrap().servers[0].clone();
        (dir, def)
    }

    #[test]
    fn the_cache_keeps_everything_and_every_reader_sees_the_filtered() {
        let (dir, def) = server("cache", json!({"tools": ["get*"], "excludeTools": ["get-a"]}));
        let cache = Cache::new(&dir);
        let tools = ["get-a", "get_a", "get_b", "put"].map(|n| json!({"name": n, "inputSchema": {}}));
        let whole: ServerSchema = serde_json::from_value(json!({
            "server": "s", "digest": def.digest, "fetchedAt": now_ms(), "protocol": "p", "tools": tools,
        }))
        .unwrap();
        cache.store(&whole).unwrap();
        let filtered: Vec<String> =
            load(&cache, &def, HOUR).unwrap().tools.into_iter().map(|t| t.name).collect();
        assert_eq!(filtered, ["get_a", "get_b"]);
        assert_eq!(summary(&cache, &def, HOUR).unwrap().tools, 2);
        let rows = load_rows(&cache, &def, HOUR).unwrap();
        // Without its double the first is called by its plain name.
        let signatures: Vec<&str> = rows.iter().map(|r| r.signature.split('(').next().unwrap()).collect();
        assert_eq!(signatures, ["get_a", "get_b"]);
        assert_eq!(cache.load("s", &def.digest, HOUR).unwrap().tools.len(), 4);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_refusal_names_the_filter_and_its_file() {
        let (dir, def) = server("refusal", json!({"excludeTools": ["put*"]}));
        let e = refusal(&def, "put_x").unwrap();
        assert_eq!((e.exit_code(), e.tool_name()), (77, Some("put_x")));
        assert!(e.message().contains("\"put*\" of \"excludeTools\""), "{e}");
        assert!(e.message().contains("c.json:1"), "{e}");
        assert!(refusal(&def, "get").is_none());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
