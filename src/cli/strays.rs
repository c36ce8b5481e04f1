//! Finds variables that look like mcpx's and are nobody's: a mistyped one would be a setting
//! that silently does nothing. Reads no values.

use crate::script::env::VARIABLES;
use crate::settings::{self, ALL};
use crate::util::{self, Env};

/// What all of mcpx's variables begin with.
const PREFIX: &str = "MCPX_";

/// A line for each variable that is near to one of mcpx's, and is none.
pub fn variables(env: &Env) -> Vec<String> {
    let ours = |name: &&str| {
        // Inside a script nearly all of them are of the table.
        VARIABLES.iter().any(|v| v.name == *name) || settings::variable(name).is_some()
    };
    let strays = env.iter().filter_map(|(name, _)| name.to_str().filter(|n| n.starts_with(PREFIX)));
    strays
        .filter(|name| !ours(name))
        .filter_map(|name| {
            let known: Vec<String> = ALL.iter().flat_map(|d| d.env_names()).collect();
            let all = known.iter().map(String::as_str).chain(VARIABLES.iter().map(|v| v.name));
            let near = util::mistyped(name, all)?;
            Some(format!("{name} is no variable of mcpx; did you mean {near}?"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_miss_is_said() {
        let env = Env::from_pairs([
            ("MCPX_POOL_CALL_TIMOUT", "3s"),
            ("MCPX_POOL_MAX", "3"),
            ("MCPX_SESSION", "s"),
            ("MCPX_SOMETHING_OF_MINE", "x"),
            ("HOME", "/"),
        ]);
        let found = variables(&env);
        assert_eq!(
            found,
            ["MCPX_POOL_CALL_TIMOUT is no variable of mcpx; did you mean MCPX_POOL_CALL_TIMEOUT?"]
        );
    }

    #[test]
    fn every_variable_of_a_setting_is_known() {
        for name in ALL.iter().flat_map(|d| d.env_names()) {
            assert!(settings::variable(&name).is_some(), "{name}");
        }
    }
}
