// Causal order by barriers: a message names its immediate predecessors and waits until all of them are delivered.
//
// A state machine: inputs return the list of effects, in order, as the test vectors have them. It has no clock, no
// socket and no store. A stream is all messages of one source in one incarnation.

import { idOf, messageOf, stampOf } from "./packets.js";

const HEADER_BYTES = 16;
const ENTRY_BYTES = 16;

/** The name of a stream in barriers: the source alone in incarnation 0, else source and incarnation. */
const streamOf = ([source, incarnation]) => (incarnation ? [source, incarnation] : source);
const keyOf = (stream) => (Array.isArray(stream) ? `${stream[0]}'${stream[1]}` : `${stream}'0`);
const streamKey = ([source, incarnation]) => `${source}'${incarnation}`;
export const idKey = ([source, incarnation, number]) => `${source}'${incarnation}:${number}`;
const ownKey = ([, incarnation, number]) => (incarnation ? ["own", incarnation, number] : ["own", number]);
const deliveredKey = (incarnation) => (incarnation ? ["own_delivered", incarnation] : "own_delivered");
const topKey = ([source, incarnation]) => ["top", source, incarnation];

export class CausalBarrier {
  constructor(node, incarnation) {
    this.node = node;
    this.incarnation = incarnation;
    this.number = 0;
    this.barrier = new Map(); // stream key -> [stream, number]
    this.delivered = new Map(); // stream key -> number
    this.pending = new Map(); // id key -> {envelope, since}
    this.waitingFor = new Map(); // stream key and number -> pending messages that lack it
  }

  /** Begin, with the state that was persisted before a restart: a list of pairs of key and value. */
  start(saved) {
    const effects = [];
    const own = [];
    const held = [];
    const ownDelivered = new Map();
    const tops = [];
    for (const [key, value] of saved) {
      if (key === "own_delivered") ownDelivered.set(0, value);
      else if (key[0] === "own_delivered") ownDelivered.set(key[1], value);
      else if (key[0] === "top") tops.push([[key[1], key[2]], value]);
      else if (key[0] === "own") own.push(value);
      else if (key[0] === "held") held.push(value);
    }
    for (const [id, [number]] of tops) {
      this.delivered.set(streamKey(id), number);
      this.barrier.set(streamKey(id), [streamOf(id), number]);
    }
    for (const [, [, barrier]] of tops) this.cover(barrier);
    own.sort(byId);
    for (const envelope of own) this.repeatOwn(envelope, ownDelivered, effects);
    this.number = ownDelivered.get(this.incarnation) ?? 0;
    for (const envelope of own) this.finish(envelope, effects);
    for (const envelope of held.sort(byId)) {
      if (this.knows(idOf(envelope))) effects.push(persist(["held", ...idOf(envelope)], null));
      else this.arrive(envelope, 0, effects);
    }
    this.unfinished = own;
    return effects;
  }

  /** Repeat the acceptance and the delivery of an own message that a crash may have prevented. */
  repeatOwn(envelope, ownDelivered, effects) {
    const [, incarnation, number] = idOf(envelope);
    if (incarnation === this.incarnation) effects.push(accept(envelope));
    if (number > (ownDelivered.get(incarnation) ?? 0)) {
      ownDelivered.set(incarnation, number);
      effects.push(persist(deliveredKey(incarnation), number), deliver(envelope));
    }
  }

  /** Finish an own broadcast that a crash cut off between numbering and saving the registries. */
  finish(envelope, effects) {
    const id = idOf(envelope);
    if (id[2] > (this.delivered.get(streamKey(id)) ?? 0)) {
      this.delivered.set(streamKey(id), id[2]);
      this.barrier = new Map([[streamKey(id), [streamOf(id), id[2]]]]);
      effects.push(persist(topKey(id), [id[2], stampOf(envelope)]));
    }
  }

  /** Number and stamp a new own message. `sign(envelope)` may put a signature into it. */
  broadcast(payload, now, sign = () => {}) {
    const id = [this.node, this.incarnation, this.number + 1];
    const barrier = [...this.barrier.values()].map(([stream, number]) => [stream, number]);
    const size = HEADER_BYTES + ENTRY_BYTES * barrier.length;
    const envelope = [[id, payload, new Uint8Array(0)], barrier, null, null, size, barrier.length, now];
    sign(envelope);
    this.number = id[2];
    const effects = [
      persist(ownKey(id), envelope),
      persist(topKey(id), [id[2], barrier]),
      accept(envelope),
      persist(deliveredKey(this.incarnation), id[2]),
      deliver(envelope),
    ];
    this.barrier = new Map([[streamKey(id), [streamOf(id), id[2]]]]);
    this.delivered.set(streamKey(id), id[2]);
    this.wake(id, effects);
    return { envelope, effects };
  }

