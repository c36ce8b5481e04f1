//! Processes, process groups, signals, threads and the few system calls that
//! std lacks. The only module with `unsafe`; knows nothing of MCP, of scripts
//! or of the daemon.

mod census;
mod child;
mod exits;
mod family;
mod find;
mod hangup;
pub mod lock;
mod marks;
pub mod memory;
mod ourselves;
mod patient;
mod replace;
pub mod signals;
mod sockets;
mod spawn;
mod strays;
mod sys;
mod terminal;
pub mod thread;

pub use census::{Group, keep_record, sweep};
pub use child::{Child, Exit};
pub use exits::{ExitWatch, on_exit};
pub use family::Family;
pub use find::{find_program, is_program};
pub use hangup::Hangups;
pub use marks::{MARK, end_in_session, end_marked_by};
pub use ourselves::{own_program, same_program};
pub use patient::Patient;
pub use replace::replace;
pub use sockets::{Accepted, each_accepted};
pub use spawn::{Io, Spawn, spawn};
pub use strays::reap_strays;
pub use sys::{
    alive, ancestors, free_bytes, kill, kill_group, may_write, peer_closed, peer_pid, peer_uid,
    poll_readable, poll_writable, raise_nofile, set_nonblocking, start_ticks, ticks_and_session, uid,
};
pub use terminal::terminal_width;
