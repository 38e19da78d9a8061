// Stores: where a member keeps its state, so that a restart goes on without losing or doubling a message.
//
// A store has `load()`, which returns a list of pairs of key and value; `write(changes)`, which makes a list of
// pairs durable together or not at all (null erases); and `close()`. Keys are texts or arrays, values plain data.

import { concat, number, uint32 } from "./bytes.js";
import { hash } from "./keys.js";
import { decode, encode } from "./msgpack.js";

const TAKEN = "another tab has opened this member; this one has stopped";
const nameOf = (key) => JSON.stringify(key);

/** A store in memory: the member is a new incarnation after each start. */
export class MemoryStore {
  state = new Map();

  async load() {
    return [...this.state].map(([name, value]) => [JSON.parse(name), value]);
  }

  async write(changes) {
    for (const [key, value] of changes)
      if (value === null) this.state.delete(nameOf(key));
      else this.state.set(nameOf(key), value);
  }

  async close() {}
}

/**
 * A store in the browser's IndexedDB. The tab that opens it last owns it: an earlier one stops, and could not write
 * any more, so two tabs never number messages for one member.
 */
export class IndexedDbStore {
  constructor(name) {
    this.name = name;
    this.owner = globalThis.crypto.getRandomValues(new Uint32Array(4)).join("-");
    this.onTaken = () => {}; // called when another tab has opened this store
  }

  async load() {
    const opening = indexedDB.open(this.name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("state");
    this.database = await finished(opening);
    const transaction = this.database.transaction("state", "readwrite", { durability: "strict" });
    const state = transaction.objectStore("state");
    const [names, values] = await Promise.all([finished(state.getAllKeys()), finished(state.getAll())]);
    state.put(this.owner, "owner");
    await completed(transaction);
    this.tabs = new BroadcastChannel(`precede ${this.name}`);
    this.tabs.onmessage = () => this.onTaken(new Error(TAKEN));
    this.tabs.postMessage("opened");
    return names.map((name, place) => [name, values[place]]).filter(([name]) => name !== "owner")
      .map(([name, value]) => [JSON.parse(name), value]);
  }

  async write(changes) {
    const transaction = this.database.transaction("state", "readwrite", { durability: "strict" });
    const state = transaction.objectStore("state");
    const reading = state.get("owner");
    reading.onsuccess = () => {
      if (reading.result !== this.owner) return transaction.abort();
      for (const [key, value] of changes)
        if (value === null) state.delete(nameOf(key));
        else state.put(value, nameOf(key));
    };
    try {
      await completed(transaction);
    } catch (error) {
      if (reading.readyState === "done" && reading.result !== this.owner)
        throw new Error(TAKEN);
      throw error;
    }
  }

  async close() {
    this.tabs?.close();
    this.database?.close();
  }
}

const finished = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
const completed = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("the write was aborted"));
  });

/**
 * A store in a file, for Node.js: a journal of changes, each with length and checksum, written anew when it is
 * mostly erasures. A record that a crash cut off is dropped. A file `PATH.lock` keeps a second process out.
 */
export class FileStore {
  constructor(path) {
    this.path = path;
    this.state = new Map();
    this.records = 0;
  }

  async load() {
    this.fs = await import("node:fs");
    this.lock();
    const bytes = this.fs.existsSync(this.path) ? new Uint8Array(this.fs.readFileSync(this.path)) : new Uint8Array(0);
    let at = 0;
    while (at + 12 <= bytes.length) {
      const end = at + 12 + uint32(bytes, at);
      if (end > bytes.length) break;
      const record = bytes.subarray(at + 12, end);
      if (hash(record, 8).some((value, place) => value !== bytes[at + 4 + place])) break;
      for (const [name, value] of decode(record)) this.set(name, value);
      at = end;
    }
    this.compact();
    return [...this.state].map(([name, value]) => [JSON.parse(name), plain(decode(value))]);
  }

  /** Keep other processes out. A lock of a process that has ended is taken over. */
  lock() {
    const { fs, path } = this;
    try {
      fs.writeFileSync(`${path}.lock`, String(process.pid), { flag: "wx" });
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      const owner = Number(fs.readFileSync(`${path}.lock`, "utf8"));
      if (owner !== process.pid && isRunning(owner)) throw new Error(`${path}: process ${owner} uses this store`);
      fs.writeFileSync(`${path}.lock`, String(process.pid));
    }
  }

  set(name, value) {
    this.records++;
    if (value === null) this.state.delete(name);
    else this.state.set(name, value);
  }

  /** Write the whole state as one record beside the file, then replace the file in one step. */
  compact() {
    const beside = `${this.path}.new`;
    const file = this.fs.openSync(beside, "w", 0o600);
    this.fs.writeSync(file, record([...this.state]));
    this.fs.fsyncSync(file);
    this.fs.closeSync(file);
    this.fs.renameSync(beside, this.path);
    if (this.file !== undefined) this.fs.closeSync(this.file);
    this.file = this.fs.openSync(this.path, "a");
    this.records = this.state.size;
  }

  async write(changes) {
    const encoded = changes.map(([key, value]) => [nameOf(key), value === null ? null : encode(value)]);
    this.fs.writeSync(this.file, record(encoded));
    this.fs.fsyncSync(this.file);
    for (const [name, value] of encoded) this.set(name, value);
    if (this.records > 1000 + 4 * this.state.size) this.compact();
  }

  async close() {
    this.fs.closeSync(this.file);
    this.fs.rmSync(`${this.path}.lock`, { force: true });
  }
}

function record(changes) {
  const content = encode(changes);
  return concat(number(content.length, 4), hash(content, 8), content);
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** MessagePack maps as plain objects, which is what the member wrote. */
function plain(value) {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]));
  return Array.isArray(value) ? value.map(plain) : value;
}
