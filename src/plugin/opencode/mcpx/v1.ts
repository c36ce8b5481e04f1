// Made from src/api/ops/ and defaults.json by `make docs`; edit those, not this file.
// What the daemon can be asked, with types. Knows nothing of how a request travels.

/** The defaults of the settings `plugin.*`. */
export const PLUGIN_DEFAULTS = {
  "endpoint": "",
  "socket": "",
  "bin": "mcpx",
  "binArgs": [],
  "backend": "auto",
  "remember": "session",
  "env": "standard",
  "instructions": false,
  "toolTiming": true,
  "tools": "auto",
  "daemonTools": "auto",
  "annotate": true,
  "headless": "auto"
};

/** The words that those of them take which take a few words only. */
export const PLUGIN_CHOICES: Record<string, readonly string[]> = {
  backend: ["auto", "v1", "cli"],
  remember: ["session", "until-gone", "indefinite", "permanent"],
  env: ["minimal", "standard", "full"],
  tools: ["auto", "on", "off"],
  daemonTools: ["auto", "on", "off"],
  headless: ["auto", "on", "off"],
};

export interface ErrorRecord {
  /** a stable word; see the exit codes */
  kind: string;
  /** what was being done, to what, and what went wrong */
  message: string;
  /** what to do next */
  hint?: string;
  /** the server it happened with */
  server?: string;
  /** the tool it happened with */
  tool?: string;
  /** the peer's own words */
  raw?: unknown;
}

export interface Health {
  /** true */
  ok: boolean;
  /** `mcpx` */
  name: string;
  /** mcpx's version */
  version: string;
  /** the daemon's process */
  pid: number;
  /** the fingerprint of the configuration's paths and bytes */
  key: string;
  /** the nearest configuration file, or empty */
  configPath: string;
  /** milliseconds since 1970 */
  startedAt: number;
  /** milliseconds */
  uptimeMs: number;
  /** how many servers are configured */
  servers: number;
  /** how many sessions have open runs */
  sessions: number;
  /** the revision of this interface: 1 */
  api: number;
}

export interface Status {
  /** the daemon itself */
  daemon: Daemon;
  /** the servers' instances */
  instances: Instance[];
}

export interface Daemon {
  /** mcpx's version */
  version: string;
  /** its process */
  pid: number;
  /** the fingerprint of the configuration's paths and bytes */
  key: string;
  /** the nearest configuration file, or empty */
  configPath: string;
  /** every configuration file that contributed, nearest first */
  sources: string[];
  /** the configured servers */
  servers: string[];
  /** the unix socket */
  socket: string;
  /** the HTTP endpoint on loopback, empty when TCP is off */
  endpoint: string;
  /** the daemon's log file, empty when it logs to a terminal */
  log: string;
  /** milliseconds since 1970 */
  startedAt: number;
  /** milliseconds */
  uptimeMs: number;
  /** how many sessions have open runs */
  sessions: number;
  /** how many runs are open */
  runs: number;
  /** how many connections are open */
  connections: number;
  /** a command started it; it leaves when idle */
  detached: boolean;
  /** why the configuration on disk is not the one in use */
  problem?: ErrorRecord;
  /** what is odd in the configuration */
  warnings?: string[];
}

export interface Instance {
  /** the server's configured name */
  server: string;
  /** what it is keyed by: `global`, `session:<key>`, `cwd:<path>`, … */
  key: string;
  /** `starting`, `ready`, `stopping`, `failed` */
  state: string;
  /** the revision of MCP that it is spoken to in, once that is known */
  protocol?: string;
  /** the child; absent for a server over HTTP */
  pid?: number;
  /** the session that owns it */
  session?: string;
  /** milliseconds since it was started */
  uptimeMs: number;
  /** milliseconds since a call was last in it; 0 while one is */
  idleMs: number;
  /** calls that it has answered */
  calls: number;
  /** calls that it is working on */
  inFlight: number;
  /** callers waiting for a place */
  queue: number;
  /** the last failure */
  lastError?: string;
  /** the last lines of its stderr */
  stderr?: string;
}

export interface Events {
  /** oldest first */
  events: EventRecord[];
  /** the number to go on from */
  last: number;
  /** how many after `since` are forgotten */
  missed: number;
}

