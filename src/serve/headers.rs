//! The headers by which a stateless request over HTTP says again what is in its
//! body, so that others on the way need not read it (MCP 2026-07-28). Knows
//! nothing of connections.

use super::era;
use super::fault::{Fault, HEADER_MISMATCH};
use super::session::Request;
use crate::api::http::Headers;
use crate::mcp;
use crate::util::base64;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The header of the revision.
pub const VERSION: &str = "mcp-protocol-version";
/// What the headers begin with that say arguments again.
const PARAM: &str = "mcp-param-";

/// Whether headers and message say the same.
///
/// # Errors
/// The fault to answer with.
pub fn check(headers: &Headers, request: &Request) -> Result<(), Fault> {
    let meta = era::meta(request.params.as_deref());
    // Without an envelope there is nothing to compare with, and its absence is the greater fault.
    if let Some(claimed) = era::claimed(meta.as_ref()) {
        agree(headers, VERSION, "MCP-Protocol-Version", claimed)?;
    }
    era::envelope(meta.as_ref())?;
    agree(headers, "mcp-method", "Mcp-Method", &request.method)?;
    if let Some(name) = name(request) {
        agree(headers, "mcp-name", "Mcp-Name", &name)?;
    }
    Ok(())
}

/// The headers that say arguments again.
pub fn mirrored(headers: &Headers) -> Headers {
    let is_one = |(name, _): &&(String, String)| name.to_ascii_lowercase().starts_with(PARAM);
    Headers(headers.0.iter().filter(is_one).cloned().collect())
}

/// Whether those say what the arguments say that the tool's schema marks.
///
/// # Errors
/// The fault to answer with.
pub fn check_arguments(given: &Headers, schema: &Value, arguments: Option<&RawValue>) -> Result<(), Fault> {
    let Some(arguments) = arguments else { return Ok(()) };
    for (name, wanted) in mcp::mirrored(schema, arguments) {
        let wanted = decoded(&wanted).unwrap_or_default();
        agree(given, &name.to_ascii_lowercase(), &name, &wanted)?;
    }
    Ok(())
}

fn agree(headers: &Headers, key: &str, shown: &str, wanted: &str) -> Result<(), Fault> {
    let mismatch = |what: &str| Err(Fault::new(HEADER_MISMATCH, format!("the header {shown} {what}")));
    let mut given = headers.all(key);
    match (given.next().map(|v| decoded(v.trim())), given.next()) {
        (None, _) => mismatch("is missing"),
        (_, Some(_)) => mismatch("is there twice"),
        (Some(None), None) => mismatch("cannot be decoded"),
        (Some(Some(value)), None) if value != wanted => mismatch("says something else than the message"),
        _ => Ok(()),
    }
}

/// What the request is about, where that has a name.
fn name(request: &Request) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        name: Option<String>,
        uri: Option<String>,
        task_id: Option<String>,
    }
    let params: Named = serde_json::from_str(request.params.as_deref().map(RawValue::get)?).ok()?;
    match request.method.as_str() {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.task_id,
        _ => None,
    }
}

/// A header's value as it was meant: `=?base64?…?=` stands for what a header cannot hold.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|v| v.strip_suffix("?=")) {
        None => Some(value.to_owned()),
        // Strictly: two texts for one value could be told apart by those who only compare.
        Some(text) => {
            let bytes = base64::decode(text).ok().filter(|bytes| base64::encode(bytes) == text)?;
            String::from_utf8(bytes).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{meta, request};
    use super::*;
    use serde_json::json;

    fn code(lines: &[(&str, &str)], method: &str, params: &serde_json::Value) -> i64 {
        let headers = Headers(lines.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect());
        check(&headers, &request(method, params)).map_or_else(|fault| fault.code, |()| 0)
    }

    #[test]
    fn headers_have_to_say_what_the_message_says() {
        let version = (VERSION, "2026-07-28");
        let list = ("mcp-method", "tools/list");
        let bare = json!({"_meta": meta()});
        assert_eq!(code(&[version, list], "tools/list", &bare), 0);
        assert_eq!(code(&[version, ("mcp-method", "  tools/list ")], "tools/list", &bare), 0);
        for wrong in [
            &[version][..],
            &[list],
            &[version, ("mcp-method", "TOOLS/LIST")],
            &[version, list, list],
            &[(VERSION, "2025-11-25"), list],
        ] {
            assert_eq!(code(wrong, "tools/list", &bare), HEADER_MISMATCH, "{wrong:?}");
        }
        assert_eq!(code(&[version, list], "tools/list", &json!({})), -32602);
        let unknown = json!({"_meta": {era::VERSION_KEY: "v9"}});
        assert_eq!(code(&[(VERSION, "v9"), list], "tools/list", &unknown), -32022);
        assert_eq!(code(&[version, list], "tools/list", &unknown), HEADER_MISMATCH);
    }

    #[test]
    fn a_name_is_compared_where_there_is_one() {
        let call = [(VERSION, "2026-07-28"), ("mcp-method", "tools/call")];
        let params = json!({"name": "größe", "_meta": meta()});
        let with = |name: &'static str| [call[0], call[1], ("mcp-name", name)];
        assert_eq!(code(&with("=?base64?Z3LDtsOfZQ==?="), "tools/call", &params), 0);
        assert_eq!(code(&call, "tools/call", &params), HEADER_MISMATCH);
        for wrong in
            ["x", "=?base64?Z3LDtsOfZQ=?=", "=?base64?Z3LDtsOfZR==?=", "=?base64?*?=", "=?base64?eA==\n?="]
        {
            assert_eq!(code(&with(wrong), "tools/call", &params), HEADER_MISMATCH, "{wrong}");
        }
    }

    #[test]
    fn marked_arguments_are_compared_with_their_headers() {
        let schema = json!({"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
        let code = |lines: &[(&str, &str)], arguments: serde_json::Value| {
            let lines = lines.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            let arguments = serde_json::value::to_raw_value(&arguments).unwrap();
            let given = mirrored(&Headers(lines));
            check_arguments(&given, &schema, Some(&arguments)).map_or_else(|fault| fault.code, |()| 0)
        };
        let hello = json!({"region": "Hello"});
        assert_eq!(code(&[("mcp-param-region", "Hello")], hello.clone()), 0);
        assert_eq!(code(&[("mcp-param-region", "=?base64?SGVsbG8=?=")], hello.clone()), 0);
        assert_eq!(code(&[], json!({})), 0);
        for wrong in ["=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "hello", ""] {
            assert_eq!(code(&[("mcp-param-region", wrong)], hello.clone()), HEADER_MISMATCH, "{wrong}");
        }
        assert_eq!(code(&[("mcp-name", "Hello")], hello), HEADER_MISMATCH);
    }
}
