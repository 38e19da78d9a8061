// A member that closes: nothing of it goes on, whatever its gateways do. A timer would keep the process running.

import assert from "node:assert/strict";
import test from "node:test";
import { Connections } from "../src/connections.js";
import { Gossip } from "../src/gossip.js";
import { groupKeys, Identity } from "../src/keys.js";
import { Links } from "../src/links.js";

const timers = () => process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;

/** A WebSocket whose other end answers as `answer` says: at once, or never. */
function socketClass(answer) {
  return class {
    constructor() {
      if (answer === "refuses") queueMicrotask(() => this.onclose());
    }
    close() {
      if (answer === "closes") this.onclose();
    }
  };
}

async function stopAfter(answer, urls, wait) {
  const before = globalThis.WebSocket;
  globalThis.WebSocket = socketClass(answer);
  try {
    const connections = new Connections(urls, { connected() {}, disconnected() {}, frame() {} });
    await new Promise((resolve) => setTimeout(resolve, wait));
    const began = Date.now();
    await connections.stop();
    return Date.now() - began;
  } finally {
    globalThis.WebSocket = before;
  }
}

test("packets that arrive after the stop set no timer", () => {
  const before = timers();
  const sent = [];
  const gossip = new Gossip({ node: 1, most: 10, knows: () => false, delivered: () => 0, send: () => sent.push(1), sendToAll: () => sent.push(1) });
  gossip.linkUp(2);
  gossip.stop();
  gossip.linkUp(3);
  gossip.digestHeard({ hash: 5n, streams: [[2, 0, [1, 2]]] }, 2);
  gossip.received([]);
  assert.equal(timers(), before);
  assert.deepEqual(sent, []);
});

test("frames that arrive after the stop make no session", () => {
  const keys = groupKeys(new Uint8Array(32), "picnic");
  const events = { onPacket() {}, onUp() {}, onDown() {}, onWarning() {} };
  const [ana, ben] = ["ana", "ben"].map((name) => {
    const identity = Identity.shared("picnic", name);
    return new Links({ group: "picnic", name, identity, keys, terms: { group: "picnic" }, events, beacon: 10_000 });
  });
  const answers = [];
  ana.stop();
  ben.connected({ send: (frame) => ana.frame(frame, { send: (answer) => answers.push(answer) }) });
  ben.stop();
  assert.deepEqual(answers, []);
});

test("every connection that waits for its next attempt ends at once", async () => {
  assert.ok((await stopAfter("refuses", ["ws://one", "ws://two", "ws://three"], 1_600)) < 1_000); // the next attempt: after 1.5 s
});

test("a gateway that does not answer the closing handshake is not waited for", async () => {
  assert.ok((await stopAfter("closes", ["ws://one"], 10)) < 900);
  const before = timers();
  const took = await stopAfter("is silent", ["ws://one", "ws://two"], 10);
  assert.ok(took >= 900 && took < 5_000, `${took} ms`);
  assert.equal(timers(), before);
});
