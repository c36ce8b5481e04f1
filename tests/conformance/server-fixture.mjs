// An MCP server over stdio that offers what the scenarios of the official
// conformance suite ask of a server, in either era of the protocol. mcpx stands between the two: what the suite
// sees is what mcpx passes through.
import { createInterface } from "node:readline";
import { stdin, stdout } from "node:process";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const send = (message) => stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const notify = (method, params) => send({ method, params });
const text = (text) => ({ content: [{ type: "text", text }] });

/** Requests of ours that wait for the client. */
const waiting = new Map();
let serial = 0;
let capabilities = {};

const key = (name) => `io.modelcontextprotocol/${name}`;

/** What the client has to answer before it asks again: a result of the stateless era. */
class Need {
  constructor(inputRequests, requestState) {
    this.result = { resultType: "input_required", inputRequests, requestState };
  }
}

/** One request of the client's, in the era in which it was made. */
class Request {
  constructor(id, { _meta, inputResponses, requestState }) {
    this.id = id;
    this.meta = _meta;
    this.stateless = _meta?.[key("protocolVersion")] !== undefined;
    this.responses = inputResponses ?? {};
    this.state = requestState;
    this.capabilities = this.stateless ? _meta[key("clientCapabilities")] : capabilities;
  }
  /** Asks the client several things at once, each under its key: a request each, or all in one result. */
  async askAll(requests, state) {
    if (this.stateless) {
      if (Object.keys(requests).some((name) => !(name in this.responses))) throw new Need(requests, state);
      return this.responses;
    }
    const asked = Object.entries(requests).map(async ([name, request]) => {
      const id = ++serial;
      send({ id, ...request });
      return [name, await new Promise((resolve, reject) => waiting.set(id, { resolve, reject }))];
    });
    return Object.fromEntries(await Promise.all(asked));
  }
  async ask(method, params, name = "input") {
    return (await this.askAll({ [name]: { method, params } }))[name];
  }
  /** Logs, where the client wants it. */
  log(data) {
    if (!this.stateless || this.meta[key("logLevel")]) notify("notifications/message", { level: "info", data });
  }
}

/** Those who listen, in the stateless era. */
const subscriptions = [];

/** Says that a list is another: to those who listen, or with a handshake to the client. */
function changed(list) {
  const method = `notifications/${list}/list_changed`;
  if (subscriptions.length === 0) return notify(method);
  for (const { id, notifications } of subscriptions) {
    if (notifications[`${list}ListChanged`]) notify(method, { _meta: { [key("subscriptionId")]: id } });
  }
}

const form = (message, property, type = "string") => ({
  method: "elicitation/create",
  params: {
    message,
    requestedSchema: { type: "object", properties: { [property]: { type } }, required: [property] },
  },
});
const words = (text, maxTokens = 100) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text } }], maxTokens },
});
const roots = { method: "roots/list", params: {} };

class Fault extends Error {
  constructor(code, message, data) {
    super(message);
    Object.assign(this, { code, data });
  }
}

async function elicit(request, requestedSchema, message = "Please answer") {
  const { action, content } = await request.ask("elicitation/create", { message, requestedSchema });
  return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
}

const choices = (key, ...pairs) => pairs.map(([value, title]) => ({ [key]: value, title }));

/** Long enough to become a task where calls do (`serve.taskAfter`). */
const work = () => pause(1200);

/** What the scenarios of the tasks extension call. */
const jobs = {
  greet: { run: ({ name }) => text(`Hello, ${name}!`) },
  slow_compute: {
    run: async ({ seconds, label }) => {
      await pause(seconds * 1200);
      return text(`Computed ${label}`);
    },
  },
  failing_job: {
    run: async () => {
      await work();
      return { ...text("The job failed"), isError: true };
    },
  },
  protocol_error_job: {
    run: async () => {
      await work();
      throw new Fault(-32603, "The job broke off");
    },
  },
  confirm_delete: {
    run: async ({ filename }, request) => {
      if (!request.responses.confirm) await work();
      const { confirm } = await request.askAll({ confirm: form(`Delete ${filename}?`, "confirm", "boolean") });
      return text(`${filename}: ${confirm.content?.confirm}`);
    },
  },
  multi_input: {
    run: async (_, request) => {
      if (!request.responses.one) await work();
      const answers = await request.askAll({ one: form("Who?", "name"), two: form("Who else?", "name") });
      return text(`${answers.one.content?.name} and ${answers.two.content?.name}`);
    },
  },
  test_tool_with_task: {
    run: async (_, request) => {
      const { user_name } = await request.askAll({ user_name: form("What is your name?", "name") });
      await work();
      return text(`Hello, ${user_name.content?.name}!`);
    },
  },
};

