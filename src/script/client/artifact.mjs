// What a script gives to be kept: `artifact`. Follows tools.mjs in the generated client.

/** So much of a content travels at once; the daemon writes each part to its disk. */
const PART = 256 * 1024;

function base64(bytes) {
  if (bytes.toBase64) return bytes.toBase64();
  if (globalThis.Buffer) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64");
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
}

function bytesOf(value) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return undefined;
}

/** Content as pieces of bytes, whatever it comes as; undefined for what is no content. */
function piecesOf(content) {
  const whole = bytesOf(content);
  if (whole) return [whole];
  if (typeof content?.stream === "function") return piecesOf(content.stream());
  if (content?.[Symbol.asyncIterator] || (content?.[Symbol.iterator] && typeof content !== "string")) return content;
  if (typeof content?.getReader !== "function") return undefined;
  return (async function* () {
    const reader = content.getReader();
    for (let next; !(next = await reader.read()).done; ) yield next.value;
  })();
}

/** Exactly as much as travels at once, and the rest; one part is ahead, so that the last is known to be the last. */
async function* partsOf(pieces) {
  let part = new Uint8Array(PART);
  let filled = 0;
  for await (const piece of pieces) {
    const bytes = typeof piece === "string" ? encoder.encode(piece) : bytesOf(piece);
    if (!bytes) throw new ToolError("artifact: bytes must come as bytes, or as pieces of bytes", { kind: "usage" });
    for (let at = 0; at < bytes.length; ) {
      if (filled === PART) {
        yield part;
        part = new Uint8Array(PART);
        filled = 0;
      }
      const some = bytes.subarray(at, at + PART - filled);
      part.set(some, filled);
      filled += some.length;
      at += some.length;
    }
  }
  yield part.subarray(0, filled);
}

/** A file, read by the script itself, with what the script may read. */
async function fileOf(path) {
  if (env("MCPX_ALLOW_READ") !== "1" && underMcpx) {
    const message = `artifact: the script may not read ${path}: its permissions do not allow reading files`;
    throw new ToolError(message, { kind: "refused", hint: "--permissions read, or give bytes or text instead" });
  }
  if (deno) return (await deno.open(path)).readable;
  if (bun) return bun.file(path).stream();
  const fs = globalThis.process?.getBuiltinModule?.("fs") ?? (await import("node:fs")).default;
  return fs.createReadStream(path, { highWaterMark: PART });
}

/** Where a path leads, as the daemon sees it, which is in another directory. */
function absolute(path) {
  if (path.startsWith("/")) return path;
  const here = deno ? deno.cwd() : globalThis.process.cwd();
  return `${here.replace(/\/$/, "")}/${path}`;
}

/**
 * Keeps something beyond the run: `artifact({name, text})`, `{name, bytes}` or `{path}`, with `mime` where the name
 * does not say it. Resolves with `{uri, id, name, mime, size, sha256, path?, …}`.
 */
export async function artifact(what) {
  const { name, path, bytes, text, mime } = what ?? {};
  const where = site(artifact);
  const wrong = (message) => told(where, `artifact: ${message}`, { kind: "usage" });
  if ([path, bytes, text].filter((given) => given !== undefined).length !== 1) {
    throw wrong("expected one of path, bytes and text");
  }
  const about = {};
  const file = path instanceof URL ? decodeURIComponent(path.pathname) : path;
  if (file !== undefined && typeof file !== "string") throw wrong("path is a string or a file URL");
  const called = name ?? file?.split("/").pop();
  if (called !== undefined) about.name = String(called);
  if (mime !== undefined) about.mime = String(mime);
  const store = async (params) => {
    const answer = await request("storeArtifact", { ...about, ...params }, {}, where);
    return answer.artifact ?? answer;
  };
  let kept;
  if (file !== undefined && env("MCPX_ARTIFACTS_LOCAL") === "1") {
    kept = await store({ path: absolute(file) });
  } else if (text !== undefined && String(text).length <= PART / 4) {
    kept = await store({ text: String(text) });
  } else {
    // A text's media type is the text's, however it travels.
    if (text !== undefined && mime === undefined && !/\.\w+$/.test(about.name ?? "")) about.mime = "text/plain; charset=utf-8";
    const content = text !== undefined ? encoder.encode(String(text)) : file !== undefined ? await fileOf(file) : bytes;
    const pieces = piecesOf(content);
    if (!pieces) throw wrong("bytes is a Uint8Array, an ArrayBuffer, a Blob, or a stream of bytes");
    let upload;
    let held;
    for await (const part of partsOf(pieces)) {
      if (held) upload = (await store({ data: base64(held), more: true, ...(upload && { upload }) })).upload;
      held = part;
    }
    kept = await store({ data: base64(held), ...(upload && { upload }) });
  }
  if (underMcpx) record(`{"t":"artifact","value":${JSON.stringify(kept)}}`);
  return kept;
}