export interface EventRecord {
  /** its number on this daemon's bus, from 1 on, without gaps */
  seq: number;
  /** when, in milliseconds since 1970 */
  at: number;
  /** what, as `family.what` */
  kind: string;
  /** the server it is about */
  server?: string;
  /** the session it belongs to */
  session?: string;
  /** the resource it is about */
  uri?: string;
  /** more, as the kind has it */
  data: Record<string, unknown>;
}

export interface Reloaded {
  /** the daemon's key now */
  key: string;
  /** the configuration was another than before */
  changed: boolean;
  /** the unix socket now */
  socket: string;
  /** why the configuration on disk is not the one in use */
  problem?: ErrorRecord;
}

export interface Resolved {
  /** the unix socket of the daemon that serves it, or where it would be */
  socket: string;
  /** that daemon's HTTP endpoint, empty when there is none */
  endpoint: string;
  /** the nearest configuration file, or empty */
  configPath: string;
  /** the daemon's key */
  configHash: string;
  /** that daemon is alive */
  running: boolean;
  /** every configuration file that contributes, nearest first */
  sources: string[];
}

export interface Done {
  /** true */
  ok: boolean;
}

export interface Context {
  /** the session key that calls are leased under */
  session?: string;
  /** the session that the host assigned */
  sessionId?: string;
  /** the session that spawned this one */
  parentSessionId?: string;
  /** the session key was minted for this alone */
  ephemeral?: boolean;
  /** the caller's working directory, absolute */
  cwd?: string;
  /** the pid of the caller's mcpx process */
  pid?: number;
  /** the run that the call belongs to */
  run?: string;
  /** the servers that the caller works with; absent: every server, or those of the run */
  selection?: Selection;
}

export interface Selection {
  /** the profiles whose servers are taken besides the default set */
  profile?: string[];
  /** the servers that name no profile are left out */
  skipDefault?: boolean;
  /** every server is taken */
  allProfiles?: boolean;
}

export interface Called {
  /** the tool's result as its server sent it: `content`, `structuredContent`, `isError`, … */
  result: Record<string, unknown>;
}

export interface Grant {
  /** `server.tool`; a star stands for any characters */
  tool: string;
  /** the permission profile that has it */
  profile: string;
}

export interface OpenedRun {
  /** the run's id */
  run: string;
  /** the session key that its calls are leased under */
  session: string;
  /** the key was minted for this run alone */
  ephemeral: boolean;
  /** every enabled server that is selected */
  namespaces: NamespaceName[];
  /** the HTTP endpoint on loopback, empty when TCP is off */
  endpoint: string;
  /** a bearer token for this run at the endpoint: it permits what a channel of the run does, and ends with it; empty when TCP is off */
  token: string;
}

export interface NamespaceName {
  /** the server's configured name */
  name: string;
  /** the identifier that stands for it in a program */
  ident: string;
}

export interface Hooks {
  /** before the program; when it fails or is slow the program does not run */
  pre?: unknown;
  /** after it, however it ended */
  post?: unknown;
  /** after it failed, before `post` */
  onError?: unknown;
  /** after it succeeded, before `post` */
  onSuccess?: unknown;
}

export interface Ran {
  /** the exit code is 0 */
  ok: boolean;
  /** as that of `mcpx exec` */
  exitCode: number;
  /** how long it took, in milliseconds; a number with a fraction */
  durationMs: unknown;
  /** deno, bun, node, or an interpreter's name */
  runtime: string;
  /** the program's value */
  result?: unknown;
  /** what it emitted */
  results: unknown[];
  /** its log records */
  logs: LogRecord[];
  /** what it wrote to standard output */
  stdout: string;
  /** what it wrote to standard error, without records */
  stderr: string;
  /** why it failed: kind, message and what is known besides */
  error?: Record<string, unknown>;
  /** the parts that were cut at `script.captureLimit` */
  truncated?: string[];
  /** the hooks that failed */
  hooks?: FailedHook[];
}

export interface LogRecord {
  /** debug, info, warn or error */
  level: string;
  /** milliseconds since 1970 */
  at: number;
  /** the message */
  message: string;
  /** the fields as they were given */
  fields?: unknown;
  /** the method of the console that made it */
  console?: string;
  /** where it was made, `file:line:column` */
  source?: string;
}

