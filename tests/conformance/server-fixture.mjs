// An MCP server over stdio that offers what the scenarios of the official
// conformance suite ask of a server. mcpx stands between the two: what the suite
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

/** Asks the client something. */
function ask(method, params) {
  const id = ++serial;
  send({ id, method, params });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

class Fault extends Error {
  constructor(code, message, data) {
    super(message);
    Object.assign(this, { code, data });
  }
}

async function elicit(requestedSchema, message = "Please answer") {
  const { action, content } = await ask("elicitation/create", { message, requestedSchema });
  return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
}

const choices = (key, ...pairs) => pairs.map(([value, title]) => ({ [key]: value, title }));

const tools = {
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
    run: async () => {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        notify("notifications/message", { level: "info", data });
        await pause(50);
      }
      return text("Logged three times.");
    },
  },
  test_logging_tool: {
    run: () => {
      notify("notifications/message", { level: "info", data: "logged" });
      return text("Logged once.");
    },
  },
  test_error_handling: {
    run: () => ({ isError: true, ...text("This tool intentionally returns an error for testing") }),
  },
  test_tool_with_progress: {
    run: async (_, meta) => {
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
    run: async ({ prompt }) => {
      const messages = [{ role: "user", content: { type: "text", text: prompt } }];
      const { content } = await ask("sampling/createMessage", { messages, maxTokens: 100 });
      return text(`LLM response: ${content.text}`);
    },
  },
  test_elicitation: {
    properties: { message: { type: "string" } },
    run: ({ message }) =>
      elicit(
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
    run: () =>
      elicit({
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
    run: () => {
      const words = ["option1", "option2", "option3"];
      const titled = [["value1", "First Option"], ["value2", "Second Option"], ["value3", "Third Option"]];
      const many = [["value1", "First Choice"], ["value2", "Second Choice"], ["value3", "Third Choice"]];
      return elicit({
        type: "object",
        properties: {
          untitledSingle: { type: "string", enum: words },
          titledSingle: { type: "string", oneOf: choices("const", ...titled) },
          legacyEnum: {
            type: "string",
            enum: ["opt1", "opt2", "opt3"],
            enumNames: ["Option One", "Option Two", "Option Three"],
          },
          untitledMulti: { type: "array", items: { type: "string", enum: words } },
          titledMulti: { type: "array", items: { anyOf: choices("const", ...many) } },
        },
      });
    },
  },
  test_streaming_elicitation: {
    run: () => elicit({ type: "object", properties: { name: { type: "string" } } }),
  },
  test_input_required_result_elicitation: {
    run: () => elicit({ type: "object", properties: { name: { type: "string" } }, required: ["name"] }),
  },
  test_trigger_tool_change: {
    run: () => {
      tools[`extra_${Object.keys(tools).length}`] = { run: () => text("extra") };
      notify("notifications/tools/list_changed");
      return text("There is one more tool.");
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
  "tools/call": ({ name, arguments: args, _meta }) => {
    if (!(name in tools)) throw new Fault(-32602, `Unknown tool: ${name}`);
    return tools[name].run(args ?? {}, _meta);
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
  "prompts/get": ({ name, arguments: args }) => {
    if (!(name in prompts)) throw new Fault(-32602, `Unknown prompt: ${name}`);
    return { messages: prompts[name].run(args ?? {}).map((content) => ({ role: "user", content })) };
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
    send({ id: message.id, result: await methods[message.method](message.params ?? {}) });
  } catch (e) {
    send({ id: message.id, error: { code: e.code ?? -32603, message: e.message, data: e.data } });
  }
}

createInterface({ input: stdin }).on("line", (line) => void take(JSON.parse(line)));
