// The client that a script gets: namespaces and tools as functions, the
// connection to the daemon, `emit`, `log`, `args`, `paths`, `ToolError`.
//
// Plain ECMAScript that deno, bun and node >= 18 run unchanged. It holds no
// table of tools: a name travels as it was written and the daemon resolves it.
// It touches `process` only outside deno and imports `node:net` only on the
// first call, because either costs a runtime more than everything else here.

const deno = globalThis.Deno;
const bun = globalThis.Bun;

/** Whether deno grants `query` without asking a person; a version that does not know the question grants nothing. */
function granted(query) {
  try {
    return deno.permissions.querySync(query).state === "granted";
  } catch {
    return false;
  }
}

// One question where all is granted, as questions cost more than answers.
const allEnv = deno && granted({ name: "env" });
const env = deno
  ? (name) => (allEnv || granted({ name: "env", variable: name }) ? deno.env.get(name) : undefined)
  : (name) => process.env[name];

function forget(name) {
  if (!deno) delete process.env[name];
  else if (granted({ name: "env", variable: name })) deno.env.delete(name);
}

/** The frames of this file, which no stack trace should show. */
const here = import.meta.url.slice("file://".length);

// Two copies of this file in one process (mcpx's own, and one that a script
// checked in) must share the one inherited descriptor.
const state = (globalThis[Symbol.for("mcpx.client.1")] ??= {
  channel: env("MCPX_CHANNEL"),
  link: undefined,
  opening: undefined,
  lastId: 0,
  waiting: new Map(),
  queue: [],
});
// A child of the script inherits the variable but not the descriptor.
if (state.channel !== undefined) forget("MCPX_CHANNEL");

/** More requests than this wait in the script: each one in flight takes a thread of the daemon. */
const AT_ONCE = 256;
/** Over HTTP each takes a connection. */
const AT_ONCE_HTTP = 64;

/**
 * A call that failed. `kind` is a stable word (`tool` when the tool itself
 * reported it), `raw` what the tool or the daemon answered.
 */
export class ToolError extends Error {
  constructor(message, details = {}) {
    super(message);
    Object.defineProperty(this, "name", { value: "ToolError", configurable: true, writable: true });
    describe(this, details);
  }
}

function describe(error, { kind = "internal", server, tool, hint, raw, cause }) {
  error.kind = kind;
  if (server !== undefined) error.server = server;
  if (tool !== undefined) error.tool = tool;
  if (hint !== undefined) error.hint = hint;
  const hidden = (key, value) => Object.defineProperty(error, key, { value, configurable: true, writable: true });
  hidden("raw", raw);
  if (cause !== undefined) hidden("cause", cause);
}

/**
 * An error that knows where `called` was called from and is told later what
 * went wrong: an answer arrives on a stack on which nothing is the user's.
 * Engines put a stack into words only when somebody looks at it, so the
 * message need not be known now, and nothing is formatted for calls that succeed.
 */
function site(called) {
  const limit = Error.stackTraceLimit;
  if (Error.captureStackTrace) Error.stackTraceLimit = 0;
  const error = new ToolError("");
  Error.stackTraceLimit = limit;
  Error.captureStackTrace?.(error, called);
  return error;
}

function told(error, message, details) {
  Object.defineProperty(error, "message", { value: message, configurable: true, writable: true });
  describe(error, details);
  return error;
}

function isFrame(line) {
  return /^\s*at |@/.test(line);
}

// ---- frames: a big-endian length, then that many bytes of JSON -------------

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function frame(text) {
  const body = encoder.encode(text);
  const bytes = new Uint8Array(body.length + 4);
  new DataView(bytes.buffer).setUint32(0, body.length);
  bytes.set(body, 4);
  return bytes;
}

/** Takes chunks of any size and hands over whole frames; a frame's bytes are copied at most once. */
function unframe(onFrame) {
  const head = new Uint8Array(4);
  let headed = 0;
  let body;
  let filled = 0;
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (!body) {
        while (headed < 4 && at < chunk.length) head[headed++] = chunk[at++];
        if (headed < 4) return;
        const length = ((head[0] << 24) | (head[1] << 16) | (head[2] << 8) | head[3]) >>> 0;
        if (chunk.length - at >= length) {
          headed = 0;
          onFrame(chunk.subarray(at, (at += length)));
          continue;
        }
        body = new Uint8Array(length);
        filled = 0;
      }
      const part = chunk.subarray(at, at + body.length - filled);
      body.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled === body.length) {
        const whole = body;
        body = undefined;
        headed = 0;
        onFrame(whole);
      }
    }
  };
}

