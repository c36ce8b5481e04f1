//! Server profiles: which of the configured servers a command works with. A
//! server that names no profile is in the default set. Knows nothing of who
//! selects, or of how that travels.

use super::server::ServerDef;
use crate::error::{Error, Kind};

/// The profile of the servers that name none.
const DEFAULT: &str = "default";

/// A choice among the servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The profiles whose servers are taken besides the default set.
    pub profiles: Vec<String>,
    /// The default set is left out.
    pub skip_default: bool,
    /// Every server is taken, whatever its profiles.
    pub all: bool,
}

impl Selection {
    /// Every server: what holds for those who select nothing.
    pub fn everything() -> Selection {
        Selection { all: true, ..Selection::default() }
    }

    /// Whether a server is in it.
    pub fn takes(&self, server: &ServerDef) -> bool {
        let own = &server.options.profiles;
        let wanted = |name: &String| match name.as_str() {
            DEFAULT => !self.skip_default || self.profiles.contains(name),
            _ => self.profiles.contains(name),
        };
        self.all || if own.is_empty() { !self.skip_default } else { own.iter().any(wanted) }
    }

    /// Why a server that is not in it cannot be used.
    pub fn refuses(&self, server: &ServerDef) -> Option<Error> {
        if self.takes(server) {
            return None;
        }
        let name = &server.name;
        let (what, hint) = match server.options.profiles.first() {
            Some(first) if first != DEFAULT => {
                let all = server.options.profiles.join(", ");
                (format!("it belongs to the profile {all}"), format!("--profile {first} adds that profile"))
            }
            _ => ("it belongs to the default set".into(), "leave --skip-default out".to_owned()),
        };
        let message = format!(
            "the server {name} is not among those selected: {what} ({}:{})",
            server.source.display(),
            server.line
        );
        Some(Error::new(Kind::Refused, message).server(name).hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::load_text;

    #[test]
    fn profiles_add_to_the_default_set_which_can_be_left_out() {
        let config = load_text(
            r#"{"mcpServers": {
                "plain": {"command": "a"},
                "work": {"command": "a", "mcpx": {"profiles": ["work"]}},
                "both": {"command": "a", "mcpx": {"profiles": ["work", "default"]}},
                "home": {"command": "a", "mcpx": {"profiles": ["home"]}},
            }}"#,
        );
        let taken = |profiles: &[&str], skip_default: bool, all: bool| {
            let profiles = profiles.iter().map(|p| (*p).to_owned()).collect();
            let selection = Selection { profiles, skip_default, all };
            let taken = config.servers.iter().filter(|s| selection.takes(s));
            taken.map(|s| s.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(taken(&[], false, false), "plain both");
        assert_eq!(taken(&["work"], false, false), "plain work both");
        assert_eq!(taken(&["work"], true, false), "work both");
        assert_eq!(taken(&["home", "work"], true, false), "work both home");
        assert_eq!(taken(&[], true, false), "");
        assert_eq!(taken(&[], true, true), "plain work both home");
        let none = Selection { skip_default: true, ..Selection::default() };
        let refused = |name: &str| none.refuses(config.server(name).unwrap()).unwrap();
        assert!(refused("work").to_string().contains("--profile work"));
        assert!(refused("plain").to_string().contains("--skip-default"));
        assert_eq!(refused("plain").exit_code(), 77);
        assert!(Selection::everything().refuses(config.server("home").unwrap()).is_none());
    }
}
