// Parses a PowerShell script from standard input with a real grammar of the language, and
// prints `{faults, commands}`: where the grammar finds an error, and which commands are called.
// Knows nothing of what the script is for. Usage: node powershell.cjs DIRECTORY-OF-THE-GRAMMAR
const directory = process.argv[2];
const { Parser, Language } = require(`${directory}/tree-sitter.js`);

async function main() {
  await Parser.init({ locateFile: () => `${directory}/tree-sitter.wasm` });
  const parser = new Parser();
  parser.setLanguage(await Language.load(`${directory}/tree-sitter-powershell.wasm`));
  const tree = parser.parse(require("node:fs").readFileSync(0, "utf8"));
  const [faults, commands] = [[], []];
  const visit = (node) => {
    const { row, column } = node.startPosition;
    if (node.isError || node.isMissing) faults.push(`${node.type} at ${row + 1}:${column + 1}`);
    if (node.type === "command_name") commands.push(node.text);
    node.children.forEach(visit);
  };
  visit(tree.rootNode);
  console.log(JSON.stringify({ faults, commands }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
