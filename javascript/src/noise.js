// The Noise handshake KKpsk0_25519_ChaChaPoly_BLAKE2s (revision 34 of the framework).

import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { x25519 } from "@noble/curves/ed25519.js";
import { blake2s } from "@noble/hashes/blake2.js";
import { hmac } from "@noble/hashes/hmac.js";
import { concat, utf8 } from "./bytes.js";

const NAME = utf8("Noise_KKpsk0_25519_ChaChaPoly_BLAKE2s");
const NOTHING = new Uint8Array(0);

/** One direction of a session: a key, and a counter for nonces. */
export class Cipher {
  constructor(key) {
    this.key = key;
    this.counter = 0;
  }

  encrypt(data, header) {
    return chacha20poly1305(this.key, nonce(this.counter++), header).encrypt(data);
  }

  /** Open a message by its counter; null if it is not authentic. */
  open(counter, sealed, header) {
    try {
      return chacha20poly1305(this.key, nonce(counter), header).decrypt(sealed);
    } catch {
      return null;
    }
  }
}

function nonce(counter) {
  const bytes = new Uint8Array(12);
  new DataView(bytes.buffer).setBigUint64(4, BigInt(counter), true);
  return bytes;
}

/**
 * One side of the handshake. The initiator calls `write1` and `read2`, the responder `read1` and `write2`; then
 * both call `split`. `ephemeral` is a secret key, drawn anew for every handshake.
 */
export class Handshake {
  constructor({ initiator, prologue, secret, own, remote, psk, ephemeral = x25519.utils.randomSecretKey() }) {
    this.initiator = initiator;
    this.secret = secret;
    this.remote = remote;
    this.psk = psk;
    this.ephemeral = ephemeral;
    this.hash = blake2s(NAME); // the name is longer than a hash
    this.chainingKey = this.hash;
    this.mixHash(prologue);
    for (const key of initiator ? [own, remote] : [remote, own]) this.mixHash(key);
  }

  write1(payload) {
    this.mixPsk();
    const e = this.writeEphemeral();
    this.mixKey(x25519.getSharedSecret(this.ephemeral, this.remote)); // es
    this.mixKey(x25519.getSharedSecret(this.secret, this.remote)); // ss
    return concat(e, this.encryptAndHash(payload));
  }

  /** Returns the payload of message 1; throws if it was not made with the expected keys. */
  read1(message) {
    this.mixPsk();
    this.readEphemeral(message);
    this.mixKey(x25519.getSharedSecret(this.secret, this.remoteEphemeral)); // es
    this.mixKey(x25519.getSharedSecret(this.secret, this.remote)); // ss
    return this.decryptAndHash(message.subarray(32));
  }

  write2() {
    const e = this.writeEphemeral();
    this.mixKey(x25519.getSharedSecret(this.ephemeral, this.remoteEphemeral)); // ee
    this.mixKey(x25519.getSharedSecret(this.ephemeral, this.remote)); // se
    return concat(e, this.encryptAndHash(NOTHING));
  }

  /** Throws, and changes nothing, if message 2 was not made with the expected keys. */
  read2(message) {
    const { hash, chainingKey, key } = this;
    try {
      this.readEphemeral(message);
      this.mixKey(x25519.getSharedSecret(this.ephemeral, this.remoteEphemeral)); // ee
      this.mixKey(x25519.getSharedSecret(this.secret, this.remoteEphemeral)); // se
      this.decryptAndHash(message.subarray(32));
    } catch (error) {
      Object.assign(this, { hash, chainingKey, key });
      throw error;
    }
  }

  /** The ciphers for sending and for receiving. */
  split() {
    const [first, second] = hkdf(this.chainingKey, NOTHING, 2).map((key) => new Cipher(key));
    return this.initiator ? [first, second] : [second, first];
  }

  mixPsk() {
    const [chainingKey, mixed, key] = hkdf(this.chainingKey, this.psk, 3);
    this.chainingKey = chainingKey;
    this.mixHash(mixed);
    this.key = key;
  }

  writeEphemeral() {
    const e = x25519.getPublicKey(this.ephemeral);
    this.mixHash(e);
    this.mixKey(e); // with a pre-shared key, e also enters the key
    return e;
  }

  readEphemeral(message) {
    this.remoteEphemeral = message.slice(0, 32);
    this.mixHash(this.remoteEphemeral);
    this.mixKey(this.remoteEphemeral);
  }

  mixKey(material) {
    [this.chainingKey, this.key] = hkdf(this.chainingKey, material, 2);
  }

  mixHash(data) {
    this.hash = blake2s(concat(this.hash, data));
  }

  encryptAndHash(data) {
    const sealed = new Cipher(this.key).encrypt(data, this.hash);
    this.mixHash(sealed);
    return sealed;
  }

  decryptAndHash(sealed) {
    const data = new Cipher(this.key).open(0, sealed, this.hash);
    if (data === null) throw new Error("a handshake message was not sealed with the expected keys");
    this.mixHash(sealed);
    return data;
  }
}

function hkdf(chainingKey, material, outputs) {
  const temporary = hmac(blake2s, chainingKey, material);
  const keys = [];
  let previous = NOTHING;
  for (let count = 1; count <= outputs; count++) {
    previous = hmac(blake2s, temporary, concat(previous, Uint8Array.of(count)));
    keys.push(previous);
  }
  return keys;
}
