// The server scenarios of the official conformance suite against `/mcp` of a
// daemon that passes `server-fixture.mjs` through, which speaks the same revision.
//
//   node server.mjs REVISION…      MCPX_BIN names the binary
//
// The suite knows no token, so a proxy stands between: it adds the token and says
// the daemon's own name where the suite said the proxy's. Foreign names pass as
// they are: refusing them is the daemon's to do.
import { execFileSync, spawnSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { argv, env, execPath, exit, stdout } from "node:process";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const suite = join(here, "../tools/node_modules/@modelcontextprotocol/conformance/dist/index.js");
const home = mkdtempSync(join(tmpdir(), "mx-"));

function mcpx(...args) {
  const own = Object.entries(env).filter(([name]) => !name.startsWith("MCPX_"));
  const environment = { ...Object.fromEntries(own), HOME: home };
  for (const name of ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"]) delete environment[name];
  return execFileSync(env.MCPX_BIN, args, { cwd: home, env: environment, encoding: "utf8" });
}

/** Starts a daemon whose server speaks this revision; where it is, and its token. */
function start(protocol) {
  const server = { command: execPath, args: [join(here, "server-fixture.mjs")], mcpx: { protocol } };
  const serve = { mode: "passthrough", names: "plain", taskAfter: "500ms" };
  writeFileSync(join(home, ".mcpx.json"), JSON.stringify({ mcpServers: { fixture: server }, serve }));
  mcpx("refresh");
  const state = join(home, ".local/state/mcpx");
  const file = readdirSync(state).find((name) => /^daemon-.*\.json$/.test(name));
  const { endpoint, token } = JSON.parse(readFileSync(join(state, file), "utf8"));
  return { endpoint: new URL(endpoint), token };
}

function proxy({ endpoint, token }) {
  const server = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    const own = `127.0.0.1:${server.address().port}`;
    if (headers.host === own) headers.host = endpoint.host;
    if (headers.origin === `http://${own}`) delete headers.origin;
    delete headers.connection;
    const options = { host: endpoint.hostname, port: endpoint.port, method: incoming.method, path: incoming.url };
    const passed = request({ ...options, headers, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  return new Promise((ready) => server.listen(0, "127.0.0.1", () => ready(server)));
}

/** What each revision requires. */
const required = (revision) => ["--requirements", revision];
/** What the tasks extension has besides, which no revision requires. */
const extension = ["lifecycle", "capability-negotiation", "wire-fields", "request-state-removal", "mrtr-input"]
  .concat(["request-headers", "dispatch-and-envelope", "required-task-error", "mrtr-composition"])
  .map((name) => ["--scenario", `tasks-${name}`]);

/** Runs scenarios; the exit code. */
function run(revision, url, scenarios) {
  const known = join(here, `server-expected-${revision}.yml`);
  const results = join(home, revision);
  const args = [suite, "server", "--url", url, ...scenarios];
  const child = spawn(execPath, [...args, "--expected-failures", known, "-o", results], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...env, NO_COLOR: "1" },
  });
  return new Promise((done) => child.on("exit", (code) => done(code ?? 1)));
}

const stop = () => spawnSync(env.MCPX_BIN, ["stop", "--all"], { cwd: home, env: { ...env, HOME: home } });

let code = 0;
try {
  for (const revision of argv.slice(2)) {
    stdout.write(`== ${revision}\n`);
    const listening = await proxy(start(revision));
    try {
      const url = `http://127.0.0.1:${listening.address().port}/mcp`;
      const all = [required(revision), ...(revision === "2026-07-28" ? extension : [])];
      for (const scenarios of all) code = (await run(revision, url, scenarios)) || code;
    } finally {
      listening.closeAllConnections();
      listening.close();
      stop();
    }
  }
} finally {
  stop();
  rmSync(home, { recursive: true, force: true });
}
exit(code);