export interface FailedHook {
  /** post, onError or onSuccess */
  phase: string;
  /** what went wrong; it changes nothing about the run */
  message: string;
}

export interface Questions {
  /** the open ones, oldest first */
  questions: Question[];
}

export interface Question {
  /** names it */
  id: string;
  /** who asks */
  server: string;
  /** the tool whose call asks */
  tool?: string;
  /** the task that goes on once it is answered */
  task?: string;
  /** the session of that call */
  session?: string;
  /** `form`, or `url` when something is to be opened */
  mode: string;
  /** what is asked */
  message: string;
  /** the form, as a JSON Schema */
  schema?: Record<string, unknown>;
  /** what is to be opened */
  url?: string;
  /** the server's own name for it */
  elicitationId?: string;
  /** when, milliseconds since 1970 */
  askedAt: number;
  /** when it is cancelled unanswered, milliseconds since 1970 */
  expiresAt: number;
  /** `accept`, `decline` or `cancel`, once it is answered */
  outcome?: string;
}

export interface Tasks {
  /** oldest first */
  tasks: Task[];
}

export interface Task {
  /** names it; the `callId` of `inputRequired` */
  id: string;
  /** who works on it */
  server: string;
  /** the tool that was called */
  tool: string;
  /** the session that it belongs to */
  session?: string;
  /** working, input_required, completed, failed or cancelled */
  status: string;
  /** milliseconds since 1970 */
  createdAt: number;
  /** milliseconds since 1970 */
  finishedAt?: number;
  /** why it failed */
  message?: string;
  /** what its server waits to be told */
  questions?: Question[];
}

export interface Namespaces {
  /** one row a server, in the configuration's order */
  namespaces: Namespace[];
}

export interface Namespace {
  /** the server's configured name */
  name: string;
  /** the identifier that stands for it in a program */
  ident: string;
  /** how many tools it offers, once known */
  tools?: number;
  /** one line on what it is */
  description?: string;
  /** `ready`, `starting`, `failed`, `disabled`, or `unknown` */
  state: string;
  /** why it cannot be used */
  error?: ErrorRecord;
  /** when its tools were read, milliseconds since 1970 */
  fetchedAt?: number;
  /** the configuration file that defines it */
  source?: string;
}

export interface Schemas {
  /** one a server that could be read */
  schemas: ServerSchema[];
  /** one a server that could not */
  errors: ServerError[];
}

export interface ServerSchema {
  /** the server's configured name */
  server: string;
  /** the digest of the definition it was read under */
  digest: string;
  /** when it was read, milliseconds since 1970 */
  fetchedAt: number;
  /** the protocol revision that was negotiated */
  protocol: string;
  /** the server's own name and version */
  serverInfo?: unknown;
  /** the server's instructions */
  instructions?: string;
  /** its tools, in its own order */
  tools: Tool[];
}

export interface Tool {
  /** the exact name */
  name: string;
  /** a name for people */
  title?: string;
  /** what it does */
  description?: string;
  /** the arguments' JSON Schema */
  inputSchema: unknown;
  /** the structured result's JSON Schema */
  outputSchema?: unknown;
  /** hints such as `readOnlyHint` */
  annotations?: unknown;
}

export interface ServerError {
  /** the server that was asked for */
  server: string;
  /** why there is no schema */
  error: ErrorRecord;
}

export interface Hits {
  /** the tools, best first */
  hits: Hit[];
  /** the words that were searched for instead, where nothing fits those given */
  near?: string;
  /** one a server that was not searched */
  errors: ServerError[];
}

export interface Hit {
  /** the server's configured name */
  server: string;
  /** the tool's exact name */
  tool: string;
  /** how a program calls it */
  signature: string;
  /** what it does */
  description: string;
  /** it matches every word */
  all: boolean;
}

export interface Types {
  /** one a server that could be read */
  types: TypeScript[];
  /** one a server that could not */
  errors: ServerError[];
}

export interface TypeScript {
  /** the server's configured name */
  server: string;
  /** the identifier that stands for it in a program */
  ident: string;
  /** its declarations */
  typescript: string;
}

export interface Restarted {
  /** how many instances were stopped */
  restarted: number;
}

