//! The settings: one table from which file keys, variables, flags and the
//! documentation are derived, and the resolution that remembers where each
//! value came from. Knows nothing of servers, routes or commands.

mod apply;
mod carried;
mod choices;
mod declared;
mod docs;
mod kind;
mod layers;
mod presets;
mod resolve;
mod shown;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod units;

pub use apply::{known, unknown_keys};
pub use carried::Carried;
pub use choices::*;
pub use declared::{Declared, Scope, Setting, Spec, declared, flag, flag_match, variable};
pub use docs::settings_md;
pub(crate) use kind::shape;
pub use kind::{Choice, FromVal, Kind, Secret, Val};
pub use layers::{At, FileLayer, FlagValue, Layers, Lines, PresetFlag, RuntimeValue, Source, base_of};
pub use presets::{Preset, Taken, defined_presets, expand_presets, preset_faults};
pub use resolve::{Displaced, Resolved, Settings, defaults_json};
pub use shown::{changeable, runtime_value};
pub use source::read_source;
pub use table::*;
pub use units::{bytes_text, duration_text, parse_bytes, parse_duration};
