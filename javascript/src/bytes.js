// Bytes: numbers in big-endian order, hexadecimal text, comparison.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const utf8 = (text) => encoder.encode(text);
export const text = (bytes) => decoder.decode(bytes);

export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const byte = (value) => Uint8Array.of(value);

/** A whole number (up to 2^53, or a BigInt) in `size` bytes, big-endian. */
export function number(value, size) {
  const bytes = new Uint8Array(size);
  let rest = BigInt(value);
  for (let at = size - 1; at >= 0; at--) {
    bytes[at] = Number(rest & 255n);
    rest >>= 8n;
  }
  return bytes;
}

export const uint16 = (bytes, at) => (bytes[at] << 8) | bytes[at + 1];
export const uint32 = (bytes, at) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);

/** Eight bytes as a Number; values above 2^53 lose their lowest bits, and no node id is so large. */
export const uint64 = (bytes, at) => Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(at));

export const hex = (bytes) => Array.from(bytes, (value) => value.toString(16).padStart(2, "0")).join("");

export function unhex(digits) {
  if (digits.length % 2 || !/^[0-9a-f]*$/i.test(digits)) throw new TypeError(`not hexadecimal: ${digits.slice(0, 20)}`);
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function equal(left, right) {
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let at = 0; at < left.length; at++) difference |= left[at] ^ right[at];
  return difference === 0;
}

export const random = (size) => globalThis.crypto.getRandomValues(new Uint8Array(size));

/** A secret or key that the caller gives as bytes or as hexadecimal text, of exactly `size` bytes. */
export function secret(value, size, what) {
  const bytes = typeof value === "string" ? unhex(value.trim()) : value;
  if (!(bytes instanceof Uint8Array) || bytes.length !== size)
    throw new TypeError(`${what}: expected ${size} bytes, or ${2 * size} hexadecimal digits`);
  return bytes;
}
