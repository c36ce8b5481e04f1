// One client scenario of the official conformance suite, done with mcpx as a
// person would: a configuration file that names the server's URL, and commands.
// The suite appends the URL; MCPX_BIN names the binary.
//
// Some scenarios speak the protocol in ways that no single command does: what
// they ask for is written out in `scenarios`, by name.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import process, { argv, env, execPath, stderr } from "node:process";
import { fileURLToPath } from "node:url";

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
    env: {
      ...Object.fromEntries(own),
      HOME: home,
      XDG_STATE_HOME: "",
      XDG_CACHE_HOME: "",
      XDG_RUNTIME_DIR: "",
      // A browser whose user grants everything, and the node that it wants.
      BROWSER: fileURLToPath(new URL("../oauth/browser.mjs", import.meta.url)),
      PATH: `${dirname(execPath)}${delimiter}${env.PATH}`,
    },
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

/** The exit code that says that authorisation is wanting. */
const REFUSED = 77;

/** Calls every tool, with a login whenever a command says that it wants one; a server that wants many is given up. */
function authorised() {
  for (let logins = 3; ; logins--) {
    try {
      return tools().map((tool) => call(tool.tool));
    } catch (e) {
      if (e.status !== REFUSED || logins === 0) throw e;
    }
    mcpx("auth", "login", "s");
  }
}

/** The client that the suite has registered, as the configuration names it. */
function oauth() {
  const { client_id: clientId, client_secret: clientSecret } = context;
  if (!clientId) return undefined;
  const grant = scenario.includes("client-credentials") ? "client_credentials" : undefined;
  return { oauth: { clientId, clientSecret, grant } };
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
  const configuration = {
    mcpServers: { s: { url, mcpx: oauth() } },
    // Whoever has no person to ask says here what is answered.
    elicit: { rules: { s: "accept" } },
    // The document that the suite's servers take for a client that they know.
    oauth: { clientMetadataUrl: "https://conformance-test.local/client-metadata.json" },
  };
  writeFileSync(join(home, ".mcpx.json"), JSON.stringify(configuration));
  (scenarios[scenario] ?? (scenario.startsWith("auth/") ? authorised : tools))();
} catch (e) {
  stderr.write(`${scenario}: ${e.message}\n`);
  // Not exit(): what follows still stops the daemon.
  process.exitCode = 1;
} finally {
  try {
    mcpx("stop");
  } catch {
    // There may be none.
  }
  rmSync(home, { recursive: true, force: true });
}
