//! Writes what people read on stderr while a command runs: one line, after `mcpx: `.
