// mcpx in opencode: tells each shell which session and which daemon it belongs
// to, and offers a few tools. All that is about mcpx is in mcpx/daemon.ts.

import { isMainThread } from "node:worker_threads";
import * as path from "node:path";
import type { Hooks, Plugin, PluginInput, PluginOptions, ToolContext, ToolDefinition } from "@opencode-ai/plugin";
import { DaemonError, Finder, describe, isMissing, messageOf, pluginSettings, which } from "./mcpx/daemon.ts";
import type { Candidate, Choice, Found, PluginSettings, Remember } from "./mcpx/daemon.ts";

/** Every limit of this file; each can be given another value through the option `tuning`. */
const LIMITS = {
  /** How long a question to the editor may take, milliseconds. */
  editorMs: 5000,
  /** How many ancestors of a session are looked at. */
  depth: 16,
  /** How many sessions are known at a time. */
  sessions: 200,
  /** The longest result of a tool, in characters. */
  result: 40_000,
  /** How many rows a tool shows. */
  rows: 200,
};

type Env = Record<string, string>;

interface Session {
  id: string;
  parentID?: string;
  title: string;
  directory: string;
  version: string;
  time: { created: number };
}

export const McpxPlugin: Plugin = async (input, options = {}) => {
  try {
    return await new Adapter(input, options).start();
  } catch (error) {
    // An editor without mcpx is better than no editor.
    console.error(`mcpx: ${messageOf(error)}`);
    return {};
  }
};

function put(env: Env, name: string, value: unknown): void {
  if (value !== undefined && value !== null && value !== "") env[name] = String(value);
}

class Adapter {
  private readonly input: PluginInput;
  private readonly options: PluginOptions;
  private readonly limits: typeof LIMITS;
  private settings: PluginSettings;
  private problems: string[];
  private finder: Finder;
  private readonly started = new Date();
  private version: Promise<string | undefined> = Promise.resolve(undefined);
  private shells = 0;
  private told = new Set<string>();
  private sessions = new Map<string, Promise<Session | undefined>>();
  private begun = new Map<string, number>();
  /** What each session was shown last, so that a number means what was read. */
  private shown = new Map<string, Candidate[]>();
  /** Choices whose permission may turn out to be for always. */
  private chosen = new Map<string, { candidate: Candidate; mode: Remember }>();
  private logless = false;

  constructor(input: PluginInput, options: PluginOptions) {
    this.input = input;
    this.options = options;
    this.limits = { ...LIMITS, ...(options.tuning as object | undefined) };
    ({ settings: this.settings, problems: this.problems } = pluginSettings(options));
    this.finder = this.makeFinder();
  }

  private makeFinder(): Finder {
    const { endpoint, socket, bin, binArgs, backend } = this.settings;
    return new Finder({ endpoint, socket, bin, binArgs, backend, tuning: this.options.tuning as object });
  }

  async start(): Promise<Hooks> {
    let found = await this.finder.find(this.input.directory);
    const configured = await this.configured(found);
    if (Object.keys(configured).length) {
      ({ settings: this.settings, problems: this.problems } = pluginSettings(this.options, process.env, configured));
      this.finder = this.makeFinder();
      found = await this.finder.find(this.input.directory);
    }
    // To wait for the editor before it has started would stop it from starting.
    this.version = this.askVersion();
    for (const problem of this.problems) this.notify("", `option:${problem}`, problem);
    this.warn("", found);
    const { tools, daemonTools, toolTiming, instructions } = this.settings;
    const offered = tools === "on" || (tools === "auto" && !which(this.settings.bin));
    const choosing = daemonTools === "on" || (daemonTools === "auto" && (offered || found.candidates.length > 1));
    return {
      "shell.env": (at, output) => this.shell(at, output.env),
      event: async ({ event }) => this.event(event as { type: string; properties: any }),
      ...(toolTiming && {
        "tool.execute.before": async (at) => void this.begun.set(at.callID, performance.now()),
        "tool.execute.after": async (at) => this.time(at.tool, at.sessionID, at.callID),
      }),
      ...(instructions && {
        "experimental.chat.system.transform": async (_, output) => void output.system.push(INSTRUCTIONS),
      }),
      tool: { ...(offered && this.tools()), ...(choosing && this.daemonTools()) },
    };
  }

