//! Says what a runtime's flags come to: which things a script may do, which it
//! may not, and which the runtime does not limit. Looks at flags alone.

use super::runtimes::{JsKind, Version};
use serde::Serialize;

/// What one thing is limited to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// Permitted.
    All,
    /// Denied, and the runtime enforces it.
    None,
    /// Permitted within these values of the flags.
    Within(String),
    /// Permitted, because this runtime has no way to deny it.
    Unlimited,
}

impl Limit {
    /// For people.
    pub fn words(&self) -> String {
        match self {
            Limit::All => "yes".into(),
            Limit::None => "no".into(),
            Limit::Within(values) => format!("only {values}"),
            Limit::Unlimited => "yes, not limited by this runtime".into(),
        }
    }
}

/// What a script may do, a thing each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// Reading files.
    pub read: Limit,
    /// Writing files.
    pub write: Limit,
    /// Using the network.
    pub net: Limit,
    /// Reading the environment.
    pub env: Limit,
    /// Starting processes.
    pub run: Limit,
    /// Loading native code.
    pub native: Limit,
}

impl Effects {
    /// Each with what it is called.
    pub fn each(&self) -> [(&'static str, &Limit); 6] {
        [
            ("read files", &self.read),
            ("write files", &self.write),
            ("network", &self.net),
            ("environment", &self.env),
            ("processes", &self.run),
            ("native code", &self.native),
        ]
    }
}

/// What these flags come to on a runtime.
pub fn of(kind: JsKind, version: Option<Version>, flags: &[String]) -> Effects {
    match kind {
        JsKind::Deno => deno(flags),
        JsKind::Node => node(version, flags),
        JsKind::Bun => every(&Limit::Unlimited),
    }
}

fn every(limit: &Limit) -> Effects {
    let all = || limit.clone();
    Effects { read: all(), write: all(), net: all(), env: all(), run: all(), native: all() }
}

fn deno(flags: &[String]) -> Effects {
    let all = flags.iter().any(|f| f == "--allow-all" || f == "-A");
    let of = |name: &str, short: &str| {
        let (allow, deny) = (format!("--allow-{name}"), format!("--deny-{name}"));
        let granted = match value(flags, &[&allow, short]) {
            _ if all => Limit::All,
            None => Limit::None,
            Some("") => Limit::All,
            Some(values) => Limit::Within(values.to_owned()),
        };
        match (value(flags, &[&deny]), granted) {
            (None, granted) => granted,
            (Some(""), _) | (_, Limit::None) => Limit::None,
            (Some(but), Limit::Within(values)) => Limit::Within(format!("{values}, without {but}")),
            (Some(but), _) => Limit::Within(format!("what is not {but}")),
        }
    };
    Effects {
        read: of("read", "-R"),
        write: of("write", "-W"),
        net: of("net", "-N"),
        env: of("env", "-E"),
        run: of("run", "--allow-run"),
        native: of("ffi", "--allow-ffi"),
    }
}

fn node(version: Option<Version>, flags: &[String]) -> Effects {
    if value(flags, &["--permission", "--experimental-permission"]).is_none() {
        return every(&Limit::All);
    }
    let of = |name: &str| match value(flags, &[name]) {
        None => Limit::None,
        Some("" | "*") => Limit::All,
        Some(values) => Limit::Within(values.to_owned()),
    };
    // 25 was the first to limit the network.
    let old = version.is_some_and(|v| v.major < 25);
    Effects {
        read: of("--allow-fs-read"),
        write: of("--allow-fs-write"),
        net: if old { Limit::Unlimited } else { of("--allow-net") },
        env: Limit::Unlimited,
        run: of("--allow-child-process"),
        native: of("--allow-addons"),
    }
}

/// The value of the last of these flags; empty when it has none.
fn value<'f>(flags: &'f [String], names: &[&str]) -> Option<&'f str> {
    flags.iter().rev().find_map(|flag| {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        names.contains(&name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(kind: JsKind, version: Option<Version>, flags: &str) -> String {
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        of(kind, version, &flags).each().map(|(_, limit)| limit.words()).join("; ")
    }

    #[test]
    fn flags_come_to_what_the_runtime_makes_of_them() {
        assert_eq!(words(JsKind::Deno, None, "--allow-all"), "yes; yes; yes; yes; yes; yes");
        assert_eq!(words(JsKind::Deno, None, ""), "no; no; no; no; no; no");
        assert_eq!(
            words(
                JsKind::Deno,
                None,
                "--allow-net=127.0.0.1 --allow-env -R=/a --allow-write --deny-write=/etc"
            ),
            "only /a; only what is not /etc; only 127.0.0.1; yes; no; no"
        );
        assert_eq!(words(JsKind::Deno, None, "-A --deny-run"), "yes; yes; yes; yes; no; yes");
        let node = |major, flags| words(JsKind::Node, Some(Version::new(major, 0, 0)), flags);
        let open = "yes, not limited by this runtime";
        assert_eq!(node(26, ""), "yes; yes; yes; yes; yes; yes");
        assert_eq!(node(26, "--permission --allow-fs-read=*"), format!("yes; no; no; {open}; no; no"));
        assert_eq!(
            node(24, "--permission --allow-fs-read=/a"),
            format!("only /a; no; {open}; {open}; no; no")
        );
        assert_eq!(words(JsKind::Bun, None, ""), [open; 6].join("; "));
    }
}
