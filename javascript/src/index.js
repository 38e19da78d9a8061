// A member of a Precede group in a browser or in Node.js. The types and their description are in index.d.ts.

export { join, makeIdentity, publicKeyOf, Refused } from "./member.js";
export { joinAsGuest } from "./guest.js";
export { FileStore, IndexedDbStore, MemoryStore } from "./store.js";