  private async askVersion(): Promise<string | undefined> {
    return (await this.ask<{ version?: string }>(() => (this.input.client as any)._client.get({ url: "/global/health" })))?.version;
  }

  /** What a configuration file of the daemon's says of this plugin. */
  private async configured(found: Found): Promise<Record<string, unknown>> {
    const said: Record<string, unknown> = {};
    try {
      const rows = (await found.client?.settings(undefined, { timeoutMs: this.finder.tuning.healthMs }))?.settings ?? [];
      for (const { key, value, source } of rows) {
        // A variable of the daemon's is not one of the editor's.
        if (key.startsWith("plugin.") && source.includes("/")) said[key.slice("plugin.".length)] = value;
      }
    } catch {
      // The defaults do.
    }
    return said;
  }

  /** What the editor answers; nothing when it does not in time. */
  private ask<T>(question: () => Promise<{ data?: T }>): Promise<T | undefined> {
    return new Promise((done) => {
      const timer = setTimeout(() => done(undefined), this.limits.editorMs);
      const told = (data?: T) => (clearTimeout(timer), done(data));
      (async () => (await question()).data)().then(told, () => told());
    });
  }

  // ---- Notices ------------------------------------------------------------

  private headless(): boolean {
    const { headless } = this.settings;
    // With an interface the server is in a worker, and the interface on the main thread.
    return headless === "on" || (headless === "auto" && isMainThread);
  }

  private notify(session: string, reason: string, message: string, variant: "info" | "warning" = "warning"): void {
    const name = `${session}\0${reason}`;
    if (this.headless() || this.told.has(name)) return;
    this.told.add(name);
    void this.ask(() => this.input.client.tui.showToast({ body: { title: "mcpx", message, variant } }) as any);
  }

  /** Says what is odd about a daemon. That none runs yet is not odd. */
  private warn(session: string, found: Found): void {
    if (found.warning && found.rung !== "none") this.notify(session, found.rung, found.warning);
  }

  // ---- The environment of a shell -----------------------------------------

  private async shell(at: { cwd: string; sessionID?: string; callID?: string }, env: Env): Promise<void> {
    const level = this.settings.env;
    const { directory, worktree, project } = this.input;
    const id = at.sessionID;
    put(env, "MCPX_SESSION_ID", id);
    if (level === "minimal") return;

    const trace: [string, string][] = [];
    const note = (name: string, value: string | undefined) => value && trace.push([name, value]);
    const tree = worktree && worktree !== "/" ? worktree : undefined;
    note("session_id", id);
    note("call_id", at.callID);
    note("worktree", tree);
    note("project_id", project?.id);
    put(env, "MCPX_CALL_ID", at.callID);
    put(env, "MCPX_OPENCODE_CWD", at.cwd);
    put(env, "MCPX_OPENCODE_DIRECTORY", directory);
    put(env, "MCPX_OPENCODE_WORKTREE", worktree);
    put(env, "MCPX_WORKTREE_NAME", tree && path.basename(tree));
    put(env, "MCPX_PROJECT_ID", project?.id);
    put(env, "MCPX_HARNESS", "opencode");
    put(env, "MCPX_HARNESS_PID", process.pid);
    put(env, "MCPX_HARNESS_STARTED", this.started.toISOString());
    put(env, "MCPX_SHELL_SEQ", ++this.shells);

    const found = await this.finder.find(directory, id);
    this.warn(id ?? "", found);
    // A guess is not passed on: mcpx itself knows which daemon a directory has.
    if (found.chosen && found.rung !== "best") put(env, "MCPX_DAEMON_ENDPOINT", address(found.chosen));
    let session: Session | undefined;
    if (level === "full" && id) {
      session = await this.session(id);
      const above = await this.ancestors(session);
      const created = session?.time?.created;
      note("parent_session_id", session?.parentID);
      for (const ancestor of above) note("ancestor_session_id", ancestor);
      put(env, "MCPX_PARENT_SESSION_ID", session?.parentID);
      put(env, "MCPX_SESSION_TITLE", session?.title);
      put(env, "MCPX_SESSION_DIRECTORY", session?.directory);
      put(env, "MCPX_SESSION_VERSION", session?.version);
      put(env, "MCPX_SESSION_DEPTH", session && above.length);
      put(env, "MCPX_SESSION_CREATED", created && new Date(created).toISOString());
      put(env, "MCPX_SESSION_AGE_MS", created && Math.max(0, Date.now() - created));
    }
    // While it starts, the editor may be too busy to say.
    const version = (await this.version) ?? (await (this.version = this.askVersion()));
    put(env, "MCPX_HARNESS_VERSION", version ?? session?.version);
    if (trace.length) put(env, "MCPX_TRACE_IDS", JSON.stringify(trace));
  }

