//! Programs that are commands: `mcpx-NAME` is `mcpx NAME`.

use crate::harness::World;
use std::os::unix::fs::PermissionsExt;

fn program(world: &World, path: &str, text: &str) {
    world.write(path, text);
    let real = world.dir().join(path);
    std::fs::set_permissions(real, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A world with `mcpx-weather` on PATH, which prints what it was told and ends with 7.
fn world() -> World {
    let world = World::demo();
    program(
        &world,
        "tools/mcpx-weather",
        "#!/bin/sh\necho \"$# $1 [$2]\"\necho \"session $MCPX_SESSION_ID\"\necho \"socket $MCPX_SOCKET\"\nexit 7\n",
    );
    world.link("mcpx-weather", &world.dir().join("tools/mcpx-weather"));
    world
}

#[test]
fn a_program_of_that_name_is_a_command() {
    let world = world();
    world.mcpx(["call", "demo.echo", "text=x"]).stdout("x\n").check();
    let socket = world.infos()[0]["socket"].as_str().unwrap().to_owned();
    let command = world.mcpx(["weather", "--json", "a b"]).env("MCPX_SESSION_ID", "work");
    command.stdout(&format!("2 --json [a b]\nsession work\nsocket {socket}\n")).status(7).check();
    world.mcpx(["--help"]).stdout_has("Plugins\n  weather\n").check();
    world.mcpx(["plugin", "list"]).run().says(&["weather", "command", "mcpx-weather"]);
    world.mcpx(["wether"]).status(2).stderr_has("did you mean \"weather\"").check();
}

#[test]
fn flags_in_front_of_it_reach_it_as_variables_and_help_is_its_own() {
    let world = world();
    program(
        &world,
        "tools/mcpx-tell",
        "#!/bin/sh\necho \"$* json=$MCPX_OUTPUT_JSON inline=$MCPX_DAEMON_INLINE config=$MCPX_CONFIG\"\n",
    );
    world.link("mcpx-tell", &world.dir().join("tools/mcpx-tell"));
    world.write("other.json", "{}");
    let other = world.dir().join("other.json").display().to_string();
    world
        .mcpx(["--json", "--no-daemon", "tell", "a", "--json"])
        .stdout("a --json json=true inline=true config=\n")
        .check();
    let named = format!("b json= inline= config={other}\n");
    world.mcpx(["--config", "other.json", "tell", "b"]).stdout(&named).check();
    for help in [&["help", "tell"][..], &["--help", "tell"], &["tell", "--help"]] {
        world.mcpx(help).stdout_has("--help json=").check();
    }
    world.mcpx(["help", "call"]).stdout_has("mcpx call").check();
    world.mcpx(["--json", "tel"]).status(2).any_stderr().stdout_has("did you mean").check();
}

#[test]
fn a_command_of_our_own_is_never_replaced() {
    let world = World::demo();
    program(&world, "tools/mcpx-ls", "#!/bin/sh\necho stolen\n");
    program(&world, "tools/mcpx-bad.sh", "#!/bin/sh\necho stolen\n");
    world.write("tools/mcpx-plain", "not a program");
    for name in ["mcpx-ls", "mcpx-bad.sh", "mcpx-plain"] {
        world.link(name, &world.dir().join("tools").join(name));
    }
    world.mcpx(["ls"]).stdout_has("demo").check();
    let list = world.mcpx(["--json", "plugin", "list"]).run().json();
    assert_eq!(list["plugins"].as_array().unwrap().len(), 1, "{list}");
    for word in ["plain", "bad.sh", "nothing"] {
        world.mcpx([word]).status(2).any_stderr().check();
    }
    // One of the user's own comes before PATH.
    let own = "../home/.config/mcpx/plugins/mcpx-mine";
    program(&world, own, "#!/bin/sh\necho mine\n");
    world.mcpx(["mine"]).stdout("mine\n").check();
}

#[test]
fn a_setting_names_further_directories() {
    let world = World::demo().setting("commands", serde_json::json!({"dirs": ["more"]}));
    program(&world, "more/mcpx-extra", "#!/bin/sh\necho extra \"$1\"\n");
    world.mcpx(["extra", "x"]).stdout("extra x\n").check();
    // From further below too: the path is that of the file which names it.
    world.write("below/keep", "");
    world.mcpx(["extra", "y"]).dir("below").stdout("extra y\n").check();
    world.mcpx(["plugin", "list"]).run().says(&["extra", "more/mcpx-extra"]);
    world.mcpx(["extrá"]).status(2).any_stderr().check();
    let by_hand = World::demo();
    program(&by_hand, "there/mcpx-other", "#!/bin/sh\necho other\n");
    let dirs = by_hand.dir().join("there");
    by_hand.mcpx(["other"]).env("MCPX_COMMANDS_DIRS", dirs.as_os_str()).stdout("other\n").check();
    by_hand.mcpx(["other"]).status(2).any_stderr().check();
}
