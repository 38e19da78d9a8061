// Keys, handshakes, frames and signatures: docs/reference/vectors/sealed.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { ed25519 } from "@noble/curves/ed25519.js";
import { Authors } from "../src/authors.js";
import { concat, hex, number, unhex, utf8 } from "../src/bytes.js";
import { hashOf } from "../src/gossip.js";
import { groupKeys, Identity, isGenuine, isSigned, memberId, nodeId } from "../src/keys.js";
import { decode, encode } from "../src/msgpack.js";
import { Handshake } from "../src/noise.js";
import { decodePacket, encodePacket, idOf } from "../src/packets.js";
import { Sessions } from "../src/sessions.js";

const vector = JSON.parse(readFileSync(new URL("../../docs/reference/vectors/sealed.json", import.meta.url)));
const keys = groupKeys(unhex(vector.secret), vector.group);
const [ana, ben] = vector.members.map(({ identity }) => new Identity(unhex(identity)));

test("keys and node ids", () => {
  for (const [name, value] of Object.entries(vector.keys)) assert.equal(hex(keys[name]), value);
  for (const { name, node, identity, signing, link, id, introductions } of vector.members) {
    const own = new Identity(unhex(identity));
    assert.deepEqual([nodeId(name), hex(own.signing), hex(own.link), hex(memberId(own.signing))], [node, signing, link, id]);
    const { signature, ...rest } = own.introduce(vector.group, name);
    assert.equal(hex(encode([[rest.name, rest.signing, rest.link, rest.version, signature]])), introductions);
    assert.ok(isGenuine(vector.group, { ...rest, signature }));
    assert.ok(!isGenuine("another", { ...rest, signature }));
  }
  for (const [name, signing] of Object.entries(vector.without_roster))
    assert.equal(hex(Identity.shared(vector.group, name).signing), signing);
});

test("both sides of a handshake", () => {
  const { ephemerals, boots, indices, message_1, message_2, pings } = vector.handshake;
  const [anaId, benId] = vector.members.map(({ id }) => unhex(id));
  const prologue = concat(utf8("precede"), Uint8Array.of(2), anaId, benId, unhex(boots[1]), utf8(vector.group));
  const side = (initiator, own, other, ephemeral) =>
    new Handshake({ initiator, prologue, secret: own.linkSecret, own: own.link, remote: other.link, psk: keys.psk, ephemeral: unhex(ephemeral) });
  const [first, second] = [side(true, ana, ben, ephemerals[0]), side(false, ben, ana, ephemerals[1])];
  const noise = first.write1(unhex(boots[0]));
  assert.equal(hex(noise), message_1.slice(2 * 17));
  assert.equal(hex(second.read1(noise)), boots[0]);
  const answer = second.write2();
  assert.equal(hex(concat(Uint8Array.of(2), number(indices[0], 4), number(indices[1], 4), answer)), message_2);
  first.read2(answer);
  const receiving = [second.split()[1], first.split()[1]];
  pings.forEach((ping, place) => {
    const frame = unhex(ping);
    assert.deepEqual(receiving[place].open(0, frame.subarray(9), frame.subarray(0, 9)), Uint8Array.of(0));
  });
});

test("a responder answers the recorded message 1, and no changed one", () => {
  const directory = {
    find: () => ({ signing: ana.signing, link: ana.link }),
    withHint: (hint) => (hex(hint) === vector.members[0].id.slice(0, 8) ? [vector.members[0].node] : []),
  };
  const answers = [];
  const connection = { send: (frame) => answers.push(frame) };
  const events = { onReady() {}, onAlive() {}, onStranger() {} };
  const boot = unhex(vector.handshake.boots[1]);
  const sessions = new Sessions(vector.members[1].node, ben, directory, vector.group, keys, boot, events);
  const frame = unhex(vector.handshake.message_1);
  for (const at of [1, 6, 10, 20, 60]) {
    const changed = frame.slice();
    changed[at] ^= 1;
    sessions.frame(changed, connection, 0);
  }
  assert.equal(answers.length, 0);
  sessions.frame(frame, connection, 0);
  assert.equal(answers[0][0], 2);
  assert.equal(answers[0].length, 57);
});

