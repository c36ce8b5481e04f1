// Starts a script: evaluates inline code or loads a file, prints its value,
// and reports what it threw. Follows link.mjs and tools.mjs in the generated
// client; a client that a script checked in does not have it.

/** Names that stand for the script's own tools; a namespace of the same name is reached through `tools`. */
const HELPERS = { tools, emit, log, args, paths, ToolError };

/** The namespaces, for whoever mistypes one. */
let known = [];

/** Whether the script's own code is still awaited. */
let waiting = false;

/** Makes namespaces and helpers global, except where JavaScript has a global of that name already. */
function globals(namespaces) {
  const define = (key, value) => {
    if (key in globalThis) return;
    Object.defineProperty(globalThis, key, { value, configurable: true, writable: true });
  };
  for (const key of Object.keys(HELPERS)) define(key, HELPERS[key]);
  for (const [ident, server] of namespaces) define(ident, tools[server]);
  known = namespaces.map(([ident]) => ident);
}

/** Makes writing to a pipe wait, so that a script that exits in the middle loses nothing (node writes pipes later). */
function blockingOutput() {
  for (const stream of ["stdout", "stderr"]) {
    const { get } = Object.getOwnPropertyDescriptor(process, stream) ?? {};
    if (!get) continue;
    Object.defineProperty(process, stream, {
      configurable: true,
      enumerable: true,
      get() {
        const value = get.call(process);
        Object.defineProperty(process, stream, { configurable: true, enumerable: true, writable: true, value });
        value._handle?.setBlocking?.(true);
        if (stream === "stdout") value.once("error", unwritten);
        return value;
      },
    });
  }
}

/** Ends a script whose output goes nowhere; quietly, as SIGPIPE would, when the reader has left. */
function unwritten(error) {
  if (error.code === "EPIPE" || error.name === "BrokenPipe") deno ? deno.exit(141) : process.exit(141);
  report(new Error(`what the script printed cannot be written: ${error.message}`));
}

/** Where the script's code stands, for reports of what it throws after it has returned. */
let placed;

const UNCAUGHT = ["unhandledRejection", "uncaughtException"];

/** Reports what nobody caught, unless the script has a say in that itself. */
function uncaught() {
  const late = (error) => report(error, { ...placed, late: true });
  if (deno) {
    for (const [type, key] of [["unhandledrejection", "reason"], ["error", "error"]]) {
      globalThis.addEventListener(type, (event) => {
        let handled = false;
        const prevent = event.preventDefault.bind(event);
        prevent();
        // A listener of the script comes after this one, and tells so by the same call.
        event.preventDefault = () => void (handled = true);
        queueMicrotask(() => handled || late(event[key]));
      });
    }
    return;
  }
  for (const type of UNCAUGHT) {
    process.on(type, (error) => process.listenerCount(type) > 1 || late(error));
  }
}

// ---- inline code -----------------------------------------------------------

// Everything that wraps the code stands on its first line, and indirect eval
// adds none of its own, so that a line number is the user's without arithmetic.
const FORMS = [
  { head: "async()=>{return(", tail: "\n)}", trim: true },
  { head: "async()=>{", tail: "\n}", trim: false },
];
const SOURCE = "<exec>";
const STRICT = '"use strict";(';
const EXPORT = "export default ";

function wrapped(form, code) {
  let end = code.length;
  // An expression takes no semicolon. (A regular expression would cost 50 us here.)
  if (form.trim) while (end > 0 && " \n\r\t;".includes(code[end - 1])) end--;
  return form.head + code.slice(0, end) + form.tail;
}

function compiled(text, evaluate) {
  const [main] = evaluate(`${STRICT}${text})\n//# sourceURL=${SOURCE}`);
  return main;
}

/** The code as a function: an expression if it is one, else statements; as JavaScript first, else as TypeScript. */
async function compile(code, entry, evaluate) {
  let error;
  for (const form of FORMS) {
    try {
      return { main: compiled(wrapped(form, code), evaluate), form: { head: STRICT + form.head } };
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError)) throw thrown;
      error = thrown;
    }
  }
  for (const form of FORMS) {
    try {
      const main = await typescript(wrapped(form, code), entry, evaluate);
      if (main) return { main, form: { head: (deno || bun ? EXPORT : STRICT) + form.head } };
    } catch (thrown) {
      error = thrown;
    }
  }
  throw await locatedSyntax(error, code);
}

/** What the runtime makes of TypeScript; nothing when it can make nothing of it. Line numbers stay. */
async function typescript(text, entry, evaluate) {
  if (deno) {
    const source = `data:application/typescript,${encodeURIComponent(EXPORT + text)}`;
    return (await import(source)).default;
  }
  if (bun) {
    // The transpiler alone would lose the lines; a file has a source map.
    const file = entry.replace(/\.mjs$/, text.startsWith(FORMS[0].head) ? ".x.ts" : ".s.ts");
    await bun.write(file, EXPORT + text);
    return (await import(file)).default;
  }
  const module = process.getBuiltinModule?.("module") ?? (await import("node:module"));
  if (!module.stripTypeScriptTypes) return undefined;
  return compiled(module.stripTypeScriptTypes(text, { mode: "strip" }), evaluate);
}

