// A reliable, ordered channel to one neighbour, over frames that may be lost, doubled or reordered; and the pieces
// into which a packet is cut.

import { concat, number, uint16, uint32 } from "./bytes.js";

export const HEADER = 16;
const WINDOW = 64;
const MOST_QUEUED = 4096;
const ACK_EVERY = 8;
const ACK_WITHIN = 20;
const FIRST_WAIT = 150;
const LONGEST_WAIT = 2000;

/** One end of a channel. `transmit(data)` sends one frame in the session. */
export class Channel {
  constructor(session, transmit) {
    this.session = session;
    this.theirs = 0;
    this.confirmed = false;
    this.transmit = transmit;
    this.queue = [];
    this.unacknowledged = new Map();
    this.next = 1;
    this.received = 0;
    this.early = new Map();
    this.toAcknowledge = 0;
    this.lastAck = 0;
    this.wait = FIRST_WAIT;
  }

  /** Queue the pieces of a packet; false if the queue is full. */
  send(pieces) {
    if (this.queue.length && this.queue.length + pieces.length > MOST_QUEUED) return false;
    this.queue.push(...pieces);
    this.pump();
    return true;
  }

  pump() {
    while (this.queue.length && this.unacknowledged.size < WINDOW) {
      const piece = this.queue.shift();
      this.unacknowledged.set(this.next, piece);
      this.put(this.next++, piece);
    }
    if (this.unacknowledged.size && !this.resend) this.resend = setTimeout(() => this.repeat(), this.wait);
  }

  put(count, piece) {
    this.toAcknowledge = 0;
    const header = [this.session, this.theirs, count, this.received].map((value) => number(value, 4));
    this.transmit(concat(...header, piece));
  }

  repeat() {
    this.resend = undefined;
    if (!this.unacknowledged.size) return;
    for (const [count, piece] of [...this.unacknowledged].slice(0, ACK_EVERY)) this.put(count, piece);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    this.resend = setTimeout(() => this.repeat(), this.wait);
  }

  acknowledged(upTo) {
    if (upTo >= this.next || upTo <= this.lastAck) return;
    for (let count = this.lastAck + 1; count <= upTo; count++) this.unacknowledged.delete(count);
    this.lastAck = upTo;
    this.wait = FIRST_WAIT;
    clearTimeout(this.resend);
    this.resend = undefined;
    this.pump();
  }

  /** Process a frame, and return the pieces that are now in order. */
  accept(count, ack, piece) {
    this.acknowledged(ack);
    if (count === 0) return [];
    if (count !== this.received + 1) {
      const ahead = count - this.received;
      if (ahead > 0 && ahead <= 2 * WINDOW && !this.early.has(count)) this.early.set(count, piece);
      this.acknowledge();
      return [];
    }
    const ready = [piece];
    this.received = count;
    while (this.early.has(this.received + 1)) {
      this.received++;
      ready.push(this.early.get(this.received));
      this.early.delete(this.received);
    }
    this.toAcknowledge += ready.length;
    if (this.toAcknowledge >= ACK_EVERY) this.acknowledge();
    else
      this.acking ??= setTimeout(() => {
        this.acking = undefined;
        if (this.toAcknowledge) this.acknowledge();
      }, ACK_WITHIN);
    return ready;
  }

  /** Send an acknowledgement now. It also tells the neighbour the session numbers of both ends. */
  acknowledge() {
    this.put(0, new Uint8Array(0));
  }

  beginAgain(theirs) {
    this.theirs = theirs;
    this.received = 0;
    this.early.clear();
  }

  close() {
    clearTimeout(this.resend);
    clearTimeout(this.acking);
    this.queue = [];
    this.unacknowledged.clear();
  }
}

const PIECE_HEADER = 8;
const MOST_PIECES = 4096;
const MOST_UNFINISHED = 32;
const MOST_BYTES = 16 << 20;

/** Cuts packets that are larger than a frame into pieces, and joins pieces in bounded memory. */
export class Fragments {
  count = 0;
  open = new Map();
  bytes = 0;

  cut(data, largest) {
    const room = largest - PIECE_HEADER;
    const pieces = Math.max(1, Math.ceil(data.length / room));
    if (pieces > MOST_PIECES) throw new RangeError(`a packet of ${data.length} bytes does not fit`);
    this.count = (this.count + 1) >>> 0;
    return Array.from({ length: pieces }, (_, place) =>
      concat(number(this.count, 4), number(place, 2), number(pieces, 2), data.subarray(place * room, (place + 1) * room)));
  }

  /** Add a piece. Returns its packet if that completes it, else null. */
  join(piece, sender) {
    if (piece.length < PIECE_HEADER) return null;
    const place = uint16(piece, 4);
    const pieces = uint16(piece, 6);
    const data = piece.slice(PIECE_HEADER);
    if (pieces === 0 || pieces > MOST_PIECES || place >= pieces) return null;
    if (pieces === 1) return data;
    if (!data.length) return null;
    const key = `${sender}:${uint32(piece, 0)}`;
    const gathered = this.open.get(key) ?? { sender, pieces, parts: new Map() };
    if (gathered.pieces !== pieces) return null;
    this.open.set(key, gathered);
    if (!gathered.parts.has(place)) {
      gathered.parts.set(place, data);
      this.bytes += data.length;
    }
    if (gathered.parts.size < pieces) {
      this.bound(sender);
      return null;
    }
    this.forget(key);
    return concat(...Array.from({ length: pieces }, (_, at) => gathered.parts.get(at)));
  }

  /** Drop the oldest unfinished packets beyond the bounds: those of this sender, then any. */
  bound(sender) {
    const keys = [...this.open.keys()];
    const own = keys.filter((key) => this.open.get(key).sender === sender);
    if (own.length > MOST_UNFINISHED) this.forget(own[0]);
    while (this.bytes > MOST_BYTES) this.forget(this.open.keys().next().value);
  }

  forget(key) {
    for (const part of this.open.get(key).parts.values()) this.bytes -= part.length;
    this.open.delete(key);
  }

  forgetSender(sender) {
    for (const [key, gathered] of [...this.open]) if (gathered.sender === sender) this.forget(key);
  }
}