  /** A session, looked up once. */
  private session(id: string): Promise<Session | undefined> {
    let known = this.sessions.get(id);
    if (!known) {
      known = this.ask(() => this.input.client.session.get({ path: { id } }) as Promise<{ data?: Session }>);
      this.keep(this.sessions, id, known);
      // What could not be learnt is asked again the next time.
      void known.then((session) => session || this.sessions.delete(id));
    }
    return known;
  }

  /** The ids of a session's ancestors, the nearest first. */
  private async ancestors(session: Session | undefined): Promise<string[]> {
    const above: string[] = [];
    let next = session?.parentID;
    while (next && !above.includes(next) && above.length < this.limits.depth) {
      above.push(next);
      next = (await this.session(next))?.parentID;
    }
    return above;
  }

  private keep<T>(map: Map<string, T>, name: string, value: T): void {
    map.delete(name);
    map.set(name, value);
    const oldest = map.keys().next().value;
    if (map.size > this.limits.sessions && oldest !== undefined) map.delete(oldest);
  }

  private event({ type, properties }: { type: string; properties: any }): void {
    if (type === "session.updated" && properties?.info?.id && this.sessions.has(properties.info.id)) {
      this.keep(this.sessions, properties.info.id, Promise.resolve(properties.info as Session));
    } else if (type === "session.deleted" && properties?.info?.id) {
      this.sessions.delete(properties.info.id);
      this.shown.delete(properties.info.id);
    } else if (type === "permission.replied" && (properties?.reply ?? properties?.response) === "always") {
      void this.always(properties.sessionID);
    }
  }

  /** "Always" is how a person says in the editor's own dialogue that a choice is to be remembered. */
  private async always(session: string): Promise<void> {
    const made = this.chosen.get(session);
    if (!made) return;
    this.chosen.delete(session);
    const mode = made.mode === "session" ? "indefinite" : made.mode;
    await this.finder.choose(this.input.directory, made.candidate, mode, session);
  }

  // ---- How long the editor's tools take -----------------------------------

  private time(tool: string, session: string, call: string): void {
    const begun = this.begun.get(call);
    this.begun.delete(call);
    if (begun === undefined || this.logless) return;
    const ms = Math.round((performance.now() - begun) * 1000) / 1000;
    // Nobody waits for it, and without a daemon there is no record.
    void this.finder.find(this.input.directory, session).then(async ({ send, rung }) => {
      if (!send || rung === "best") return;
      const body = { source: "plugin", event: "tool.finished", tool, session, call, data: { ms, harness: "opencode" } };
      await send({ method: "POST", path: "/v1/log", body }, { timeoutMs: this.finder.tuning.healthMs });
    }).catch((error) => void (this.logless ||= isMissing(error)));
  }

  // ---- The tools ----------------------------------------------------------

  /**
   * Does a piece of work over the daemon, or with the binary where the daemon
   * cannot: there is none, it is a guess, or it is too old.
   */
  private async work(context: ToolContext, over: (found: Found) => Promise<unknown>, args: string[], input?: string): Promise<[unknown, string]> {
    const { backend, bin } = this.settings;
    const { directory, sessionID: session, abort: signal } = context;
    const found: Found = backend === "cli" ? NOTHING : await this.finder.find(directory, session);
    this.warn(session, found);
    const binary = backend === "cli" || (backend === "auto" && which(bin) !== undefined);
    const usable = found.send !== undefined && !(found.rung === "best" && binary);
    const note = usable && this.settings.annotate && found.candidates.length > 1 ? line(found) : "";
    if (usable) {
      try {
        return [await over(found), note];
      } catch (error) {
        if (!isMissing(error)) throw error;
        if (!binary) throw new DaemonError(`the daemon ${describe(found.chosen ?? {})}, version ${found.chosen?.version}, cannot do this, and there is no ${bin} that could`);
      }
    } else if (!binary) {
      this.notify(session, "none", found.warning ?? "no daemon answers");
      throw new DaemonError(found.warning ?? `no daemon answers for ${directory}`);
    }
    const env = { MCPX_SESSION_ID: session, ...(usable && found.chosen && { MCPX_DAEMON_ENDPOINT: address(found.chosen) }) };
    const ran = await this.finder.run(["--json", ...args], { cwd: directory, env, input, signal });
    let answer: any;
    try {
      answer = parsed(ran.stdout);
    } catch {
      throw new DaemonError(ran.stderr.trim() || `${bin} ended with ${ran.code}`);
    }
    if (answer?.ok === false && answer.exitCode === undefined) throw new DaemonError(answer.error?.message ?? `${bin} ended with ${ran.code}`);
    return [answer, note];
  }

