// Other people's hosts against mcpx as a server: the official SDK of the handshake
// era, over stdio and HTTP, and the SDK that knows both eras.
//
//   node server-hosts.mjs stdio-old | stdio-new | http-old URL | http-new URL
//
// MCPX_BIN names the binary, MCPX_TOKEN the daemon's token. Prints what each host
// found as one line of JSON.
import { createRequire } from "node:module";
import { argv, cwd, env, stdout } from "node:process";

const tools = createRequire(new URL("../tools/package.json", import.meta.url));
const [way, url] = argv.slice(2);
const [transport, age] = way.split("-");
const info = { name: "host", version: "1.0.0" };
const headers = { Authorization: `Bearer ${env.MCPX_TOKEN}` };
const child = { command: env.MCPX_BIN, args: ["serve", "--serve-mode", "both"], cwd: cwd(), env: { ...env } };

/** The parts of an SDK: a client, and its transport. */
function parts() {
  if (age === "old") {
    const { Client } = tools("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = tools("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = tools("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return { client: new Client(info), Stdio: StdioClientTransport, Http: StreamableHTTPClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = tools("@modelcontextprotocol/client");
  const { StdioClientTransport } = tools("@modelcontextprotocol/client/stdio");
  const client = new Client(info, { versionNegotiation: { mode: "auto" } });
  return { client, Stdio: StdioClientTransport, Http: StreamableHTTPClientTransport };
}

const { client, Stdio, Http } = parts();
await client.connect(transport === "stdio" ? new Stdio(child) : new Http(new URL(url), { requestInit: { headers } }));
const listed = await client.listTools();
const names = listed.tools.map((tool) => tool.name);
const progress = [];
const called = await client.callTool(
  { name: "demo__slow", arguments: { seconds: 0.2, steps: 4 } },
  ...(age === "old" ? [undefined] : []),
  { onprogress: (report) => progress.push(report.progress) },
);
const sum = await client.callTool({ name: "mcpx_call", arguments: { server: "demo", tool: "add", arguments: { a: 2, b: 3 } } });
const status = await client.callTool({ name: "mcpx_status", arguments: {} });
// Closing forgets what was agreed on.
const server = client.getServerVersion();
const revision = age === "old" ? "handshake" : client.getNegotiatedProtocolVersion();
await client.close();
stdout.write(
  `${JSON.stringify({
    server,
    revision,
    names,
    progress,
    slow: called.content[0].text,
    sum: sum.structuredContent,
    pid: typeof status.structuredContent.daemon.pid,
  })}\n`,
);
