// MessagePack, as far as the wire uses it: nil, booleans, whole numbers, texts, bytes, arrays, maps.

import { concat, text, utf8 } from "./bytes.js";

const DEEPEST = 32;

/** The bytes are not what the wire format allows; `reason` is one word, for counters. */
export class Garbled extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

/** Encode a value in the shortest form, as every member must: signatures cover these bytes. */
export function encode(value) {
  const parts = [];
  put(value, parts);
  return concat(...parts);
}

function put(value, parts) {
  if (value === null || value === undefined) parts.push(Uint8Array.of(0xc0));
  else if (typeof value === "boolean") parts.push(Uint8Array.of(value ? 0xc3 : 0xc2));
  else if (typeof value === "number" || typeof value === "bigint") putWhole(value, parts);
  else if (typeof value === "string") {
    const bytes = utf8(value);
    putHead(bytes.length, [[31, 0xa0], [0xff, 0xd9], [0xffff, 0xda], [0xffffffff, 0xdb]], parts);
    parts.push(bytes);
  } else if (value instanceof Uint8Array) {
    putHead(value.length, [[0xff, 0xc4], [0xffff, 0xc5], [0xffffffff, 0xc6]], parts);
    parts.push(value);
  } else if (Array.isArray(value)) {
    putHead(value.length, [[15, 0x90], [0xffff, 0xdc], [0xffffffff, 0xdd]], parts);
    for (const item of value) put(item, parts);
  } else {
    const entries = value instanceof Map ? [...value] : Object.entries(value);
    putHead(entries.length, [[15, 0x80], [0xffff, 0xde], [0xffffffff, 0xdf]], parts);
    for (const [key, item] of entries) {
      put(key, parts);
      put(item, parts);
    }
  }
}

function putHead(length, forms, parts) {
  const [most, code] = forms.find(([most]) => length <= most);
  if (most < 32) parts.push(Uint8Array.of(code | length));
  else putNumber(code, length, most === 0xff ? 1 : most === 0xffff ? 2 : 4, parts);
}

function putNumber(code, value, size, parts) {
  const bytes = new Uint8Array(1 + size);
  bytes[0] = code;
  let rest = BigInt.asUintN(64, BigInt(value));
  for (let at = size; at > 0; at--) {
    bytes[at] = Number(rest & 255n);
    rest >>= 8n;
  }
  parts.push(bytes);
}

function putWhole(value, parts) {
  if (typeof value === "number" && !Number.isSafeInteger(value)) throw new TypeError(`${value} is not a whole number`);
  if (value >= 0) {
    if (value < 128) parts.push(Uint8Array.of(Number(value)));
    else if (value <= 0xff) putNumber(0xcc, value, 1, parts);
    else if (value <= 0xffff) putNumber(0xcd, value, 2, parts);
    else if (value <= 0xffffffff) putNumber(0xce, value, 4, parts);
    else putNumber(0xcf, value, 8, parts);
  } else if (value >= -32) parts.push(Uint8Array.of(256 + Number(value)));
  else if (value >= -0x80) putNumber(0xd0, value, 1, parts);
  else if (value >= -0x8000) putNumber(0xd1, value, 2, parts);
  else if (value >= -0x80000000) putNumber(0xd2, value, 4, parts);
  else putNumber(0xd3, value, 8, parts);
}

/** Decode exactly one value. Throws Garbled. */
export function decode(bytes) {
  const values = decodeAll(bytes);
  if (values.length !== 1) throw new Garbled("encoding");
  return values[0];
}

/** Decode all values that follow each other. Numbers beyond 2^53 are BigInts. Throws Garbled. */
export function decodeAll(bytes) {
  const reader = new Reader(bytes);
  const values = [];
  while (reader.at < bytes.length) values.push(reader.value(0));
  return values;
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = 0;
  }

  skip(size) {
    const begin = this.at;
    if (begin + size > this.bytes.length) throw new Garbled("encoding");
    this.at += size;
    return begin;
  }

  value(depth) {
    if (depth > DEEPEST) throw new Garbled("encoding");
    const code = this.bytes[this.skip(1)];
    if (code < 0x80) return code;
    if (code < 0x90) return this.map(code & 15, depth);
    if (code < 0xa0) return this.array(code & 15, depth);
    if (code < 0xc0) return this.text(code & 31);
    if (code >= 0xe0) return code - 256;
    switch (code) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: return this.binary(this.view.getUint8(this.skip(1)));
      case 0xc5: return this.binary(this.view.getUint16(this.skip(2)));
      case 0xc6: return this.binary(this.view.getUint32(this.skip(4)));
      case 0xcc: return this.view.getUint8(this.skip(1));
      case 0xcd: return this.view.getUint16(this.skip(2));
      case 0xce: return this.view.getUint32(this.skip(4));
      case 0xcf: return small(this.view.getBigUint64(this.skip(8)));
      case 0xd0: return this.view.getInt8(this.skip(1));
      case 0xd1: return this.view.getInt16(this.skip(2));
      case 0xd2: return this.view.getInt32(this.skip(4));
      case 0xd3: return small(this.view.getBigInt64(this.skip(8)));
      case 0xd9: return this.text(this.view.getUint8(this.skip(1)));
      case 0xda: return this.text(this.view.getUint16(this.skip(2)));
      case 0xdb: return this.text(this.view.getUint32(this.skip(4)));
      case 0xdc: return this.array(this.view.getUint16(this.skip(2)), depth);
      case 0xdd: return this.array(this.view.getUint32(this.skip(4)), depth);
      case 0xde: return this.map(this.view.getUint16(this.skip(2)), depth);
      case 0xdf: return this.map(this.view.getUint32(this.skip(4)), depth);
      default: throw new Garbled("encoding"); // floating point and extensions: no field has them
    }
  }

  binary(size) {
    const begin = this.skip(size);
    return this.bytes.slice(begin, begin + size);
  }

  text(size) {
    const begin = this.skip(size);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(this.bytes.subarray(begin, begin + size));
    } catch {
      throw new Garbled("encoding");
    }
  }

  array(size, depth) {
    if (size > this.bytes.length - this.at) throw new Garbled("encoding"); // each item has a byte at least
    return Array.from({ length: size }, () => this.value(depth + 1));
  }

  map(size, depth) {
    if (2 * size > this.bytes.length - this.at) throw new Garbled("encoding");
    const map = new Map();
    for (let count = 0; count < size; count++) map.set(this.value(depth + 1), this.value(depth + 1));
    return map;
  }
}

const small = (value) =>
  value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(value) : value;
