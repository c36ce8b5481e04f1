// Finds the mcpx daemon that serves a directory, and talks to it. Needs a
// directory, and a session's id for what is remembered by session. Knows nothing
// of any editor; the same in bun, deno and node.

import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as http from "node:http";
import * as os from "node:os";
import * as path from "node:path";
import { PLUGIN_CHOICES, PLUGIN_DEFAULTS, v1 } from "./v1.ts";
import type { Health, How, Send, V1, Wire } from "./v1.ts";

export type { How, V1 } from "./v1.ts";

/** Every limit and name; each can be given another value through `Options.tuning`. Times are milliseconds, sizes bytes. */
export const TUNING = {
  /** How long a daemon may take to say that it is there. */
  healthMs: 500,
  /** How long a daemon may take to say which daemon serves a directory. */
  resolveMs: 1000,
  /** How long the binary may take to say the same. */
  binaryMs: 5000,
  /** How long any other request may take, unless it says so itself. */
  requestMs: 30_000,
  /** How long an answer holds before the next question looks again. */
  settledMs: 5000,
  /** How old the copy of the file of choices may become. */
  rememberMs: 5000,
  /** The file of choices, in the state directory. */
  rememberFile: "opencode-daemons.json",
  /** How many directories that file keeps; the oldest choices go first. */
  remembered: 500,
  /** A larger info file is none. */
  maxInfo: 1 << 20,
  /** How many info files and sockets are looked at. */
  maxFiles: 256,
  /** The largest answer that is read. */
  maxAnswer: 64 << 20,
};
export type Tuning = typeof TUNING;

export type Env = Record<string, string | undefined>;
export type Remember = "session" | "until-gone" | "indefinite" | "permanent";

/** Where a daemon listens. The socket is taken where both are known. */
export interface Target {
  socket?: string;
  endpoint?: string;
  token?: string;
}

/** A daemon that answered. */
export interface Candidate extends Target {
  key: string;
  pid: number;
  version: string;
  configPath: string;
  /** Milliseconds since 1970. */
  startedAt: number;
  /** How many servers it has configured. */
  servers: number;
  /** How many sessions have open runs. */
  sessions: number;
}

/** A socket or an info file behind which no daemon was found. */
export interface Skipped {
  where: string;
  why: string;
}

/** Which rung of the ladder gave the answer. `best` is a guess. */
export type Rung = "named" | "remembered" | "found" | "resolved" | "binary" | "best" | "none";

/** What a search came to. */
export interface Found {
  rung: Rung;
  /** Absent when no daemon can be used. */
  client?: V1;
  /** Sends to the same daemon what `client` has no method for. */
  send?: Send;
  chosen?: Candidate;
  /** Every daemon that answered, the best first. */
  candidates: Candidate[];
  skipped: Skipped[];
  /** Several daemons would do, and nothing says which is meant. */
  ambiguous: boolean;
  /** Why the answer may not be what was wanted, for a person. */
  warning?: string;
}

/** What a finder is made of; all of it is optional. */
export interface Options {
  env?: Env;
  /** The daemon to use, whatever else there is. */
  endpoint?: string;
  socket?: string;
  token?: string;
  bin?: string;
  binArgs?: string[];
  /** `v1` never runs the binary. */
  backend?: string;
  tuning?: Partial<Tuning>;
}

export interface Choice extends Target {
  mode: Remember;
  key: string;
  pid: number;
  startedAt: number;
  configPath: string;
  /** When it was made, milliseconds since 1970. */
  at: number;
}

interface Info extends Target {
  key?: string;
  pid?: number;
  startTicks?: number;
}

/** What a daemon reports, as an exception. `status` is 0 where it could not be reached. */
export class DaemonError extends Error {
  readonly kind: string;
  readonly status: number;
  readonly hint: string;
  constructor(message: string, kind = "unavailable", status = 0, hint = "") {
    super(message);
    this.name = "DaemonError";
    this.kind = kind;
    this.status = status;
    this.hint = hint;
  }
}

