// Sessions between pairs of members, and frames for everybody: who sent a frame, and what is in it.
//
// A connection is an object with `send(frame)`; it stands for the address of the member at its other end.

import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { byte, concat, equal, hex, number, random, uint32, utf8 } from "./bytes.js";
import { hash, memberId } from "./keys.js";
import { Handshake } from "./noise.js";

export const WIRE_VERSION = 2;
const [MESSAGE_1, MESSAGE_2, DATA, COOKIE, BROADCAST, MESSAGE_1_COOKIE] = [1, 2, 3, 4, 5, 6];
const [PING, PONG, CHALLENGE, RESPONSE, PAYLOAD] = [0, 1, 2, 3, 4];
const SIZES = { [MESSAGE_1]: 73, [MESSAGE_2]: 57, [COOKIE]: 53, [MESSAGE_1_COOKIE]: 89 };
export const DATA_OVERHEAD = 26;
const FIRST_RETRY = 150;
const LAST_RETRY = 600;
const SECOND_STARTS_AFTER = 300;
const GIVE_UP = 10_000;
const REKEY = 3_600_000;
const REKEY_FRAMES = 1 << 20;
const MOST_FRAMES = 0xffffffff;
const MOST_SESSIONS = 4;
const MOST_EPHEMERALS = 4096;
const MOST_SALTS = 4096;
const WINDOW = 1024;

/** Remembers which counters were seen. Counters more than 1,023 behind the highest count as seen. */
class ReplayWindow {
  highest = -1;
  seenCounters = new Set();

  seen(counter) {
    return counter <= this.highest - WINDOW || this.seenCounters.has(counter);
  }

  mark(counter) {
    this.seenCounters.add(counter);
    this.highest = Math.max(this.highest, counter);
    if (this.seenCounters.size > 2 * WINDOW)
      for (const old of this.seenCounters) if (old <= this.highest - WINDOW) this.seenCounters.delete(old);
  }
}

/** Frames that every member may read: sealed with a key of the group, so any member could have made them. */
class GroupSeal {
  counter = 0;
  salt = random(8);
  known = new Map();

  constructor(keys) {
    this.keys = keys;
    this.key = hash(this.salt, 32, keys.broadcast);
  }

  seal(data) {
    const header = concat(byte(BROADCAST), this.salt, number(++this.counter, 4));
    return concat(header, chacha20poly1305(this.key, number(this.counter, 12), header).encrypt(data));
  }

  /** The data of a frame, or the reason why it is dropped. */
  open(frame) {
    if (frame.length < 29) return "truncated";
    const salt = frame.subarray(1, 9);
    if (equal(salt, this.salt)) return "own";
    const name = hex(salt);
    const stream = this.known.get(name) ?? { key: hash(salt, 32, this.keys.broadcast), window: new ReplayWindow() };
    const counter = uint32(frame, 9);
    if (stream.window.seen(counter)) return "replayed";
    let data;
    try {
      data = chacha20poly1305(stream.key, number(counter, 12), frame.subarray(0, 13)).decrypt(frame.subarray(13));
    } catch {
      return this.known.has(name) ? "tampered" : "stranger";
    }
    stream.window.mark(counter);
    this.known.delete(name);
    this.known.set(name, stream);
    if (this.known.size > MOST_SALTS) this.known.delete(this.known.keys().next().value);
    return data;
  }
}

/**
 * All sessions of one member. `directory` has the introductions that were accepted; `events` has `onReady(peer,
 * boot, connection)`, `onAlive(peer)` and `onStranger(connection)`. Times are in milliseconds.
 */
export class Sessions {
  constructor(node, identity, directory, group, keys, boot, events) {
    this.node = node;
    this.identity = identity;
    this.id = memberId(identity.signing);
    this.directory = directory;
    this.group = utf8(group);
    this.keys = keys;
    this.boot = boot;
    this.events = events;
    this.seal = new GroupSeal(keys);
    this.peers = new Map();
    this.byIndex = new Map();
    this.dropped = {};
  }

  drop(reason) {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + 1;
  }

  peer(node) {
    if (!this.peers.has(node)) this.peers.set(node, { sessions: [], ephemerals: new Map(), boot: null });
    return this.peers.get(node);
  }

  /** The newest confirmed session with a peer, or undefined. */
  current(node) {
    const confirmed = this.peers.get(node)?.sessions.filter((session) => session.confirmed) ?? [];
    return confirmed.filter((session) => session.sending.counter < MOST_FRAMES).at(-1);
  }

  sendTo(node, data) {
    const session = this.current(node);
    if (session) this.sendIn(session, PAYLOAD, data);
    return Boolean(session);
  }

  sendIn(session, kind, data = new Uint8Array(0)) {
    const header = concat(byte(DATA), number(session.theirs, 4), number(session.sending.counter, 4));
    session.connection.send(concat(header, session.sending.encrypt(concat(byte(kind), data), header)));
  }

  ping(node) {
    const session = this.current(node);
    if (session) this.sendIn(session, PING);
  }