export interface Servers {
  /** one row a server, in the configuration's order */
  servers: Server[];
}

export interface Server {
  /** its configured name */
  name: string;
  /** the identifier that stands for it in a program */
  ident: string;
  /** it is switched on */
  enabled: boolean;
  /** it is among those that the asker works with */
  selected: boolean;
  /** what it is for */
  description?: string;
  /** the server that it is under another name */
  aliasOf?: string;
  /** the profiles that it belongs to */
  profiles?: string[];
  /** its block as the file has it, secrets masked */
  definition: unknown;
  /** the configuration file that defines it */
  source: string;
  /** the line of its name in that file */
  line: number;
  /** why it cannot be used */
  error?: ErrorRecord;
}

export interface ChangedServer {
  /** its configured name */
  server: string;
  /** the file */
  path: string;
  /** `added`, `replaced`, `removed`, or `unchanged` */
  change: string;
  /** why the server, or the configuration, cannot be used */
  problem?: ErrorRecord;
}

export interface Sessions {
  /** by key */
  sessions: Session[];
}

export interface Session {
  /** what `--session` and `MCPX_SESSION_ID` name it by */
  key: string;
  /** when it was first heard of, milliseconds since 1970; absent for one that was made for a run */
  createdAt?: number;
  /** milliseconds since it was last used */
  idleMs: number;
  /** until when it stays although nobody uses it, milliseconds since 1970 */
  keptUntil?: number;
  /** it was made for one run, and ends with it */
  ephemeral: boolean;
  /** its open runs */
  runs: number;
  /** what it owns */
  instances: Instance[];
}

export interface Ended {
  /** its key */
  session: string;
  /** how many servers were stopped */
  stopped: number;
}

export interface Settings {
  /** one row a setting */
  settings: Setting[];
}

export interface Setting {
  /** its key */
  key: string;
  /** the value in force, in the syntax of a configuration file */
  value: unknown;
  /** the same as one types it */
  text: string;
  /** where it is set: `default`, `FILE:LINE`, a variable, `preset:NAME (FLAG)`, a flag, `runtime` */
  source: string;
  /** what it outranks, the strongest first */
  displaced: Displaced[];
  /** the default as one types it */
  default: string;
  /** `daemon`, `client`, `call` or `plugin`: who decides it */
  scope: string;
  /** a running daemon takes a new value at once */
  hot: boolean;
  /** the value is never shown */
  secret: boolean;
  /** what values it takes */
  kind: string;
  /** the variables that set it */
  variables: string[];
  /** the flags that set it */
  flags: string[];
  /** what it sets */
  help: string;
}

export interface Displaced {
  /** the value that was outranked */
  value: unknown;
  /** the same as one types it */
  text: string;
  /** where it is set */
  source: string;
}

export interface EventsParams {
  /** only these kinds (`call.finished`) or families of kinds (`call`) */
  kind?: string[];
  /** only what is about these servers */
  server?: string[];
  /** only what belongs to these sessions */
  session?: string[];
  /** only what came after the event of this number; when absent, everything that is remembered, or with `follow` only what comes */
  since?: number;
  /** a stream that goes on, instead of a list */
  follow?: boolean;
}

export interface ResolveParams {
  /** an absolute directory */
  dir: string;
}

export interface ShutdownParams {
  /** let calls in flight end first, for that many milliseconds at most */
  drainMs?: number;
}

export interface CallParams {
  /** the server's configured name, or its identifier */
  server: string;
  /** the tool's exact name, or its identifier */
  tool: string;
  /** the tool's arguments; `{}` when absent */
  arguments?: Record<string, unknown>;
  /** who is calling; on a channel the run says so, and this is ignored */
  context?: Context;
  /** how long to wait for the answer, in milliseconds; the server's own limit when absent, none when 0 */
  timeoutMs?: number;
}

export interface OpenRunParams {
  /** who is running the program */
  context?: Context;
  /** the tools that the program may call; every tool when it is absent */
  tools?: Grant[];
}

export interface CloseRunParams {
  /** the run's id */
  run: string;
}

