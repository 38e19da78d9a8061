// Untrusted bytes: no frame and no packet throws, and nothing grows without bound.

import assert from "node:assert/strict";
import test from "node:test";
import { concat, unhex } from "../src/bytes.js";
import { Fragments } from "../src/channel.js";
import { groupKeys, Identity, nodeId } from "../src/keys.js";
import { Links } from "../src/links.js";
import { decode, encode, Garbled } from "../src/msgpack.js";
import { decodePacket, encodePacket } from "../src/packets.js";

/** A small generator with a seed, so that a failure can be seen again. */
function generator(seed) {
  return () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
}

const next = generator(7);
const bytes = (most) => Uint8Array.from({ length: Math.floor(next() * most) }, () => Math.floor(next() * 256));

function changed(good) {
  const copy = good.slice(0, next() < 0.3 ? Math.floor(next() * good.length) : good.length);
  for (let times = 0; times < 1 + 3 * next() && copy.length; times++) copy[Math.floor(next() * copy.length)] = Math.floor(next() * 256);
  return copy;
}

test("bytes that are no packet are Garbled", () => {
  const id = [nodeId("ana"), 7, 1];
  const envelope = [[id, bytes(20), bytes(90)], [[[5, 6], 7], [8, 9]], null, null, 48, 2, 1_700_000_000_000_000];
  const good = [
    { kind: "data", envelopes: [envelope], listVersion: 0, neighbours: null, firstDeadline: null, size: 1, controlBytes: 1, controlEntries: 1 },
    { kind: "digest", hash: 5n, full: true, streams: [[5, 6, [1, 2]]], listVersion: 0, neighbours: [1] },
    { kind: "want", wants: [[1, 2, 3, [4, 5]]] },
  ].map((packet) => encodePacket(packet));
  for (let times = 0; times < 600; times++) {
    const wire = times % 2 ? changed(good[times % 3]) : concat(Uint8Array.of(1, times % 3), bytes(60));
    try {
      decodePacket(wire);
    } catch (error) {
      assert.ok(error instanceof Garbled, `${error}`);
    }
  }
  for (let times = 0; times < 1000; times++) {
    try {
      encode(decode(bytes(40)));
    } catch (error) {
      assert.ok(error instanceof Garbled, `${error}`);
    }
  }
  assert.throws(() => decode(unhex("91".repeat(10_000) + "00")), { reason: "encoding" });
});

test("no frame throws, from strangers and from members with the group key", () => {
  const keys = groupKeys(new Uint8Array(32), "picnic");
  const identity = Identity.shared("picnic", "ana");
  const events = { onPacket() {}, onUp() {}, onDown() {}, onWarning() {} };
  const links = new Links({ group: "picnic", name: "ana", identity, keys, terms: { group: "picnic" }, events, beacon: 1000 });
  const other = new Links({
    group: "picnic", name: "ben", identity: Identity.shared("picnic", "ben"), keys, terms: { group: "x" }, events, beacon: 1000,
  });
  const sent = [];
  const connection = { send: (frame) => sent.push(frame) };
  links.connected(connection);
  other.connected(connection);
  const good = sent.slice();
  for (let times = 0; times < 600; times++) {
    links.frame(times % 3 ? changed(good[times % good.length]) : bytes(100), connection);
    const inside = [concat(Uint8Array.of(times % 3), bytes(60)), concat(Uint8Array.of(1, 0, 0), bytes(40))][times % 2];
    links.frame(other.sessions.seal.seal(inside), connection);
  }
  links.stop();
  other.stop();
  assert.equal(links.near.size, 0);
});

test("unfinished packets are dropped beyond a bound", () => {
  const fragments = new Fragments();
  const sender = new Fragments();
  for (let times = 0; times < 2000; times++) fragments.join(sender.cut(new Uint8Array(3000), 1000)[0], times % 5);
  assert.ok(fragments.open.size <= 5 * 33);
  assert.ok(fragments.bytes <= fragments.open.size * 1000);
});