/** A syntax error that says where it is, which `eval` does not. */
async function locatedSyntax(error, code) {
  const text = wrapped(FORMS[1], code);
  let message = String(error?.message ?? error);
  let place;
  let hint;
  let head = FORMS[1].head.length;
  if (deno || error?.position) head += EXPORT.length;
  if (error?.position) place = [error.position.line, error.position.column];
  else if (deno) {
    const found = /:(\d+):(\d+)\s*$/.exec(message);
    if (found) place = [Number(found[1]), Number(found[2])];
    message = message.replace(/^SyntaxError: /, "").split("\n")[0];
  } else {
    if (!error.code?.includes("TYPESCRIPT")) {
      const { Script } = await import("node:vm");
      try {
        new Script(text);
      } catch (thrown) {
        error = thrown;
        message = thrown.message;
      }
      if (!bun) hint = `if this is TypeScript: node ${process.version} cannot read it; use --runtime deno or bun`;
    } else if (error.code.includes("UNSUPPORTED")) hint = "node only strips types; use --runtime deno or bun";
    const found = /^[^\n]*:(\d+)\n(?:[^\n]*\n)*?( *)\^/.exec(error.stack ?? "");
    if (found) place = [Number(found[1]), found[2].length + 1];
  }
  const located = new SyntaxError(message);
  if (hint) located.hint = hint;
  if (place?.[0] === 1) place[1] = Math.max(1, place[1] - head);
  located.stack = place ? `SyntaxError: ${message}\n    at ${SOURCE}:${place[0]}:${place[1]}` : `SyntaxError: ${message}`;
  return located;
}

// ---- running and reporting -------------------------------------------------