const tools = {
  ...jobs,
  test_simple_text: {
    run: () => text("This is a simple text response for testing."),
  },
  test_image_content: { run: () => ({ content: [{ type: "image", data: png, mimeType: "image/png" }] }) },
  test_audio_content: { run: () => ({ content: [{ type: "audio", data: wav, mimeType: "audio/wav" }] }) },
  test_embedded_resource: {
    run: () => ({
      content: [
        {
          type: "resource",
          resource: {
            uri: "test://embedded-resource",
            mimeType: "text/plain",
            text: "This is an embedded resource content.",
          },
        },
      ],
    }),
  },
  test_multiple_content_types: {
    run: () => ({
      content: [
        { type: "text", text: "Multiple content types test:" },
        { type: "image", data: png, mimeType: "image/png" },
        {
          type: "resource",
          resource: {
            uri: "test://mixed-content-resource",
            mimeType: "application/json",
            text: JSON.stringify({ test: "data", value: 123 }),
          },
        },
      ],
    }),
  },
  test_tool_with_logging: {
    run: async (_, request) => {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        request.log(data);
        await pause(50);
      }
      return text("Logged three times.");
    },
  },
  test_logging_tool: {
    run: (_, request) => {
      request.log("logged");
      return text("Logged once.");
    },
  },
  test_error_handling: {
    run: () => ({ isError: true, ...text("This tool intentionally returns an error for testing") }),
  },
  test_tool_with_progress: {
    run: async (_, { meta }) => {
      for (const progress of [0, 50, 100]) {
        if (meta?.progressToken !== undefined) {
          notify("notifications/progress", { progressToken: meta.progressToken, progress, total: 100 });
        }
        await pause(50);
      }
      return text("Reported.");
    },
  },
  test_sampling: {
    properties: { prompt: { type: "string" } },
    run: async ({ prompt }, request) => {
      const { method, params } = words(prompt);
      const { content } = await request.ask(method, params);
      return text(`LLM response: ${content.text}`);
    },
  },
  test_elicitation: {
    properties: { message: { type: "string" } },
    run: ({ message }, request) =>
      elicit(
        request,
        {
          type: "object",
          properties: {
            username: { type: "string", description: "User's response" },
            email: { type: "string", description: "User's email address" },
          },
          required: ["username", "email"],
        },
        message,
      ),
  },
  test_elicitation_sep1034_defaults: {
    run: (_, request) =>
      elicit(request, {
        type: "object",
        properties: {
          name: { type: "string", default: "John Doe" },
          age: { type: "integer", default: 30 },
          score: { type: "number", default: 95.5 },
          status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
          verified: { type: "boolean", default: true },
        },
      }),
  },
  test_elicitation_sep1330_enums: {
    run: (_, request) => {
      const plain = ["option1", "option2", "option3"];
      const titled = [["value1", "First Option"], ["value2", "Second Option"], ["value3", "Third Option"]];
      const many = [["value1", "First Choice"], ["value2", "Second Choice"], ["value3", "Third Choice"]];
      return elicit(request, {
        type: "object",
        properties: {
          untitledSingle: { type: "string", enum: plain },
          titledSingle: { type: "string", oneOf: choices("const", ...titled) },
          legacyEnum: {
            type: "string",
            enum: ["opt1", "opt2", "opt3"],
            enumNames: ["Option One", "Option Two", "Option Three"],
          },
          untitledMulti: { type: "array", items: { type: "string", enum: plain } },
          titledMulti: { type: "array", items: { anyOf: choices("const", ...many) } },
        },
      });
    },
  },
  test_streaming_elicitation: {
    run: (_, request) => elicit(request, { type: "object", properties: { name: { type: "string" } } }),
  },
  test_missing_capability: {
    run: async (_, request) => {
      if (!request.capabilities.sampling) {
        throw new Fault(-32021, "This tool needs sampling", { requiredCapabilities: { sampling: {} } });
      }
      const { method, params } = words("hello");
      return text(JSON.stringify(await request.ask(method, params)));
    },
  },
  test_input_required_result_elicitation: {
    run: async (_, request) => {
      const { user_name } = await request.askAll({ user_name: form("What is your name?", "name") });
      return text(`Hello, ${user_name.content?.name}!`);
    },
  },
  test_input_required_result_sampling: {
    run: async (_, request) => {
      const asked = { capital_question: words("What is the capital of France?") };
      return text((await request.askAll(asked)).capital_question.content.text);
    },
  },
  test_input_required_result_list_roots: {
    run: async (_, request) => {
      const answers = await request.askAll({ client_roots: roots });
      return text(answers.client_roots.roots.map((root) => root.uri).join(", "));
    },
  },
  test_input_required_result_request_state: {
    run: async (_, request) => {
      await request.askAll({ confirm: form("Please confirm", "ok", "boolean") }, "state-1");
      return text(request.stateless && request.state !== "state-1" ? "state-lost" : "state-ok");
    },
  },
  test_input_required_result_tampered_state: {
    run: async (_, request) => {
      await request.askAll({ confirm: form("Please confirm", "ok", "boolean") }, "signed");
      if (request.stateless && request.state !== "signed") throw new Fault(-32602, "The state is not mine");
      return text("state-ok");
    },
  },
  test_input_required_result_multiple_inputs: {
    run: async (_, request) => {
      const name = form("What is your name?", "name");
      const asked = { user_name: name, greeting: words("Generate a greeting", 50), client_roots: roots };
      return text(JSON.stringify(await request.askAll(asked, "state-many")));
    },
  },
  test_input_required_result_multi_round: {
    run: async (_, request) => {
      if (request.state !== "round-2") {
        await request.askAll({ step1: form("Step 1: What is your name?", "name") }, "round-1");
      }
      const { step2 } = await request.askAll({ step2: form("Step 2: What is your favorite color?", "color") }, "round-2");
      return text(`Your favorite color is ${step2.content?.color}.`);
    },
  },
  test_input_required_result_capabilities: {
    run: async (_, request) => {
      const all = { elicitation: form("What is your name?", "name"), sampling: words("hello"), roots };
      const asked = Object.entries(all).filter(([name]) => request.capabilities[name]);
      return text(JSON.stringify(await request.askAll(Object.fromEntries(asked))));
    },
  },
  test_custom_header: {
    schema: {
      type: "object",
      properties: { region: { type: "string", "x-mcp-header": "Region" }, query: { type: "string" } },
      required: ["region"],
    },
    run: ({ region }) => text(`The region is ${region}.`),
  },
  test_trigger_tool_change: {
    run: () => {
      tools[`extra_${Object.keys(tools).length}`] = { run: () => text("extra") };
      changed("tools");
      return text("There is one more tool.");
    },
  },
  test_trigger_prompt_change: {
    run: () => {
      prompts[`extra_${Object.keys(prompts).length}`] = { run: () => [{ type: "text", text: "extra" }] };
      changed("prompts");
      return text("There is one more prompt.");
    },
  },
  json_schema_2020_12_tool: {
    schema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: { type: "string" }, city: { type: "string" } },
        },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
    run: (args) => text(JSON.stringify(args)),
  },
};

