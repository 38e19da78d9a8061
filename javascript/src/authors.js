// Signatures: each author signs its messages, and every member checks them, through any number of relays.

import { concat, random, utf8 } from "./bytes.js";
import { hash, isSigned } from "./keys.js";
import { encode } from "./msgpack.js";

const PURPOSE = utf8("precede message 2");
const NOTHING = new Uint8Array(0);
const SIGNATURE = 64;
const NONCE = 4;
const LINK = 16;

/** What a signature covers of an envelope: the hash of payload, deadline and order data. */
const bodyOf = ([[, payload], stamp, deadline, destinations, , , born]) =>
  hash(encode([payload, deadline, [stamp, destinations, born]]), 32);

const signedBytes = (group, id, nonce, previous, body) =>
  encode([PURPOSE, group, id, nonce, previous, body, NOTHING]);

/**
 * Signs this member's messages and checks those of others. `roster` maps node ids to public keys. `chain` is what
 * was saved before a restart: `{nonce, incarnation, link}`; an author must never sign two messages with one id.
 */
export class Authors {
  constructor(group, identity, roster, chain) {
    this.group = group;
    this.identity = identity;
    this.roster = roster;
    this.nonce = chain?.nonce ?? random(NONCE);
    this.incarnation = chain?.incarnation ?? -1;
    this.link = chain?.link ?? NOTHING;
  }

  /** Put nonce, link and signature into an own message; afterwards `chain` must be saved with it. */
  sign(envelope) {
    const [id] = envelope[0];
    const previous = id[1] === this.incarnation ? this.link : NOTHING;
    const body = bodyOf(envelope);
    const signature = this.identity.sign(signedBytes(this.group, id, this.nonce, previous, body));
    envelope[0][2] = concat(signature, this.nonce, previous);
    this.incarnation = id[1];
    this.link = hash(encode([id, this.nonce, previous, body]), LINK);
  }

  get chain() {
    return { nonce: this.nonce, incarnation: this.incarnation, link: this.link };
  }

  /** Why a message is not accepted (`unsigned`, `unknown_author`, `forged`), or null. */
  check(envelope) {
    const [id, , carried] = envelope[0];
    if (carried.length === 0) return "unsigned";
    const key = this.roster.get(id[0]);
    if (!key) return "unknown_author";
    const rest = carried.length - SIGNATURE;
    if (rest !== NONCE && rest !== NONCE + LINK) return "forged";
    const nonce = carried.slice(SIGNATURE, SIGNATURE + NONCE);
    const previous = carried.slice(SIGNATURE + NONCE);
    const content = signedBytes(this.group, id, nonce, previous, bodyOf(envelope));
    return isSigned(key, carried.slice(0, SIGNATURE), content) ? null : "forged";
  }
}
