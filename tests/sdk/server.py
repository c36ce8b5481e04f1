"""An MCP server made with the official SDK for Python, over its pipes or at a port.

    python server.py stdio | streamable-http PORT | sse PORT
"""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("python-sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(to: int, ctx: Context) -> str:
    """Counts, and says how far it is."""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to, f"at {n}")
    return f"counted to {to}"


@server.resource("memo://note")
def note() -> str:
    return "a note"


@server.prompt()
def greet(name: str) -> str:
    return f"Hello, {name}!"


way = sys.argv[1]
if way == "stdio":
    server.run("stdio")
else:
    server.run(way, host="127.0.0.1", port=int(sys.argv[2]))
