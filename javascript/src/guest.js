// A guest of a total order: takes part through a gateway that it trusts for the order, and for nothing else.
//
// The guest is a full member of a causal group with the gateway. The gateway tells it the messages of the total
// order there; every message carries its author's signature, which the guest checks.

import { concat, secret, text, utf8 } from "./bytes.js";
import { Identity, isSigned } from "./keys.js";
import { join } from "./member.js";
import { decode, encode } from "./msgpack.js";

const PURPOSE = utf8("precede guest 1");

/** Take part in a total-order group as a guest. See index.d.ts for the settings. */
export async function joinAsGuest({ group, gateway, identity, roster, ...settings }) {
  if (typeof gateway !== "string" || !gateway) throw new TypeError("gateway: expected the name of the gateway of guests");
  if (!identity || !roster) throw new TypeError("a guest needs identity and roster: the gateway is not trusted with authorship");
  const member = await join({ ...settings, group: `${group} guests`, identity, roster });
  return new Guest(member, group, gateway, new Identity(secret(identity, 32, "identity")), roster);
}

class Guest {
  constructor(member, group, gateway, identity, roster) {
    this.member = member;
    this.group = group;
    this.name = member.name;
    this.gateway = gateway;
    this.identity = identity;
    this.roster = new Map(Object.entries(roster).map(([name, key]) => [name, secret(key, 32, `roster: ${name}`)]));
    this.last = new Map(Object.entries(member.remembered ?? {}));
    this.dropped = {};
    this.written = 0;
    this.unplaced = this.saidBefore(); // own messages, in the order in which they were said
  }

  /** Say something. Resolves when it is durable here; it has a place in the order once the gateway has it. */
  async broadcast(payload) {
    const content = typeof payload === "string" ? utf8(payload) : payload;
    if (!(content instanceof Uint8Array)) throw new TypeError("a payload is a text or a Uint8Array");
    this.written = Math.max(this.written + 1, (this.last.get(this.name) ?? 0) + 1, Date.now() * 1000);
    const signature = this.identity.sign(this.signedBytes(this.name, this.written, content));
    const signed = concat(PURPOSE, encode([this.name, this.written, content, signature]));
    const said = opened(this.name, this.written, content);
    this.unplaced.push(said);
    try {
      await this.member.broadcast(encode(["say", signed]));
    } catch (error) {
      this.unplaced.splice(this.unplaced.indexOf(said), 1);
      throw error;
    }
    return said.id;
  }

  /** Take the messages of the total order. Asking for the next one acknowledges the one before, durably. */
  async *[Symbol.asyncIterator]() {
    for await (const message of this.member) {
      const next = this.ordered(message);
      if (!next || next.number <= (this.last.get(next.source) ?? 0)) {
        if (next) this.drop("replayed");
        continue;
      }
      this.last.set(next.source, next.number);
      this.member.remembered = Object.fromEntries(this.last); // saved with the acknowledgement
      if (next.source === this.name) this.unplaced = this.unplaced.filter(({ number }) => number > next.number);
      yield next;
    }
  }

  /** A message of the total order as the gateway told it; null if it is none, or if its author did not sign it. */
  ordered(message) {
    if (message.source !== this.gateway) return null;
    const signed = this.read(message, "ordered");
    if (!signed) this.drop("forged");
    return signed;
  }

  read({ payload }, kind) {
    try {
      const [found, signed] = decode(payload);
      if (found !== kind || text(signed.subarray(0, PURPOSE.length)) !== text(PURPOSE)) return null;
      const [source, number, content, signature] = decode(signed.slice(PURPOSE.length));
      const key = this.roster.get(source);
      if (!key || !Number.isSafeInteger(number) || number <= 0 || !(content instanceof Uint8Array)) return null;
      if (!isSigned(key, signature, this.signedBytes(source, number, content))) return null;
      return opened(source, number, content);
    } catch {
      return null;
    }
  }

  signedBytes(author, number, content) {
    return encode([PURPOSE, this.group, author, number, content]);
  }

  drop(reason) {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + 1;
  }

  /** The messages that were taken before, in the total order, as far as they are kept. */
  history(limit = Infinity) {
    const newest = new Map();
    const taken = [];
    for (const message of this.member.history()) {
      const next = message.source === this.gateway ? this.read(message, "ordered") : null;
      if (!next || next.number <= (newest.get(next.source) ?? 0)) continue;
      newest.set(next.source, next.number);
      taken.push(next);
    }
    return taken.slice(Math.max(0, taken.length - limit));
  }

  /** After a restart: own messages that have no place in the order yet. */
  saidBefore() {
    const said = [...this.member.history(), ...this.member.untaken()].filter(({ source }) => source === this.name);
    const last = this.last.get(this.name) ?? 0;
    return said.map((message) => this.read(message, "say")).filter((each) => each && each.number > last);
  }

  /** Own messages that have no place in the order yet. */
  waiting() {
    return this.unplaced.map((said) => ({ ...said, since: said.born, waitsFor: ["the gateway"] }));
  }

  neighbours() {
    return this.member.neighbours();
  }

  status() {
    const status = this.member.status();
    const dropped = { ...status.dropped };
    for (const [reason, count] of Object.entries(this.dropped)) dropped[reason] = (dropped[reason] ?? 0) + count;
    return { ...status, dropped, waiting: this.waiting().length };
  }

  onChange(listener) {
    return this.member.onChange(listener);
  }

  close() {
    return this.member.close();
  }
}

const opened = (source, number, payload) => ({
  id: `${source}:${number}`, source, number, payload, text: text(payload), born: new Date(number / 1000), after: [],
});
