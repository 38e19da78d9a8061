// Keys: those of the group, those of a member, signatures, and the numbers that stand for names.

import { ed25519, x25519 } from "@noble/curves/ed25519.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { blake2b } from "@noble/hashes/blake2.js";
import { concat, equal, hex, number, utf8 } from "./bytes.js";
import { encode } from "./msgpack.js";

export const hash = (data, size, key) => blake2b(data, key ? { dkLen: size, key } : { dkLen: size });

/** The five keys of a group, derived from its shared secret and its name. */
export function groupKeys(secret, group) {
  const key = hash(utf8("precede group" + group), 32, secret);
  const names = ["psk", "mac", "broadcast", "hint", "cookie"];
  return Object.fromEntries(names.map((name) => [name, hash(utf8(name), 32, key)]));
}

/** The node id of a name: the first 47 bits of its hash. */
export function nodeId(name) {
  return Math.floor(hash(utf8(name), 6).reduce((value, next) => value * 256 + next, 0) / 2);
}

export const memberId = (signing) => hash(signing, 16);

/** A member's keys, derived from its secret of 32 bytes. `version` ascends when the link key is replaced. */
export class Identity {
  constructor(secret, version = 0) {
    this.secret = secret;
    this.signing = ed25519.getPublicKey(secret);
    this.version = version;
    this.linkSecret = blake2b(number(version, 8), { dkLen: 32, key: secret, personalization: utf8("precede link key") });
    this.link = x25519.getPublicKey(this.linkSecret);
  }

  /** The identity of a member in a group without a roster. Everybody can derive it: it proves nothing. */
  static shared(group, name) {
    return new Identity(hash(utf8(name), 32, hash(utf8(group), 64)));
  }

  sign(content) {
    return ed25519.sign(content, this.secret);
  }

  introduce(group, name) {
    const signature = this.sign(introductionContent(group, name, this.signing, this.link, this.version));
    return { name, signing: this.signing, link: this.link, version: this.version, signature };
  }
}

/** Is an introduction well-formed, and signed for this group with the key that it names? */
export function isGenuine(group, { name, signing, link, version, signature }) {
  const size = utf8(name).length;
  if (link.length !== 32 || size === 0 || size > 64) return false;
  return isSigned(signing, signature, introductionContent(group, name, signing, link, version));
}

const introductionContent = (group, name, signing, link, version) =>
  encode([utf8("precede introduction 1"), group, name, signing, link, version]);

const ORDER = ed25519.Point.Fn.ORDER;
const littleEndian = (bytes) => bytes.reduceRight((value, next) => value * 256n + BigInt(next), 0n);

/** Points of public keys with tables for their multiples, which make a check three times as fast. */
const points = new Map();
const MOST_POINTS = 64;

/** The point of a public key. Throws if it is not on the curve, not canonical, or of small order. */
function pointOf(publicKey) {
  const name = hex(publicKey);
  if (!points.has(name)) {
    const point = ed25519.Point.fromBytes(publicKey);
    if (point.isSmallOrder()) throw new Error("a key of small order");
    if (points.size >= MOST_POINTS) points.delete(points.keys().next().value);
    points.set(name, point.precompute(6));
  }
  return points.get(name);
}

/**
 * Check a signature by the rule that all members share (docs/decisions/0032): no cofactor; the scalar below the
 * group order; key and R canonical and not of small order. Libraries differ in what else they accept.
 */
export function isSigned(publicKey, signature, content) {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const scalar = littleEndian(signature.subarray(32));
  if (scalar >= ORDER) return false;
  try {
    const key = pointOf(publicKey);
    if (ed25519.Point.fromBytes(signature.subarray(0, 32)).isSmallOrder()) return false;
    const challenge = littleEndian(sha512(concat(signature.subarray(0, 32), publicKey, content))) % ORDER;
    const expected = ed25519.Point.BASE.multiplyUnsafe(scalar).subtract(key.multiplyUnsafe(challenge));
    return equal(expected.toBytes(), signature.subarray(0, 32));
  } catch {
    return false; // a point that is not on the curve, or not canonical
  }
}
