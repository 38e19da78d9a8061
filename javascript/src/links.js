// Links: from connections and frames to neighbours and packets. Beacons, introductions, channels.

import { byte, concat, hex, number, random, uint16, uint32, uint64 } from "./bytes.js";
import { Channel, Fragments, HEADER } from "./channel.js";
import { hash, Identity, isGenuine, memberId, nodeId } from "./keys.js";
import { decode, encode } from "./msgpack.js";
import { DATA_OVERHEAD, Sessions, WIRE_VERSION } from "./sessions.js";

const [BEACON, LOOSE] = [0, 1];
const [PACKET, INTRODUCTIONS, INTRODUCE_YOURSELF, TERMS, BUNDLE] = [0, 1, 2, 3, 4];
const LARGEST = 16_000;
const ROOM = LARGEST - DATA_OVERHEAD - HEADER - 8;
const QUIET_BEACONS = 4;
const UNPROVEN_BEACONS = 8;
const PING_AFTER = 5;
const MOST_MEMBERS = 4096;
const MOST_TOLD = 5;

/** The accepted introductions by node id. With a roster (names to public keys) only its keys are accepted. */
class Directory {
  constructor(group, own, roster) {
    this.group = group;
    this.roster = roster;
    this.members = new Map();
    this.digest = 0n;
    this.own = own;
    this.add(nodeId(own.name), own);
  }

  find(node) {
    return this.members.get(node);
  }

  withHint(hint) {
    const wanted = hex(hint);
    return [...this.members].filter(([, each]) => hex(memberId(each.signing).subarray(0, 4)) === wanted).map(([node]) => node);
  }

  /** Returns the member's node id, or null if the introduction is refused. */
  accept(introduction) {
    const node = nodeId(introduction.name);
    const known = this.members.get(node);
    const same = known && hex(encodeIntroduction(known)) === hex(encodeIntroduction(introduction));
    if (same) return node;
    const expected = this.roster ? this.roster.get(introduction.name) : Identity.shared(this.group, introduction.name).signing;
    if (!expected || hex(expected) !== hex(introduction.signing)) return null;
    if (known ? known.name !== introduction.name || known.version === introduction.version : this.members.size >= MOST_MEMBERS)
      return null;
    if (!isGenuine(this.group, introduction)) return null;
    if (!known || known.version < introduction.version) this.add(node, introduction);
    return node;
  }

  add(node, introduction) {
    for (const each of [this.members.get(node), introduction]) if (each) this.digest ^= digestOf(each);
    this.members.set(node, introduction);
  }
}

const asArray = ({ name, signing, link, version, signature }) => [name, signing, link, version, signature];
const encodeIntroduction = (introduction) => encode(asArray(introduction));
const digestOf = (introduction) => BigInt("0x" + hex(hash(encodeIntroduction(introduction), 8)));

function readIntroductions(data) {
  const list = decode(data);
  if (!Array.isArray(list) || list.length > 64) throw new TypeError("no introductions");
  return list.map((item) => {
    const [name, signing, link, version, signature] = item;
    const isWell = typeof name === "string" && Number.isSafeInteger(version) && version >= 0;
    if (!isWell || ![signing, link, signature].every((each) => each instanceof Uint8Array)) throw new TypeError("introduction");
    return { name, signing, link, version, signature };
  });
}

/**
 * The neighbours of one member. `events`: `onPacket(data, sender, toAll)`, `onUp(node)`, `onDown(node)`,
 * `onWarning(text)`. Connections come and go through `connected`, `disconnected` and `frame`.
 */
export class Links {
  constructor({ group, name, identity, keys, roster, terms, events, beacon }) {
    this.name = name;
    this.node = nodeId(name);
    this.terms = terms;
    this.termsDigest = hash(encode(terms), 4);
    this.events = events;
    this.beacon = beacon;
    this.boot = random(8);
    this.boot[0] &= 0x7f;
    this.directory = new Directory(group, identity.introduce(group, name), roster);
    this.sessions = new Sessions(this.node, identity, this.directory, group, keys, this.boot, {
      onReady: (node, boot, connection) => this.onReady(node, boot, connection),
      onAlive: (node) => this.onAlive(node),
      onStranger: (connection) => this.introduce(connection, INTRODUCE_YOURSELF),
    });
    this.fragments = new Fragments();
    this.connections = new Set();
    this.near = new Map();
    this.stopped = false;
    this.ready = new Map();
    this.heard = new Map();
    this.told = new Map();
    this.channelNumber = uint32(concat(byte(0), random(3)), 0) + 1;
    this.timers = [setInterval(() => this.tick(), beacon), setInterval(() => this.sessions.tick(Date.now()), 50)];
  }

