// The test vectors that every language runs: docs/reference/vectors.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { hex, unhex } from "../src/bytes.js";
import { CausalBarrier } from "../src/causal.js";
import { decodePacket, encodePacket, idOf } from "../src/packets.js";

const vector = JSON.parse(readFileSync(new URL("../../docs/reference/vectors/causal_barrier.json", import.meta.url)));

/** An effect as the vectors write it: bytes in hexadecimal. */
const written = ({ envelope, ...effect }) =>
  JSON.parse(JSON.stringify(effect, (key, value) => (value instanceof Uint8Array ? hex(value) : value)));

/** The vectors run over `epidemic`, whose effects are not the ordering's. */
const isOfOrdering = ({ effect, key }) =>
  ["Accept", "Deliver", "Discard"].includes(effect) || (effect === "Persist" && key[0] !== "net");

/** An own message is erased when it is sent, which is the dissemination's doing. */
const isErasure = ({ effect, key, value }) => effect === "Persist" && key[0] === "own" && value === null;

test("the ordering returns the recorded effects for the recorded inputs", () => {
  let deliveries = 0;
  for (const { node, conversation } of vector.nodes) {
    const ordering = new CausalBarrier(node, 0);
    for (const input of conversation) {
      const effects = [];
      if (input.input === "start") effects.push(...ordering.start(input.saved));
      else if (input.input === "broadcast") effects.push(...ordering.broadcast(unhex(input.payload), input.now).effects);
      else if (input.input === "receive") {
        const packet = decodePacket(unhex(input.wire), "epidemic");
        for (const envelope of packet.envelopes ?? [])
          if (!ordering.knows(idOf(envelope))) ordering.arrive(envelope, input.now, effects);
      }
      const expected = input.effects.filter((effect) => isOfOrdering(effect) && !isErasure(effect));
      assert.deepEqual(effects.map(written), expected);
      deliveries += expected.filter(({ effect }) => effect === "Deliver").length;
    }
  }
  assert.ok(deliveries > 10, `${deliveries} deliveries`);
});

test("packets are the same bytes after they were read and written", () => {
  let packets = 0;
  for (const { conversation } of vector.nodes)
    for (const { wire } of conversation.flatMap((input) => [input, ...input.effects.map((effect) => effect.packet ?? {})]))
      if (wire) {
        const packet = decodePacket(unhex(wire), "epidemic");
        assert.equal(hex(encodePacket(packet, "epidemic")), wire);
        packets++;
      }
  assert.ok(packets > 50, `${packets} packets`);
});
