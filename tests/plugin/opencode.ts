// Drives a real opencode without a terminal: a model whose answers stand in the
// question, sessions over the editor's own HTTP interface, and what came of each.

import { spawn } from "node:child_process";
import * as http from "node:http";
import * as fs from "node:fs";
import * as path from "node:path";

interface Step {
  name: string;
  args: Record<string, unknown>;
}
interface Run {
  dir: string;
  /** What the model does, one call of a tool after another. */
  steps: Step[];
  /** The number of an earlier run, whose session is the parent of this one's. */
  parent?: number;
  /** The number of an earlier run whose session goes on. */
  again?: number;
}
interface Task {
  opencode: string;
  /** What is answered when a permission is asked for. */
  reply: string;
  runs: Run[];
}

const task: Task = JSON.parse(process.argv[2] ?? "{}");

/** A model of the usual HTTP interface, which does what the last message of the user says. */
const model = http.createServer((request, response) => {
  let text = "";
  request.on("data", (part) => (text += part));
  request.on("end", () => {
    const body = JSON.parse(text || "{}");
    response.writeHead(200, { "content-type": "text/event-stream" });
    const say = (delta: unknown, finish_reason: string | null = null) =>
      response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "fake", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    const step = body.tools?.length ? next(body.messages) : undefined;
    if (step) {
      const call = { index: 0, id: `call_${Math.random().toString(36).slice(2)}`, type: "function", function: { name: step.name, arguments: JSON.stringify(step.args) } };
      say({ role: "assistant", tool_calls: [call] });
      say({}, "tool_calls");
    } else {
      say({ role: "assistant", content: "a title" });
      say({}, "stop");
    }
    response.end("data: [DONE]\n\n");
  });
});

function next(messages: any[]): Step | undefined {
  const last = messages.findLastIndex((m) => m.role === "user");
  const content = messages[last].content;
  const said = typeof content === "string" ? content : content.map((part: any) => part.text ?? "").join("");
  const steps: Step[] = JSON.parse(said.slice(said.indexOf("["), said.lastIndexOf("]") + 1));
  return steps[messages.slice(last).filter((m) => m.role === "tool").length];
}

await new Promise<void>((done) => model.listen(0, "127.0.0.1", done));
const { port } = model.address() as { port: number };
const provider = { npm: "@ai-sdk/openai-compatible", options: { baseURL: `http://127.0.0.1:${port}`, apiKey: "none" }, models: { fake: { name: "fake", tool_call: true } } };
const config = { model: "fake/fake", small_model: "fake/fake", enabled_providers: ["fake"], provider: { fake: provider }, permission: { bash: "allow", mcpx_daemon_select: "ask" } };

// The editor fetches a package into each of its directories unless a lock says that it is there.
const home = process.env.HOME ?? "";
for (const dir of [path.join(home, ".config/opencode"), ...task.runs.map((run) => path.join(run.dir, ".opencode"))]) {
  fs.mkdirSync(path.join(dir, "node_modules"), { recursive: true });
  fs.writeFileSync(path.join(dir, "package-lock.json"), JSON.stringify({ packages: { "": { dependencies: { "@opencode-ai/plugin": "1.18.33" } } } }));
}

const env = { ...process.env, OPENCODE_CONFIG_CONTENT: JSON.stringify(config), OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1" };
const editor = spawn(task.opencode, ["serve", "--hostname", "127.0.0.1", "--port", "0"], { env, stdio: ["ignore", "pipe", "pipe"] });
let log = "";
const base = await new Promise<string>((done, fail) => {
  const hear = (part: Buffer) => {
    log += part;
    const at = /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(log);
    if (at?.[1]) done(at[1]);
  };
  editor.stdout.on("data", hear);
  editor.stderr.on("data", hear);
  editor.once("exit", () => fail(new Error(`opencode ended: ${log}`)));
});

async function ask(method: string, at: string, dir: string, body?: unknown): Promise<any> {
  const answer = await fetch(`${base}${at}?directory=${encodeURIComponent(dir)}`, {
    method, headers: { "content-type": "application/json" }, ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${at}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}

const toasts: { dir: string; message: string }[] = [];
const asked: any[] = [];
const leave = new AbortController();

/** Reads what the editor says about a directory, and answers what it asks. */
async function listen(dir: string): Promise<void> {
  const answer = await fetch(`${base}/event?directory=${encodeURIComponent(dir)}`, { signal: leave.signal });
  let rest = "";
  const decoder = new TextDecoder();
  for await (const part of answer.body as unknown as AsyncIterable<Uint8Array>) {
    rest += decoder.decode(part, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const event = JSON.parse(line.slice(5));
      if (event.type === "tui.toast.show") toasts.push({ dir, message: event.properties.message });
      if (event.type === "permission.asked") {
        asked.push(event.properties);
        await ask("POST", `/permission/${event.properties.id}/reply`, dir, { reply: task.reply });
      }
    }
  }
}

const results: { session: string; title: string; calls: unknown[] }[] = [];
try {
  for (const dir of new Set(task.runs.map((run) => run.dir))) void listen(dir).catch(() => {});
  for (const run of task.runs) {
    const parentID = run.parent === undefined ? undefined : results[run.parent]?.session;
    const id = run.again === undefined ? (await ask("POST", "/session", run.dir, { parentID })).id : results[run.again]?.session;
    const before = (await ask("GET", `/session/${id}/message`, run.dir)).length;
    await ask("POST", `/session/${id}/message`, run.dir, { parts: [{ type: "text", text: JSON.stringify(run.steps) }] });
    const messages: any[] = (await ask("GET", `/session/${id}/message`, run.dir)).slice(before);
    const calls = messages.flatMap((m) => m.parts).filter((part) => part.type === "tool");
    const { title } = await ask("GET", `/session/${id}`, run.dir);
    results.push({ session: id, title, calls: calls.map(({ tool, state }) => ({ tool, output: state.output, error: state.error })) });
  }
  console.log(JSON.stringify({ pid: editor.pid, results, toasts, asked, log }));
} finally {
  leave.abort();
  const gone = new Promise((done) => editor.on("exit", done));
  editor.kill("SIGTERM");
  await gone;
  model.closeAllConnections();
  model.close();
}