  /** Send nothing more, and ignore what connections bring until they are closed. */
  stop() {
    this.stopped = true;
    this.timers.forEach(clearInterval);
    for (const { channel } of this.near.values()) channel.close();
    this.near.clear();
  }

  // -- connections ---------------------------------------------------------------------------------------

  connected(connection) {
    this.connections.add(connection);
    this.sendBeacon(connection);
  }

  disconnected(connection) {
    this.connections.delete(connection);
    this.sessions.disconnected(connection);
    for (const [node, near] of [...this.near]) if (near.connection === connection) this.forget(node);
  }

  frame(frame, connection) {
    if (this.stopped) return;
    const arrived = this.sessions.frame(frame, connection, Date.now());
    if (!arrived || !arrived.data.length) return;
    if (arrived.sender === null) this.forEverybody(arrived.data, connection);
    else if (this.near.has(arrived.sender)) this.channelFrame(arrived.sender, arrived.data);
    else this.sessions.drop("no_link");
  }

  // -- out -----------------------------------------------------------------------------------------------

  /** Send a packet to one neighbour; it arrives once and in order while the link is up. */
  send(node, packet) {
    this.near.get(node)?.channel.send(this.fragments.cut(concat(byte(PACKET), packet), ROOM));
  }

  /** Send a packet once to all neighbours. It may be lost. */
  sendToAll(packet) {
    const neighbours = new Set([...this.near.values()].map((near) => near.connection));
    for (const piece of this.fragments.cut(concat(byte(PACKET), packet), ROOM))
      for (const connection of neighbours) this.sendLoose(piece, connection);
  }

  sendLoose(piece, connection) {
    connection.send(this.sessions.seal.seal(concat(byte(LOOSE), number(this.node, 8), piece)));
  }

  introduce(connection, kind) {
    const data = concat(byte(kind), encode([asArray(this.directory.own)]));
    for (const piece of this.fragments.cut(data, ROOM)) this.sendLoose(piece, connection);
  }

  sendBeacon(connection) {
    const clock = number(Math.floor(Date.now() / 1000) % 2 ** 32, 4);
    const known = number(this.directory.digest, 8);
    const data = concat(byte(BEACON), number(this.node, 8), this.boot, byte(WIRE_VERSION), known, this.termsDigest, clock);
    connection.send(this.sessions.seal.seal(data));
  }

  tick() {
    for (const connection of this.connections) this.sendBeacon(connection);
    for (const [node, near] of [...this.near]) {
      near.silent++;
      near.unproven++;
      if (near.silent > QUIET_BEACONS || near.unproven > UNPROVEN_BEACONS) this.forget(node);
      else if (near.unproven >= PING_AFTER) this.sessions.ping(node);
    }
  }

  // -- in ------------------------------------------------------------------------------------------------

  forEverybody(data, connection) {
    if (data[0] === BEACON) this.beaconHeard(data.subarray(1), connection);
    else if (data[0] === LOOSE && data.length > 9) this.join(data.subarray(9), uint64(data, 1), connection);
    else this.sessions.drop("kind");
  }

  beaconHeard(data, connection) {
    if (data.length > 16 && data[16] !== WIRE_VERSION)
      return this.events.onWarning(`a member speaks version ${data[16]} of the wire format, this one version ${WIRE_VERSION}`);
    if (data.length !== 33) return this.sessions.drop("truncated");
    const node = uint64(data, 0);
    const boot = hex(data.subarray(8, 16));
    if (node === this.node) {
      if (boot !== hex(this.boot)) this.events.onWarning("another process runs under the name of this member");
      return;
    }
    if (this.heard.size < MOST_MEMBERS || this.heard.has(node)) this.heard.set(node, { boot, connection });
    if (!this.directory.find(node)) return this.introduce(connection, INTRODUCE_YOURSELF);
    if (hex(data.subarray(25, 29)) !== hex(this.termsDigest)) this.tellTerms(node, connection);
    const session = this.sessions.current(node);
    if (session?.boot !== boot) this.sessions.meet(node, boot, connection, Date.now());
    else if (this.near.has(node)) this.near.get(node).silent = 0;
    else this.sessions.ping(node); // its answer proves that it is there
  }