function receive(bytes) {
  const message = JSON.parse(decoder.decode(bytes));
  const request = state.waiting.get(message.id);
  if (!request) return; // cancelled meanwhile
  if (message.progress !== undefined) {
    request.onprogress?.(message.progress);
    return;
  }
  finish(message.id, request);
  if (message.error) request.reject(failure(message.error, request));
  else request.resolve(message.result);
}

function finish(id, request) {
  state.waiting.delete(id);
  request.release?.();
  if (state.waiting.size === 0) state.link?.unref?.();
  const next = state.queue.shift();
  if (next) launchRequest(next);
}

function failure(error, { subject, site }) {
  return told(site, error.message ?? "an error without a message", { ...subject, ...error });
}

/** Every request in flight has lost its answer; nothing is sent twice. */
function lost(why) {
  state.link = undefined;
  for (const [id, request] of [...state.waiting]) {
    finish(id, request);
    const sent = request.sent && request.op === "call";
    const message = sent
      ? `${name(request)}: the connection to the daemon ended before the answer came (${why}); the call was not sent again`
      : `${name(request)}: the connection to the daemon ended (${why})`;
    const kind = sent ? "outcome-unknown" : "unavailable";
    request.reject(told(request.site, message, { kind, ...request.subject }));
  }
}

function name({ op, subject: { server, tool } }) {
  return tool === undefined ? op : `${server}.${tool}`;
}

// ---- links: the ways to the daemon ----------------------------------------

const upgrade = (run) =>
  encoder.encode(
    `GET /v1/channel?run=${encodeURIComponent(run)} HTTP/1.1\r\nHost: mcpx\r\n` +
      "Connection: Upgrade\r\nUpgrade: mcpx-channel\r\n\r\n",
  );

/** Feeds chunks to `next` once the answer to an upgrade has been read; `settle(error?)` says how it went. */
function upgraded(next, settle) {
  let seen = "";
  let done = false;
  return (chunk) => {
    if (done) return next(chunk);
    // The answer's head is ASCII, so bytes and characters count alike.
    const before = seen.length;
    seen += String.fromCharCode(...chunk.subarray(0, 16384));
    const end = seen.indexOf("\r\n\r\n");
    if (end < 0) return;
    done = true;
    if (!/^HTTP\/1\.1 101 /.test(seen)) return settle(new Error(seen.slice(0, seen.indexOf("\r\n"))));
    settle();
    const rest = chunk.subarray(end + 4 - before);
    if (rest.length) next(rest);
  };
}

/** Collects the frames of one turn into one write. */
function batched(write) {
  let pending = [];
  return (bytes) => {
    if (pending.push(bytes) > 1) return;
    queueMicrotask(() => {
      const parts = pending;
      pending = [];
      if (parts.length === 1) return write(parts[0]);
      const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
      let at = 0;
      for (const part of parts) {
        whole.set(part, at);
        at += part.length;
      }
      write(whole);
    });
  };
}

async function nodeLink({ fd, path, run }) {
  const net = globalThis.process?.getBuiltinModule?.("net") ?? (await import("node:net")).default;
  const take = unframe(receive);
  let ready = fd !== undefined;
  let feed = take;
  // One buffer for all that is read, past the machinery of streams.
  const onread = { buffer: new Uint8Array(65536), callback: (count, buffer) => void feed(buffer.subarray(0, count)) };
  const socket =
    fd === undefined ? net.connect({ path, onread }) : new net.Socket({ fd, readable: true, writable: true, onread });
  await new Promise((resolve, reject) => {
    if (!ready) {
      feed = upgraded(take, (error) => {
        ready = !error;
        if (error) reject(error);
        else resolve();
      });
    }
    socket.on("error", (error) => (ready ? lost(error.message) : reject(error)));
    socket.on("close", () => (ready ? lost("closed") : reject(new Error("closed"))));
    if (ready) resolve();
    else socket.on("connect", () => socket.write(upgrade(run)));
  });
  fs ??= process.getBuiltinModule?.("fs");
  const write = (bytes) => {
    let written = 0;
    // Past the streams as well, as long as they hold nothing back. What goes wrong, they tell.
    if (fd !== undefined && fs && socket.writableLength === 0) {
      try {
        written = fs.writeSync(fd, bytes);
      } catch {
        written = 0;
      }
    }
    if (written < bytes.length) socket.write(bytes.subarray(written));
  };
  return { send: batched(write), ref: () => socket.ref(), unref: () => socket.unref() };
}