/** Whether the daemon is too old for what it was asked. */
export function isMissing(error: unknown): boolean {
  return error instanceof DaemonError && (error.status === 404 || error.status === 405) && error.kind !== "tool";
}

export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return error instanceof DaemonError && error.hint ? `${text} (${error.hint})` : text;
}

// ---- Talking to one daemon ------------------------------------------------

/** Sends requests to one daemon. */
export function sender(target: Target, tuning: Tuning = TUNING): Send {
  return async (request: Wire, how: How = {}) => {
    const where = target.socket ?? target.endpoint ?? "";
    const limit = how.timeoutMs ?? tuning.requestMs;
    const ended = new AbortController();
    const leave = () => ended.abort();
    how.signal?.addEventListener("abort", leave);
    if (how.signal?.aborted) leave();
    let late = false;
    const timer = limit > 0 ? setTimeout(() => ((late = true), leave()), limit) : undefined;
    const body = request.body && JSON.stringify(request.body);
    const headers: Record<string, string> = { accept: "application/json" };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (!target.socket && target.token) headers.authorization = `Bearer ${target.token}`;
    try {
      const [status, text] = target.socket
        ? await overSocket(target.socket, request, headers, body, ended.signal, tuning)
        : await overTcp(target.endpoint ?? "", request, headers, body, ended.signal);
      return read(status, text, where);
    } catch (error) {
      if (error instanceof DaemonError) throw error;
      if (late) throw new DaemonError(`the daemon at ${where} did not answer within ${limit} ms`, "timeout");
      if (how.signal?.aborted) throw new DaemonError("the request was cancelled", "cancelled");
      throw new DaemonError(`reaching the daemon at ${where}: ${reason(error)}`);
    } finally {
      clearTimeout(timer);
      how.signal?.removeEventListener("abort", leave);
    }
  };
}

function overSocket(
  socketPath: string,
  request: Wire,
  headers: Record<string, string>,
  body: string | undefined,
  signal: AbortSignal,
  tuning: Tuning,
): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new Error("it was cancelled"));
    const length = body === undefined ? {} : { "content-length": String(new TextEncoder().encode(body).length) };
    const all = { ...headers, ...length, host: "localhost", connection: "close" };
    const call = http.request({ socketPath, method: request.method, path: request.path, headers: all });
    const stop = () => {
      reject(new Error("it was cancelled"));
      call.destroy();
    };
    signal.addEventListener("abort", stop);
    const done = () => signal.removeEventListener("abort", stop);
    call.on("error", (error) => (done(), reject(error)));
    call.on("response", (answer) => {
      const parts: string[] = [];
      let size = 0;
      answer.setEncoding("utf8");
      answer.on("data", (part: string) => {
        parts.push(part);
        size += part.length;
        if (size > tuning.maxAnswer) {
          reject(new Error(`its answer is larger than ${tuning.maxAnswer} bytes`));
          call.destroy();
        }
      });
      answer.on("error", (error) => (done(), reject(error)));
      answer.on("end", () => (done(), resolve([answer.statusCode ?? 0, parts.join("")])));
      answer.on("close", () => (done(), reject(new Error("it closed the connection"))));
    });
    call.end(body);
  });
}

async function overTcp(
  endpoint: string,
  request: Wire,
  headers: Record<string, string>,
  body: string | undefined,
  signal: AbortSignal,
): Promise<[number, string]> {
  const url = endpoint.replace(/\/+$/, "") + request.path;
  // A redirect would take the token to somebody else.
  const answer = await fetch(url, { method: request.method, headers, signal, redirect: "error", ...(body === undefined ? {} : { body }) });
  return [answer.status, await answer.text()];
}