const resources = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: png },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched." },
};

const prompts = {
  test_simple_prompt: { run: () => [{ type: "text", text: "This is a simple prompt for testing." }] },
  test_prompt_with_arguments: {
    arguments: ["arg1", "arg2"],
    run: ({ arg1, arg2 }) => [{ type: "text", text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }],
  },
  test_prompt_with_embedded_resource: {
    arguments: ["resourceUri"],
    run: ({ resourceUri }) => [
      {
        type: "resource",
        resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." },
      },
      { type: "text", text: "Please process the embedded resource above." },
    ],
  },
  test_input_required_result_prompt: {
    run: async (_, request) => {
      const asked = { user_context: form("What context should the prompt use?", "context") };
      return [{ type: "text", text: `Context: ${(await request.askAll(asked)).user_context.content?.context}` }];
    },
  },
  test_prompt_with_image: {
    run: () => [
      { type: "image", data: png, mimeType: "image/png" },
      { type: "text", text: "Please analyze the image above." },
    ],
  },
};

function read(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id !== undefined) {
    const data = { id, templateTest: true, data: `Data for ID: ${id}` };
    return { contents: [{ uri, mimeType: "application/json", text: JSON.stringify(data) }] };
  }
  if (!(uri in resources)) throw new Fault(-32002, "Resource not found", { uri });
  return { contents: [{ uri, ...resources[uri] }] };
}