test("frames for everybody", () => {
  const { frame, data } = vector.for_everybody;
  const sessions = new Sessions(1, ben, {}, vector.group, keys, new Uint8Array(8), {});
  assert.equal(hex(sessions.frame(unhex(frame), {}, 0).data), data);
  assert.equal(sessions.frame(unhex(frame), {}, 0), null, "replayed");
  const changed = unhex(frame);
  changed[20] ^= 1;
  assert.equal(sessions.frame(changed, {}, 0), null, "tampered");
});

test("signatures of messages, and links between them", () => {
  const roster = new Map([[vector.members[0].node, ana.signing]]);
  const nonce = unhex(vector.messages[0].signature).slice(64, 68);
  const authors = new Authors(vector.group, ana, roster, { nonce, incarnation: 7, link: new Uint8Array(0) });
  for (const { signed, signature, link, wire } of vector.messages) {
    const packet = decodePacket(unhex(wire));
    assert.equal(hex(encodePacket(packet)), wire);
    const [envelope] = packet.envelopes;
    assert.equal(authors.check(envelope), null);
    assert.ok(isSigned(ana.signing, unhex(signature).slice(0, 64), unhex(signed)));
    const own = [[envelope[0][0], envelope[0][1], new Uint8Array(0)], ...envelope.slice(1)];
    authors.sign(own);
    assert.equal(hex(own[0][2]), signature);
    assert.equal(hex(authors.link), link);
    for (const change of [(each) => (each[0][1] = utf8("no")), (each) => (each[1] = []), (each) => (each[6] += 1), (each) => (each[0][0][2] += 1)]) {
      const changed = structuredClone(envelope);
      change(changed);
      if (JSON.stringify(changed) !== JSON.stringify(envelope)) assert.equal(authors.check(changed), "forged");
    }
  }
});

test("signatures that libraries judge differently are refused", () => {
  const content = utf8("any message");
  const little = (value) => number(value, 32).reverse();
  const { BASE, Fn } = ed25519.Point;
  const anyMessage = concat(BASE.multiply(5n).toBytes(), little(5n));
  assert.ok(!isSigned(little(1n), anyMessage, content), "a key of small order, under which one signature fits every message");
  const good = ana.sign(content);
  assert.ok(isSigned(ana.signing, good, content));
  const scalar = BigInt("0x" + hex(good.slice(32).reverse()));
  const malleable = concat(good.slice(0, 32), little(scalar + Fn.ORDER));
  assert.ok(!isSigned(ana.signing, malleable, content), "a scalar above the group order");
  assert.ok(!isSigned(new Uint8Array(32).fill(255), good, content), "no point");
  assert.ok(!isSigned(ana.signing, good.slice(1), content), "too short");
});

test("digests and requests", () => {
  const digest = decodePacket(unhex(vector.packets.digest));
  const ids = vector.messages.map(({ wire }) => idOf(decodePacket(unhex(wire)).envelopes[0]));
  assert.equal(BigInt(digest.hash), hashOf(ids[0]) ^ hashOf(ids[1]));
  assert.equal(hex(encodePacket(digest)), vector.packets.digest);
  assert.equal(hex(encodePacket(decodePacket(unhex(vector.packets.want)))), vector.packets.want);
});

test("numbers, texts and containers survive, and garbage is an error with a reason", () => {
  const value = [0, 127, 128, 255, 256, 65536, 2 ** 40, 2n ** 63n - 1n, -1, -33, -200, -70000, "ä".repeat(40), null, true];
  assert.deepEqual(decode(encode(value)), value);
  for (const bytes of ["", "91", "c1", "cb0000000000000000", "dd00ffffff", "a1ff", "0101"])
    assert.throws(() => decode(unhex(bytes)), { reason: "encoding" }, bytes);
  assert.throws(() => decodePacket(unhex("0207")), { reason: "version" });
  assert.throws(() => decodePacket(unhex("0107")), { reason: "kind" });
  assert.throws(() => decodePacket(unhex("0101c0c090c0c0")), { reason: "types" });
});
