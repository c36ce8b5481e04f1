// An MCP server that wants a token, and the authorisation server that grants it,
// for the tests: one process, one port of 127.0.0.1, real HTTP. Its behaviour is
// chosen by arguments; GET /seen tells what it was asked.
//
//   --ttl S            how long an access token lives, in seconds (3600)
//   --scope-for-call S calling a tool needs this scope
//   --deny             nobody is granted anything
//   --iss TEXT         what answers say they come from; "none" leaves it out
//   --issuer TEXT      what the metadata say the issuer is
//   --no-pkce          the metadata do not mention S256
//   --resource TEXT    what the server's metadata are about
//   --no-register      clients cannot register
//   --client ID:SECRET a client that is registered, and may ask in its own name
//   --slow MS          how long the token endpoint takes
import { createServer } from "node:http";
import { createHash, randomBytes } from "node:crypto";

const options = {};
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i].replace(/^--/, "");
  const flag = ["deny", "no-pkce", "no-register"].includes(name);
  options[name] = flag ? true : process.argv[++i];
}

const seen = { authorize: 0, code: 0, refresh: 0, client: 0, reused: 0, revoked: 0, registered: 0, calls: 0, scopes: [], resources: [] };
const clients = new Map();
const codes = new Map();
const access = new Map();
const refreshes = new Map();
const fresh = () => randomBytes(16).toString("hex");
if (options.client) {
  const [id, secret] = options.client.split(":");
  clients.set(id, { secret, own: true });
}

let base;
const server = createServer(async (request, response) => {
  const url = new URL(request.url, base);
  let body = "";
  for await (const chunk of request) body += chunk;
  const json = (status, value, headers = {}) => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(JSON.stringify(value));
  };
  const key = `${request.method} ${url.pathname}`;
  switch (key) {
    case "GET /seen":
      return json(200, seen);
    case "GET /.well-known/oauth-protected-resource/mcp":
      return json(200, { resource: options.resource ?? `${base}/mcp`, authorization_servers: [base], scopes_supported: ["read"] });
    case "GET /.well-known/oauth-authorization-server":
      return json(200, {
        issuer: options.issuer ?? base,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        revocation_endpoint: `${base}/revoke`,
        ...(options["no-register"] ? {} : { registration_endpoint: `${base}/register` }),
        response_types_supported: ["code"],
        ...(options["no-pkce"] ? {} : { code_challenge_methods_supported: ["S256"] }),
        token_endpoint_auth_methods_supported: ["none", "client_secret_basic"],
        authorization_response_iss_parameter_supported: options.iss !== "none",
      });
    case "POST /register": {
      seen.registered++;
      const id = fresh();
      clients.set(id, { redirects: JSON.parse(body).redirect_uris });
      return json(201, { client_id: id, token_endpoint_auth_method: "none", redirect_uris: JSON.parse(body).redirect_uris });
    }
    case "GET /authorize": {
      seen.authorize++;
      const q = Object.fromEntries(url.searchParams);
      const client = clients.get(q.client_id);
      if (!client || q.code_challenge_method !== "S256" || !(client.own || client.redirects.includes(q.redirect_uri))) {
        return json(400, { error: "invalid_request" });
      }
      seen.scopes.push(q.scope ?? null);
      seen.resources.push(q.resource ?? null);
      const back = new URL(q.redirect_uri);
      back.searchParams.set("state", q.state);
      if (options.iss !== "none") back.searchParams.set("iss", options.iss ?? base);
      if (options.deny) {
        back.searchParams.set("error", "access_denied");
      } else {
        const code = fresh();
        codes.set(code, q);
        back.searchParams.set("code", code);
      }
      response.writeHead(302, { Location: back.href });
      return response.end();
    }
    case "POST /token": {
      if (options.slow) await new Promise((done) => setTimeout(done, Number(options.slow)));
      const form = Object.fromEntries(new URLSearchParams(body));
      const grant = (scope, refresh) => {
        const token = fresh();
        access.set(token, { scope, until: Date.now() + 1000 * Number(options.ttl ?? 3600) });
        const answer = { access_token: token, token_type: "Bearer", expires_in: Number(options.ttl ?? 3600), scope };
        if (refresh) {
          answer.refresh_token = fresh();
          refreshes.set(answer.refresh_token, { scope, used: false });
        }
        return json(200, answer, { "Cache-Control": "no-store" });
      };
      if (form.grant_type === "authorization_code") {
        seen.code++;
        const q = codes.get(form.code);
        codes.delete(form.code);
        const bound = createHash("sha256").update(form.code_verifier ?? "").digest("base64url");
        const same = q && q.redirect_uri === form.redirect_uri && q.code_challenge === bound && q.resource === form.resource;
        return same ? grant(q.scope ?? "", true) : json(400, { error: "invalid_grant" });
      }
      if (form.grant_type === "refresh_token") {
        seen.refresh++;
        const known = refreshes.get(form.refresh_token);
        if (known?.used) {
          // A token that is shown twice was stolen: everything that came of it ends.
          seen.reused++;
          access.clear();
          refreshes.clear();
        }
        if (!known || known.used) return json(400, { error: "invalid_grant" });
        known.used = true;
        return grant(known.scope, true);
      }
      if (form.grant_type === "client_credentials") {
        seen.client++;
        const [id, secret] = Buffer.from((request.headers.authorization ?? "").replace("Basic ", ""), "base64").toString().split(":");
        const client = clients.get(id);
        return client?.own && client.secret === secret ? grant(form.scope ?? "", false) : json(401, { error: "invalid_client" });
      }
      return json(400, { error: "unsupported_grant_type" });
    }
    case "POST /revoke": {
      seen.revoked++;
      const token = new URLSearchParams(body).get("token");
      access.delete(token);
      refreshes.delete(token);
      response.writeHead(200);
      return response.end();
    }
    case "POST /mcp": {
      const metadata = `resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`;
      const token = access.get((request.headers.authorization ?? "").replace("Bearer ", ""));
      if (!token || token.until < Date.now()) {
        return json(401, { error: "invalid_token" }, { "WWW-Authenticate": `Bearer error="invalid_token", ${metadata}` });
      }
      const message = JSON.parse(body);
      const answer = (result) => json(200, { jsonrpc: "2.0", id: message.id, result });
      if (message.id === undefined) {
        response.writeHead(202);
        return response.end();
      }
      if (message.method === "initialize") {
        return answer({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "guarded", version: "1" } });
      }
      if (message.method === "tools/list") {
        return answer({ tools: [{ name: "echo", inputSchema: { type: "object", properties: { text: { type: "string" } } } }] });
      }
      if (message.method === "tools/call") {
        const needed = options["scope-for-call"];
        if (needed && !token.scope.split(" ").includes(needed)) {
          return json(403, { error: "insufficient_scope" }, { "WWW-Authenticate": `Bearer error="insufficient_scope", scope="${needed}", ${metadata}` });
        }
        seen.calls++;
        return answer({ content: [{ type: "text", text: message.params.arguments.text ?? "" }] });
      }
      return json(200, { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no such method" } });
    }
    default:
      response.writeHead(key.endsWith("/mcp") ? 405 : 404);
      return response.end();
  }
});
server.listen(0, "127.0.0.1", () => {
  base = `http://127.0.0.1:${server.address().port}`;
  console.log(base);
});
process.stdin.resume().on("end", () => process.exit(0));