function read(status: number, text: string, where: string): unknown {
  let answer: any;
  try {
    answer = text ? JSON.parse(text) : {};
  } catch {
    if (status < 400) throw new DaemonError(`what answers at ${where} is no mcpx daemon`, "unavailable", status);
  }
  if (status >= 400) {
    const error = answer?.error ?? {};
    throw new DaemonError(error.message ?? `the daemon answered ${status}`, error.kind ?? "unavailable", status, error.hint);
  }
  return answer;
}

function reason(error: unknown): string {
  const inner = (error as any)?.cause ?? error;
  return inner?.code ?? inner?.message ?? String(inner);
}

// ---- Where things are -----------------------------------------------------

function absolute(value: string | undefined): string | undefined {
  return value && path.isAbsolute(value) ? value : undefined;
}

/** The state directory: info files, and the file of choices. */
export function stateDirectory(env: Env = process.env): string {
  const home = absolute(env.HOME) ?? os.homedir();
  const xdg = absolute(env.XDG_STATE_HOME);
  return env.MCPX_STATE_DIR || (xdg ? path.join(xdg, "mcpx") : path.join(home, ".local/state/mcpx"));
}

/** Every directory that may hold a daemon's socket. A path too long for a socket moves it out of the first. */
export function socketDirectories(env: Env = process.env): string[] {
  const all = [stateDirectory(env), path.join(absolute(env.TMPDIR) ?? "/tmp", `mcpx-${uid()}`)];
  const runtime = absolute(env.XDG_RUNTIME_DIR);
  if (runtime) all.splice(1, 0, path.join(runtime, "mcpx"));
  return all;
}

function uid(): number {
  return process.getuid?.() ?? -1;
}

/** A path with its links resolved, as far as it exists. */
export function real(name: string): string {
  try {
    return fs.realpathSync(name);
  } catch {
    return path.resolve(name);
  }
}

/** The binary, when it is there. */
export function which(bin: string, env: Env = process.env): string | undefined {
  const names = bin.includes("/") ? [bin] : (env.PATH ?? "").split(":").filter(Boolean).map((dir) => path.join(dir, bin));
  return names.find((name) => {
    try {
      fs.accessSync(name, fs.constants.X_OK);
      return fs.statSync(name).isFile();
    } catch {
      return false;
    }
  });
}

/** Why a socket must not be dialled; nothing when it may be. Its permissions guard the whole interface. */
function forbidden(socket: string): string | undefined {
  try {
    const at = fs.lstatSync(socket);
    if (!at.isSocket()) return "is no socket";
    return at.uid === uid() ? undefined : `belongs to user ${at.uid}`;
  } catch (error) {
    return (error as any)?.code === "ENOENT" ? "is gone" : `cannot be looked at: ${reason(error)}`;
  }
}

function listed(dir: string, end: string): string[] {
  try {
    const names = fs.readdirSync(dir).filter((name) => name.startsWith("daemon-") && name.endsWith(end));
    return names.sort().map((name) => path.join(dir, name));
  } catch {
    return [];
  }
}