  private result(title: string, value: unknown, note: string) {
    let output = typeof value === "string" ? value : JSON.stringify(value, null, 1);
    if (output.length > this.limits.result) {
      output = `${output.slice(0, this.limits.result)}\n… cut after ${this.limits.result} characters; ask for less`;
    }
    return { title, output: note ? `${output}\n\n${note}` : output };
  }

  private tools(): Record<string, ToolDefinition> {
    const text = (description: string) => ({ type: "string", description });
    const number = (description: string) => ({ type: "integer", description });
    const get = (found: Found, at: string, query: Record<string, unknown>) => {
      const search = new URLSearchParams();
      for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") search.set(name, String(value));
      return found.send!({ method: "GET", path: `${at}?${search}` });
    };
    return {
      mcpx_discover: define(
        "Finds MCP tools. Without arguments: every server. With `query`: the tools that match. With `server`: TypeScript signatures of its tools, for mcpx_exec.",
        { query: text("words that describe the tool"), server: text("a server's name") },
        async ({ query, server }: { query?: string; server?: string }, context) => {
          if (query) {
            const over = (found: Found) =>
              get(found, "/v1/search", { query }).catch((error) => this.searchSchemas(found, query, error));
            const [answer, note] = await this.work(context, over, ["search", "--", query]);
            return this.result(`mcpx search ${query}`, hits(answer), note);
          }
          if (server) {
            const over = (found: Found) =>
              get(found, "/v1/types", { server }).catch((error) => {
                if (!isMissing(error)) throw error;
                return found.client!.schemas({ server: [server] });
              });
            const [answer, note] = await this.work(context, over, ["types", "--", server]);
            return this.result(`mcpx types ${server}`, declarations(answer), note);
          }
          const [answer, note] = await this.work(context, (found) => found.client!.namespaces(), ["ls"]);
          return this.result("mcpx ls", servers(answer), note);
        },
      ),
      mcpx_exec: define(
        "Runs TypeScript in which every MCP server is an object and every tool an async method: `return await demo.add({ a: 1, b: 2 })`. Look at mcpx_discover first.",
        { code: text("the program; what it returns is the result"), timeoutMs: number("how long it may take, in milliseconds") },
        async ({ code, timeoutMs }: { code: string; timeoutMs?: number }, context) => {
          if (!code) throw new DaemonError("`code` is missing: the program to run");
          const id = context.sessionID;
          const body = {
            code, args: [], session: id, sessionId: id, parentSessionId: (await this.session(id))?.parentID,
            cwd: context.directory, output: "structured", ...(timeoutMs && { timeoutMs }),
          };
          const over = (found: Found) =>
            found.send!({ method: "POST", path: "/v1/exec", body: body }, { signal: context.abort, timeoutMs: 0 });
          const limit = timeoutMs ? ["--timeout", `${timeoutMs}ms`] : [];
          const [answer, note] = await this.work(context, over, ["exec", ...limit, "--", code]);
          return this.result("mcpx exec", outcome(answer), note);
        },
      ),
      mcpx_observe: define(
        "Looks at what mcpx did. what=log: records of calls, servers and errors; what=stats: counts and times; what=events: what happened just now; what=status: the daemon and its servers.",
        {
          what: { type: "string", enum: ["log", "stats", "events", "status"], description: "which" },
          server: text("only this server"),
          about: text("for stats: calls, servers, errors, sessions, slowest"),
          since: text("for log and stats: how far back, such as 10m"),
          limit: number("at most so many rows"),
        },
        async (args: { what?: string; server?: string; about?: string; since?: string; limit?: number }, context) => {
          const { what = "status", server, since, limit = this.limits.rows } = args;
          const about = args.about || "calls";
          const flags = [...(server ? ["--server", server] : []), ...(since ? ["--since", since] : []), "--limit", String(limit)];
          const narrowed = { ...(server && { server: [server] }), ...(since && { since }), limit };
          const all: Record<string, [(found: Found) => Promise<unknown>, string[]]> = {
            log: [(found) => found.client!.log(narrowed), ["log", ...flags]],
            stats: [(found) => found.client!.stats({ about, ...narrowed }), ["stats", about, ...flags]],
            events: [(found) => found.client!.events({ ...(server && { server: [server] }) }), ["status"]],
            status: [(found) => found.client!.status(), ["status"]],
          };
          const [over, words] = all[what] ?? all.status!;
          const [answer, note] = await this.work(context, over, words);
          return this.result(`mcpx ${what}`, answer, note);
        },
      ),
    };
  }

