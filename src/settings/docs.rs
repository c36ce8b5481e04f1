//! Renders the reference of all settings from the table.

use super::declared::{Declared, Scope};
use super::kind::Kind;
use super::table::ALL;
use std::fmt::Write;

/// The reference of all settings, in Markdown, a section for each family (`### pool`).
pub fn settings_md() -> String {
    let mut out = String::new();
    let mut family = "";
    for setting in ALL {
        if setting.family() != family {
            family = setting.family();
            let _ = write!(out, "\n### {family}\n");
        }
        entry(&mut out, *setting);
    }
    out
}

fn entry(out: &mut String, setting: &dyn Declared) {
    let code = |names: &[String]| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let _ = write!(out, "\n#### `{}`\n\n{}.", setting.key(), setting.help());
    if !setting.doc().is_empty() {
        let _ = write!(out, " {}", setting.doc());
    }
    let default = match setting.default_text() {
        text if text.is_empty() => "empty".to_owned(),
        text => format!("`{text}`"),
    };
    let _ = write!(out, "\n\n- Default: {default}. ");
    if let Kind::Enum(choices) = setting.kind() {
        out.push_str("Values:\n");
        for (word, meaning) in choices {
            let _ = writeln!(out, "  - `{word}`: {meaning}");
        }
    } else {
        let _ = writeln!(out, "Value: {}.", setting.kind().describe());
    }
    let names = [setting.env_names(), setting.flag_names()].concat();
    let whose = match (setting.scope(), setting.hot()) {
        _ if setting.spec().bootstrap => "needed before a configuration is read, so not allowed in a file",
        (Scope::Client, _) => "of the command",
        (Scope::Plugin, _) => "of the editor's plugin",
        (Scope::Call, _) => "of each call; a running daemon takes a new value at once",
        (Scope::Daemon, true) => "of the daemon, which takes a new value at once while it runs",
        (Scope::Daemon, false) => "of the daemon, at its start",
    };
    let _ = writeln!(out, "- {}. Scope: {whose}.", code(&names));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_and_every_name_is_in_the_reference() {
        let text = settings_md();
        for setting in ALL {
            assert!(text.contains(&format!("#### `{}`\n", setting.key())));
            for name in [setting.env_names(), setting.flag_names()].concat() {
                assert!(text.contains(&format!("`{name}`")), "{name}");
            }
        }
        assert!(text.contains("`global`: one for everybody"));
        // A cross-reference in a text names a setting that exists.
        for setting in ALL {
            for word in setting.doc().split('`').skip(1).step_by(2) {
                let family = word.split('.').next().unwrap_or_default();
                if word.contains('.') && ALL.iter().any(|d| d.family() == family) {
                    assert!(super::super::declared(word).is_some(), "{}: {word}", setting.key());
                }
            }
        }
    }
}