async function bunLink({ path, run }) {
  const take = unframe(receive);
  let backlog = [];
  let ready = false;
  let settle;
  const settled = new Promise((resolve, reject) => {
    settle = (error) => {
      ready = !error;
      if (error) reject(error);
      else resolve();
    };
  });
  const feed = upgraded(take, (error) => settle(error));
  const write = (socket, bytes) => {
    const written = Math.max(0, socket.write(bytes));
    if (written < bytes.length) backlog.push(bytes.subarray(written));
  };
  const socket = await bun.connect({
    unix: path,
    socket: {
      open: (socket) => void socket.write(upgrade(run)),
      // The buffer belongs to the runtime, and a frame may keep a part of it.
      data: (_, chunk) => feed(chunk),
      drain(socket) {
        const parts = backlog;
        backlog = [];
        for (const part of parts) backlog.length ? backlog.push(part) : write(socket, part);
      },
      close: () => (ready ? lost("closed") : settle(new Error("closed"))),
      error: (_, error) => (ready ? lost(error.message) : settle(error)),
    },
  });
  await settled;
  return {
    send: batched((bytes) => (backlog.length ? backlog.push(bytes) : write(socket, bytes))),
    ref: () => socket.ref(),
    unref: () => socket.unref(),
  };
}

async function denoLink({ path, run }) {
  const connection = await deno.connect({ transport: "unix", path });
  let writing = Promise.resolve();
  const write = (bytes) => {
    writing = writing.then(async () => {
      for (let at = 0; at < bytes.length; ) at += await connection.write(bytes.subarray(at));
    });
    writing.catch((error) => lost(error.message));
  };
  write(upgrade(run));
  const take = unframe(receive);
  await new Promise((resolve, reject) => {
    let ready = false;
    const feed = upgraded(take, (error) => {
      ready = !error;
      if (error) reject(error);
      else resolve();
    });
    (async () => {
      let why = "closed";
      try {
        const buffer = new Uint8Array(65536);
        for (let count; (count = await connection.read(buffer)) !== null; ) feed(buffer.subarray(0, count));
      } catch (error) {
        why = error.message;
      }
      if (ready) lost(why);
      else reject(new Error(why));
    })();
  });
  return { send: batched(write), ref: () => connection.ref(), unref: () => connection.unref() };
}

/** Where each operation is, and whether it may change something. */
const ROUTES = {
  call: ["POST", "/v1/call", true],
  storeArtifact: ["POST", "/v1/artifacts", true],
  resources: ["GET", "/v1/resources"],
  resourceTemplates: ["GET", "/v1/resources/templates"],
  readResource: ["GET", "/v1/resources/read"],
  prompts: ["GET", "/v1/prompts"],
  getPrompt: ["POST", "/v1/prompts/get"],
};

/** One request an operation: for a daemon whose socket cannot be reached from here. */
function httpLink(endpoint) {
  const token = env("MCPX_TRANSPORT_BEARER_TOKEN");
  const settings = env("MCPX_SETTINGS");
  const input = env("MCPX_INPUT");
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  if (settings) headers["x-mcpx-settings"] = settings;
  if (input) headers["x-mcpx-input"] = input;
  const context = {};
  for (const [field, variable] of [
    ["session", "MCPX_SESSION"],
    ["sessionId", "MCPX_SESSION_ID"],
    ["parentSessionId", "MCPX_PARENT_SESSION_ID"],
    ["cwd", "MCPX_CWD"],
    ["run", "MCPX_RUN"],
  ]) {
    const value = env(variable);
    if (value) context[field] = value;
  }
  if (env("MCPX_EPHEMERAL") === "1") context.ephemeral = true;
  const pid = Number(env("MCPX_PID"));
  if (pid) context.pid = pid;
  return { http: true, endpoint: endpoint.replace(/\/+$/, ""), headers, context };
}

function unreachable(error) {
  const code = error?.cause?.code ?? error?.code;
  return code === "ECONNREFUSED" || code === "ConnectionRefused" || /Connection refused|os error 111/.test(error?.message ?? "");
}

async function post(link, request) {
  const abort = new AbortController();
  request.abort = () => abort.abort();
  const [method, path, changes] = ROUTES[request.op];
  const { session } = link.context;
  const what =
    method === "POST"
      ? { body: JSON.stringify({ ...request.params, context: link.context }) }
      : { query: `?${new URLSearchParams(session ? { ...request.params, session } : request.params)}` };
  let body;
  try {
    const response = await fetch(`${link.endpoint}${path}${what.query ?? ""}`, {
      method,
      headers: link.headers,
      body: what.body,
      signal: abort.signal,
    });
    body = await response.json();
  } catch (error) {
    if (!state.waiting.has(request.id)) return;
    finish(request.id, request);
    const denied = deno && error?.name === "NotCapable";
    const message = denied
      ? `the script may not reach the daemon at ${link.endpoint}: ${error.message}`
      : `no answer from the daemon at ${link.endpoint}: ${error?.cause?.message ?? error?.message}`;
    const details = {
      // Without an answer nobody knows how far the request came, unless it could not even connect.
      kind: denied ? "refused" : unreachable(error) || !changes ? "unavailable" : "outcome-unknown",
      cause: error,
      ...request.subject,
    };
    if (denied) details.hint = `grant it: --permissions '<profiles>,raw:--allow-net=${new URL(link.endpoint).host}'`;
    request.reject(told(request.site, `${name(request)}: ${message}`, details));
    return;
  }
  if (!state.waiting.has(request.id)) return;
  finish(request.id, request);
  if (body.error) request.reject(failure(body.error, request));
  else if (body.inputRequired) {
    const message = body.inputRequired.text ?? "the server asked a question that nobody here can answer";
    request.reject(told(request.site, message, { kind: "input-required", ...request.subject, raw: body }));
  } else request.resolve("result" in body ? body.result : body);
}

