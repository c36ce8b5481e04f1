// A small HTTP API of notes with an OpenAPI document, for tests. Prints its
// address, and ends when its standard input does. GET /seen tells what it was asked.
import { createServer } from "node:http";

const notes = new Map([[1, { id: 1, text: "first" }]]);
const seen = [];
const schema = (name) => ({ $ref: `#/components/schemas/${name}` });
const json = (of) => ({ content: { "application/json": { schema: of } } });
const ok = (of) => ({ 200: { description: "fine", ...json(of) } });
const path = { name: "id", in: "path", required: true, schema: { type: "integer" } };

const document = (base) => ({
  openapi: "3.0.3",
  info: { title: "notes", version: "1" },
  servers: [{ url: base }],
  paths: {
    "/notes": {
      get: {
        operationId: "notes/list", tags: ["notes"], summary: "List notes",
        parameters: [{ name: "page", in: "query", schema: { type: "integer", minimum: 1 } }, { name: "tag", in: "query", schema: { type: "array", items: { type: "string" } } }],
        responses: ok({ type: "array", items: schema("Note") }),
      },
      post: {
        operationId: "notes/add", tags: ["notes"], requestBody: { required: true, ...json(schema("Note")) },
        responses: { 201: { description: "made", ...json(schema("Note")) } },
      },
    },
    "/notes/{id}": {
      parameters: [path],
      get: { operationId: "notes/get", responses: ok(schema("Note")) },
      delete: { operationId: "notes/remove", tags: ["danger"], responses: { 204: { description: "gone" } } },
    },
    "/picture": { get: { responses: { 200: { description: "a picture", content: { "image/png": {} } } } } },
    "/large": { get: { operationId: "large", responses: { 200: { description: "much" } } } },
    "/slow": { get: { operationId: "slow", responses: { 200: { description: "late" } } } },
    "/away": { get: { operationId: "away", responses: { 200: { description: "elsewhere" } } } },
    "/near": { get: { operationId: "near", responses: { 200: { description: "here" } } } },
    "/paged": { get: { operationId: "paged", parameters: [{ name: "cursor", in: "query", schema: { type: "string" } }], responses: ok({ type: "object" }) } },
    "/other": { get: { operationId: "other", servers: [{ url: base.replace("127.0.0.1", "localhost") }], responses: { 200: { description: "no credentials" } } } },
  },
  components: {
    schemas: {
      Note: {
        type: "object", required: ["id", "text"],
        properties: { id: { type: "integer", readOnly: true }, text: { type: "string" }, about: schema("Note") },
      },
    },
  },
});

const read = async (request) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString();
};

const server = createServer(async (request, response) => {
  const url = new URL(request.url, base());
  const body = await read(request);
  const answer = (status, value, headers = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(value === undefined ? "" : JSON.stringify(value));
  };
  if (url.pathname === "/seen") return answer(200, seen);
  if (url.pathname === "/openapi.json") return answer(200, document(base()));
  seen.push({ method: request.method, url: request.url, authorization: request.headers.authorization ?? null, key: request.headers["x-key"] ?? null, host: request.headers.host, body });
  const id = Number(url.pathname.match(/^\/notes\/(\d+)$/)?.[1]);
  if (url.pathname === "/notes" && request.method === "GET") {
    const page = Number(url.searchParams.get("page") ?? 1);
    return answer(200, [...notes.values()], page < 2 ? { link: `<${base()}/notes?page=${page + 1}>; rel="next"` } : {});
  }
  if (url.pathname === "/notes") {
    const note = { id: notes.size + 1, ...JSON.parse(body) };
    notes.set(note.id, note);
    return answer(201, note);
  }
  if (id && request.method === "DELETE") {
    response.writeHead(notes.delete(id) ? 204 : 404);
    return response.end();
  }
  if (id) return notes.has(id) ? answer(200, notes.get(id)) : answer(404, { message: "no such note" });
  if (url.pathname === "/picture") {
    response.writeHead(200, { "content-type": "image/png" });
    return response.end(Buffer.from([0x89, 0x50, 0x4e, 0x47]));
  }
  if (url.pathname === "/paged") {
    const cursor = url.searchParams.get("cursor");
    return answer(200, cursor ? { items: [2], meta: { next: null } } : { items: [1], meta: { next: "c/2" } });
  }
  if (url.pathname === "/large") return answer(200, "x".repeat(100_000));
  if (url.pathname === "/slow") return;
  if (url.pathname === "/away") return answer(302, undefined, { location: `http://localhost:${server.address().port}/notes` });
  if (url.pathname === "/near") return answer(302, undefined, { location: "/notes/1" });
  if (url.pathname === "/other") return answer(200, { ok: true });
  return answer(404, { message: `nothing at ${url.pathname}` });
});
const base = () => `http://127.0.0.1:${server.address().port}`;
server.listen(0, "127.0.0.1", () => console.log(base()));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
