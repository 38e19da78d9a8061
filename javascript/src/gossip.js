// Gossip: own messages go to all neighbours at once; digests of what is held show who lacks what.
//
// A browser relays nothing on its own account: a neighbour that lacks a message asks for it after a digest.

import { areRanges, idOf } from "./packets.js";
import { idKey } from "./causal.js";

const SOON = 60;
const LONGEST = 8_000;
const FIRST_WAIT = 250;
const LONGEST_WAIT = 8_000;
const MOST_VAIN = 8;
const MOST_ASKED = 128;
const MOST_RANGES = 64;
const MOST_LISTED = 2048;
const MOST_LOOKED = 4096;
const PACKET_BYTES = 16_000;
const HEADER_BYTES = 8;
const ID_BYTES = 16;
const NODE_BYTES = 4;
const MASK = (1n << 64n) - 1n;

/** Hash an id to 63 bits (splitmix64). The hash of a set of ids is the XOR of these. */
export function hashOf([source, incarnation, number]) {
  let value = (BigInt(source) * 0x9e3779b97f4a7c15n + BigInt(incarnation) * 0xd1b54a32d192ed03n + BigInt(number)) & MASK;
  value = (value + 0x9e3779b97f4a7c15n) & MASK;
  value = ((value ^ (value >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  value = ((value ^ (value >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return (value ^ (value >> 31n)) >> 1n;
}

/**
 * Spreads messages and fetches those that this member lacks. `knows(id)` and `delivered(source, incarnation)` ask the
 * ordering. `send(node, packet)` and `sendToAll(packet)` transmit. `most`: how many messages are carried for others.
 */
export class Gossip {
  constructor({ node, knows, delivered, send, sendToAll, most }) {
    Object.assign(this, { node, knows, delivered, send, sendToAll, most });
    this.carried = new Map(); // id key -> envelope, in the order of reception
    this.hash = 0n;
    this.neighbours = new Set();
    this.offers = new Map(); // neighbour -> streams of its last digest
    this.asked = new Set();
    this.vain = 0;
    this.agreed = false;
    this.stopped = false;
  }

  /** Send nothing more. Packets may still arrive, and set no timer: a timer would keep a process of Node.js running. */
  stop() {
    this.stopped = true;
    clearTimeout(this.digestTimer);
    clearTimeout(this.askTimer);
  }

  /** Carry a message. Returns the messages that are no longer carried because of it. */
  add(envelope) {
    const key = idKey(idOf(envelope));
    if (this.carried.has(key)) return [];
    this.carried.set(key, envelope);
    this.hash ^= hashOf(idOf(envelope));
    const evicted = [];
    while (this.carried.size > this.most) {
      const [oldest, gone] = this.carried.entries().next().value;
      this.carried.delete(oldest);
      this.hash ^= hashOf(idOf(gone));
      evicted.push(gone);
    }
    return evicted;
  }

  /** Transmit a new own message to all neighbours. */
  spread(envelope) {
    if (this.neighbours.size) this.sendToAll(dataPacket([envelope]));
    this.announce(SOON);
  }

  /** Messages have arrived from a neighbour: another neighbour may lack them, and more may be lacking here. */
  received(envelopes) {
    for (const envelope of envelopes) this.asked.delete(idKey(idOf(envelope)));
    this.vain = 0;
    if (this.neighbours.size > 1) this.announce(SOON);
    if (!this.asked.size && this.offers.size) this.ask();
  }

  linkUp(node) {
    this.neighbours.add(node);
    this.announce(SOON);
  }

  linkDown(node) {
    this.neighbours.delete(node);
    this.offers.delete(node);
  }

  announce(wait) {
    if (this.stopped) return;
    if (this.digestTimer && this.digestAt <= Date.now() + wait) return;
    clearTimeout(this.digestTimer);
    this.digestAt = Date.now() + wait;
    this.digestTimer = setTimeout(() => {
      this.digestTimer = undefined;
      if (this.neighbours.size && !this.agreed) this.sendToAll(this.digest());
      this.agreed = false;
      this.announce(LONGEST);
    }, wait);
  }

  digest() {
    const held = new Map();
    for (const envelope of this.carried.values()) {
      const [source, incarnation, number] = idOf(envelope);
      const stream = `${source}'${incarnation}`;
      if (!held.has(stream)) held.set(stream, { source, incarnation, numbers: [] });
      held.get(stream).numbers.push(number);
    }
    const streams = [...held.values()].map(({ source, incarnation, numbers }) => [source, incarnation, flatRanges(numbers)]);
    let room = MOST_LISTED;
    const listed = streams.filter(([, , ranges]) => (room -= ranges.length / 2) >= 0);
    return { kind: "digest", hash: this.hash, full: listed.length === streams.length, streams: listed, listVersion: 0, neighbours: null };
  }

  digestHeard(packet, sender) {
    if (!packet.streams.every(([, , ranges]) => areRanges(ranges))) return;
    if (BigInt(packet.hash) === this.hash) {
      this.agreed = true;
      return;
    }
    this.offers.set(sender, packet.streams);
    if (!this.asked.size) this.ask();
    this.announce(1_000);
  }

  /** Ask neighbours for messages that they have and this member lacks; ask again until they arrive. */
  ask() {
    if (this.stopped) return;
    clearTimeout(this.askTimer);
    this.asked.clear();
    for (const [node, streams] of [...this.offers]) {
      const wants = [];
      for (const [source, incarnation, ranges] of streams) {
        const numbers = this.lacking(source, incarnation, ranges);
        if (numbers.length && wants.length < MOST_RANGES) wants.push([node, source, incarnation, flatRanges(numbers)]);
      }
      if (wants.length) this.send(node, { kind: "want", wants });
      else if (this.asked.size < MOST_ASKED) this.offers.delete(node);
    }
    if (!this.asked.size) return;
    if (++this.vain > MOST_VAIN) {
      this.offers.clear(); // the next digest offers again
      this.asked.clear();
      this.vain = 0;
      return;
    }
    this.askTimer = setTimeout(() => this.ask(), Math.min(FIRST_WAIT << this.vain, LONGEST_WAIT));
  }

  lacking(source, incarnation, ranges) {
    const numbers = [];
    const delivered = this.delivered(source, incarnation);
    let looked = 0;
    for (let place = 0; place < ranges.length; place += 2)
      for (let number = Math.max(ranges[place], delivered + 1); number <= ranges[place + 1]; number++) {
        if (this.asked.size >= MOST_ASKED || ++looked > MOST_LOOKED) return numbers;
        const id = [source, incarnation, number];
        if (this.knows(id) || this.asked.has(idKey(id))) continue;
        this.asked.add(idKey(id));
        numbers.push(number);
      }
    return numbers;
  }

  /** Send the messages that a neighbour asks for. */
  wanted(packet, sender) {
    const chosen = [];
    for (const [answerer, source, incarnation, ranges] of packet.wants.slice(0, MOST_RANGES)) {
      if (answerer !== this.node || !areRanges(ranges)) continue;
      for (const envelope of this.carried.values()) {
        const [from, life, number] = idOf(envelope);
        if (from === source && life === incarnation && isIn(number, ranges) && chosen.length < MOST_ASKED) chosen.push(envelope);
      }
    }
    let part = [];
    let bytes = 0;
    for (const envelope of chosen) {
      const size = envelope[0][1].length + envelope[4];
      if (part.length && bytes + size > PACKET_BYTES) {
        this.send(sender, dataPacket(part));
        [part, bytes] = [[], 0];
      }
      part.push(envelope);
      bytes += size;
    }
    if (part.length) this.send(sender, dataPacket(part));
  }
}

const isIn = (number, ranges) => {
  for (let place = 0; place < ranges.length; place += 2)
    if (number >= ranges[place] && number <= ranges[place + 1]) return true;
  return false;
};

function flatRanges(numbers) {
  const flat = [];
  for (const number of [...numbers].sort((left, right) => left - right))
    if (flat.length && flat.at(-1) === number - 1) flat[flat.length - 1] = number;
    else flat.push(number, number);
  return flat;
}

function dataPacket(envelopes) {
  const sum = (part) => envelopes.reduce((total, envelope) => total + part(envelope), 0);
  const controlBytes = sum((each) => each[4]) + HEADER_BYTES + ID_BYTES * envelopes.length + NODE_BYTES;
  const size = sum((each) => each[0][1].length) + controlBytes;
  const controlEntries = sum((each) => each[5]);
  return { kind: "data", envelopes, listVersion: 0, neighbours: null, firstDeadline: null, size, controlBytes, controlEntries };
}
