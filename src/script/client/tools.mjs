/** Refuses what is no tool's result, as `mcpx call` does. */
function checked(result, { server, tool }, site) {
  let what;
  if (result === null || typeof result !== "object" || Array.isArray(result)) what = "it is no object";
  else if (!Array.isArray(result.content ?? [])) what = "its content is no array of blocks";
  else return result;
  const hint = "`.raw` of the same call is the answer as it came";
  throw told(site, `the server's answer is not a tool's result: ${what}`, { kind: "unavailable", server, tool, hint, raw: result });
}

/** Structured content; else the text (an object or array written as JSON is parsed); several items become an array. */
function unwrap(result) {
  if (result.structuredContent !== undefined) return result.structuredContent;
  const items = (result.content ?? []).map((item) => (isText(item) ? parsed(item.text) : item));
  return items.length > 1 ? items : items[0];
}

function isText(item) {
  return item?.type === "text" && typeof item.text === "string";
}

function parsed(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function raised(result, { server, tool }, site) {
  const texts = (result.content ?? []).filter(isText).map((item) => item.text);
  const message = texts.join("\n") || `${server}.${tool} reported an error without a text`;
  return told(site, message, { kind: "tool", server, tool, raw: result });
}

function rawCall(subject, args, options, site) {
  if (args !== undefined && (args === null || typeof args !== "object" || Array.isArray(args))) {
    const got = args === null ? "null" : Array.isArray(args) ? "an array" : `a ${typeof args}`;
    const message = `${subject.server}.${subject.tool} takes one object of named arguments, and got ${got}`;
    return Promise.reject(told(site, message, { kind: "usage", ...subject }));
  }
  return request("call", args === undefined ? subject : { ...subject, arguments: args }, options, site);
}

/** Calls a tool. The promise has a `raw` of its own: the same call's whole result, `isError` included. */
function call(subject, args, options, site) {
  const raw = rawCall(subject, args, options, site);
  const value = raw.then((result) => {
    if (checked(result, subject, site).isError) throw raised(result, subject, site);
    return unwrap(result);
  });
  return Object.defineProperty(value, "raw", {
    get() {
      value.catch(() => {}); // whoever takes `raw` handles the failure there
      return raw;
    },
  });
}

/** An object whose every property is made by `make` on first use. `then` is not one, or `await` would call it. */
function lazily(target, make) {
  const made = new Map();
  return new Proxy(target, {
    get(_, key) {
      if (typeof key !== "string" || key === "then" || key === "toJSON") return undefined;
      let value = made.get(key);
      if (value === undefined) made.set(key, (value = make(key)));
      return value;
    },
    has: (_, key) => typeof key === "string" && key !== "then",
  });
}

/** What a server offers besides tools, as members of its namespace. */
const OFFERS = {
  $resources(server) {
    const list = (options) => request("resources", { server }, options, site(list)).then((all) => all.resources);
    const templates = (options) =>
      request("resourceTemplates", { server }, options, site(templates)).then((all) => all.resourceTemplates);
    const read = (uri, options) =>
      request("readResource", { server, uri: String(uri) }, options, site(read)).then((result) => result.contents);
    return { list, templates, read };
  },
  $prompts(server) {
    const list = (options) => request("prompts", { server }, options, site(list)).then((all) => all.prompts);
    const get = (name, args, options) =>
      request("getPrompt", { server, name, arguments: args ?? {} }, options, site(get));
    return { list, get };
  },
};

/** Every namespace, by identifier or by configured name: `tools.demo.echo({…})`, `tools["my-server"]["a.tool"]({…})`. */
export const tools = lazily(Object.create(null), (server) =>
  lazily(Object.create(null), (tool) => {
    if (Object.hasOwn(OFFERS, tool)) return OFFERS[tool](server);
    const subject = { server, tool };
    const invoke = (args, options) => call(subject, args, options, site(invoke));
    invoke.raw = (args, options) => rawCall(subject, args, options, site(invoke.raw));
    return invoke;
  }),
);
export default tools;

// ---- what a script says and is told ----------------------------------------

const capture = env("MCPX_CAPTURE") === "1";
let printed = 0;
const ownLog = console.log;
let fs;

/**
 * deno does not say how much it has written when it has to stop. So much goes into a pipe whole or not at
 * all (`PIPE_BUF` of Linux).
 */
const WHOLE = 4096;

/** Writes until all is written, and tells what went wrong. */
function writeWhole(write, text) {
  const bytes = encoder.encode(text);
  for (let at = 0; at < bytes.length; ) {
    try {
      at += write(bytes.subarray(at));
    } catch (error) {
      if (error.code !== "EAGAIN" && error.name !== "WouldBlock") throw error;
      // Somebody made the pipe or terminal one that does not wait.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

/**
 * bun's console waits, but does not tell what went wrong. Its file system does
 * both and takes two milliseconds to load, so that only much output is worth it;
 * `console.write` tells, but only a process that ends by itself writes all of it.
 */
function printInBun(text, last) {
  const line = `${text}\n`;
  if (!fs && line.length <= 1024) {
    if (last) return void console.write(line);
    if (++printed < 16) return ownLog.call(console, text);
  }
  fs ??= process.getBuiltinModule("fs");
  writeWhole((bytes) => fs.writeSync(1, bytes), line);
}

/**
 * node takes three milliseconds to make one of its output streams. As long as nobody else has
 * had it made, which the launcher watches, lines are written without it.
 */
function writeInNode(name, line) {
  if (state.unmade?.has(name)) {
    fs ??= process.getBuiltinModule("fs");
    return writeWhole((bytes) => fs.writeSync(name === "stdout" ? 1 : 2, bytes), line);
  }
  const stream = process[name];
  stream.write(line);
  if (stream.errored) throw stream.errored;
}

// Each console swallows what cannot be written, such as a result to a full disk,
// and code that never waits would then write for ever to a reader that has left.
const print = deno
  ? (text) => writeWhole((bytes) => deno.stdout.writeSync(bytes.subarray(0, WHOLE)), `${text}\n`)
  : bun
    ? printInBun
    : (text) => writeInNode("stdout", `${text}\n`);

/** A value as JSON text; what JSON has no form for is told apart rather than refused. */
function json(value) {
  const plain = (_, item) =>
    typeof item === "bigint"
      ? item.toString()
      : item instanceof Map
        ? Object.fromEntries(item)
        : item instanceof Set
          ? [...item]
          : item instanceof Error
            ? { name: item.name, message: item.message, ...item }
            : item;
  try {
    return JSON.stringify(value, plain);
  } catch {
    const above = [];
    return JSON.stringify(value, function (key, item) {
      const next = plain(key, item);
      if (next === null || typeof next !== "object") return next;
      while (above.length && above.at(-1) !== this) above.pop();
      if (above.includes(next)) return "[circular]";
      above.push(next);
      return next;
    });
  }
}

// The launcher replaces the console's methods; these are the runtime's own.
const ownError = console.error;

/** Writes one line to stderr. */
function complain(line) {
  if (deno) writeWhole((bytes) => deno.stderr.writeSync(bytes.subarray(0, WHOLE)), `${line}\n`);
  else if (bun) ownError.call(console, line);
  else writeInNode("stderr", `${line}\n`);
}

/** Writes to stderr one record that mcpx tells from other text by its first byte (RFC 7464). */
function record(text) {
  complain(`\x1e${text}`);
}

/** Prints one value as one line of JSON. */
export function emit(value) {
  const text = json(value) ?? "null";
  try {
    print(text);
  } catch (error) {
    // The launcher knows how to end; a program of its own hears of it as of any error.
    if (!state.unwritten) throw error;
    state.unwritten(error);
  }
  if (capture) record(`{"t":"emit","value":${text}}`);
}

const LEVELS = ["debug", "info", "warn", "error"];
/** A level's rank; `trace` keeps all and `off` none. */
const rank = (level) => (level === "trace" ? 0 : level === "off" ? LEVELS.length : LEVELS.indexOf(level));
const ranked = (variable, otherwise) => {
  const found = rank(env(variable));
  return found >= 0 ? found : otherwise;
};
const lowest = ranked("MCPX_LOG_LEVEL", rank("info"));
const located = ranked("MCPX_LOG_SOURCE", rank("off"));
const underMcpx = env("MCPX_RUN") !== undefined;

/** Where the script called, as `file:line:column`; the launcher knows how to tell the script's places from others. */
function callSite() {
  const error = new Error();
  const [known] = state.frames?.(error) ?? [];
  if (known) return `${known.source}:${known.line}:${known.column}`;
  const line = (error.stack ?? "").split("\n").find((line) => isFrame(line) && !line.includes(here));
  return /\(?([^()\s]+:\d+:\d+)\)?\s*$/.exec(line ?? "")?.[1];
}

/** One log record. What a method of the console printed is a message as it stands. */
function say(level, message, fields, method) {
  if (level < lowest) return;
  const text = method ? message : String(message).replace(/\{([\w.$-]+)\}/g, (whole, key) =>
    fields && Object.hasOwn(fields, key)
      ? typeof fields[key] === "string"
        ? fields[key]
        : (json(fields[key]) ?? "undefined")
      : whole,
  );
  if (!underMcpx) return complain(`${LEVELS[level]}: ${text}`);
  const entry = { t: "log", level: LEVELS[level], at: Date.now(), message: text };
  if (fields !== undefined) entry.fields = fields;
  if (method) entry.console = method;
  if (level >= located) entry.source = callSite();
  record(json(entry));
}

/** Records on stderr: `log.info("fetched {n} rows", {n})`. */
export const log = {
  debug: (message, fields) => say(0, message, fields),
  info: (message, fields) => say(1, message, fields),
  warn: (message, fields) => say(2, message, fields),
  error: (message, fields) => say(3, message, fields),
};

/** The script's own arguments. */
export const args = deno ? deno.args : process.argv.slice(2);

/** Where things are: `cwd`, `script`, `entry`, `client`, `config`, `scriptDirs`. */
export const paths = {
  get cwd() {
    return env("MCPX_CWD") ?? (deno ? deno.cwd() : process.cwd());
  },
  script: undefined,
  get entry() {
    return env("MCPX_ENTRY");
  },
  get client() {
    return env("MCPX_CLIENT");
  },
  get config() {
    return env("MCPX_CONFIG_PATH") || undefined;
  },
  get scriptDirs() {
    return (env("MCPX_SCRIPT_DIRS") ?? "").split(":").filter(Boolean);
  },
};
