//! A daemon in this process, asked through its real sockets.

mod channels;
mod configuring;
mod following;
mod over_tcp;
mod requests;
mod settings;
