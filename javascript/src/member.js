// A member of a group: joins through gateways, broadcasts, delivers in causal order, goes on after a restart.

import { hex, random, secret, text, uint16, utf8 } from "./bytes.js";
import { Authors } from "./authors.js";
import { CausalBarrier, idKey } from "./causal.js";
import { Connections } from "./connections.js";
import { Gossip } from "./gossip.js";
import { groupKeys, Identity, nodeId } from "./keys.js";
import { Links } from "./links.js";
import { Garbled } from "./msgpack.js";
import { decodePacket, encodePacket, idOf, messageOf, stampOf } from "./packets.js";
import { MemoryStore } from "./store.js";

const MOST_AHEAD = 1 << 20;
const MOST_BARRIER = 4096;
const MOST_WAITING = 10_000;
const MOST_WAITING_BYTES = 32 << 20;
const MOST_PAYLOAD = 1_000_000;
const MOST_LIFETIME = 3660 * 24 * 3600 * 1e6;

/** A new secret for `identity`, and the public key that belongs into everybody's roster; both in hexadecimal. */
export function makeIdentity() {
  const bytes = random(32);
  return { identity: hex(bytes), publicKey: hex(new Identity(bytes).signing) };
}

/** The public key of an identity, in hexadecimal. */
export const publicKeyOf = (identity) => hex(new Identity(secret(identity, 32, "identity")).signing);

/** Become a member of a group. See index.d.ts for the settings. */
export async function join(settings) {
  const member = new Member(settings);
  await member.start();
  return member;
}

class Member {
  constructor({ group, name, key, urls, identity, roster, store = new MemoryStore(), keep = 1000, carry = 2000, beacon = 500 }) {
    for (const [setting, value] of Object.entries({ group, name }))
      if (typeof value !== "string" || !value) throw new TypeError(`${setting}: expected a text that is not empty`);
    if (!Array.isArray(urls)) throw new TypeError('urls: expected a list such as ["ws://10.0.0.7:8080"]');
    if (!identity !== !roster) throw new TypeError("identity and roster go together: one signs, the other says whose signatures count");
    this.group = group;
    this.name = name;
    this.id = nodeId(name);
    this.keep = keep;
    this.carry = carry;
    this.beacon = beacon;
    this.urls = urls;
    this.keys = groupKeys(secret(key, 32, "key"), group);
    this.roster = roster && new Map(Object.entries(roster).map(([each, value]) => [each, secret(value, 32, `roster: ${each}`)]));
    this.identity = identity ? new Identity(secret(identity, 32, "identity")) : Identity.shared(group, name);
    if (this.roster && hex(this.roster.get(name) ?? []) !== hex(this.identity.signing))
      throw new TypeError(`roster: has ${this.roster.has(name) ? "another key" : "no key"} for ${name}`);
    this.store = store;
    this.dropped = {};
    this.warnings = [];
    this.turns = Promise.resolve();
    this.listeners = new Set();
    this.failure = null;
    this.closed = false;
  }

  async start() {
    this.store.onTaken = (error) => this.fail(error);
    const saved = await this.store.load();
    const own = new Map(saved.filter(([key]) => key[0] === "member").map(([key, value]) => [key[1], value]));
    const claim = `${this.group}/${this.name}`;
    if (own.has("claim") && own.get("claim") !== claim) throw new Error(`the store belongs to ${own.get("claim")}, not to ${claim}`);
    const incarnation = own.get("incarnation") ?? (uint16(random(2), 0) & 0x7fff || 1);
    this.messages = saved.filter(([key]) => key[0] === "out").sort(([a], [b]) => a[1] - b[1]).map(([key, value]) => [key[1], value]);
    this.place = this.messages.at(-1)?.[0] ?? own.get("place") ?? 0;
    this.taken = own.get("taken") ?? 0;
    this.remembered = own.get("app") ?? null; // what a layer above has to know after a restart
    const roster = this.roster && new Map([...this.roster].map(([name, key]) => [nodeId(name), key]));
    this.authors = this.roster && new Authors(this.group, this.identity, roster, own.get("chain"));
    this.ordering = new CausalBarrier(this.id, incarnation);
    this.gossip = new Gossip({
      node: this.id,
      most: this.carry,
      knows: (id) => this.ordering.knows(id),
      delivered: (source, life) => this.ordering.deliveredUpTo(source, life),
      send: (node, packet) => this.links.send(node, encodePacket(packet)),
      sendToAll: (packet) => this.links.sendToAll(encodePacket(packet)),
    });
    const carried = saved.filter(([key]) => key[0] === "net").map(([, value]) => value);
    const changes = [[["member", "claim"], claim], [["member", "incarnation"], incarnation]];
    const effects = this.ordering.start(saved.filter(([key]) => key !== "member" && !["member", "out", "net"].includes(key[0])));
    for (const envelope of carried) this.gossip.add(envelope);
    for (const envelope of carried) if (!this.ordering.knows(idOf(envelope))) this.ordering.arrive(envelope, now(), effects);
    this.links = new Links({
      group: this.group, name: this.name, identity: this.identity, keys: this.keys, roster: this.roster, beacon: this.beacon,
      terms: { group: this.group, order: "causal", dissemination: "gossip" },
      events: {
        onPacket: (data, sender, toAll) => this.packet(data, sender, toAll),
        onUp: (node) => { this.gossip.linkUp(node); this.changed(); },
        onDown: (node) => { this.gossip.linkDown(node); this.changed(); },
        onWarning: (warning) => this.warn(warning),
      },
    });
    await this.turn(() => {
      for (const envelope of this.ordering.unfinished) {
        this.carryOne(envelope, changes);
        effects.push({ effect: "Persist", key: ownKeyOf(idOf(envelope)), value: null });
      }
      return { effects, changes };
    });
    this.connections = new Connections(this.urls, this.links);
  }

