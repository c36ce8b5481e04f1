// An MCP server made with the official SDK of both eras, over its pipes or at a port:
//
//   node server.mjs stdio | http PORT
//
// It tells of changes when its tools are called: `touch` of one of its resources,
// `grow` of its lists; not when `grow_silently` is.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { argv } from "node:process";

const tools = createRequire(new URL("../tools/package.json", import.meta.url));
const { McpServer, createMcpHandler } = tools("@modelcontextprotocol/server");
const [way, port] = argv.slice(2);
const text = (text) => ({ content: [{ type: "text", text }] });

let touched = 0;
let grown = 0;
/** Says what changed to everybody who listens; set below, by the transport. */
let changed = {};

/** A server: over HTTP one for each request. */
function server() {
  const listChanged = true;
  const own = new McpServer(
    { name: "sdk", version: "1.0.0" },
    { capabilities: { tools: { listChanged }, resources: { listChanged, subscribe: true }, prompts: { listChanged } } },
  );
  for (const name of ["one", "two"]) {
    own.registerResource(name, `memo://${name}`, {}, (uri) => ({ contents: [{ uri: uri.href, text: `${touched}` }] }));
  }
  own.registerTool("touch", { description: "Changes memo://one and memo://two." }, () => {
    touched += 1;
    for (const name of ["one", "two"]) changed.resource(own, `memo://${name}`);
    return text(`${touched}`);
  });
  own.registerTool("grow", { description: "Adds a tool." }, () => {
    grown += 1;
    changed.lists(own);
    return text(`${grown}`);
  });
  own.registerTool("grow_silently", { description: "Adds a tool, and tells nobody." }, () => {
    grown += 1;
    return text(`${grown}`);
  });
  for (let n = 1; n <= grown; n += 1) own.registerTool(`grown${n}`, {}, () => text("new"));
  own.registerPrompt("greet", {}, () => ({ messages: [{ role: "user", content: { type: "text", text: "hi" } }] }));
  return own;
}

if (way === "stdio") {
  const { serveStdio } = tools("@modelcontextprotocol/server/stdio");
  changed = {
    resource: (own, uri) => own.server.sendResourceUpdated({ uri }),
    lists: (own) => own.registerTool(`grown${grown}`, {}, () => text("new")),
  };
  serveStdio(() => {
    const own = server();
    // The era with a handshake has methods for it, which the library leaves to its users.
    for (const method of ["resources/subscribe", "resources/unsubscribe"]) {
      own.server.setRequestHandler(method, () => ({}));
    }
    return own;
  });
} else {
  const { toNodeHandler } = tools("@modelcontextprotocol/node");
  const handler = createMcpHandler(server);
  changed = {
    resource: (_, uri) => handler.notify.resourceUpdated(uri),
    lists: () => {
      handler.notify.toolsChanged();
      handler.notify.resourcesChanged();
      handler.notify.promptsChanged();
    },
  };
  createServer(toNodeHandler(handler)).listen(Number(port), "127.0.0.1");
}