const methods = {
  initialize: (params) => {
    capabilities = params.capabilities ?? {};
    return {
      protocolVersion: params.protocolVersion,
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
      serverInfo: { name: "fixture", version: "1.0.0" },
    };
  },
  "server/discover": () => ({
    supportedVersions: ["2026-07-28"],
    capabilities: {
      tools: { listChanged: true },
      resources: {},
      prompts: { listChanged: true },
      completions: {},
      logging: {},
    },
    _meta: { [key("serverInfo")]: { name: "fixture", version: "1.0.0" } },
  }),
  "subscriptions/listen": ({ notifications }, { id }) => {
    subscriptions.push({ id, notifications });
    const _meta = { [key("subscriptionId")]: id };
    notify("notifications/subscriptions/acknowledged", { notifications, _meta });
    return new Promise(() => {});
  },
  ping: () => ({}),
  "logging/setLevel": () => ({}),
  "tools/list": () => ({
    tools: Object.entries(tools).map(([name, tool]) => ({
      name,
      description: `The tool ${name}`,
      inputSchema: tool.schema ?? {
        type: "object",
        properties: tool.properties ?? {},
        required: Object.keys(tool.properties ?? {}),
      },
    })),
  }),
  "tools/call": ({ name, arguments: args }, request) => {
    if (!(name in tools)) throw new Fault(-32602, `Unknown tool: ${name}`);
    return tools[name].run(args ?? {}, request);
  },
  "resources/list": () => ({
    resources: Object.entries(resources).map(([uri, { mimeType }]) => ({
      uri,
      name: uri.slice("test://".length),
      description: `The resource ${uri}`,
      mimeType,
    })),
  }),
  "resources/templates/list": () => ({
    resourceTemplates: [
      {
        uriTemplate: "test://template/{id}/data",
        name: "template",
        description: "Data of an id",
        mimeType: "application/json",
      },
    ],
  }),
  "resources/read": ({ uri }) => read(uri),
  "resources/subscribe": () => ({}),
  "resources/unsubscribe": () => ({}),
  "prompts/list": () => ({
    prompts: Object.entries(prompts).map(([name, prompt]) => ({
      name,
      description: `The prompt ${name}`,
      arguments: (prompt.arguments ?? []).map((name) => ({ name, description: name, required: true })),
    })),
  }),
  "prompts/get": async ({ name, arguments: args }, request) => {
    if (!(name in prompts)) throw new Fault(-32602, `Unknown prompt: ${name}`);
    const contents = await prompts[name].run(args ?? {}, request);
    return { messages: contents.map((content) => ({ role: "user", content })) };
  },
  "completion/complete": ({ argument }) => {
    const values = ["paris", "park", "party"].filter((word) => word.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  },
};

async function take(message) {
  if (message.method === undefined) {
    const asked = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) asked?.reject(new Fault(message.error.code, message.error.message));
    else asked?.resolve(message.result);
    return;
  }
  if (message.id === undefined) return;
  try {
    if (!(message.method in methods)) throw new Fault(-32601, `Method not found: ${message.method}`);
    const params = message.params ?? {};
    send({ id: message.id, result: await methods[message.method](params, new Request(message.id, params)) });
  } catch (e) {
    if (e instanceof Need) return send({ id: message.id, result: e.result });
    send({ id: message.id, error: { code: e.code ?? -32603, message: e.message, data: e.data } });
  }
}

createInterface({ input: stdin }).on("line", (line) => void take(JSON.parse(line)));
