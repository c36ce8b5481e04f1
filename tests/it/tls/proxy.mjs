// Ends TLS in front of a plain port: node proxy.mjs <port to pass on to>. Prints its own port.
import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";

const here = (name) => readFileSync(new URL(name, import.meta.url));
const server = tls.createServer({ key: here("server.key"), cert: here("server.pem") }, (client) => {
  const daemon = net.connect(Number(process.argv[2]), "127.0.0.1");
  client.pipe(daemon).pipe(client);
  client.on("error", () => daemon.destroy());
  daemon.on("error", () => client.destroy());
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit()).resume();
