//! Tests of the pool as its users see it, on servers that are plain values.

mod calls;
mod leases;
mod lifecycle;
