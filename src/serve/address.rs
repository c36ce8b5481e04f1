//! What the address that a host is given says besides where `/mcp` is: what is
//! offered there, and in which session. Knows nothing of requests.

use super::options::Options;
use crate::api::uri;
use crate::api::wire::SelectedProfiles;
use crate::daemon::mcp_endpoint::Desk;
use crate::error::{Error, Kind, Result};
use crate::settings;

/// What the address of a host's server asks for: `/mcp?mode=both&profile=work`.
pub struct Wanted {
    /// What is offered.
    pub options: Options,
    /// Which servers.
    pub selection: SelectedProfiles,
    /// The key of a session that outlives the conversation.
    pub session: Option<String>,
}

impl Wanted {
    /// Reads it; what it does not say is as the settings say.
    ///
    /// # Errors
    /// `Usage`: what it says is none of this.
    pub fn read(desk: &Desk<'_>, query: &str) -> Result<Wanted> {
        let settings = desk.settings();
        let mut wanted = Wanted {
            options: Options::of(&settings),
            selection: SelectedProfiles {
                profile: settings.get(&settings::CATALOG_PROFILE),
                skip_default: settings.get(&settings::CATALOG_SKIP_DEFAULT),
                all_profiles: settings.get(&settings::CATALOG_ALL_PROFILES),
            },
            session: None,
        };
        let usage = |what: String| Error::new(Kind::Usage, format!("the query of /mcp: {what}"));
        let pairs = uri::query(query).ok_or_else(|| usage("it has a broken escape".into()))?;
        for (name, value) in pairs {
            let flag = || match value.as_str() {
                "" | "1" | "true" => Ok(true),
                "0" | "false" => Ok(false),
                _ => Err(usage(format!("{name} is true or false, not \"{value}\""))),
            };
            match name.as_str() {
                "mode" => wanted.options.set_mode(&value).map_err(usage)?,
                "profile" => wanted.selection.profile.push(value),
                "skipDefault" => wanted.selection.skip_default = flag()?,
                "allProfiles" => wanted.selection.all_profiles = flag()?,
                "session" => wanted.session = Some(value),
                _ => {
                    return Err(usage(format!(
                        "there is no {name}; there are mode, profile, skipDefault, allProfiles and session"
                    )));
                }
            }
        }
        wanted.options.check()?;
        Ok(wanted)
    }
}