  /** Handle a frame. Returns `{sender, data}` (sender null: for everybody), or null. */
  frame(frame, connection, now) {
    const kind = frame[0];
    if (kind === DATA) return this.data(frame, connection, now);
    if (kind === BROADCAST) {
      const data = this.seal.open(frame);
      if (typeof data !== "string") return { sender: null, data };
      this.drop(data);
    } else if (!(kind in SIZES)) this.drop(frame.length ? "version" : "truncated");
    else if (frame.length !== SIZES[kind]) this.drop("truncated");
    else if (kind === MESSAGE_2) this.message2(frame, connection, now);
    else if (kind === COOKIE) this.cookie(frame);
    else this.message1(frame, connection, now);
    return null;
  }

  data(frame, connection, now) {
    const session = frame.length >= DATA_OVERHEAD ? this.byIndex.get(uint32(frame, 1)) : undefined;
    if (!session?.window) return this.drop(session || frame.length >= DATA_OVERHEAD ? "no_session" : "truncated"), null;
    const counter = uint32(frame, 5);
    if (session.window.seen(counter)) return this.drop("replayed"), null;
    const data = session.receiving.open(counter, frame.subarray(9), frame.subarray(0, 9));
    if (data === null) return this.drop("tampered"), null;
    session.window.mark(counter);
    session.used = now;
    this.peer(session.peer).pingAt = undefined;
    if (!session.confirmed) this.confirm(session);
    session.connection = connection; // a connection cannot be forged as an address can
    this.events.onAlive(session.peer);
    const rest = data.subarray(1);
    if (data[0] === PAYLOAD) return { sender: session.peer, data: rest };
    if (data[0] === PING) this.sendIn(session, PONG);
    else if (data[0] === CHALLENGE) this.sendIn(session, RESPONSE, rest);
    else if (data[0] !== PONG && data[0] !== RESPONSE) this.drop("kind");
    return null;
  }

  /** Begin a handshake with a member, unless there is a session since its last start. */
  meet(node, boot, connection, now) {
    const peer = this.peer(node);
    if (this.current(node)?.boot === boot || peer.attempt?.boot === boot) return;
    if (this.node < node) this.begin(node, boot, connection, now);
    else if (peer.start?.boot !== boot) peer.start = { at: now + SECOND_STARTS_AFTER, boot, connection };
  }

  begin(node, boot, connection, now) {
    const other = this.directory.find(node);
    if (!other) return;
    const otherId = memberId(other.signing);
    const handshake = this.handshake(true, this.prologue(this.id, otherId, boot), other);
    const index = this.newIndex();
    const noise = handshake.write1(this.boot);
    const head = concat(byte(MESSAGE_1), number(index, 4), this.mask(noise.subarray(0, 32), this.id.subarray(0, 4)));
    const frame = concat(head, this.mac(otherId, boot, concat(head, noise)), noise);
    const peer = this.peer(node);
    this.endAttempt(peer);
    const attempt = { peer: node, boot, index, connection, handshake, frame, began: now, wait: FIRST_RETRY };
    attempt.retryAt = now + FIRST_RETRY;
    peer.attempt = attempt;
    peer.start = undefined;
    this.byIndex.set(index, attempt);
    connection.send(frame);
  }

  message1(frame, connection, now) {
    const head = concat(byte(MESSAGE_1), frame.subarray(1, 9));
    const noise = frame.subarray(17, 73);
    if (!equal(frame.subarray(9, 17), this.mac(this.id, this.boot, concat(head, noise)))) return this.drop("stranger");
    const hint = this.mask(noise.subarray(0, 32), frame.subarray(5, 9));
    const candidates = this.directory.withHint(hint);
    const ephemeral = hex(noise.subarray(0, 32));
    for (const node of candidates) {
      const answered = this.peers.get(node)?.ephemerals.get(ephemeral);
      if (answered === undefined) continue;
      const session = this.byIndex.get(answered);
      if (session && !session.confirmed && session.connection === connection) connection.send(session.answer);
      else this.drop("replayed");
      return;
    }
    if (candidates.some((node) => this.answer(node, uint32(frame, 1), noise, connection, now))) return;
    this.drop(candidates.length ? "forged" : "unknown_member");
    if (!candidates.length) this.events.onStranger(connection);
  }

  /** Answer message 1 and return true if the member `node` wrote it. */
  answer(node, theirs, noise, connection, now) {
    const other = this.directory.find(node);
    if (!other || node === this.node) return false;
    const handshake = this.handshake(false, this.prologue(memberId(other.signing), this.id, this.boot), other);
    let boot;
    try {
      boot = handshake.read1(noise);
    } catch {
      return false;
    }
    const mine = this.newIndex();
    const answer = concat(byte(MESSAGE_2), number(theirs, 4), number(mine, 4), handshake.write2());
    const session = this.add(node, hex(boot), mine, theirs, connection, handshake.split(), now);
    session.answer = answer;
    const { ephemerals } = this.peer(node);
    ephemerals.set(hex(noise.subarray(0, 32)), mine);
    if (ephemerals.size > MOST_EPHEMERALS) ephemerals.delete(ephemerals.keys().next().value);
    connection.send(answer);
    return true;
  }

