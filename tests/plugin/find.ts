// Takes the core of the plugin through the steps that a test gives, and prints
// what each came to, one JSON document a line. The same in bun, deno and node.

import { Finder, pluginSettings } from "../../src/plugin/opencode/mcpx/daemon.ts";
import type { Candidate, Env, Found, Options, Remember } from "../../src/plugin/opencode/mcpx/daemon.ts";

interface Step {
  do: string;
  dir: string;
  session?: string;
  index?: number;
  mode?: Remember;
  method?: string;
  params?: Record<string, unknown>;
  options?: Record<string, unknown>;
  env?: Env;
  ms?: number;
}

const { options, steps }: { options: Options; steps: Step[] } = JSON.parse(process.argv[2] ?? "{}");
const finder = new Finder({ ...options, env: { ...process.env } });

async function carryOut(step: Step): Promise<unknown> {
  const find = (): Promise<Found> => finder.find(step.dir, step.session, true);
  switch (step.do) {
    case "find": {
      const { client, send: _, ...found } = await find();
      return { ...found, client: client !== undefined };
    }
    case "settled": {
      const { client, send: _, ...found } = await finder.find(step.dir, step.session);
      return { ...found, client: client !== undefined };
    }
    case "choose": {
      const chosen = (await find()).candidates[step.index ?? 0] as Candidate;
      return finder.choose(step.dir, chosen, step.mode ?? "session", step.session);
    }
    case "forget":
      return finder.forget(step.dir, step.session);
    case "call": {
      const client = (await find()).client as unknown as Record<string, (p?: unknown) => Promise<unknown>>;
      const method = client[step.method ?? ""];
      if (!method) throw new Error(`no method ${step.method}`);
      return method(step.params);
    }
    case "settings":
      return pluginSettings(step.options, step.env);
    default:
      throw new Error(`no step ${step.do}`);
  }
}

for (const step of steps) {
  let line: unknown;
  try {
    line = (await carryOut(step)) ?? null;
  } catch (error) {
    const { message, kind, status } = error as { message?: string; kind?: string; status?: number };
    line = { error: { message, kind, status } };
  }
  console.log(JSON.stringify(line));
  // The next step waits for the test's word.
  if (step.ms === undefined) continue;
  await new Promise((done) => setTimeout(done, step.ms));
}
