// Packets of an ordering over `gossip` (and, for the test vectors, over `epidemic`): bytes to values and back.

import { concat } from "./bytes.js";
import { decodeAll, encode, Garbled } from "./msgpack.js";

const VERSION = 1;
const LARGEST = 1 << 20;
const MOST_MESSAGES = 128;
const MOST_RANGES = 2048;

const whole = (least, most) => (value) =>
  typeof value === "number" && value >= least && value <= most ? null : wrongNumber(value);
const wrongNumber = (value) => (typeof value === "number" || typeof value === "bigint" ? "absurd" : "types");
const nodeId = whole(0, 2 ** 48 - 1);
const incarnation = whole(0, 2 ** 15 - 1);
const messageNumber = whole(1, 2 ** 40);
const count = whole(0, 2 ** 40);
const size = whole(0, 2 ** 28);
const partSize = whole(0, 2 ** 20);
const instant = whole(-(2 ** 53), 2 ** 53);
const bytes = (value) => (value instanceof Uint8Array ? null : "types");
const flag = (value) => (typeof value === "boolean" ? null : "types");
const hash63 = (value) =>
  typeof value === "bigint" || typeof value === "number" ? (value >= 0 && value < 2n ** 63n ? null : "absurd") : "types";
const optional = (check) => (value) => (value === null ? null : check(value));
const list = (check, most = Infinity) => (value) => {
  if (!Array.isArray(value) || value.length > most) return "types";
  for (const item of value) {
    const reason = check(item);
    if (reason) return reason;
  }
  return null;
};
const tuple = (...checks) => (value) => {
  if (!Array.isArray(value) || value.length !== checks.length) return "types";
  for (let place = 0; place < checks.length; place++) {
    const reason = checks[place](value[place]);
    if (reason) return reason;
  }
  return null;
};
const stream = (value) => (Array.isArray(value) ? tuple(nodeId, nodeId)(value) : nodeId(value));

const id = tuple(nodeId, incarnation, messageNumber);
const message = tuple(id, bytes, bytes);
const barrier = list(tuple(stream, messageNumber));
const envelope = tuple(message, barrier, optional(instant), optional(list(nodeId)), partSize, partSize, instant);
const ranges = list(whole(-(2 ** 62), 2 ** 62));
const streams = list(tuple(nodeId, incarnation, ranges), MOST_RANGES);
const neighbours = optional(list(nodeId));

const KINDS = {
  gossip: [
    ["data", { envelopes: list(envelope, MOST_MESSAGES), listVersion: count, neighbours, firstDeadline: optional(instant), size, controlBytes: size, controlEntries: size }],
    ["digest", { hash: hash63, full: flag, streams, listVersion: count, neighbours }],
    ["want", { wants: list(tuple(nodeId, nodeId, incarnation, ranges)) }],
  ],
  epidemic: [
    ["summary", { ids: list(id) }],
    ["have", { ids: list(id) }],
    ["messages", { envelopes: list(envelope, MOST_MESSAGES), firstDeadline: optional(instant), size, controlBytes: size, controlEntries: size }],
  ],
};

/** Encode a packet, an object with `kind` and the fields of that kind. */
export function encodePacket(packet, dissemination = "gossip") {
  const number = KINDS[dissemination].findIndex(([kind]) => kind === packet.kind);
  const fields = Object.keys(KINDS[dissemination][number][1]).map((field) => encode(packet[field]));
  return concat(Uint8Array.of(VERSION, number), ...fields);
}

/** Decode a packet and check every field. Throws Garbled with the reason. */
export function decodePacket(data, dissemination = "gossip") {
  if (data.length > LARGEST) throw new Garbled("oversize");
  if (data.length < 2) throw new Garbled("truncated");
  if (data[0] !== VERSION) throw new Garbled("version");
  const found = KINDS[dissemination][data[1]];
  if (!found) throw new Garbled("kind");
  const [kind, fields] = found;
  const values = decodeAll(data.subarray(2));
  const names = Object.keys(fields);
  if (values.length !== names.length) throw new Garbled(values.length > names.length ? "encoding" : "types");
  const packet = { kind };
  names.forEach((name, place) => {
    const reason = fields[name](values[place]);
    if (reason) throw new Garbled(reason);
    packet[name] = values[place];
  });
  return packet;
}

/** An envelope as it is on the wire, with names: `[message, stamp, deadline, destinations, bytes, entries, born]`. */
export const messageOf = (envelope) => envelope[0];
export const idOf = (envelope) => envelope[0][0];
export const stampOf = (envelope) => envelope[1];

/** First and last number of each range, ascending and apart. A packet of a malicious node can hold any numbers. */
export function areRanges(flat) {
  let last = -1;
  for (let place = 0; place + 1 < flat.length; place += 2) {
    if (flat[place] <= Math.max(last + 1, 0) || flat[place + 1] < flat[place]) return false;
    last = flat[place + 1];
  }
  return flat.length % 2 === 0;
}