function readOwn(file: string, limit: number): any {
  try {
    const at = fs.statSync(file);
    if (!at.isFile() || at.uid !== uid() || at.size > limit) return undefined;
    return JSON.parse(fs.readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** Whether the process that wrote an info file runs still, and is not another one under its number. */
function runs(info: Info): boolean {
  try {
    const stat = fs.readFileSync(`/proc/${info.pid}/stat`, "utf8");
    const ticks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
    return !info.startTicks || ticks === info.startTicks;
  } catch {
    return false;
  }
}

// ---- The ladder -----------------------------------------------------------

interface Scan {
  candidates: Candidate[];
  skipped: Skipped[];
}

/** The directory that a configuration file is of. */
function rootOf(config: string): string {
  const dir = path.dirname(real(config));
  return path.basename(dir) === ".mcpx" ? path.dirname(dir) : dir;
}

/** How near a daemon's configuration is to a directory: 0 when it is not of a directory above it. */
export function nearness(candidate: Candidate, directory: string, env: Env = {}): number {
  if (!candidate.configPath) return 0;
  if (env.MCPX_CONFIG) return real(path.resolve(directory, env.MCPX_CONFIG)) === real(candidate.configPath) ? Infinity : 0;
  const root = rootOf(candidate.configPath);
  const above = root === directory || directory.startsWith(root.endsWith("/") ? root : `${root}/`);
  return above ? root.length : 0;
}

/** Best first: the nearest configuration, then the most recently started, then the most servers. */
export function rank(candidates: Candidate[], directory: string, env: Env = {}): Candidate[] {
  const at = real(directory);
  const near = new Map(candidates.map((c) => [c, nearness(c, at, env)]));
  const by = (a: number, b: number) => (a === b ? 0 : b - a);
  return [...candidates].sort(
    (a, b) => by(near.get(a) ?? 0, near.get(b) ?? 0) || by(a.startedAt, b.startedAt) || by(a.servers, b.servers),
  );
}

export class Finder {
  readonly tuning: Tuning;
  readonly env: Env;
  readonly options: Options;
  private settled = new Map<string, { at: number; found: Promise<Found> }>();
  private sessions = new Map<string, Choice>();
  private file: { at: number; choices: Record<string, Choice> } | undefined;

  constructor(options: Options = {}) {
    this.options = options;
    this.env = options.env ?? process.env;
    this.tuning = { ...TUNING, ...options.tuning };
  }

  /** The daemon for a directory. Never rejects. `fresh` looks again whatever is known. */
  find(directory: string, session = "", fresh = false): Promise<Found> {
    const name = `${session}\0${directory}`;
    const known = this.settled.get(name);
    if (known && !fresh && Date.now() - known.at < this.tuning.settledMs) return known.found;
    const found = this.climb(directory, session, fresh).catch(
      (error): Found => ({ rung: "none", candidates: [], skipped: [], ambiguous: false, warning: messageOf(error) }),
    );
    this.settled.set(name, { at: Date.now(), found });
    return found;
  }

  /** Forgets what was found, so that the next question looks again. */
  unsettle(): void {
    this.settled.clear();
    this.file = undefined;
  }

  private client(target: Target): V1 {
    return v1(sender(target, this.tuning));
  }

  private async climb(directory: string, session: string, everything: boolean): Promise<Found> {
    const named = this.named();
    if (named) return this.useNamed(named);
    let warning: string | undefined;
    let scan: Scan | undefined;
    const remembered = this.recall(directory, session);
    if (remembered) {
      const chosen = await this.still(remembered, directory, session);
      scan = everything || !chosen ? await this.scan() : undefined;
      if (chosen) {
        const candidates = scan?.candidates.length ? rank(scan.candidates, directory, this.env) : [chosen];
        return this.answer("remembered", chosen, { candidates, skipped: scan?.skipped ?? [] });
      }
      warning = `the daemon chosen for ${directory} does not answer: ${describe(remembered)}`;
    }
    scan ??= await this.scan();
    const found = await this.among(scan, real(directory));
    found.warning ??= warning;
    return found;
  }

  private answer(rung: Rung, chosen: Candidate, scan: Scan, warning?: string): Found {
    const { candidates, skipped } = scan;
    const send = sender(chosen, this.tuning);
    return { rung, client: v1(send), send, chosen, candidates, skipped, ambiguous: rung === "best" && candidates.length > 1, warning };
  }

  /** Rungs 2 to 6. */
  private async among(scan: Scan, directory: string): Promise<Found> {
    const candidates = rank(scan.candidates, directory, this.env);
    scan = { candidates, skipped: scan.skipped };
    const best = candidates[0];
    // The one that a variable names is the one that every command here uses.
    if (best && this.env.MCPX_CONFIG && nearness(best, directory, this.env)) return this.answer("found", best, scan);
    const told = this.env.MCPX_CONFIG ? undefined : await this.resolve(candidates, directory);
    if (told?.running) {
      let there = candidates.find((c) => c.socket === told.socket || c.key === told.configHash);
      if (!there && !forbidden(told.socket)) {
        there = await this.probe({ socket: told.socket, endpoint: told.endpoint });
        if (there) candidates.unshift(there);
      }
      if (there) return this.answer(candidates.length > 1 ? "resolved" : "found", there, scan);
    }
    if (!told) {
      const said = await this.askBinary(directory);
      if (said) {
        const known = candidates.find((c) => c.pid === said.pid && c.startedAt === said.startedAt);
        if (!known) candidates.push(said);
        return this.answer("binary", known ?? said, scan);
      }
    }
    if (!best) {
      const why = scan.skipped.length ? `; ${scan.skipped.map((s) => `${s.where} ${s.why}`).join("; ")}` : "";
      const warning = `no mcpx daemon answers for ${directory}; the next mcpx command there starts one${why}`;
      return { rung: "none", candidates, skipped: scan.skipped, ambiguous: false, warning };
    }
    if (!told && candidates.length === 1) return this.answer("found", best, scan);
    const warning = told
      ? `no daemon serves ${directory}; the one that answers is ${describe(best)}`
      : `${candidates.length} daemons answer, and none says which serves ${directory}; the one taken is ${describe(best)}`;
    return this.answer("best", best, scan, warning);
  }

  /** Rung 0: the daemon that the options or a variable names. */
  private named(): Target | undefined {
    const { options, env } = this;
    const token = options.token ?? env.MCPX_TRANSPORT_BEARER_TOKEN;
    const at = (endpoint?: string): Target | undefined => {
      if (!endpoint) return undefined;
      return endpoint.startsWith("unix://") ? { socket: endpoint.slice("unix://".length) } : { endpoint, token };
    };
    const socket = (name?: string): Target | undefined => (name ? { socket: name } : undefined);
    return (
      socket(options.socket) ?? at(options.endpoint) ?? at(env.MCPX_DAEMON_ENDPOINT) ?? socket(env.MCPX_SOCKET) ?? at(env.MCPX_ENDPOINT)
    );
  }

  private async useNamed(target: Target): Promise<Found> {
    const none: Scan = { candidates: [], skipped: [] };
    const where = target.socket ?? target.endpoint ?? "";
    const bare = { ...target, key: "", pid: 0, version: "", configPath: "", startedAt: 0, servers: 0, sessions: 0 };
    const why = target.socket && forbidden(target.socket);
    if (why && why !== "is gone") {
      return { rung: "named", ...none, skipped: [{ where, why }], ambiguous: false, warning: `${where} is the daemon that was named, and it ${why}` };
    }
    if (target.endpoint && !target.token) {
      const own = this.infos().find((info) => info.endpoint === target.endpoint && runs(info));
      if (own?.token) bare.token = own.token;
    }
    try {
      const chosen = this.candidate(bare, await this.client(bare).health(undefined, { timeoutMs: this.tuning.healthMs }));
      return this.answer("named", chosen, { candidates: [chosen], skipped: [] });
    } catch (error) {
      // Never another one: the wrong machine's answer is worse than none.
      return this.answer("named", bare, none, `the daemon that was named does not answer: ${messageOf(error)}`);
    }
  }

  // Rung 2.

  private infos(): Info[] {
    const files = listed(stateDirectory(this.env), ".json").slice(0, this.tuning.maxFiles);
    return files.map((file) => readOwn(file, this.tuning.maxInfo)).filter((info) => info && typeof info === "object");
  }

  /** Every daemon that answers, of those that the three directories show. */
  private async scan(): Promise<Scan> {
    const skipped: Skipped[] = [];
    const targets = new Map<string, Info>();
    for (const info of this.infos()) targets.set(info.socket || `${info.endpoint}`, info);
    for (const dir of socketDirectories(this.env)) {
      for (const socket of listed(dir, ".sock")) if (!targets.has(socket)) targets.set(socket, { socket });
    }
    const some = [...targets].slice(0, this.tuning.maxFiles);
    const probed = await Promise.all(some.map(([where, info]) => this.probe(info, (why) => skipped.push({ where, why }))));
    const unique = new Map<string, Candidate>();
    for (const [i, found] of probed.entries()) {
      if (!found) continue;
      const name = `${found.pid}.${found.startedAt}`;
      // Under the names that it had before an edit it is the same daemon.
      if (!unique.has(name) || some[i]?.[1].key === found.key) unique.set(name, found);
    }
    return { candidates: [...unique.values()], skipped };
  }

  private async probe(info: Info, skip: (why: string) => void = () => {}): Promise<Candidate | undefined> {
    const how = { timeoutMs: this.tuning.healthMs };
    const why = info.socket ? forbidden(info.socket) : "is gone";
    if (!why) {
      try {
        return this.candidate(info, await this.client({ socket: info.socket }).health(undefined, how));
      } catch (error) {
        skip(messageOf(error));
        return undefined;
      }
    }
    // Its token is for that process alone, so that process must be the one behind the port.
    if (why === "is gone" && info.endpoint && info.token && runs(info)) {
      const target = { endpoint: info.endpoint, token: info.token };
      const health = await this.client(target).health(undefined, how).catch(() => undefined);
      if (health && health.pid === info.pid) return this.candidate(target, health);
    }
    skip(why === "is gone" && info.pid ? "is of a daemon that is gone" : why);
    return undefined;
  }

  private candidate(target: Target, health: Health): Candidate {
    if (health?.name !== "mcpx") throw new DaemonError("what answers is no mcpx daemon");
    const { key, pid, version, configPath, startedAt, servers, sessions } = health;
    const { socket, endpoint, token } = target;
    return { socket: socket || undefined, endpoint: endpoint || undefined, token: token || undefined, key, pid, version, configPath, startedAt, servers, sessions };
  }

  /** Rung 3. They all work out the same, so the first answer is the answer. */
  private async resolve(candidates: Candidate[], directory: string) {
    for (const candidate of candidates) {
      try {
        return await this.client(candidate).resolve({ dir: directory }, { timeoutMs: this.tuning.resolveMs });
      } catch {
        // Too old for the question, or unable to read that configuration: the next one may be.
      }
    }
    return undefined;
  }

  /** Rung 4. */
  private async askBinary(directory: string): Promise<Candidate | undefined> {
    if (this.options.backend === "v1") return undefined;
    try {
      const ran = await this.run(["--json", "status"], { cwd: directory, timeoutMs: this.tuning.binaryMs });
      const daemon = JSON.parse(ran.stdout).daemon;
      return daemon?.socket ? await this.probe({ socket: daemon.socket, endpoint: daemon.endpoint }) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Runs the binary; rejects when it is not there. */
  run(args: string[], how: How & { cwd?: string; env?: Env; input?: string } = {}): Promise<{ code: number; stdout: string; stderr: string }> {
    const bin = this.options.bin || PLUGIN_DEFAULTS.bin;
    return new Promise((resolve, reject) => {
      const env = { ...this.env, ...how.env } as Record<string, string>;
      const child = spawn(bin, [...(this.options.binArgs ?? []), ...args], { cwd: how.cwd, env, stdio: "pipe" });
      const out: [string[], string[]] = [[], []];
      const end = () => child.kill("SIGTERM");
      const timer = how.timeoutMs ? setTimeout(end, how.timeoutMs) : undefined;
      how.signal?.addEventListener("abort", end);
      const done = () => (clearTimeout(timer), how.signal?.removeEventListener("abort", end));
      child.on("error", (error) => (done(), reject(new DaemonError(`running ${bin}: ${reason(error)}`, "not-found"))));
      child.stdin?.on("error", () => {});
      child.stdin?.end(how.input ?? "");
      for (const [i, stream] of [child.stdout, child.stderr].entries()) {
        stream?.setEncoding("utf8");
        stream?.on("data", (part: string) => out[i as 0 | 1].push(part));
      }
      child.on("close", (code) => (done(), resolve({ code: code ?? 128, stdout: out[0].join(""), stderr: out[1].join("") })));
    });
  }

  // ---- Rung 1: what was chosen before -----------------------------------

  private rememberPath(): string {
    return path.join(stateDirectory(this.env), this.tuning.rememberFile);
  }

  private choices(fresh = false): Record<string, Choice> {
    if (!fresh && this.file && Date.now() - this.file.at < this.tuning.rememberMs) return this.file.choices;
    const read = readOwn(this.rememberPath(), this.tuning.maxInfo * 16)?.directories;
    const choices: Record<string, Choice> = read && typeof read === "object" ? read : {};
    this.file = { at: Date.now(), choices };
    return choices;
  }

  /** What is remembered for a directory, the session's own choice first. */
  recall(directory: string, session = ""): Choice | undefined {
    return this.sessions.get(session) ?? this.choices()[real(directory)];
  }

  /** The remembered daemon, if it is still there; under its new names when it has moved. */
  private async still(choice: Choice, directory: string, session: string): Promise<Candidate | undefined> {
    const same = (c: Candidate | undefined) =>
      c && (choice.mode === "until-gone" || !choice.configPath ? c.pid === choice.pid && c.startedAt === choice.startedAt : c.configPath === choice.configPath);
    const there = choice.socket || !choice.endpoint
      ? await this.probe({ socket: choice.socket })
      : await this.client({ endpoint: choice.endpoint, token: this.tokenOf(choice.endpoint) })
          .health(undefined, { timeoutMs: this.tuning.healthMs })
          .then((health) => this.candidate({ endpoint: choice.endpoint, token: this.tokenOf(choice.endpoint) }, health))
          .catch(() => undefined);
    if (same(there)) return there;
    const moved = rank((await this.scan()).candidates, real(directory), this.env).find(same);
    if (moved) return moved;
    if (choice.mode === "session") this.sessions.delete(session);
    if (choice.mode === "until-gone") this.write(directory, undefined);
    return undefined;
  }

  private tokenOf(endpoint: string | undefined): string | undefined {
    const own = this.infos().find((info) => info.endpoint === endpoint && runs(info));
    return own?.token ?? this.options.token ?? this.env.MCPX_TRANSPORT_BEARER_TOKEN;
  }

  /** Remembers a daemon for a directory; says how it is remembered, and why not as it was asked for. */
  async choose(directory: string, chosen: Candidate, mode: Remember, session = ""): Promise<{ mode: Remember; warning?: string }> {
    const { socket, endpoint, key, pid, startedAt, configPath } = chosen;
    let warning: string | undefined;
    if (mode === "permanent") {
      const value = endpoint && !socket ? endpoint : `unix://${socket}`;
      try {
        await this.client(chosen).setSetting({ key: "daemon.endpoint", value });
      } catch (error) {
        warning = `remembered until it is forgotten instead: ${messageOf(error)}`;
      }
      // The setting of a daemon ends with it, and the file does not.
      mode = "indefinite";
    }
    const choice: Choice = { mode, socket, endpoint, key, pid, startedAt, configPath, at: Date.now() };
    if (mode === "session") this.sessions.set(session, choice);
    else {
      this.sessions.delete(session);
      const failed = this.write(directory, choice);
      if (failed) {
        this.sessions.set(session, { ...choice, mode: "session" });
        warning = `remembered for this session only: ${failed}`;
        mode = "session";
      }
    }
    this.settled.clear();
    return { mode, warning };
  }

  /** Forgets what was chosen for a directory; false when nothing was. */
  forget(directory: string, session = ""): boolean {
    const had = this.sessions.delete(session);
    const inFile = this.choices(true)[real(directory)] !== undefined;
    if (inFile) this.write(directory, undefined);
    this.settled.clear();
    return had || inFile;
  }

  /** Writes a choice, or removes one; says what went wrong. */
  private write(directory: string, choice: Choice | undefined): string | undefined {
    const file = this.rememberPath();
    const choices = { ...this.choices(true) };
    delete choices[real(directory)];
    if (choice) choices[real(directory)] = choice;
    const kept = Object.entries(choices).sort(([, a], [, b]) => b.at - a.at).slice(0, this.tuning.remembered);
    const next = Object.fromEntries(kept);
    const temporary = `${file}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`;
    try {
      fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
      fs.writeFileSync(temporary, `${JSON.stringify({ version: 1, directories: next }, null, 2)}\n`, { mode: 0o600, flag: "wx" });
      fs.renameSync(temporary, file);
    } catch (error) {
      try {
        fs.unlinkSync(temporary);
      } catch {
        // It was never made.
      }
      return `writing ${file}: ${reason(error)}`;
    }
    this.file = { at: Date.now(), choices: next };
    return undefined;
  }
}

/** A daemon in a few words. */
export function describe(daemon: { configPath?: string; pid?: number; socket?: string; endpoint?: string }): string {
  const where = daemon.configPath || daemon.socket || daemon.endpoint || "without a configuration";
  return daemon.pid ? `${where} (pid ${daemon.pid})` : where;
}

// ---- Options --------------------------------------------------------------

export type PluginSettings = typeof PLUGIN_DEFAULTS;

/** The settings `plugin.*`: from the options, then `MCPX_PLUGIN_*`, then `fallback` (what a configuration file says), then the defaults. */
export function pluginSettings(
  options: Record<string, unknown> = {},
  env: Env = process.env,
  fallback: Record<string, unknown> = {},
): { settings: PluginSettings; problems: string[] } {
  const problems: string[] = [];
  const settings: Record<string, unknown> = {};
  for (const [name, standard] of Object.entries(PLUGIN_DEFAULTS)) {
    const variable = `MCPX_PLUGIN_${name.replace(/[A-Z]/g, (c) => `_${c}`).toUpperCase()}`;
    settings[name] = standard;
    for (const [source, value] of [
      [`the option ${name}`, options[name]],
      [variable, env[variable] || undefined],
      [`plugin.${name}`, fallback[name]],
    ] as const) {
      if (value === undefined || value === null) continue;
      const taken = take(value, standard, PLUGIN_CHOICES[name]);
      if (taken !== undefined) {
        settings[name] = taken;
        break;
      }
      const wanted = PLUGIN_CHOICES[name]?.join(", ") ?? (Array.isArray(standard) ? "a list" : typeof standard);
      problems.push(`${source} is ${JSON.stringify(value)}, and should be ${wanted}`);
    }
  }
  return { settings: settings as unknown as PluginSettings, problems };
}

function take(value: unknown, standard: unknown, choices?: readonly string[]): unknown {
  const word = typeof value === "string" ? value.trim().toLowerCase() : value;
  const on = word === true || word === "true" || word === "1" || word === "yes" || word === "on";
  const off = word === false || word === "false" || word === "0" || word === "no" || word === "off";
  if (typeof standard === "boolean") return on ? true : off ? false : undefined;
  if (choices?.includes("on") && (on || off)) return on ? "on" : "off";
  if (choices) return choices.includes(String(word)) ? word : undefined;
  if (Array.isArray(standard)) {
    if (typeof value === "string") return value.split(",").map((part) => part.trim()).filter(Boolean);
    return Array.isArray(value) && value.every((part) => typeof part === "string") ? value : undefined;
  }
  return typeof value === "string" ? value : undefined;
}
