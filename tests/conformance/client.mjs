// One client scenario of the official conformance suite, done with mcpx as a
// person would: a configuration file that names the server's URL, and commands.
// The suite appends the URL; MCPX_BIN names the binary.
//
// Some scenarios speak the protocol in ways that no single command does: what
// they ask for is written out in `scenarios`, by name.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { argv, env, exit, stderr } from "node:process";

const scenario = env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const url = argv.at(-1);
const home = mkdtempSync(join(tmpdir(), "mx-"));

/** Runs one mcpx command and returns what it prints; one that fails ends the scenario. */
function mcpx(...args) {
  stderr.write(`mcpx ${args.join(" ")}\n`);
  const own = Object.entries(env).filter(([name]) => !name.startsWith("MCPX_"));
  return execFileSync(env.MCPX_BIN, args, {
    cwd: home,
    env: { ...Object.fromEntries(own), HOME: home, XDG_STATE_HOME: "", XDG_CACHE_HOME: "", XDG_RUNTIME_DIR: "" },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** The tools, as mcpx knows them. */
function tools() {
  return JSON.parse(mcpx("--json", "tools", "s")).tools;
}

function call(tool, args = {}) {
  return mcpx("call", `s.${tool}`, JSON.stringify(args));
}

/** Something for each required argument. */
function some(schema) {
  const values = { string: "us-west1", integer: 1, number: 1, boolean: true, array: [], object: {}, null: null };
  const properties = Object.entries(schema.properties ?? {});
  return Object.fromEntries(properties.map(([name, property]) => [name, values[property.type] ?? "x"]));
}

const scenarios = {
  tools_call: () => call("add_numbers", { a: 5, b: 3 }),
  "elicitation-sep1034-client-defaults": () => call("test_client_elicitation_defaults"),
  "sse-retry": () => {
    // A server's own stream is opened meanwhile, so that this is not the call that is answered there.
    tools();
    call("test_reconnection");
  },
  "request-metadata": () => mcpx("refresh", "s"),
  "sep-2322-client-request-state": () => {
    const names = ["echo_state", "unrelated", "no_state", "no_result_type"];
    return names.map((name) => call(`test_mrtr_${name}`));
  },
  "http-standard-headers": () => {
    tools().map((tool) => call(tool.tool));
    for (const { uri } of JSON.parse(mcpx("--json", "resources", "ls", "s")).resources) {
      mcpx("resources", "read", "s", uri);
    }
    for (const { name } of JSON.parse(mcpx("--json", "prompts", "ls", "s")).prompts) {
      mcpx("prompts", "get", `s.${name}`);
    }
  },
  "http-custom-headers": () => {
    tools();
    context.toolCalls.map(({ name, arguments: args }) => mcpx("--no-mcp-validate-arguments", "call", `s.${name}`, JSON.stringify(args)));
  },
  "http-invalid-tool-headers": () => tools().map((tool) => call(tool.tool, some(tool.inputSchema))),
  "json-schema-2020-12-preservation": () => {
    const { inputSchema } = tools().find((tool) => tool.tool === "json_schema_2020_12_tool");
    call("json_schema_echo", { schema: inputSchema });
  },
};

try {
  // Whoever has no person to ask says in the configuration what is answered.
  writeFileSync(join(home, ".mcpx.json"), JSON.stringify({ mcpServers: { s: { url } }, elicit: { rules: { s: "accept" } } }));
  (scenarios[scenario] ?? tools)();
} catch (e) {
  stderr.write(`${scenario}: ${e.message}\n`);
  exit(1);
} finally {
  try {
    mcpx("stop");
  } catch {
    // There may be none.
  }
  rmSync(home, { recursive: true, force: true });
}
