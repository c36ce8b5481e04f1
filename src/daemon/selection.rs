//! Which servers whoever asks works with: what the request says, else what its
//! run does, else every server. Knows nothing of profiles' meaning.

use super::router::{Asker, Origin};
use crate::api::wire::SelectedProfiles;
use crate::config::Selection;
use serde::Deserialize;

/// A choice among the servers, as a query says it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chosen {
    profile: Option<Vec<String>>,
    skip_default: Option<bool>,
    all_profiles: Option<bool>,
}

impl Chosen {
    /// The choice, if there is one.
    pub fn said(self) -> Option<SelectedProfiles> {
        (self.profile.is_some() || self.skip_default.is_some() || self.all_profiles.is_some()).then(|| {
            SelectedProfiles {
                profile: self.profile.unwrap_or_default(),
                skip_default: self.skip_default.unwrap_or(false),
                all_profiles: self.all_profiles.unwrap_or(false),
            }
        })
    }
}

/// The servers that whoever asks works with.
pub fn selection(said: Option<SelectedProfiles>, asker: &Asker<'_>) -> Selection {
    match (said, &asker.origin) {
        (Some(said), _) => said.into(),
        (None, Origin::Channel(run)) => run.selection.clone(),
        (None, _) => Selection::everything(),
    }
}