  message2(frame, connection, now) {
    const attempt = this.byIndex.get(uint32(frame, 1));
    if (!attempt?.handshake) return this.drop("no_session");
    try {
      attempt.handshake.read2(frame.slice(9));
    } catch {
      return this.drop("forged");
    }
    const peer = this.peer(attempt.peer);
    this.endAttempt(peer);
    const ciphers = attempt.handshake.split();
    const session = this.add(attempt.peer, attempt.boot, attempt.index, uint32(frame, 5), connection, ciphers, now);
    this.confirm(session);
    peer.pingWait = FIRST_RETRY;
    peer.pingAt = now + FIRST_RETRY;
    this.ping(attempt.peer);
  }

  /** Under a flood of handshakes a member demands a cookie: send message 1 again with it. */
  cookie(frame) {
    const attempt = this.byIndex.get(uint32(frame, 1));
    if (!attempt?.handshake || attempt.frame[0] === MESSAGE_1_COOKIE) return this.drop("no_session");
    const key = hash(frame.subarray(5, 21), 32, this.keys.cookie);
    try {
      const box = chacha20poly1305(key, new Uint8Array(12), attempt.frame.subarray(9, 17));
      attempt.frame = concat(byte(MESSAGE_1_COOKIE), attempt.frame.subarray(1), box.decrypt(frame.slice(21)));
    } catch {
      return this.drop("forged");
    }
    attempt.connection.send(attempt.frame);
  }

  add(peer, boot, mine, theirs, connection, [sending, receiving], now) {
    const session = { peer, boot, mine, theirs, connection, sending, receiving, began: now, used: now };
    session.window = new ReplayWindow();
    session.confirmed = false;
    const { sessions } = this.peer(peer);
    sessions.push(session);
    this.byIndex.set(mine, session);
    if (sessions.length > MOST_SESSIONS) this.end(sessions.find((each) => !each.confirmed && each !== session) ?? sessions[0]);
    return session;
  }

  /** Confirm a session: the peer has proven that it holds the key. Sessions with its earlier starts end. */
  confirm(session) {
    const peer = this.peer(session.peer);
    session.confirmed = true;
    peer.start = undefined;
    peer.sessions = [...peer.sessions.filter((each) => each !== session), session];
    if (peer.boot === session.boot) return;
    for (const other of peer.sessions.filter((each) => each.boot !== session.boot)) this.end(other);
    peer.boot = session.boot;
    this.events.onReady(session.peer, session.boot, session.connection);
  }

  end(session) {
    const peer = this.peer(session.peer);
    peer.sessions = peer.sessions.filter((each) => each !== session);
    this.byIndex.delete(session.mine);
  }

  endAttempt(peer) {
    if (peer.attempt) this.byIndex.delete(peer.attempt.index);
    peer.attempt = undefined;
  }

  /** A connection has closed: what was under way on it does not go on. */
  disconnected(connection) {
    for (const peer of this.peers.values()) {
      if (peer.attempt?.connection === connection) this.endAttempt(peer);
      if (peer.start?.connection === connection) peer.start = undefined;
    }
  }

  /** Repeat unanswered frames and renew old sessions. Call it about every 50 ms. */
  tick(now) {
    for (const [node, peer] of this.peers) {
      const { attempt, start } = peer;
      if (attempt && now >= attempt.retryAt) {
        if (now - attempt.began > GIVE_UP) this.endAttempt(peer);
        else {
          attempt.wait = Math.min(2 * attempt.wait, LAST_RETRY);
          attempt.retryAt = now + attempt.wait;
          attempt.connection.send(attempt.frame);
        }
      }
      if (start && now >= start.at) this.begin(node, start.boot, start.connection, now);
      if (now >= peer.pingAt) {
        peer.pingWait = Math.min(2 * peer.pingWait, LAST_RETRY);
        peer.pingAt = now + peer.pingWait;
        this.ping(node);
      }
      const session = this.current(node);
      const isOld = session && (now - session.began > REKEY || session.sending.counter > REKEY_FRAMES);
      if (isOld && !peer.attempt && now - session.used < GIVE_UP)
        this.begin(node, session.boot, session.connection, now);
    }
  }

  newIndex() {
    for (;;) {
      const index = uint32(random(4), 0);
      if (!this.byIndex.has(index)) return index;
    }
  }

  handshake(initiator, prologue, other) {
    const { linkSecret, link } = this.identity;
    return new Handshake({ initiator, prologue, secret: linkSecret, own: link, remote: other.link, psk: this.keys.psk });
  }

  /** `boot` is eight bytes, or the same in hexadecimal. */
  prologue(initiator, responder, boot) {
    return concat(utf8("precede"), byte(WIRE_VERSION), initiator, responder, bootBytes(boot), this.group);
  }

  mask(ephemeral, hint) {
    const mask = hash(ephemeral, 4, this.keys.hint);
    return hint.map((value, place) => value ^ mask[place]);
  }

  mac(receiver, boot, data) {
    return hash(concat(receiver, bootBytes(boot), data), 8, this.keys.mac);
  }
}

const bootBytes = (boot) => (typeof boot === "string" ? number(BigInt("0x" + boot), 8) : boot);