export interface ExecParams {
  /** the program; this or `script` */
  code?: string;
  /** a file's path, or the name of a script, where the daemon is */
  script?: string;
  /** what the code is written in: `javascript` (which may be TypeScript), `python`, `sh`, `bash`, `ruby` or `perl` */
  language?: string;
  /** the program's arguments */
  args?: string[];
  /** its standard input; empty when absent */
  stdin?: string;
  /** `script.runtime` for this run */
  runtime?: string;
  /** `script.permissions` for this run */
  permissions?: string;
  /** the session key of its calls; one of its own when absent */
  session?: string;
  /** the session that the host assigned */
  sessionId?: string;
  /** the session that spawned that one */
  parentSessionId?: string;
  /** its working directory, absolute; beside the configuration when absent */
  cwd?: string;
  /** variables on top of the daemon's environment */
  env?: Record<string, unknown>;
  /** the export to call instead of the default one */
  export?: string;
  /** start the program itself, without what makes tools global */
  noLauncher?: boolean;
  /** how long it may run, in milliseconds; `exec.timeout` when absent, without a limit when 0 */
  timeoutMs?: number;
  /** `structured` (when absent), `text` or `stream` */
  output?: string;
  /** commands to run before and after it */
  hooks?: Hooks;
  /** call settings, as in the header `X-Mcpx-Settings` */
  settings?: Record<string, unknown>;
  /** who asks, instead of single fields */
  context?: Context;
}

export interface QuestionParams {
  /** the question's id */
  id: string;
}

export interface AnswerQuestionParams {
  /** the question's id */
  id: string;
  /** `accept`, `decline` or `cancel` */
  action: string;
  /** the fields, where a form is accepted; those with a default may be left out */
  content?: Record<string, unknown>;
}

export interface TaskParams {
  /** the task's id */
  id: string;
}

export interface TaskResultParams {
  /** the task's id */
  id: string;
  /** how long to wait for it, in milliseconds; until it is there when absent */
  waitMs?: number;
}

export interface CancelTaskParams {
  /** the task's id */
  id: string;
}

export interface NamespacesParams {
  /** ask the servers again instead of answering from the cache */
  fresh?: boolean;
  /** ask no server: only what is known of each already, `unknown` where that is nothing */
  known?: boolean;
  /** how long to wait for servers that are still starting, in milliseconds; each server's `startTimeout` when absent */
  waitMs?: number;
  /** the servers of these profiles besides the default set; with none of the three, every server, or those of the run */
  profile?: string[];
  /** without the servers that name no profile */
  skipDefault?: boolean;
  /** every server, whatever its profiles */
  allProfiles?: boolean;
}

export interface SchemasParams {
  /** only these servers, by name or identifier; every enabled one that is selected when absent */
  server?: string[];
  /** ask the servers again instead of answering from the cache */
  fresh?: boolean;
  /** how long to wait for servers that are still starting, in milliseconds; each server's `startTimeout` when absent */
  waitMs?: number;
  /** the servers of these profiles besides the default set; with none of the three, every server, or those of the run */
  profile?: string[];
  /** without the servers that name no profile */
  skipDefault?: boolean;
  /** every server, whatever its profiles */
  allProfiles?: boolean;
}

export interface SearchParams {
  /** words; tools that match all of them come first */
  query: string;
  /** how many tools at most; `search.limit` when absent */
  limit?: number;
  /** how long to wait for servers that are still starting, in milliseconds; each server's `startTimeout` when absent */
  waitMs?: number;
  /** the servers of these profiles besides the default set; with none of the three, every server, or those of the run */
  profile?: string[];
  /** without the servers that name no profile */
  skipDefault?: boolean;
  /** every server, whatever its profiles */
  allProfiles?: boolean;
}

export interface TypesParams {
  /** only these servers, by name or identifier; every enabled one that is selected when absent */
  server?: string[];
  /** signatures alone, without descriptions */
  brief?: boolean;
  /** how long to wait for servers that are still starting, in milliseconds; each server's `startTimeout` when absent */
  waitMs?: number;
  /** the servers of these profiles besides the default set; with none of the three, every server, or those of the run */
  profile?: string[];
  /** without the servers that name no profile */
  skipDefault?: boolean;
  /** every server, whatever its profiles */
  allProfiles?: boolean;
}

export interface RefreshParams {
  /** only these servers, by name or identifier; every enabled one that is selected when absent */
  servers?: string[];
  /** absent: every server, or those of the run */
  selection?: Selection;
}

