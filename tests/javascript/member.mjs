// A member for tests of other languages: settings as JSON in the first argument, a line of JSON for each event.
// Lines on standard input: a text is broadcast, "!status" asks for the status, the end of input closes.

import { createInterface } from "node:readline";
import { FileStore, join, joinAsGuest } from "../../javascript/src/index.js";

const { store, ...settings } = JSON.parse(process.argv[2]);
const say = (event) => console.log(JSON.stringify(event));
const member = await (settings.gateway ? joinAsGuest : join)({ ...settings, ...(store ? { store: new FileStore(store) } : {}) });
say({ joined: member.name, history: member.history().map(({ source, text }) => [source, text]) });
(async () => {
  for await (const { source, number, text } of member) say({ delivered: [source, number, text] });
})();
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "!status") say({ status: { ...member.status(), waitingFor: member.waiting().map(({ text }) => text) } });
  else await member.broadcast(line);
}
await member.close();