  // -- turns: an input, its effects made durable together, then everything that leaves ---------------------

  /** Run `input` alone and make its effects durable. Returns what `after` of its result returns. */
  turn(input) {
    const done = this.turns.then(async () => {
      if (this.failure) throw this.failure;
      const result = input();
      if (!result) return undefined;
      await this.commit(result);
      return result.after?.();
    });
    this.turns = done.catch((error) => {
      if (!(error instanceof Refused)) this.fail(error);
    });
    return done;
  }

  async commit({ effects, changes = [] }) {
    const delivered = [];
    for (const effect of effects) {
      if (effect.effect === "Persist") changes.push([effect.key, effect.value]);
      else if (effect.effect === "Deliver") {
        const kept = [++this.place, [...messageOf(effect.envelope), effect.envelope[6], stampOf(effect.envelope)]];
        changes.push([["out", kept[0]], kept[1]]);
        delivered.push(kept);
      }
    }
    if (delivered.length) changes.push([["member", "place"], this.place]);
    this.messages.push(...delivered);
    this.trim(changes);
    if (changes.length) await this.store.write(changes);
    if (delivered.length || effects.length) this.changed();
  }

  /** Forget the oldest messages that the application has taken, beyond `keep`. */
  trim(changes) {
    while (this.messages.length > this.keep && this.messages[0][0] <= this.taken)
      changes.push([["out", this.messages.shift()[0]], null]);
  }

  fail(error) {
    this.failure ??= error;
    this.links?.stop();
    this.gossip?.stop();
    this.connections?.stop();
    this.changed();
  }

  carryOne(envelope, changes) {
    changes.push([["net", ...idOf(envelope)], envelope]);
    for (const gone of this.gossip.add(envelope)) changes.push([["net", ...idOf(gone)], null]);
  }

  // -- sending --------------------------------------------------------------------------------------------

  /** Send a message to all members. Resolves when the message is durable here; it arrives when others are near. */
  async broadcast(payload) {
    const bytes = typeof payload === "string" ? utf8(payload) : payload;
    if (!(bytes instanceof Uint8Array)) throw new TypeError("a payload is a text or a Uint8Array");
    if (bytes.length > MOST_PAYLOAD) throw new Refused(`a payload has at most ${MOST_PAYLOAD} bytes`);
    if (this.closed) throw new Refused("this member has left");
    return this.turn(() => {
      const { envelope, effects } = this.ordering.broadcast(bytes.slice(), now(), (each) => this.authors?.sign(each));
      const changes = this.authors ? [[["member", "chain"], this.authors.chain]] : [];
      this.carryOne(envelope, changes);
      effects.push({ effect: "Persist", key: ownKeyOf(idOf(envelope)), value: null });
      return { effects, changes, after: () => (this.gossip.spread(envelope), idKey(idOf(envelope))) };
    });
  }

  // -- receiving ------------------------------------------------------------------------------------------

  packet(data, sender, toAll) {
    let packet;
    try {
      packet = decodePacket(data);
    } catch (error) {
      if (!(error instanceof Garbled)) throw error;
      return this.drop(error.reason);
    }
    this.turn(() => {
      if (packet.kind === "digest") this.gossip.digestHeard(packet, sender);
      else if (packet.kind === "want") this.gossip.wanted(packet, sender);
      else return this.take(packet.envelopes);
      return null;
    }).catch(() => {}); // `turns` has recorded the failure
  }

  /** Check messages and hand new ones to the ordering. A packet with a wrong message is dropped whole. */
  take(envelopes) {
    const fresh = envelopes.filter((envelope) => !this.ordering.knows(idOf(envelope)));
    for (const envelope of fresh) {
      const reason = this.implausible(envelope) ?? this.authors?.check(envelope) ?? null;
      if (reason) return this.drop(reason);
    }
    const [effects, changes] = [[], []];
    for (const envelope of fresh) {
      if (this.ordering.knows(idOf(envelope))) continue; // twice in one packet
      this.carryOne(envelope, changes);
      this.ordering.arrive(envelope, now(), effects);
    }
    return { effects, changes, after: () => this.gossip.received(envelopes) };
  }