export interface RestartParams {
  /** only this server's instances; all when absent */
  server?: string;
  /** only this session's instances; all when absent */
  session?: string;
}

export interface ServersParams {
  /** the servers of these profiles besides the default set; with none of the three, every server, or those of the run */
  profile?: string[];
  /** without the servers that name no profile */
  skipDefault?: boolean;
  /** every server, whatever its profiles */
  allProfiles?: boolean;
}

export interface PutServerParams {
  /** the server's configured name */
  name: string;
  /** its block, as in a configuration file */
  definition: Record<string, unknown>;
  /** which of the daemon's configuration files; the one that has the server, else the nearest, when absent */
  file?: string;
}

export interface DeleteServerParams {
  /** the server's configured name */
  name: string;
  /** which of the daemon's configuration files; the one that has it when absent */
  file?: string;
}

export interface SessionParams {
  /** the session's key */
  session: string;
}

export interface NewSessionParams {
  /** its key; when absent one is made that nobody else has */
  name?: string;
  /** how long it is kept although nobody uses it, in milliseconds */
  ttlMs?: number;
}

export interface KeepSessionParams {
  /** the session's key */
  session: string;
  /** how long from now, in milliseconds; 0 no longer */
  ttlMs: number;
}

export interface EndSessionParams {
  /** the session's key */
  session: string;
}

export interface SettingParams {
  /** the setting's key, for instance `pool.callTimeout` */
  key: string;
}

export interface SetSettingParams {
  /** the setting's key */
  key: string;
  /** the value, in the syntax of a configuration file */
  value: unknown;
}

export interface UnsetSettingParams {
  /** the setting's key */
  key: string;
}

/** How one request is sent. */
export interface How {
  /** Ends it. */
  signal?: AbortSignal;
  /** How long it may take, in milliseconds; 0 is without end. */
  timeoutMs?: number;
}

export interface Operation {
  method: string;
  path: string;
  query: string[];
  body: string[];
}

/** A request, ready to travel: the path with its query, and the body to be sent as JSON. */
export interface Wire {
  method: string;
  path: string;
  body?: Record<string, unknown>;
}

/** Sends a request and reads its JSON answer; rejects where the daemon reports an error. */
export type Send = (request: Wire, how?: How) => Promise<unknown>;

