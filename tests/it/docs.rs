//! The pages that tables render are current, and what the README shows works.

use crate::harness::{Runtime, World};
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
