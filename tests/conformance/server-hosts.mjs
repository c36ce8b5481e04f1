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

/** What the host's model says. */
const words = { role: "assistant", content: { type: "text", text: "my words" }, model: "m", stopReason: "endTurn" };

/** The parts of an SDK: a client, and its transport. */
function parts() {
  if (age === "old") {
    const { Client } = tools("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = tools("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = tools("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { CreateMessageRequestSchema } = tools("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info, { capabilities: { sampling: {} } });
    client.setRequestHandler(CreateMessageRequestSchema, () => words);
    return { client, Stdio: StdioClientTransport, Http: StreamableHTTPClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = tools("@modelcontextprotocol/client");
  const { StdioClientTransport } = tools("@modelcontextprotocol/client/stdio");
  const client = new Client(info, { versionNegotiation: { mode: "auto" }, capabilities: { sampling: {} } });
  client.setRequestHandler("sampling/createMessage", () => words);
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
// Both declare what they answer with; a host that checks it must still get the text of a failure.
const failed = [];
for (const [name, args] of [
  ["mcpx_restart", { server: "nowhere" }],
  ["mcpx_exec", { code: "throw new Error('no more')" }],
  ["demo__add", { a: "x", b: 1 }],
]) {
  const { isError, content } = await client.callTool({ name, arguments: args });
  failed.push([isError, content[0].text]);
}
const status = await client.callTool({ name: "mcpx_status", arguments: {} });
const offered = {
  resources: (await client.listResources()).resources.map((resource) => resource.uri),
  templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate),
  prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
};
const read = await client.readResource({ uri: "mcpx://fx/test://template/7/data" });
const prompt = await client.getPrompt({
  name: "fx__test_prompt_with_arguments",
  arguments: { arg1: "a", arg2: "b" },
});
const completed = await client.complete({
  ref: { type: "ref/prompt", name: "fx__test_prompt_with_arguments" },
  argument: { name: "arg1", value: "par" },
});
const sampled = await client.callTool({ name: "fx__test_sampling", arguments: { prompt: "Say something" } });
// With the tools of mcpx a model has the same; what they declare as their output is what they give.
const model = [];
for (const [name, args] of [
  ["mcpx_resources", {}],
  ["mcpx_read_resource", { server: "fx", uri: "test://static-text" }],
  ["mcpx_prompts", { server: ["fx"] }],
  ["mcpx_get_prompt", { server: "fx", name: "test_simple_prompt" }],
  ["mcpx_tasks", {}],
]) {
  const { isError, content } = await client.callTool({ name, arguments: args });
  model.push(isError ? content[0].text : "fine");
}
/** What this SDK hears of a call that it makes as a task. */
async function asTask() {
  const heard = [];
  const params = { name: "demo__slow", arguments: { seconds: 0.3, steps: 2 } };
  for await (const message of client.experimental.tasks.callToolStream(params, undefined, { task: { ttl: 60000 } })) {
    heard.push(message.type);
    if (message.type === "error") heard.push(String(message.error));
    if (message.type === "result") heard.push(message.result.content[0].text);
  }
  const { tasks } = await client.experimental.tasks.listTasks();
  return { begun: heard[0], ended: heard.slice(-2), listed: tasks.map((task) => task.status) };
}
const task = age === "old" ? await asTask() : undefined;
// Either end may ask whether the other is there.
if (age === "old") await client.ping();
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
    failed,
    slow: called.content[0].text,
    sum: sum.structuredContent,
    offered,
    read: read.contents[0],
    prompt: prompt.messages[0].content.text,
    completed: completed.completion.values,
    sampled: sampled.content[0].text,
    model,
    task,
    pid: typeof status.structuredContent.daemon.pid,
  })}\n`,
);