/** Opens the first way that works: a descriptor that needs no permission, the socket, HTTP. */
async function open() {
  const path = env("MCPX_SOCKET");
  const run = env("MCPX_RUN");
  const endpoint = env("MCPX_ENDPOINT");
  const channel = state.channel;
  state.channel = undefined; // a descriptor is good once
  const direct = path && run;
  const ways = [];
  const viaDeno = () => denoLink({ path, run });
  const denoMay = () =>
    granted({ name: "read", path }) &&
    granted({ name: "write", path }) &&
    granted({ name: "net", host: `unix:${path}` });
  if (deno && direct && denoMay()) ways.push(viaDeno);
  if (channel && !bun) ways.push(() => nodeLink({ fd: Number(channel) }));
  if (!deno && direct) ways.push(() => (bun ? bunLink({ path, run }) : nodeLink({ path, run })));
  if (endpoint) ways.push(() => httpLink(endpoint));
  const failures = [];
  let denied = false;
  for (const way of ways) {
    try {
      return await way();
    } catch (error) {
      denied ||= error?.code === "ERR_ACCESS_DENIED";
      failures.push(error?.message ?? String(error));
    }
  }
  if (ways.length === 0) {
    const hint = "start it with `mcpx run <file>`, or set MCPX_ENDPOINT and MCPX_TRANSPORT_BEARER_TOKEN";
    throw new ToolError("no daemon is known to this script", { kind: "unavailable", hint });
  }
  const message = `the daemon cannot be reached: ${failures.join("; ")}`;
  if (!denied) throw new ToolError(message, { kind: "unavailable" });
  throw new ToolError(message, { kind: "refused", hint: "grant it: --permissions '<profiles>,raw:--allow-net'" });
}

// ---- requests --------------------------------------------------------------

function launchRequest(request) {
  const limit = state.link?.http ? AT_ONCE_HTTP : AT_ONCE;
  if (state.waiting.size >= limit) return void state.queue.push(request);
  state.waiting.set(request.id, request);
  if (state.link) return send(request);
  state.opening ??= open().then(
    (link) => {
      state.link = link;
      state.opening = undefined;
      if (state.waiting.size === 0) link.unref?.();
      for (const waiting of [...state.waiting.values()]) send(waiting);
    },
    (error) => {
      state.opening = undefined;
      for (const [id, waiting] of [...state.waiting]) {
        finish(id, waiting);
        waiting.reject(told(waiting.site, error.message, { ...error, ...waiting.subject }));
      }
    },
  );
}

function send(request) {
  const { link } = state;
  if (request.sent) return;
  request.sent = true;
  if (link.http) return void post(link, request);
  link.ref();
  link.send(request.frame);
  request.frame = undefined;
}

/**
 * Asks the daemon for one operation and resolves with its raw result. `site`
 * becomes the error, should there be one. Options: `timeoutMs`, `signal`, `onprogress`.
 */
function request(op, params, options, site) {
  const { timeoutMs, signal, onprogress } = options ?? {};
  return new Promise((resolve, reject) => {
    if (signal?.aborted) throw signal.reason;
    const id = ++state.lastId;
    const { server, tool } = params;
    const subject = op === "call" ? { server, tool } : server ? { server } : {};
    const sent = timeoutMs === undefined ? params : { ...params, timeoutMs };
    const message = { id, op, params: sent };
    if (onprogress) message.progress = true;
    const entry = { id, op, params: sent, subject, site, resolve, reject, onprogress };
    entry.frame = frame(JSON.stringify(message));
    if (signal) {
      const cancel = () => {
        const at = state.queue.indexOf(entry);
        if (at >= 0) state.queue.splice(at, 1);
        else if (entry.sent && !state.link?.http) state.link?.send(frame(JSON.stringify({ cancel: id })));
        entry.abort?.();
        if (state.waiting.has(id)) finish(id, entry);
        else entry.release?.();
        reject(signal.reason);
      };
      signal.addEventListener("abort", cancel, { once: true });
      entry.release = () => signal.removeEventListener?.("abort", cancel);
    }
    launchRequest(entry);
  });
}

