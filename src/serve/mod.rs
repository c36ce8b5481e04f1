//! mcpx as an MCP server. For now: the demonstration server that it carries.
//! Knows nothing of the command line.

pub mod demo;
mod demo_tools;
