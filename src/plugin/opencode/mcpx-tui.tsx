// A list of the mcpx daemons in opencode's own interface, to choose one for the
// project. Optional: name this file under "plugin" in tui.json. It writes the file
// that the plugin reads, which is the only thing that the two share.

import type { TuiPlugin, TuiPluginModule } from "@opencode-ai/plugin/tui";
import { Finder, describe, pluginSettings } from "./mcpx/daemon.ts";
import type { Remember } from "./mcpx/daemon.ts";

/** Stands for taking a choice back. */
const FORGET = -1;

const tui: TuiPlugin = async (api, options) => {
  const { settings } = pluginSettings(options ?? {});
  const { endpoint, socket, bin, binArgs, backend } = settings;
  const finder = new Finder({ endpoint, socket, bin, binArgs, backend });
  // What is remembered for a session alone does not leave the process that remembers it.
  const mode = (settings.remember === "session" ? "until-gone" : settings.remember) as Remember;

  const say = (message: string, variant: "info" | "warning" = "info") => api.ui.toast({ title: "mcpx", message, variant });

  const take = async (index: number, directory: string) => {
    api.ui.dialog.clear();
    if (index === FORGET) return say(finder.forget(directory) ? "The choice is forgotten." : "Nothing was chosen.");
    const chosen = (await finder.find(directory)).candidates[index];
    if (!chosen) return say("That daemon is gone.", "warning");
    const kept = await finder.choose(directory, chosen, mode);
    if (kept.warning) say(kept.warning, "warning");
    else say(`This project uses ${describe(chosen)}.`);
  };

  const pick = async () => {
    const { directory } = api.state.path;
    const found = await finder.find(directory, "", true);
    if (found.rung === "named") return say("An option or a variable names the daemon, so there is nothing to choose.");
    if (!found.candidates.length) return say(found.warning ?? "No mcpx daemon answers.");
    const rows = found.candidates.map((c, value) => ({
      title: c.configPath || "without a configuration",
      value,
      description: `pid ${c.pid}, mcpx ${c.version}, ${c.servers} servers, ${c.sessions} sessions`,
    }));
    const current = found.candidates.findIndex((c) => c.pid === found.chosen?.pid && c.startedAt === found.chosen.startedAt);
    api.ui.dialog.replace(() =>
      api.ui.DialogSelect<number>({
        title: "The mcpx daemon for this project",
        options: [...rows, { title: "Forget what was chosen", value: FORGET, description: "" }],
        current,
        onSelect: (row) => void take(row.value, directory),
      }),
    );
  };

  api.keymap.registerLayer({
    commands: [{ name: "mcpx.daemon", title: "Choose the mcpx daemon", slashName: "mcpx-daemon", category: "mcpx", namespace: "palette", run: () => void pick() }],
  });
};

const plugin: TuiPluginModule = { id: "mcpx", tui };
export default plugin;