  /** Take a message that was received for the first time: deliver it, let it wait, or discard it. */
  arrive(envelope, now, effects) {
    const id = idOf(envelope);
    if (id[2] <= (this.delivered.get(streamKey(id)) ?? 0)) {
      effects.push({ effect: "Discard", message: messageOf(envelope), reason: "duplicate" });
      return;
    }
    const lacked = this.lacked(envelope);
    if (lacked) {
      const pending = { envelope, since: now };
      this.pending.set(idKey(id), pending);
      this.file(pending, lacked);
      effects.push(persist(["held", ...id], envelope));
      return;
    }
    this.deliver(envelope, effects);
    this.wake(id, effects);
  }

  /** The first predecessor that is not delivered, or undefined. */
  lacked(envelope) {
    return stampOf(envelope).find(([stream, number]) => (this.delivered.get(keyOf(stream)) ?? 0) < number);
  }

  file(pending, [stream, number]) {
    const key = `${keyOf(stream)}:${number}`;
    if (!this.waitingFor.has(key)) this.waitingFor.set(key, []);
    this.waitingFor.get(key).push(pending);
  }

  deliver(envelope, effects) {
    const id = idOf(envelope);
    this.delivered.set(streamKey(id), id[2]);
    this.cover(stampOf(envelope));
    // As a map of the reference implementation: a stream that is there keeps its place.
    this.barrier.set(streamKey(id), [streamOf(id), id[2]]);
    effects.push(persist(topKey(id), [id[2], stampOf(envelope)]), deliver(envelope));
  }

  /** Remove from the barrier the messages that another barrier names, and earlier ones of their streams. */
  cover(barrier) {
    for (const [stream, number] of barrier) {
      const mine = this.barrier.get(keyOf(stream));
      if (mine && mine[1] <= number) this.barrier.delete(keyOf(stream));
    }
  }

  /** Deliver the messages that waited for this one, or file them under the next predecessor that they lack. */
  wake(id, effects) {
    const delivered = [idKey(id)];
    for (const key of delivered) {
      const waiting = this.waitingFor.get(key) ?? [];
      this.waitingFor.delete(key);
      for (const pending of waiting) {
        const lacked = this.lacked(pending.envelope);
        if (lacked) {
          this.file(pending, lacked);
          continue;
        }
        const next = idOf(pending.envelope);
        this.pending.delete(idKey(next));
        this.deliver(pending.envelope, effects);
        effects.push(persist(["held", ...next], null));
        delivered.push(idKey(next));
      }
    }
  }

  /** Is this message delivered or waiting? Then another copy of it is a duplicate. */
  knows(id) {
    if (id[0] === this.node && id[1] === this.incarnation) return id[2] <= this.number;
    return id[2] <= (this.delivered.get(streamKey(id)) ?? 0) || this.pending.has(idKey(id));
  }

  /** The number up to which a stream is delivered. */
  deliveredUpTo(source, incarnation) {
    if (source === this.node && incarnation === this.incarnation) return this.number;
    return this.delivered.get(`${source}'${incarnation}`) ?? 0;
  }

  /** The messages that wait, and the ids that each of them waits for. */
  waiting() {
    return [...this.pending.values()].map(({ envelope, since }) => ({
      envelope,
      since,
      waitsFor: stampOf(envelope)
        .filter(([stream, number]) => (this.delivered.get(keyOf(stream)) ?? 0) < number)
        .map(([stream, number]) => (Array.isArray(stream) ? [...stream, number] : [stream, 0, number])),
    }));
  }
}

const persist = (key, value) => ({ effect: "Persist", key, value });
const deliver = (envelope) => ({ effect: "Deliver", message: messageOf(envelope), envelope });
const accept = (envelope) => ({ effect: "Accept", message: messageOf(envelope), destinations: null, deadline: null });
const byId = (left, right) => {
  const [a, b] = [idOf(left), idOf(right)];
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
};