  implausible(envelope) {
    const [, stamp, deadline, destinations] = envelope;
    const [source, incarnation, number] = idOf(envelope);
    const delivered = this.ordering.deliveredUpTo(source, incarnation);
    if (delivered && number > delivered + MOST_AHEAD) return "far_future";
    if (source === this.id && incarnation === this.ordering.incarnation) return this.ownFuture(envelope);
    if (deadline !== null && deadline > now() + MOST_LIFETIME) return "deadline";
    if (destinations !== null && !destinations.includes(this.id)) return "misaddressed";
    if (stamp.length > MOST_BARRIER) return "huge_barrier";
    const { size } = this.ordering.pending;
    if (size >= MOST_WAITING || (size && this.bytesWaiting() > MOST_WAITING_BYTES)) return "waiting_full";
    return null;
  }

  bytesWaiting() {
    let bytes = 0;
    for (const { envelope } of this.ordering.pending.values()) bytes += envelope[0][1].length;
    return bytes;
  }

  /** A message of this member that it has not written: forged, or its store was set back. */
  ownFuture(envelope) {
    if (!this.authors || this.authors.check(envelope)) return "forged";
    this.fail(new Error("others have messages of this member that its store does not know: begin with an empty store"));
    return "rolled_back";
  }

  drop(reason) {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + 1;
    return null;
  }

  warn(warning) {
    if (this.warnings.includes(warning)) return;
    this.warnings.push(warning);
    this.changed();
  }

  // -- what the application sees ----------------------------------------------------------------------------

  /** Take delivered messages in order. Asking for the next one acknowledges the one before, durably. */
  async *[Symbol.asyncIterator]() {
    while (!this.closed) {
      if (this.failure) throw this.failure;
      const next = this.messages.find(([place]) => place > this.taken);
      if (!next) {
        await this.nextChange();
        continue;
      }
      yield this.shown(next);
      await this.turn(() => {
        this.taken = next[0];
        return { effects: [], changes: [[["member", "taken"], this.taken], [["member", "app"], this.remembered]] };
      });
    }
  }

  /** The messages that were delivered and taken before, oldest first, as far as they are kept. */
  history(limit = Infinity) {
    const taken = this.messages.filter(([place]) => place <= this.taken);
    return taken.slice(Math.max(0, taken.length - limit)).map((kept) => this.shown(kept));
  }

  /** The messages that were delivered and not taken yet. */
  untaken() {
    return this.messages.filter(([place]) => place > this.taken).map((kept) => this.shown(kept));
  }

  shown([, [id, payload, , born, stamp]]) {
    return {
      id: idKey(id),
      source: this.nameOf(id[0]),
      number: id[2],
      payload,
      text: text(payload),
      born: new Date(born / 1000),
      after: stamp.map(([stream, number]) => idKey(Array.isArray(stream) ? [...stream, number] : [stream, 0, number])),
    };
  }

  /** Received messages that are not delivered yet, and the ids that each of them waits for. */
  waiting() {
    return this.ordering.waiting().map(({ envelope, since, waitsFor }) => ({
      ...this.shown([0, [...messageOf(envelope), envelope[6], stampOf(envelope)]]),
      since: new Date(since / 1000),
      waitsFor: waitsFor.map(idKey),
    }));
  }

  neighbours() {
    return [...this.links.near.keys()].map((node) => this.nameOf(node));
  }

  nameOf(node) {
    this.names ??= new Map([...(this.roster?.keys() ?? []), this.name].map((name) => [nodeId(name), name]));
    return this.names.get(node) ?? this.links.directory.find(node)?.name ?? node.toString(16).padStart(8, "0");
  }

  status() {
    const dropped = { ...this.links.sessions.dropped };
    for (const [reason, count] of Object.entries(this.dropped)) dropped[reason] = (dropped[reason] ?? 0) + count;
    const { incarnation, pending } = this.ordering;
    return {
      name: this.name, incarnation, neighbours: this.neighbours(), waiting: pending.size, dropped,
      warnings: [...this.warnings], failure: this.failure?.message ?? null,
    };
  }

  /** Call `listener` after each change of messages, waiting messages, neighbours or status. Returns how to stop. */
  onChange(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  changed() {
    for (const listener of [...this.listeners]) listener();
  }

  nextChange() {
    return new Promise((resolve) => {
      const stop = this.onChange(() => {
        stop();
        resolve();
      });
    });
  }

  /** Stop. With a store, the next `join` goes on where this one stopped. */
  async close() {
    if (this.closed) return;
    this.closed = true;
    this.links.stop();
    this.gossip.stop();
    await this.connections.stop();
    await this.turns;
    await this.store.close();
    this.changed();
  }
}

/** The message is not sent. */
export class Refused extends Error {}

const now = () => Date.now() * 1000;
const ownKeyOf = ([, incarnation, number]) => (incarnation ? ["own", incarnation, number] : ["own", number]);