/** How many letters have to change to make one name of another. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
    row = next;
  }
  return row[b.length];
}

/** What to do about an error that JavaScript alone explains badly. */
function advice(error, inline) {
  if (error instanceof ReferenceError) {
    const [, name] = /^(\S+) is not defined$/.exec(error.message) ?? [];
    const near = name && known.find((ident) => distance(name, ident) <= Math.max(1, name.length / 3));
    if (near) return `did you mean "${near}"? \`mcpx ls\` shows the namespaces`;
  }
  if (/["']mcpx["']/.test(error?.message) && /import|package|module/i.test(error.message)) {
    return "a file cannot import mcpx by its name: `mcpx client -o <path>` writes a module to import, and under mcpx run every namespace is a global";
  }
  if (inline && error instanceof SyntaxError && /return/i.test(error.message)) {
    return "code with import or export is a module, which cannot return; write export default <value>";
  }
  return undefined;
}

/** The script's value on stdout: a string as it is, nothing for undefined, everything else as JSON. */
function result(value) {
  // A timer, a socket, a server: something that goes on, and no value.
  if (typeof value?.unref === "function") return;
  const text = typeof value === "string" ? value : json(value);
  if (text === undefined) return;
  try {
    print(text.endsWith("\n") ? text.slice(0, -1) : text, true);
  } catch (error) {
    unwritten(error);
  }
  if (capture) record(`{"t":"result","value":${typeof value === "string" ? JSON.stringify(value) : text}}`);
}

const isClass = (value) => /^class[\s{]/.test(Function.prototype.toString.call(value));

async function valueOf(value) {
  return typeof value === "function" && !isClass(value) ? value(...args) : value;
}

/** The frames a person can use: places in their own code, as paths. */
function frames(error, { head = "", file } = {}) {
  const found = [];
  // bun's syntax errors say where they are in a property.
  if (error?.position?.file) {
    const { file: path, line, column } = error.position;
    const source = file && path.includes(file) ? SOURCE : path;
    return [{ text: `${source}:${line}:${column}`, line, column, source }];
  }
  const stack = String(error?.stack ?? "");
  for (const line of stack.split("\n")) {
    if (!isFrame(line) || line.includes(here)) continue;
    if (/\((?:node|ext|internal):|at (?:async )?(?:node|ext|internal):|<parse>|\(unknown\)|\(native\)/.test(line)) continue;
    const at = /^\s*at (?:async )?(?:(.*?) \()?(.*?):(\d+):(\d+)\)?$/.exec(line);
    if (!at) continue;
    let [, what, source, row, column] = at;
    if (source.endsWith(entryFile)) continue;
    source = source.replace(/, <anonymous>$/, "");
    const inline = source === SOURCE || source.startsWith("data:application/typescript") || (file && source.includes(file));
    if (inline) {
      if (source !== SOURCE || head) column = row === "1" ? Math.max(1, column - head.length) : column;
      source = SOURCE;
    } else if (source === "<anonymous>") continue;
    source = source.replace(/^file:\/\//, "");
    if (!what || /^((Timeout\.|Immediate\.)?(eval|<anonymous>)( \[as \w+\])?|anonymous|<anonymous>|default|Module\.default|starDefault|module code|async .*)$/.test(what)) what = "";
    const place = `${source}:${row}:${column}`;
    found.push({ text: what ? `${what} (${place})` : place, line: Number(row), column: Number(column), source });
  }
  if (found.length === 0) {
    // A syntax error in a file: the engine puts the place above the message.
    const above = /^(?:file:\/\/)?([^\s:][^\n:]*):(\d+)\n/.exec(stack);
    if (above) found.push({ text: `${above[1]}:${above[2]}`, line: Number(above[2]), source: above[1] });
  }
  return found;
}

let entryFile = "\0";

/** Tells what the script threw, and ends it with the exit code of the error's kind. */
function report(error, where) {
  if (error?.name === "BuildMessage") Object.defineProperty(error, "name", { value: "SyntaxError" });
  const isError = error instanceof Error || (typeof error?.message === "string" && typeof error?.name === "string");
  const message = isError ? `${error.name}: ${error.message}` : `threw ${typeof error === "string" ? error : json(error)}`;
  const places = isError ? frames(error, where) : [];
  const hint = error?.hint ?? advice(error, where?.module);
  const told = [message, ...places.map((place) => `    at ${place.text}`)];
  if (error instanceof ToolError) told.push(`  ${error.tool ? `tool ${error.server}.${error.tool}, ` : ""}kind ${error.kind}`);
  if (hint) told.push(`  ${hint}`);
  if (error?.cause instanceof Error) told.push(`  caused by ${error.cause.name}: ${error.cause.message}`);
  if (capture) {
    const { kind, server, tool, raw } = error instanceof ToolError ? error : {};
    const [first] = places;
    const details = {
      name: isError ? error.name : undefined,
      message: isError ? error.message : message,
      kind: kind ?? "script",
      server,
      tool,
      hint,
      raw,
      stack: places.map((place) => place.text),
      line: first?.line,
      column: first?.column,
    };
    record(json({ t: "error", error: details }));
  }
  // Only node itself can tell where a syntax error in a file is, and only when nobody catches it.
  if (error instanceof SyntaxError && places.length === 0 && !hint && !deno && !bun && !where?.late) {
    for (const type of UNCAUGHT) process.removeAllListeners(type);
    throw error;
  }
  const code = (error instanceof ToolError && EXITS[error.kind]) || 1;
  console.error(told.join("\n"));
  if (deno) deno.exit(code);
  process.exit(code);
}

/** Runs inline code. `entry` is the file that embeds it, `evaluate` indirect eval from within that file, in a list. */
async function exec(code, entry, evaluate) {
  entryFile = entry;
  let where;
  waiting = true;
  try {
    const { main, form } = await compile(code, entry, evaluate);
    placed = where = { head: form.head, file: entry.replace(/\.mjs$/, "") };
    result(await valueOf(await main()));
    waiting = false;
  } catch (error) {
    report(error, where);
  }
}

/** The export that was asked for. */
function exported(module, name, script) {
  if (name in module) return module[name];
  const names = Object.keys(module);
  const hint = names.length ? `it exports ${names.join(", ")}` : "it exports nothing";
  throw new ToolError(`${script} has no export ${JSON.stringify(name)}`, { kind: "usage", hint });
}

/**
 * Runs a module: `load` imports it, `script` is its path, `inline` whether mcpx wrote that file for inline code,
 * `name` the export that is called instead of the default one.
 */
async function run(load, script, entry, inline, name) {
  entryFile = entry;
  if (!inline) {
    paths.script = script;
    if (!deno) process.argv[1] = script;
  }
  waiting = true;
  if (inline) placed = { file: script, module: true };
  try {
    const module = await load();
    if (name !== undefined) result(await valueOf(exported(module, name, inline ? "the code" : script)));
    else if (typeof module.default === "function") result(await valueOf(module.default));
    waiting = false;
  } catch (error) {
    report(error, placed);
  }
}

/** Several ways to load a module whose language is not known: what is no JavaScript may be TypeScript. */
function first(load, ...others) {
  return async () => {
    try {
      return await load();
    } catch (error) {
      if (!(error instanceof SyntaxError) || others.length === 0) throw error;
      return await others[0]();
    }
  };
}

/** What the generated entry calls. */
export const launcher = {
  exec,
  run,
  first,
  start(namespaces) {
    state.unwritten = unwritten;
    uncaught();
    if (!deno) {
      if (!bun) blockingOutput();
      // deno says so itself, because its entry awaits the script.
      process.once("beforeExit", () => {
        if (waiting) report(new Error("the script ended while it still waited for a promise that nothing will settle"));
      });
    }
    globals(namespaces);
  },
};
