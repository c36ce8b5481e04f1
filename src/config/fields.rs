//! The members of a server's definition, with what they mean; the
//! documentation is made from them, and a test holds the reader to them.

/// A member's name, and what it means.
pub(super) type Field = (&'static str, &'static str);

/// The members that mcpx reads of a server's block; it passes over others.
pub(super) const FIELDS: &[Field] = &[
    (
        "command",
        "the program to start: a name that is looked up on PATH, or a path; a relative path is taken from the file's directory",
    ),
    ("args", "its arguments, a list of texts"),
    ("env", "variables on top of the inherited ones, an object of texts"),
    (
        "cwd",
        "its working directory; a relative one is taken from the file's directory, which is also where it runs without this, unless its scope stands for another place",
    ),
    (
        "url",
        "instead of `command`: the address of a server that is already there, `http://` or `https://` (`serverUrl` and `httpUrl` mean the same)",
    ),
    ("headers", "headers to send to it, an object of texts"),
    (
        "aliasOf",
        "instead of `command` and `url`: the name of another server, which this one is under another name, with options of its own",
    ),
    ("enabled", "`false` switches the server off (`\"disabled\": true` means the same)"),
    ("description", "what it is for; `mcpx ls` and `mcpx search` show it"),
    ("mcpx", "options of mcpx's own, below"),
];

/// Other hosts' names for members of [`FIELDS`].
pub(super) const SYNONYMS: &[&str] = &["disabled", "httpUrl", "serverUrl"];

/// The options that a block without a definition may give: they change those of the
/// server of that name in a file further away.
pub(super) const PATCHED: &[&str] =
    &["description", "enabled", "excludeTools", "extraIncludeTools", "profiles", "tools"];

/// The members of an `"mcpx"` block; an unknown one there is an error.
pub(super) const OPTIONS: &[Field] = &[
    ("callTimeout", "how long a call may take, instead of `pool.callTimeout`"),
    ("description", "instead of the `description` beside the block"),
    ("enabled", "instead of the `enabled` beside the block"),
    ("excludeTools", "patterns of the tools that are not offered"),
    ("extraIncludeTools", "patterns of tools that are offered whatever the two other lists say"),
    ("idleTimeout", "how long an unused instance is kept, instead of `pool.idleTimeout`"),
    ("max", "how many instances may run, instead of `pool.max`"),
    ("min", "how many instances are kept running although nobody calls, instead of `pool.min`"),
    (
        "oauth",
        "who mcpx is to whoever grants access to the server at `url`: an object of `clientId`, `clientSecret`, `grant` (`authorization_code` or `client_credentials`) and `scope`; `false` switches authorisation off",
    ),
    (
        "openapi",
        "instead of `command` and `url`: an HTTP API that an OpenAPI document describes; see [adapters](adapters.md)",
    ),
    ("profiles", "the profiles that it belongs to, a list of names; without it, it is in the default set"),
    (
        "program",
        "instead of `command` and `url`: a command-line program with declared arguments; see [adapters](adapters.md)",
    ),
    ("protocol", "the revision of MCP that it is spoken to in, instead of `upstream.protocol`"),
    ("scope", "what an instance is keyed by, instead of `pool.scope`"),
    ("sharing", "whether an instance takes several calls at once, instead of `pool.sharing`"),
    (
        "inheritEnv",
        "which variables of the environment it gets besides its own, such as `[\"LC_*\", \"!AWS_*\"]`",
    ),
    ("startTimeout", "how long a start may take, instead of `pool.startTimeout`"),
    ("tools", "patterns of the tools that are offered; without it all are"),
];
