// Takes the picker through a choice and its undoing, and says what the plugin's
// core finds before and after. The list is answered by this program.

import picker from "../../src/plugin/opencode/mcpx-tui.tsx";
import { Finder } from "../../src/plugin/opencode/mcpx/daemon.ts";

const directory = process.cwd();
let command: (() => void) | undefined;
let list: { options: { value: number }[]; onSelect: (row: { value: number }) => void } | undefined;
let shown: (() => void) | undefined;
let said: (() => void) | undefined;

const api = {
  state: { path: { directory } },
  keymap: { registerLayer: (layer: { commands: { run: () => void }[] }) => void (command = layer.commands[0]?.run) },
  ui: {
    toast: () => said?.(),
    DialogSelect: (props: typeof list) => void (list = props),
    dialog: { clear: () => {}, replace: (render: () => void) => (render(), shown?.()) },
  },
};
await picker.tui(api as never, undefined, {} as never);

/** Opens the list, takes the row, and waits until the picker has said what it did. */
async function take(pick: (rows: { value: number }[]) => { value: number } | undefined): Promise<void> {
  const listed = new Promise<void>((done) => (shown = done));
  command?.();
  await listed;
  const row = pick(list?.options ?? []);
  const done = new Promise<void>((told) => (said = told));
  if (row) list?.onSelect(row);
  await done;
}

const rung = async () => console.log(JSON.stringify((await new Finder().find(directory)).rung));
await rung();
await take((rows) => rows[0]);
await rung();
await take((rows) => rows.at(-1));
await rung();
