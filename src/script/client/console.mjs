// The script's console: each method gives what the runtime itself would print,
// line for line, and hands it on as a record or as plain output. Stands between
// tools.mjs and launcher.mjs in the generated client.

/** The methods that print, with the level of what they print; what is a warning or worse goes to stderr. */
const CONSOLE = {
  debug: 0,
  log: 1,
  info: 1,
  dir: 1,
  dirxml: 1,
  table: 1,
  group: 1,
  groupCollapsed: 1,
  groupEnd: 1,
  count: 1,
  countReset: 2,
  time: 2,
  timeLog: 1,
  timeEnd: 1,
  warn: 2,
  error: 3,
  assert: 3,
  trace: 3,
};
const WARN = 2;

/**
 * Takes over the console. With `plain` its lines stay output; what the reader does not take then ends the script.
 * Nothing is made before the script prints for the first time.
 */
function takeConsole(plain) {
  let method;
  let formatting;
  const write = (text) => {
    // The runtime's own line end; frames of this file are nobody's business.
    let line = text.endsWith("\n") ? text.slice(0, -1) : text;
    if (line.includes(here)) line = withoutOwnFrames(line);
    const level = CONSOLE[method];
    try {
      if (!plain) say(level, line, undefined, method);
      else if (level < WARN) print(line);
      else complain(line);
    } catch (error) {
      unwritten(error);
    }
    return true;
  };
  for (const name of Object.keys(CONSOLE)) {
    if (typeof console[name] !== "function") continue;
    const shown = {
      [name](...values) {
        const outer = method;
        method = name;
        try {
          formatting ??= formatter(write);
          formatting[name](...values);
        } finally {
          method = outer;
        }
      },
    };
    console[name] = shown[name];
  }
}

const withoutOwnFrames = (text) =>
  text
    .split("\n")
    .filter((line) => !isFrame(line) || !(line.includes(here) || line.includes(entryFile)))
    .join("\n")
    .trimEnd();

/** A console of the runtime's own making that writes its text to `write`. */
function formatter(write) {
  if (bun) return bunConsole(write);
  const Own = deno?.[deno.internal]?.Console;
  if (Own) return new Own(write);
  const { Console } = console;
  // What a stream has to have, for a console that sees no terminal.
  const stream = { write, on() {}, once() {}, removeListener() {}, listenerCount: () => 0 };
  return new Console({ stdout: stream, stderr: stream });
}

/** What bun's console prints: it has no way of its own to print elsewhere that looks the same. */
function bunConsole(write) {
  const counts = new Map();
  const since = new Map();
  const OPTIONS = { depth: 2 };
  let depth = 0;
  const margin = () => "  ".repeat(depth);
  const shown = (value, options = OPTIONS) =>
    typeof value === "string" ? value : bun.inspect(value, options).replaceAll("\n", `\n${margin()}`);
  const whole = (value) => String(typeof value === "bigint" ? value : parseInt(String(Number(value))));
  const verbs = {
    s: (value) =>
      typeof value === "function" && isClass(value) ? shown(value) : Object.is(value, -0) ? "0" : String(value),
    d: whole,
    i: whole,
    f: (value) => String(Number(value)),
    j: (value) => JSON.stringify(value),
    o: (value) => shown(value),
    O: (value) => shown(value),
    c: () => "",
  };
  // Any text that has something behind it may be a format, not the first alone.
  const text = (values) => {
    const rest = [...values];
    const parts = [];
    while (rest.length) {
      const value = rest.shift();
      const isFormat = typeof value === "string" && rest.length && value.includes("%");
      parts.push(
        isFormat
          ? value.replace(/%([sdifjoOc%])/g, (verb, letter) =>
              letter === "%" ? "%" : rest.length ? verbs[letter](rest.shift()) : verb,
            )
          : shown(value),
      );
    }
    return parts.join(" ");
  };
  const line = (...values) => write(values.length ? `${margin()}${text(values)}\n` : "\n");
  const elapsed = (label) => `[${(performance.now() - (since.get(label) ?? performance.now())).toFixed(2)}ms] ${label}`;
  const count = (label = "default") => {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    write(`${label}: ${counts.get(label)}\n`);
  };
  const group = (...values) => {
    if (values.length) line(...values);
    depth++;
  };
  return {
    debug: line,
    log: line,
    info: line,
    warn: line,
    error: line,
    dirxml: line,
    dir: (value, options) => write(`${margin()}${shown(value, { ...OPTIONS, ...options })}\n`),
    table: (data, columns) =>
      data !== null && typeof data === "object" ? write(bun.inspect.table(data, columns)) : line(data),
    group,
    // bun has no margin for it.
    groupCollapsed: line,
    groupEnd: () => void (depth = Math.max(0, depth - 1)),
    count,
    countReset: (label = "default") => void counts.delete(label),
    time: (label = "default") => void since.set(label, performance.now()),
    timeLog: (label = "default", ...values) =>
      since.has(label) && write(`${[elapsed(label), ...values.map((value) => shown(value))].join(" ")}\n`),
    timeEnd(label = "default") {
      if (since.has(label)) write(`${elapsed(label)}\n`);
      since.delete(label);
    },
    assert(condition, ...values) {
      if (!condition) line(...(values.length ? values : ["Assertion failed"]));
    },
    trace(...values) {
      const frames = String(new Error().stack).split("\n").filter(isFrame);
      const places = frames.map((frame) => `      ${frame.trim()}`);
      write(`${[...(values.length ? [text(values)] : []), ...places].join("\n")}\n`);
    },
  };
}
