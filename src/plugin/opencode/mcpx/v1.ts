// Made from src/api/ops/ and defaults.json by `make docs`; edit those, not this file.
// What the daemon can be asked, with types; docs/api.md says what each field means.
// Knows nothing of how a request travels.

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
  kind: string;
  message: string;
  hint?: string;
  server?: string;
  tool?: string;
  raw?: unknown;
}

export interface Health {
  ok: boolean;
  name: string;
  version: string;
  pid: number;
  key: string;
  configPath: string;
  startedAt: number;
  uptimeMs: number;
  servers: number;
  sessions: number;
  api: number;
}

export interface Status {
  daemon: Daemon;
  instances: Instance[];
}

export interface Daemon {
  version: string;
  pid: number;
  key: string;
  configPath: string;
  sources: string[];
  servers: string[];
  socket: string;
  endpoint: string;
  log: string;
  startedAt: number;
  uptimeMs: number;
  sessions: number;
  runs: number;
  connections: number;
  detached: boolean;
  problem?: ErrorRecord;
  restart?: string[];
  warnings?: string[];
}

export interface Instance {
  server: string;
  key: string;
  state: string;
  protocol?: string;
  pid?: number;
  session?: string;
  uptimeMs: number;
  idleMs: number;
  calls: number;
  inFlight: number;
  queue: number;
  lastError?: string;
  stderr?: string;
}

export interface Events {
  events: EventRecord[];
  last: number;
  missed: number;
  daemon: string;
}

export interface EventRecord {
  seq: number;
  at: number;
  kind: string;
  server?: string;
  session?: string;
  uri?: string;
  data: Record<string, unknown>;
}

export interface Reloaded {
  key: string;
  changed: boolean;
  taken?: Taken;
  socket: string;
  problem?: ErrorRecord;
}

export interface Taken {
  at: number;
  added: string[];
  removed: string[];
  changed: string[];
}

export interface Resolved {
  socket: string;
  endpoint: string;
  configPath: string;
  configHash: string;
  running: boolean;
  sources: string[];
}

export interface Done {
  ok: boolean;
}

export interface Context {
  session?: string;
  sessionId?: string;
  parentSessionId?: string;
  ephemeral?: boolean;
  cwd?: string;
  git?: GitEnvironment;
  pid?: number;
  run?: string;
  selection?: Selection;
}

export interface GitEnvironment {
  dir?: string;
  workTree?: string;
  commonDir?: string;
}