/** Every operation. A stream, and the channel, are not among them. */
export interface V1 {
  /** `GET /v1/health`: whether the daemon is there, and which one it is. */
  health(_?: undefined, how?: How): Promise<Health>;
  /** `GET /v1/status`: the daemon and the server instances that it runs. */
  status(_?: undefined, how?: How): Promise<Status>;
  /** `GET /v1/events`: what happened: a list, or server-sent events as they come. */
  events(params?: EventsParams, how?: How): Promise<Events>;
  /** `POST /v1/reload`: read the configuration again now. */
  reload(_?: undefined, how?: How): Promise<Reloaded>;
  /** `GET /v1/resolve`: which daemon serves a directory. */
  resolve(params: ResolveParams, how?: How): Promise<Resolved>;
  /** `POST /v1/shutdown`: stop the daemon and every server that it runs. */
  shutdown(params?: ShutdownParams, how?: How): Promise<Done>;
  /** `GET /v1/openapi.json`: this table as an OpenAPI document. */
  openapi(_?: undefined, how?: How): Promise<Record<string, unknown>>;
  /** `POST /v1/call`: call one tool. */
  call(params: CallParams, how?: How): Promise<Called>;
  /** `POST /v1/runs`: open a run: the calls of one program. */
  openRun(params?: OpenRunParams, how?: How): Promise<OpenedRun>;
  /** `DELETE /v1/runs/{run}`: close a run. */
  closeRun(params: CloseRunParams, how?: How): Promise<Done>;
  /** `POST /v1/exec`: run a program that calls tools. */
  exec(params?: ExecParams, how?: How): Promise<Ran>;
  /** `GET /v1/elicit`: what servers ask and nobody has answered yet. */
  questions(_?: undefined, how?: How): Promise<Questions>;
  /** `GET /v1/elicit/{id}`: one open question. */
  question(params: QuestionParams, how?: How): Promise<Question>;
  /** `POST /v1/elicit/{id}`: answer a question. */
  answerQuestion(params: AnswerQuestionParams, how?: How): Promise<Question>;
  /** `GET /v1/tasks`: the calls that go on although their caller was answered. */
  tasks(_?: undefined, how?: How): Promise<Tasks>;
  /** `GET /v1/tasks/{id}`: one task, with the questions that it waits for. */
  task(params: TaskParams, how?: How): Promise<Task>;
  /** `GET /v1/tasks/{id}/result`: the result of a task's call. */
  taskResult(params: TaskResultParams, how?: How): Promise<Called>;
  /** `DELETE /v1/tasks/{id}`: have a task stop. */
  cancelTask(params: CancelTaskParams, how?: How): Promise<Task>;
  /** `GET /v1/namespaces`: every configured server, with what is known of it. */
  namespaces(params?: NamespacesParams, how?: How): Promise<Namespaces>;
  /** `GET /v1/schemas`: the tools of servers, with their JSON Schemas. */
  schemas(params?: SchemasParams, how?: How): Promise<Schemas>;
  /** `GET /v1/search`: find tools of all servers by words, best first. */
  search(params: SearchParams, how?: How): Promise<Hits>;
  /** `GET /v1/types`: TypeScript declarations of servers' tools: their arguments and results. */
  types(params?: TypesParams, how?: How): Promise<Types>;
  /** `POST /v1/refresh`: read the servers' tools again. */
  refresh(params?: RefreshParams, how?: How): Promise<Namespaces>;
  /** `POST /v1/restart`: stop server instances; the next call starts them anew. */
  restart(params?: RestartParams, how?: How): Promise<Restarted>;
  /** `GET /v1/servers`: every configured server, as its file has it. */
  servers(params?: ServersParams, how?: How): Promise<Servers>;
  /** `PUT /v1/servers/{name}`: add a server to a configuration file, or replace it there. */
  putServer(params: PutServerParams, how?: How): Promise<ChangedServer>;
  /** `DELETE /v1/servers/{name}`: remove a server from a configuration file. */
  deleteServer(params: DeleteServerParams, how?: How): Promise<ChangedServer>;
  /** `GET /v1/sessions`: every session, and what it owns. */
  sessions(_?: undefined, how?: How): Promise<Sessions>;
  /** `GET /v1/sessions/{session}`: one session. */
  session(params: SessionParams, how?: How): Promise<Session>;
  /** `POST /v1/sessions`: open a session that lasts longer than a run. */
  newSession(params?: NewSessionParams, how?: How): Promise<Session>;
  /** `POST /v1/sessions/{session}/keep`: keep a session and what it owns, used or not. */
  keepSession(params: KeepSessionParams, how?: How): Promise<Session>;
  /** `DELETE /v1/sessions/{session}`: end a session: stop what it owns. */
  endSession(params: EndSessionParams, how?: How): Promise<Ended>;
  /** `GET /v1/settings`: every setting of the daemon, with its source and what it displaced. */
  settings(_?: undefined, how?: How): Promise<Settings>;
  /** `GET /v1/settings/{key}`: one setting of the daemon. */
  setting(params: SettingParams, how?: How): Promise<Setting>;
  /** `PUT /v1/settings/{key}`: override a setting until the daemon ends. */
  setSetting(params: SetSettingParams, how?: How): Promise<Setting>;
  /** `DELETE /v1/settings/{key}`: end an override. */
  unsetSetting(params: UnsetSettingParams, how?: How): Promise<Setting>;
}

