#!/usr/bin/env node
// A node in JavaScript that delivers in causal order: precede emulate SCENARIO --program "node causal.js"
//
// The same protocol as causal.py, so that both can be compared; with --as-it-comes it is wrong on purpose.
"use strict";

const asItComes = process.argv.includes("--as-it-comes");
let me = null;
let neighbours = [];
const messages = new Map(); // id -> ids that it comes directly after
const delivered = new Set();
const frontier = new Set(); // delivered messages that no other delivered message comes after

function say(dest, body) {
  process.stdout.write(JSON.stringify({ src: me, dest, body }) + "\n");
}

function deliver(id) {
  delivered.add(id);
  for (const other of messages.get(id)) frontier.delete(other);
  frontier.add(id);
  say("c0", { type: "deliver", message: id });
}

function deliverWhatCanBe() {
  for (let progress = true; progress; ) {
    progress = false;
    for (const [id, after] of messages) {
      if (!delivered.has(id) && (asItComes || after.every((other) => delivered.has(other)))) {
        deliver(id);
        progress = true;
      }
    }
  }
}

function give(to, ids) {
  say(to, { type: "give", messages: ids.map((id) => [id, messages.get(id)]) });
}

function resync() {
  for (const neighbour of neighbours) say(neighbour, { type: "have", ids: [...messages.keys()] });
}

function handle({ src, body }) {
  if (body.type === "init") {
    me = body.node_id;
  } else if (body.type === "topology") {
    neighbours = body.topology[me];
    resync();
  } else if (body.type === "broadcast") {
    messages.set(body.message, [...frontier]);
    deliver(body.message);
    for (const neighbour of neighbours) give(neighbour, [body.message]);
  } else if (body.type === "have") {
    const ids = new Set(body.ids);
    const lacking = [...messages.keys()].filter((id) => !ids.has(id));
    if (lacking.length) give(src, lacking);
  } else if (body.type === "give") {
    const fresh = body.messages.filter(([id]) => !messages.has(id));
    for (const [id, after] of fresh) messages.set(id, after);
    deliverWhatCanBe();
    if (fresh.length) {
      for (const neighbour of neighbours) {
        if (neighbour !== src) give(neighbour, fresh.map(([id]) => id));
      }
    }
  }
  if ("msg_id" in body) say(src, { type: body.type + "_ok", in_reply_to: body.msg_id });
}

require("readline")
  .createInterface({ input: process.stdin })
  .on("line", (line) => handle(JSON.parse(line)))
  .on("close", () => process.exit(0));
setInterval(resync, 100);
