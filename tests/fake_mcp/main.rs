//! A server that misbehaves on request.

fn main() {}
