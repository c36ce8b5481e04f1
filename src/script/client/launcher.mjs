// Starts a script: evaluates inline code or loads a file, prints its value,
// and reports what it threw. Follows link.mjs, tools.mjs, artifact.mjs and console.mjs in the
// generated client; a client that a script checked in does not have it.

/** Names that stand for the script's own tools; a namespace of the same name is reached through `tools`. */
const HELPERS = { tools, emit, log, args, paths, artifact, ToolError };

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
  // Before node 20.16 there is no way to files that does not load more than the streams do.
  if (process.getBuiltinModule) state.unmade = new Set();
  for (const stream of ["stdout", "stderr"]) {
    const { get } = Object.getOwnPropertyDescriptor(process, stream) ?? {};
    if (!get) continue;
    state.unmade?.add(stream);
    Object.defineProperty(process, stream, {
      configurable: true,
      enumerable: true,
      get() {
        state.unmade?.delete(stream);
        const value = get.call(process);
        Object.defineProperty(process, stream, { configurable: true, enumerable: true, writable: true, value });
        value._handle?.setBlocking?.(true);
        value.once("error", unwritten);
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
  const late = (error) => {
    const where = { ...placed, late: true };
    // At once, where nothing has to be waited for.
    if (failed) fail(error, where);
    else report(error, where);
  };
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
const SOURCE = "<exec>";
const STRICT = '"use strict";(';
const EXPORT = "export default ";

/**
 * A program that is compiled: its `code`, the `source` that stands for its file, the names that it is given, and
 * what imports come to (`const{sep}=$mcpx(await import("node:path"),"node:path",["sep"]);`).
 */
const program = (code, source = SOURCE, names = [], imports = "") => ({ code, source, names, imports });

/** How many characters stand before the code on a source's first line. */
const heads = new Map();

/** The ways to make a function of a program: of an expression if it is one, else of statements. */
const FORMS = [
  { before: "return(", after: "\n)}", trim: true },
  { before: "", after: "\n}", trim: false },
];

function headOf(form, { names, imports }) {
  return `async(${imports ? ["$mcpx", ...names] : names})=>{${imports}${form.before}`;
}

function wrapped(form, program) {
  const { code } = program;
  let end = code.length;
  // An expression takes no semicolon. (A regular expression would cost 50 us here.)
  if (form.trim) while (end > 0 && " \n\r\t;".includes(code[end - 1])) end--;
  return headOf(form, program) + code.slice(0, end) + form.after;
}

function compiled(text, source, evaluate) {
  const [main] = evaluate(`${STRICT}${text})\n//# sourceURL=${source}`);
  return main;
}

/** What an import of the code gives: the module, of which each name has to be there, as a static import wants it. */
const imported = (lenient) => (module, from, names, line) => {
  const missing = lenient ? undefined : names.find((name) => !(name in module));
  if (missing === undefined) return module;
  const there = Object.keys(module);
  const error = new SyntaxError(`the module ${JSON.stringify(from)} has no export ${JSON.stringify(missing)}`);
  error.hint = there.length ? `it exports ${there.slice(0, 20).join(", ")}` : "it exports nothing";
  error.stack = `SyntaxError: ${error.message}\n    at ${SOURCE}:${line}:${line === 1 ? heads.get(SOURCE) + 1 : 1}`;
  throw error;
};

/** A program as a function: as JavaScript first, else as TypeScript. */
async function compile(program, entry, evaluate) {
  const { source } = program;
  const made = (main, form, before, lenient) => {
    heads.set(source, (before + headOf(form, program)).length);
    return program.imports ? (...values) => main(imported(lenient), ...values) : main;
  };
  let error;
  for (const form of FORMS) {
    try {
      return made(compiled(wrapped(form, program), source, evaluate), form, STRICT, false);
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError)) throw thrown;
      error = thrown;
    }
  }
  for (const form of FORMS) {
    try {
      const main = await typescript(wrapped(form, program), entry, evaluate, program, form);
      // A type that is imported is in no module.
      if (main) return made(main, form, deno || bun ? EXPORT : STRICT, true);
    } catch (thrown) {
      error = thrown;
    }
  }
  throw await locatedSyntax(error, program);
}

/** What the runtime makes of TypeScript; nothing when it can make nothing of it. Line numbers stay. */
async function typescript(text, entry, evaluate, { source }, form) {
  if (deno) {
    // A stack shows the beginning of a data address only, which tells one of them from the rest.
    const type = "application/typescript";
    const url =
      source === SOURCE
        ? `data:${type},${encodeURIComponent(EXPORT + text)}`
        : URL.createObjectURL(new Blob([EXPORT + text], { type }));
    sources.push([source === SOURCE ? `data:${type}` : url, source]);
    return (await import(url)).default;
  }
  if (bun) {
    // The transpiler alone would lose the lines; a file has a source map.
    const part = source === SOURCE ? "" : `.${source.slice(1, -1)}`;
    const file = entry.replace(/\.mjs$/, `${part}${form.trim ? ".x" : ".s"}.ts`);
    sources.push([file, source]);
    await bun.write(file, EXPORT + text);
    return (await import(file)).default;
  }
  const module = process.getBuiltinModule?.("module") ?? (await import("node:module"));
  if (!module.stripTypeScriptTypes) return undefined;
  return compiled(module.stripTypeScriptTypes(text, { mode: "strip" }), source, evaluate);
}

/** A syntax error that says where it is, which `eval` does not. */
async function locatedSyntax(error, program) {
  const { source } = program;
  const text = wrapped(FORMS[1], program);
  let message = String(error?.message ?? error);
  let place;
  let hint;
  let head = headOf(FORMS[1], program).length;
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
  located.stack = place ? `SyntaxError: ${message}\n    at ${source}:${place[0]}:${place[1]}` : `SyntaxError: ${message}`;
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
  if (inline && error?.name === "SyntaxError" && /return/i.test(error.message)) {
    return "code with export or import.meta is a module, which cannot return; write export default <value>";
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

/** What stands in a stack for a program that is no file of the user's: a part of what the engine shows, and its source. */
const sources = [];

/** The source that a place in a stack belongs to, when it is one of ours. */
function sourceOf(place) {
  if (/^<[a-zA-Z]+>$/.test(place)) return place === "<anonymous>" ? undefined : place;
  return sources.find(([part]) => place.includes(part))?.[1];
}

/** A column without what stands before the code on its line. */
const ownColumn = (source, row, column) =>
  row === 1 ? Math.max(1, column - (heads.get(source) ?? 0)) : column;

/** The frames a person can use: places in their own code, as paths. */
function frames(error) {
  const found = [];
  // bun's syntax errors say where they are in a property.
  if (error?.position?.file) {
    const { file, line, column } = error.position;
    const source = sourceOf(file) ?? file;
    return [{ text: `${source}:${line}:${column}`, line, column, source }];
  }
  const stack = String(error?.stack ?? "");
  for (const line of stack.split("\n")) {
    if (!isFrame(line) || line.includes(here)) continue;
    if (/\((?:node|ext|internal):|at (?:async )?(?:node|ext|internal):|<parse>|\(unknown\)|\(native\)/.test(line)) continue;
    const at = /^\s*at (?:async )?(?:(.*?) \()?(.*?):(\d+):(\d+)\)?$/.exec(line);
    if (!at) continue;
    let [, what, place, row, column] = at;
    if (place.endsWith(entryFile)) continue;
    place = place.replace(/, <anonymous>$/, "");
    if (place === "<anonymous>") continue;
    const source = sourceOf(place) ?? place.replace(/^file:\/\//, "");
    row = Number(row);
    column = ownColumn(source, row, Number(column));
    if (!what || /^((Timeout\.|Immediate\.)?(eval|<anonymous>)( \[as \w+\])?|anonymous|<anonymous>|default|Module\.default|starDefault|\w+_default|module code|async .*)$/.test(what)) what = "";
    const text = `${source}:${row}:${column}`;
    found.push({ text: what ? `${what} (${text})` : text, line: row, column, source });
  }
  if (found.length === 0) {
    // A syntax error in a file: the engine puts the place above the message.
    const above = /^(?:file:\/\/)?([^\s:][^\n:]*):(\d+)\n/.exec(stack);
    if (above) found.push({ text: `${above[1]}:${above[2]}`, line: Number(above[2]), source: above[1] });
  }
  return found;
}

state.frames = frames;

let entryFile = "\0";

/** Tells what the script threw, and ends it with the exit code of the error's kind. */
function report(error, where) {
  if (error?.name === "BuildMessage") Object.defineProperty(error, "name", { value: "SyntaxError" });
  const isError = error instanceof Error || (typeof error?.message === "string" && typeof error?.name === "string");
  const message = isError ? `${error.name}: ${error.message}` : `threw ${typeof error === "string" ? error : json(error)}`;
  const places = isError ? frames(error) : [];
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
  try {
    complain(told.join("\n"));
  } catch {
    // Nobody is left to tell it to.
  }
  if (deno) deno.exit(code);
  process.exit(code);
}

/**
 * Runs the script, `body`, and what its settings have run around it: `around` has the texts of `before`, `prefix`,
 * `suffix`, `onSuccess` and `onError`, those that there are, and `plain` for a console that is not recorded.
 */
async function through(around, entry, evaluate, body) {
  entryFile = entry;
  takeConsole(around?.plain === true);
  waiting = true;
  try {
    // Nearly every script has nothing around it, and each step to wait for costs it time.
    result(around ? await surrounded(around, entry, evaluate, body) : await body());
    waiting = false;
  } catch (error) {
    await fail(error, placed);
  }
}

/** The script's value, with what its settings have run before and after it. */
async function surrounded(around, entry, evaluate, body) {
  const aside = async (name, names, values) => {
    if (around[name] === undefined) return;
    await (await compile(program(around[name], `<${name}>`, names), entry, evaluate))(...values);
  };
  if (around.onError !== undefined) failed = (error) => aside("onError", ["error"], [error]);
  await aside("before", [], []);
  await beside(around.prefix, "<prefix>");
  const value = await body();
  await beside(around.suffix, "<suffix>");
  await aside("onSuccess", ["result"], [value]);
  return value;
}

/** What the script's settings want run when it has failed. */
let failed;

/** Reports what the script threw, after `onError` has seen it; what that throws itself changes nothing. */
async function fail(error, where) {
  const onError = failed;
  // What it throws later is no reason to run it again.
  failed = undefined;
  try {
    await onError?.(error);
  } catch (second) {
    const [place] = frames(second);
    complain(`onError: ${second?.name ?? "threw"}: ${second?.message ?? json(second)}${place ? `\n    at ${place.text}` : ""}`);
  }
  report(error, where);
}

/** Runs a text as a program of the whole process, so that what it declares is there for the script, its files included. */
async function beside(text, source) {
  if (text === undefined) return;
  const vm = globalThis.process?.getBuiltinModule?.("vm") ?? (await import("node:vm"));
  try {
    vm.runInThisContext(text, { filename: source });
  } catch (error) {
    // deno does not say where its syntax is wrong.
    if (error instanceof SyntaxError && frames(error).length === 0) error.message += ` (in ${source})`;
    throw error;
  }
}

/** Runs inline code. `entry` is the file that embeds it, `evaluate` indirect eval from within that file, in a list. */
async function exec(code, entry, evaluate, around) {
  await through(around, entry, evaluate, async () => {
    const main = await compile(program(code, SOURCE, [], around?.imports), entry, evaluate);
    return await valueOf(await main());
  });
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
async function run(load, script, entry, evaluate, { inline, name, around } = {}) {
  if (inline) {
    placed = { module: true };
    sources.push([script, SOURCE]);
  } else {
    paths.script = script;
    if (!deno) process.argv[1] = script;
  }
  await through(around, entry, evaluate, async () => {
    const module = await load();
    if (name !== undefined) return await valueOf(exported(module, name, inline ? "the code" : script));
    if (typeof module.default === "function") return await valueOf(module.default);
    return undefined;
  });
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
    if (!deno && !bun) blockingOutput();
    // Nothing is left that could happen.
    const stuck = () => {
      if (!waiting) return;
      const error = new Error("the script ended while it still waited for a promise that nothing will settle");
      error.stack = `Error: ${error.message}`;
      error.hint = "what it awaits has no timer, request or process behind it that could still answer";
      report(error);
    };
    if (deno) globalThis.addEventListener("beforeunload", stuck, { once: true });
    else process.once("beforeExit", stuck);
    globals(namespaces);
  },
};