  /** What a daemon without a search of its own knows. */
  private async searchSchemas(found: Found, query: string, error: unknown): Promise<unknown> {
    if (!isMissing(error)) throw error;
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const { schemas } = await found.client!.schemas();
    const all = schemas.flatMap(({ server, tools }) => tools.map((tool) => ({ server, tool: tool.name, signature: `${server}.${tool.name}`, description: tool.description })));
    const matches = (hit: (typeof all)[number]) => words.filter((word) => `${hit.signature} ${hit.description}`.toLowerCase().includes(word)).length;
    const sorted = all.map((hit) => ({ ...hit, score: matches(hit) })).filter((hit) => hit.score);
    return { hits: sorted.sort((a, b) => b.score - a.score) };
  }

  private daemonTools(): Record<string, ToolDefinition> {
    const { directory } = this.input;
    return {
      mcpx_daemon_status: define("Lists the mcpx daemons that answer, which one serves this project, and why.", {}, async (_, { sessionID }) => {
        const found = await this.finder.find(directory, sessionID, true);
        this.keep(this.shown, sessionID, found.candidates);
        return this.result("mcpx daemons", overview(found, this.finder.recall(directory, sessionID)), "");
      }),
      mcpx_daemon_select: define(
        "Chooses the daemon for this project by its number in mcpx_daemon_status; the person confirms it.",
        {
          index: { type: "integer", description: "the number of a daemon in mcpx_daemon_status" },
          remember: { type: "string", enum: ["session", "until-gone", "indefinite", "permanent"], description: "for how long" },
        },
        async ({ index, remember }: { index?: number; remember?: Remember }, context) => {
          const session = context.sessionID;
          const found = await this.finder.find(directory, session, true);
          const list = this.shown.get(session) ?? found.candidates;
          const wanted = list[Number(index)];
          const candidate = found.candidates.find((c) => c.pid === wanted?.pid && c.startedAt === wanted.startedAt);
          if (found.rung === "named") throw new DaemonError("an option or a variable names the daemon, so there is nothing to choose");
          if (!wanted) throw new DaemonError(`there is no daemon ${index}; mcpx_daemon_status lists ${list.length}, from 0 on`);
          if (!candidate) throw new DaemonError(`daemon ${index} is gone; look at mcpx_daemon_status again`);
          const mode = remember ?? (this.settings.remember as Remember);
          this.keep(this.chosen, session, { candidate, mode });
          try {
            await context.ask({
              permission: "mcpx_daemon_select",
              patterns: [describe(candidate)],
              always: [describe(candidate)],
              metadata: {
                config: candidate.configPath, started: new Date(candidate.startedAt).toISOString(), version: candidate.version,
                sessions: candidate.sessions, servers: candidate.servers, pid: candidate.pid, remember: mode,
              },
            });
          } catch (error) {
            this.chosen.delete(session);
            throw error;
          }
          // Until "always" is told, if it is; then it is remembered for longer.
          if (!this.chosen.has(session)) return this.result("mcpx daemon", `This project uses ${describe(candidate)} from now on.`, "");
          const kept = await this.finder.choose(directory, candidate, mode, session);
          const how = { session: "in this session", "until-gone": "until it ends", indefinite: "until it is forgotten", permanent: "" }[kept.mode];
          return this.result("mcpx daemon", `This project uses ${describe(candidate)} ${how}.${kept.warning ? ` ${kept.warning}` : ""}`, "");
        },
      ),
      mcpx_daemon_forget: define("Forgets which daemon was chosen for this project.", {}, async (_, { sessionID }) => {
        const had = this.finder.forget(directory, sessionID);
        return this.result("mcpx daemon", had ? "The choice is forgotten." : "Nothing was chosen.", "");
      }),
    };
  }
}