/** Where each operation is, and where its parameters travel. */
export const OPERATIONS: Record<keyof V1, Operation> = {
  health: { method: "GET", path: "/v1/health", query: [], body: [] },
  status: { method: "GET", path: "/v1/status", query: [], body: [] },
  events: { method: "GET", path: "/v1/events", query: ["kind", "server", "session", "since", "follow"], body: [] },
  reload: { method: "POST", path: "/v1/reload", query: [], body: [] },
  resolve: { method: "GET", path: "/v1/resolve", query: ["dir"], body: [] },
  shutdown: { method: "POST", path: "/v1/shutdown", query: [], body: ["drainMs"] },
  openapi: { method: "GET", path: "/v1/openapi.json", query: [], body: [] },
  call: { method: "POST", path: "/v1/call", query: [], body: ["server", "tool", "arguments", "context", "timeoutMs"] },
  openRun: { method: "POST", path: "/v1/runs", query: [], body: ["context", "tools"] },
  closeRun: { method: "DELETE", path: "/v1/runs/{run}", query: [], body: [] },
  exec: { method: "POST", path: "/v1/exec", query: [], body: ["code", "script", "language", "args", "stdin", "runtime", "permissions", "session", "sessionId", "parentSessionId", "cwd", "env", "export", "noLauncher", "timeoutMs", "output", "hooks", "settings", "context"] },
  questions: { method: "GET", path: "/v1/elicit", query: [], body: [] },
  question: { method: "GET", path: "/v1/elicit/{id}", query: [], body: [] },
  answerQuestion: { method: "POST", path: "/v1/elicit/{id}", query: [], body: ["action", "content"] },
  tasks: { method: "GET", path: "/v1/tasks", query: [], body: [] },
  task: { method: "GET", path: "/v1/tasks/{id}", query: [], body: [] },
  taskResult: { method: "GET", path: "/v1/tasks/{id}/result", query: ["waitMs"], body: [] },
  cancelTask: { method: "DELETE", path: "/v1/tasks/{id}", query: [], body: [] },
  namespaces: { method: "GET", path: "/v1/namespaces", query: ["fresh", "known", "waitMs", "profile", "skipDefault", "allProfiles"], body: [] },
  schemas: { method: "GET", path: "/v1/schemas", query: ["server", "fresh", "waitMs", "profile", "skipDefault", "allProfiles"], body: [] },
  search: { method: "GET", path: "/v1/search", query: ["query", "limit", "waitMs", "profile", "skipDefault", "allProfiles"], body: [] },
  types: { method: "GET", path: "/v1/types", query: ["server", "brief", "waitMs", "profile", "skipDefault", "allProfiles"], body: [] },
  refresh: { method: "POST", path: "/v1/refresh", query: [], body: ["servers", "selection"] },
  restart: { method: "POST", path: "/v1/restart", query: [], body: ["server", "session"] },
  servers: { method: "GET", path: "/v1/servers", query: ["profile", "skipDefault", "allProfiles"], body: [] },
  putServer: { method: "PUT", path: "/v1/servers/{name}", query: [], body: ["definition", "file"] },
  deleteServer: { method: "DELETE", path: "/v1/servers/{name}", query: ["file"], body: [] },
  sessions: { method: "GET", path: "/v1/sessions", query: [], body: [] },
  session: { method: "GET", path: "/v1/sessions/{session}", query: [], body: [] },
  newSession: { method: "POST", path: "/v1/sessions", query: [], body: ["name", "ttlMs"] },
  keepSession: { method: "POST", path: "/v1/sessions/{session}/keep", query: [], body: ["ttlMs"] },
  endSession: { method: "DELETE", path: "/v1/sessions/{session}", query: [], body: [] },
  settings: { method: "GET", path: "/v1/settings", query: [], body: [] },
  setting: { method: "GET", path: "/v1/settings/{key}", query: [], body: [] },
  setSetting: { method: "PUT", path: "/v1/settings/{key}", query: [], body: ["value"] },
  unsetSetting: { method: "DELETE", path: "/v1/settings/{key}", query: [], body: [] },
};

/** An operation with its parameters, as it travels. */
export function wire(op: Operation, params: Record<string, unknown> = {}): Wire {
  const path = op.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name] ?? "")));
  const query = new URLSearchParams();
  for (const name of op.query) {
    for (const one of [params[name]].flat()) if (one !== undefined) query.append(name, String(one));
  }
  const body: Record<string, unknown> = {};
  for (const name of op.body) if (params[name] !== undefined) body[name] = params[name];
  const tail = query.toString();
  return { method: op.method, path: tail ? `${path}?${tail}` : path, ...(op.body.length ? { body } : {}) };
}

/** The operations, over something that sends. */
export function v1(send: Send): V1 {
  const methods: Record<string, unknown> = {};
  for (const [name, op] of Object.entries(OPERATIONS)) {
    methods[name] = (params?: Record<string, unknown>, how?: How) => send(wire(op, params), how);
  }
  return methods as unknown as V1;
}