export interface Selection {
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface TaskWish {
  afterMs?: number;
  ttlMs?: number;
  owner?: string;
}

export interface Called {
  result: Record<string, unknown>;
  task?: Task;
}

export interface Task {
  id: string;
  op: string;
  server: string;
  tool: string;
  owner?: string;
  session?: string;
  status: string;
  createdAt: number;
  finishedAt?: number;
  updatedAt: number;
  ttlMs?: number;
  isError?: boolean;
  message?: string;
  questions?: Question[];
  stopped?: boolean;
}

export interface Question {
  id: string;
  server: string;
  tool?: string;
  run?: string;
  task?: string;
  session?: string;
  mode: string;
  method?: string;
  params?: Record<string, unknown>;
  key?: string;
  message: string;
  schema?: Record<string, unknown>;
  url?: string;
  elicitationId?: string;
  askedAt: number;
  expiresAt: number;
  outcome?: string;
}

export interface Grant {
  tool: string;
  profile: string;
}

export interface OpenedRun {
  run: string;
  session: string;
  ephemeral: boolean;
  namespaces: NamespaceName[];
  endpoint: string;
  token: string;
}

export interface NamespaceName {
  name: string;
  ident: string;
}

export interface Hooks {
  pre?: unknown;
  post?: unknown;
  onError?: unknown;
  onSuccess?: unknown;
}

export interface Ran {
  ok: boolean;
  exitCode: number;
  durationMs: unknown;
  runtime: string;
  result?: unknown;
  results: unknown[];
  logs: LogRecord[];
  artifacts: Artifact[];
  stdout: string;
  stderr: string;
  error?: Record<string, unknown>;
  truncated?: string[];
  hooks?: FailedHook[];
}

export interface LogRecord {
  level: string;
  at: number;
  message: string;
  fields?: unknown;
  console?: string;
  source?: string;
}

export interface Artifact {
  uri: string;
  id: string;
  name: string;
  mime: string;
  size: number;
  sha256: string;
  at: number;
  run?: string;
  session?: string;
  path?: string;
}

export interface FailedHook {
  phase: string;
  message: string;
}

export interface Artifacts {
  artifacts: Artifact[];
  bytes: number;
}

export interface Stored {
  artifact?: Artifact;
  upload?: string;
}

export interface Swept {
  removed: Artifact[];
  freed: number;
  left: number;
}

export interface Questions {
  questions: Question[];
}

export interface Tasks {
  tasks: Task[];
}

export interface Resources {
  resources: Record<string, unknown>[];
  failures?: ErrorRecord[];
}

export interface ResourceTemplates {
  resourceTemplates: Record<string, unknown>[];
  failures?: ErrorRecord[];
}

export interface Prompts {
  prompts: Record<string, unknown>[];
  failures?: ErrorRecord[];
}

export interface Namespaces {
  namespaces: Namespace[];
}

export interface Namespace {
  name: string;
  ident: string;
  tools?: number;
  description?: string;
  state: string;
  error?: ErrorRecord;
  fetchedAt?: number;
  source?: string;
}

export interface Schemas {
  schemas: ServerSchema[];
  errors: ServerError[];
}

export interface ServerSchema {
  server: string;
  digest: string;
  fetchedAt: number;
  protocol: string;
  serverInfo?: unknown;
  capabilities?: unknown;
  instructions?: string;
  tools: Tool[];
}

export interface Tool {
  name: string;
  title?: string;
  description?: string;
  icons?: unknown;
  inputSchema: unknown;
  outputSchema?: unknown;
  annotations?: unknown;
  execution?: unknown;
  _meta?: unknown;
}

export interface ServerError {
  server: string;
  error: ErrorRecord;
}

export interface Hits {
  hits: Hit[];
  near?: string;
  errors: ServerError[];
}

export interface Hit {
  server: string;
  tool: string;
  signature: string;
  description: string;
  all: boolean;
}

export interface Types {
  types: TypeScript[];
  errors: ServerError[];
}

export interface TypeScript {
  server: string;
  ident: string;
  typescript: string;
}

export interface Restarted {
  restarted: number;
}

export interface Servers {
  servers: Server[];
}

export interface Server {
  name: string;
  ident: string;
  enabled: boolean;
  selected: boolean;
  description?: string;
  aliasOf?: string;
  profiles?: string[];
  definition: unknown;
  source: string;
  line: number;
  error?: ErrorRecord;
}

export interface ChangedServer {
  server: string;
  path: string;
  change: string;
  problem?: ErrorRecord;
}

export interface Sessions {
  sessions: Session[];
}

export interface Session {
  key: string;
  createdAt?: number;
  idleMs: number;
  keptUntil?: number;
  ephemeral: boolean;
  runs: number;
  instances: Instance[];
}

export interface Ended {
  session: string;
  stopped: number;
}

export interface Settings {
  settings: Setting[];
}

export interface Setting {
  key: string;
  value: unknown;
  text: string;
  source: string;
  displaced: Displaced[];
  default: string;
  scope: string;
  hot: boolean;
  secret: boolean;
  kind: string;
  variables: string[];
  flags: string[];
  help: string;
}

export interface Displaced {
  value: unknown;
  text: string;
  source: string;
}

export interface Log {
  records: Logged[];
}

export interface Logged {
  at: number;
  level: string;
  source: string;
  event?: string;
  message?: string;
  daemon: string;
  seq?: number;
  server?: string;
  tool?: string;
  instance?: string;
  session?: string;
  run?: string;
  call?: string;
  trace?: string[][];
  ms?: unknown;
  outcome?: string;
  sent?: number;
  received?: number;
  data?: unknown;
}

export interface Chain {
  tree: Link[];
}

export interface Link {
  kind: string;
  id: string;
  records: Logged[];
  children?: Record<string, unknown>[];
}

export interface Stats {
  about: string;
  since: number;
  until: number;
  rows: Record<string, unknown>[];
  more: number;
}

export interface Listeners {
  hooks: DeclaredHook[];
  consumers: Consumer[];
}

export interface DeclaredHook {
  name: string;
  events: string[];
  servers: string[];
  command: string;
  problem?: string;
  runs?: number;
  failures?: number;
  dropped?: number;
  running?: number;
  last?: number;
  lastError?: string;
}

export interface Consumer {
  name: string;
  events: string[];
  servers: string[];
  command: string;
  problem?: string;
  pid?: number;
  acknowledged?: number;
  starts?: number;
  lastError?: string;
}

export interface EventsParams {
  kind?: string[];
  server?: string[];
  session?: string[];
  since?: number;
  follow?: boolean;
}

export interface ResolveParams {
  dir: string;
}

export interface ShutdownParams {
  drainMs?: number;
}

export interface CallParams {
  server: string;
  tool: string;
  arguments?: Record<string, unknown>;
  context?: Context;
  timeoutMs?: number;
  input?: Record<string, unknown>;
  meta?: Record<string, unknown>;
  task?: TaskWish;
}

export interface OpenRunParams {
  context?: Context;
  tools?: Grant[];
  interactive?: boolean;
}

export interface CloseRunParams {
  run: string;
}

export interface ExecParams {
  code?: string;
  script?: string;
  language?: string;
  args?: string[];
  stdin?: string;
  runtime?: string;
  permissions?: string;
  session?: string;
  sessionId?: string;
  parentSessionId?: string;
  cwd?: string;
  env?: Record<string, unknown>;
  export?: string;
  noLauncher?: boolean;
  timeoutMs?: number;
  output?: string;
  hooks?: Hooks;
  settings?: Record<string, unknown>;
  context?: Context;
  task?: TaskWish;
}

export interface ArtifactsParams {
  run?: string[];
  session?: string[];
  limit?: number;
}

export interface StoreArtifactParams {
  name?: string;
  mime?: string;
  text?: string;
  data?: string;
  path?: string;
  upload?: string;
  more?: boolean;
  context?: Context;
}

export interface UploadArtifactParams {
  name?: string;
  mime?: string;
  run?: string;
  session?: string;
}

export interface ArtifactParams {
  id: string;
}

export interface RemoveArtifactParams {
  id: string;
}

export interface QuestionParams {
  id: string;
}

export interface AnswerQuestionParams {
  id: string;
  action: string;
  content?: Record<string, unknown>;
  result?: Record<string, unknown>;
}

export interface TaskParams {
  id: string;
}

export interface TaskResultParams {
  id: string;
  waitMs?: number;
  untilOver?: boolean;
}

export interface CancelTaskParams {
  id: string;
}

export interface ResourcesParams {
  server?: string[];
  session?: string;
  waitMs?: number;
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface ResourceTemplatesParams {
  server?: string[];
  session?: string;
  waitMs?: number;
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface ReadResourceParams {
  server: string;
  uri: string;
  session?: string;
  input?: Record<string, unknown>;
  meta?: Record<string, unknown>;
}

export interface SubscribeResourceParams {
  server: string;
  uri: string;
  session?: string;
}

export interface UnsubscribeResourceParams {
  server: string;
  uri: string;
  session?: string;
}

export interface PromptsParams {
  server?: string[];
  session?: string;
  waitMs?: number;
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface GetPromptParams {
  server: string;
  name: string;
  arguments?: Record<string, unknown>;
  context?: Context;
  input?: Record<string, unknown>;
  meta?: Record<string, unknown>;
}

export interface CompleteParams {
  server: string;
  ref: Record<string, unknown>;
  argument: Record<string, unknown>;
  arguments?: Record<string, unknown>;
  context?: Context;
  meta?: Record<string, unknown>;
}

export interface NamespacesParams {
  fresh?: boolean;
  known?: boolean;
  waitMs?: number;
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface SchemasParams {
  server?: string[];
  fresh?: boolean;
  waitMs?: number;
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface SearchParams {
  query: string;
  limit?: number;
  waitMs?: number;
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface TypesParams {
  server?: string[];
  brief?: boolean;
  waitMs?: number;
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface RefreshParams {
  servers?: string[];
  selection?: Selection;
}

export interface RestartParams {
  server?: string;
  session?: string;
}

export interface ServersParams {
  profile?: string[];
  skipDefault?: boolean;
  allProfiles?: boolean;
}

export interface PutServerParams {
  name: string;
  definition: Record<string, unknown>;
  file?: string;
}

export interface DeleteServerParams {
  name: string;
  file?: string;
}

export interface SessionParams {
  session: string;
}

export interface NewSessionParams {
  name?: string;
  ttlMs?: number;
}

export interface KeepSessionParams {
  session: string;
  ttlMs: number;
}

export interface EndSessionParams {
  session: string;
}

export interface SettingParams {
  key: string;
}

export interface SetSettingParams {
  key: string;
  value: unknown;
}

export interface UnsetSettingParams {
  key: string;
}

export interface LogParams {
  since?: string;
  until?: string;
  level?: string;
  event?: string[];
  source?: string[];
  server?: string[];
  tool?: string[];
  session?: string[];
  run?: string[];
  id?: string;
  grep?: string;
  limit?: number;
  lines?: boolean;
  follow?: boolean;
}

export interface LogChainParams {
  id: string;
}

export interface PostLogParams {
  level?: string;
  source?: string;
  event?: string;
  message?: string;
  server?: string;
  tool?: string;
  session?: string;
  run?: string;
  call?: string;
  trace?: string[][];
  data?: Record<string, unknown>;
  records?: Record<string, unknown>[];
}

export interface StatsParams {
  about?: string;
  since?: string;
  until?: string;
  server?: string[];
  tool?: string[];
  session?: string[];
  run?: string[];
  limit?: number;
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
  /** `GET /v1/artifacts`: what is kept, the oldest first. */
  artifacts(params?: ArtifactsParams, how?: How): Promise<Artifacts>;
  /** `POST /v1/artifacts`: keep something as an artifact. */
  storeArtifact(params?: StoreArtifactParams, how?: How): Promise<Stored>;
  /** `PUT /v1/artifacts`: keep the body of the request as an artifact. */
  uploadArtifact(params?: UploadArtifactParams, how?: How): Promise<Stored>;
  /** `GET /v1/artifacts/{id}`: what is known of one artifact. */
  artifact(params: ArtifactParams, how?: How): Promise<Artifact>;
  /** `DELETE /v1/artifacts/{id}`: remove one artifact. */
  removeArtifact(params: RemoveArtifactParams, how?: How): Promise<Artifact>;
  /** `POST /v1/artifacts/gc`: remove the artifacts that are too old, or too many. */
  sweepArtifacts(_?: undefined, how?: How): Promise<Swept>;
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
  /** `GET /v1/resources`: the resources of servers. */
  resources(params?: ResourcesParams, how?: How): Promise<Resources>;
  /** `GET /v1/resources/templates`: the templates for URIs of servers' resources. */
  resourceTemplates(params?: ResourceTemplatesParams, how?: How): Promise<ResourceTemplates>;
  /** `GET /v1/resources/read`: read a resource. */
  readResource(params: ReadResourceParams, how?: How): Promise<Called>;
  /** `POST /v1/resources/subscribe`: have a server tell when a resource changes. */
  subscribeResource(params: SubscribeResourceParams, how?: How): Promise<Done>;
  /** `POST /v1/resources/unsubscribe`: have a server tell no longer. */
  unsubscribeResource(params: UnsubscribeResourceParams, how?: How): Promise<Done>;
  /** `GET /v1/prompts`: the prompts of servers. */
  prompts(params?: PromptsParams, how?: How): Promise<Prompts>;
  /** `POST /v1/prompts/get`: get a prompt, filled in. */
  getPrompt(params: GetPromptParams, how?: How): Promise<Called>;
  /** `POST /v1/complete`: what could complete an argument of a prompt or of a resource's template. */
  complete(params: CompleteParams, how?: How): Promise<Called>;
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
  /** `GET /v1/log`: records of the log, the oldest first. */
  log(params?: LogParams, how?: How): Promise<Log>;
  /** `GET /v1/log/chain`: what an id belongs to, as a tree from the daemon down. */
  logChain(params: LogChainParams, how?: How): Promise<Chain>;
  /** `POST /v1/log`: add a record to the log. */
  postLog(params?: PostLogParams, how?: How): Promise<Done>;
  /** `GET /v1/stats`: what the log comes to: counts, exact percentiles, errors by shape. */
  stats(params?: StatsParams, how?: How): Promise<Stats>;
  /** `GET /v1/hooks`: the declared hooks and event consumers, and how they fare. */
  hooks(_?: undefined, how?: How): Promise<Listeners>;
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
  call: { method: "POST", path: "/v1/call", query: [], body: ["server", "tool", "arguments", "context", "timeoutMs", "input", "meta", "task"] },
  openRun: { method: "POST", path: "/v1/runs", query: [], body: ["context", "tools", "interactive"] },
  closeRun: { method: "DELETE", path: "/v1/runs/{run}", query: [], body: [] },
  exec: { method: "POST", path: "/v1/exec", query: [], body: ["code", "script", "language", "args", "stdin", "runtime", "permissions", "session", "sessionId", "parentSessionId", "cwd", "env", "export", "noLauncher", "timeoutMs", "output", "hooks", "settings", "context", "task"] },
  artifacts: { method: "GET", path: "/v1/artifacts", query: ["run", "session", "limit"], body: [] },
  storeArtifact: { method: "POST", path: "/v1/artifacts", query: [], body: ["name", "mime", "text", "data", "path", "upload", "more", "context"] },
  uploadArtifact: { method: "PUT", path: "/v1/artifacts", query: ["name", "mime", "run", "session"], body: [] },
  artifact: { method: "GET", path: "/v1/artifacts/{id}", query: [], body: [] },
  removeArtifact: { method: "DELETE", path: "/v1/artifacts/{id}", query: [], body: [] },
  sweepArtifacts: { method: "POST", path: "/v1/artifacts/gc", query: [], body: [] },
  questions: { method: "GET", path: "/v1/elicit", query: [], body: [] },
  question: { method: "GET", path: "/v1/elicit/{id}", query: [], body: [] },
  answerQuestion: { method: "POST", path: "/v1/elicit/{id}", query: [], body: ["action", "content", "result"] },
  tasks: { method: "GET", path: "/v1/tasks", query: [], body: [] },
  task: { method: "GET", path: "/v1/tasks/{id}", query: [], body: [] },
  taskResult: { method: "GET", path: "/v1/tasks/{id}/result", query: ["waitMs", "untilOver"], body: [] },
  cancelTask: { method: "DELETE", path: "/v1/tasks/{id}", query: [], body: [] },
  resources: { method: "GET", path: "/v1/resources", query: ["server", "session", "waitMs", "profile", "skipDefault", "allProfiles"], body: [] },
  resourceTemplates: { method: "GET", path: "/v1/resources/templates", query: ["server", "session", "waitMs", "profile", "skipDefault", "allProfiles"], body: [] },
  readResource: { method: "GET", path: "/v1/resources/read", query: ["server", "uri", "session", "input", "meta"], body: [] },
  subscribeResource: { method: "POST", path: "/v1/resources/subscribe", query: [], body: ["server", "uri", "session"] },
  unsubscribeResource: { method: "POST", path: "/v1/resources/unsubscribe", query: [], body: ["server", "uri", "session"] },
  prompts: { method: "GET", path: "/v1/prompts", query: ["server", "session", "waitMs", "profile", "skipDefault", "allProfiles"], body: [] },
  getPrompt: { method: "POST", path: "/v1/prompts/get", query: [], body: ["server", "name", "arguments", "context", "input", "meta"] },
  complete: { method: "POST", path: "/v1/complete", query: [], body: ["server", "ref", "argument", "arguments", "context", "meta"] },
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
  log: { method: "GET", path: "/v1/log", query: ["since", "until", "level", "event", "source", "server", "tool", "session", "run", "id", "grep", "limit", "lines", "follow"], body: [] },
  logChain: { method: "GET", path: "/v1/log/chain", query: ["id"], body: [] },
  postLog: { method: "POST", path: "/v1/log", query: [], body: ["level", "source", "event", "message", "server", "tool", "session", "run", "call", "trace", "data", "records"] },
  stats: { method: "GET", path: "/v1/stats", query: ["about", "since", "until", "server", "tool", "session", "run", "limit"], body: [] },
  hooks: { method: "GET", path: "/v1/hooks", query: [], body: [] },
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