const NOTHING: Found = { rung: "none", candidates: [], skipped: [], ambiguous: false };

/** A tool whose arguments are JSON Schema, which the editor takes as well as its own kind. */
function define(description: string, args: Record<string, unknown>, execute: (args: any, context: ToolContext) => Promise<{ title: string; output: string }>): ToolDefinition {
  return { description, args: args as ToolDefinition["args"], execute };
}

function address(daemon: Candidate): string {
  return daemon.socket ? `unix://${daemon.socket}` : (daemon.endpoint ?? "");
}

function line(found: Found): string {
  return `[answered by the mcpx daemon ${describe(found.chosen ?? {})}, one of ${found.candidates.length}]`;
}

function overview(found: Found, remembered: Choice | undefined): string {
  const lines = found.candidates.map((c, i) => {
    const mark = c.pid === found.chosen?.pid && c.startedAt === found.chosen.startedAt ? "*" : " ";
    const started = new Date(c.startedAt).toISOString();
    return `${mark}${i}  ${describe(c)}  mcpx ${c.version}, started ${started}, ${c.servers} servers, ${c.sessions} sessions`;
  });
  const why: Record<Found["rung"], string> = {
    named: "an option or a variable names it",
    remembered: `it was chosen${remembered && remembered.mode !== "session" ? `, remembered as ${remembered.mode}` : " in this session"}`,
    found: "it serves this directory",
    resolved: "it serves this directory",
    binary: "the mcpx binary says so",
    best: "a guess; mcpx_daemon_select chooses another",
    none: "",
  };
  if (found.chosen) lines.push(`* is used: ${why[found.rung]}`);
  if (found.warning) lines.push(found.warning);
  for (const { where, why: reason } of found.skipped) lines.push(`passed over: ${where} ${reason}`);
  return lines.join("\n") || "No mcpx daemon answers.";
}

function servers(answer: any): string {
  const rows: any[] = answer?.namespaces ?? [];
  const one = (n: any) => `${n.ident}  ${n.tools ?? "?"} tools  ${n.state}  ${n.error?.message ?? n.description ?? ""}`.trimEnd();
  return rows.map(one).join("\n") || "No server is configured.";
}

function hits(answer: any): string {
  const rows: any[] = answer?.hits ?? [];
  return rows.map((h) => `${h.signature}${h.description ? `\n    ${h.description}` : ""}`).join("\n") || "Nothing matches.";
}

function declarations(answer: any): unknown {
  if (!Array.isArray(answer?.types)) return answer?.schemas ?? answer;
  const failed: any[] = answer.errors ?? [];
  return [...answer.types.map((t: any) => t.typescript), ...failed.map((f) => `// ${f.server}: ${f.error?.message}`)].join("\n");
}

/** What the binary printed: one document, or one a line, as the log is. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const lines = text.split("\n").filter((line) => line !== "");
    // Nothing was found, or one broken document is one all the same.
    if (lines.length === 1) throw error;
    return { records: lines.map((line) => JSON.parse(line)) };
  }
}

function outcome(answer: any): string {
  const parts: string[] = [];
  const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));
  // A result is the end of stdout as well.
  if (answer?.stdout) parts.push(answer.stdout.trimEnd());
  else if (answer?.result !== undefined) parts.push(shown(answer.result));
  if (answer?.ok === false) {
    const { error, exitCode, stderr } = answer;
    throw new DaemonError([...parts, stderr?.trimEnd() || error?.message, `exit code ${exitCode}`].filter(Boolean).join("\n"), error?.kind ?? "script");
  }
  if (answer?.stderr) parts.push(`stderr:\n${answer.stderr.trimEnd()}`);
  return parts.join("\n") || "(no output)";
}

const INSTRUCTIONS = `mcpx offers MCP servers as a command: \`mcpx ls\` lists them, \`mcpx search WORDS\` finds tools, \`mcpx types SERVER\` shows signatures, \`mcpx exec 'return await server.tool({...})'\` runs TypeScript against them. Look before you run, and keep large results inside the program.`;