  tellTerms(node, connection) {
    const times = this.told.get(node) ?? 0;
    if (times >= MOST_TOLD) return;
    this.told.set(node, times + 1);
    const data = concat(byte(TERMS), encode([this.name, this.terms]));
    for (const piece of this.fragments.cut(data, ROOM)) this.sendLoose(piece, connection);
  }

  channelFrame(node, data) {
    if (data.length < HEADER) return this.sessions.drop("truncated");
    const [theirs, mine, count, ack] = [0, 4, 8, 12].map((at) => uint32(data, at));
    let { channel, boot, connection } = this.near.get(node);
    if (theirs < channel.theirs) return; // late, from an earlier channel of this link
    if (theirs > channel.theirs) {
      if (channel.confirmed) {
        this.forget(node);
        channel = this.meet(node, boot, connection);
      }
      channel.beginAgain(theirs);
      if (count === 0) channel.acknowledge();
    }
    channel.confirmed ||= mine === channel.session;
    for (const piece of channel.accept(count, mine === channel.session ? ack : 0, data.subarray(HEADER)))
      this.join(piece, node, null);
  }

  /** Add a piece and handle its packet once complete. `connection` is null for a piece from a session. */
  join(piece, sender, connection) {
    const whole = this.fragments.join(piece, connection && !this.near.has(sender) ? -1 : sender);
    if (!whole?.length) return;
    const rest = whole.subarray(1);
    if (whole[0] === PACKET || whole[0] === BUNDLE) {
      if (!this.near.has(sender)) return this.sessions.drop("no_link");
      for (const packet of whole[0] === PACKET ? [rest] : bundled(rest)) this.events.onPacket(packet, sender, connection !== null);
    } else if (whole[0] === INTRODUCTIONS || whole[0] === INTRODUCE_YOURSELF) {
      this.introduced(rest);
      if (whole[0] === INTRODUCE_YOURSELF && connection) this.introduce(connection, INTRODUCTIONS);
    } else if (whole[0] === TERMS) this.termsHeard(rest);
    else this.sessions.drop("kind");
  }

  introduced(data) {
    let introductions;
    try {
      introductions = readIntroductions(data);
    } catch {
      return this.sessions.drop("introduction");
    }
    for (const introduction of introductions) {
      const node = this.directory.accept(introduction);
      const heard = this.heard.get(node);
      if (node === null) this.sessions.drop("introduction_refused");
      else if (heard) this.sessions.meet(node, heard.boot, heard.connection, Date.now());
    }
  }

  termsHeard(data) {
    try {
      const [name, theirs] = decode(data);
      for (const [term, value] of Object.entries(this.terms))
        if (theirs.get(term) !== value)
          this.events.onWarning(`${String(name).slice(0, 60)} has ${term} ${String(theirs.get(term)).slice(0, 60)}, this member ${value}`);
    } catch {
      this.sessions.drop("encoding");
    }
  }

  // -- neighbours ----------------------------------------------------------------------------------------

  onReady(node, boot, connection) {
    this.ready.set(node, boot);
    if (this.near.has(node)) this.forget(node);
    this.meet(node, boot, connection);
  }

  onAlive(node) {
    const near = this.near.get(node);
    if (near) near.silent = near.unproven = 0;
    else if (this.ready.has(node)) this.meet(node, this.ready.get(node), this.sessions.current(node).connection);
  }

  meet(node, boot, connection) {
    const channel = new Channel(++this.channelNumber, (data) => this.sessions.sendTo(node, data));
    this.near.set(node, { boot, connection, channel, silent: 0, unproven: 0 });
    channel.acknowledge();
    this.events.onUp(node);
    return channel;
  }

  forget(node) {
    this.near.get(node).channel.close();
    this.near.delete(node);
    this.fragments.forgetSender(node);
    this.events.onDown(node);
  }
}

/** Several packets, each after its length in two bytes. */
function bundled(data) {
  const packets = [];
  let at = 0;
  while (at + 2 <= data.length && packets.length < 128) {
    const end = at + 2 + uint16(data, at);
    if (end > data.length) return [];
    packets.push(data.slice(at + 2, end));
    at = end;
  }
  return packets;
}
