/** Where a member keeps its state. `write` makes all changes durable together or none; a null value erases. */
export interface Store {
  load(): Promise<[key: unknown, value: unknown][]>;
  write(changes: [key: unknown, value: unknown][]): Promise<void>;
  close(): Promise<void>;
  /** Set by the member; a store calls it when another program has taken it over. */
  onTaken?: (error: Error) => void;
}

/** State in memory: after each start the member is a new incarnation. */
export class MemoryStore implements Store {
  load(): Promise<[unknown, unknown][]>;
  write(changes: [unknown, unknown][]): Promise<void>;
  close(): Promise<void>;
}

/** State in the browser's IndexedDB, under this name. The tab that opens it last owns it. */
export class IndexedDbStore extends MemoryStore {
  constructor(name: string);
}

/** State in a file, for Node.js. */
export class FileStore extends MemoryStore {
  constructor(path: string);
}

export interface Settings {
  /** The name of the group. */
  group: string;
  /** The name of this member. */
  name: string;
  /** The group's secret: 32 bytes, or 64 hexadecimal digits (`precede keys export FILE`). */
  key: Uint8Array | string;
  /** The WebSocket addresses of one or more gateways, such as "ws://10.0.0.7:8080". */
  urls: string[];
  /** This member's secret of 32 bytes (`makeIdentity`); goes with `roster`. */
  identity?: Uint8Array | string;
  /** The public key of every member by name, this one included. Then every message is signed and checked. */
  roster?: Record<string, Uint8Array | string>;
  /** Without a store the member begins anew at each start. */
  store?: Store;
  /** How many messages that were taken stay in `history()`; 1,000 by default. */
  keep?: number;
  /** How many messages this member carries for others; 2,000 by default. */
  carry?: number;
  /** Milliseconds between two beacons; 500 by default. */
  beacon?: number;
}

export interface Message {
  /** The same at every member and after every restart. */
  id: string;
  /** The name of its author. */
  source: string;
  /** Counts the author's messages from 1. */
  number: number;
  payload: Uint8Array;
  /** The payload as UTF-8. */
  text: string;
  /** The author's clock when it was broadcast. It decides nothing. */
  born: Date;
  /** The ids of its immediate predecessors. */
  after: string[];
}

export interface WaitingMessage extends Message {
  since: Date;
  /** The ids of the messages that must be delivered before it. */
  waitsFor: string[];
}

export interface Status {
  name: string;
  incarnation: number;
  neighbours: string[];
  waiting: number;
  /** What was dropped, by reason: `forged`, `unsigned`, `tampered`, … */
  dropped: Record<string, number>;
  warnings: string[];
  /** Why the member has stopped, or null. */
  failure: string | null;
}

/** One member of a group. Iterating takes the delivered messages in causal order. */
export interface Member extends AsyncIterable<Message> {
  readonly group: string;
  readonly name: string;
  /** Send a message to all members. Resolves to its id when it is durable here. */
  broadcast(payload: Uint8Array | string): Promise<string>;
  /** Messages that were taken before, oldest first. */
  history(limit?: number): Message[];
  /** Messages that were received and still wait for others. */
  waiting(): WaitingMessage[];
  /** The names of the members that are heard now. */
  neighbours(): string[];
  status(): Status;
  /** Call `listener` after each change. Returns a function that ends this. */
  onChange(listener: () => void): () => void;
  /** Stop. With a store, the next `join` goes on where this one stopped. */
  close(): Promise<void>;
}

/** Become a member of a group with causal order, through gateways. */
export function join(settings: Settings): Promise<Member>;

export interface GuestSettings extends Settings {
  /** The name of the total-order group. */
  group: string;
  /** The name of the gateway of guests. It is trusted for the order, not for authorship. */
  gateway: string;
  identity: Uint8Array | string;
  roster: Record<string, Uint8Array | string>;
}

/**
 * Take part in a total-order group as a guest of a gateway (`precede.GuestGateway`). The guest checks the signature of
 * every author; order, completeness and time are the gateway's word. `waiting()` lists own messages that have no
 * place in the order yet.
 */
export function joinAsGuest(settings: GuestSettings): Promise<Member>;

/** A new secret for `identity`, and the public key that belongs into everybody's roster; both in hexadecimal. */
export function makeIdentity(): { identity: string; publicKey: string };

/** The public key of an identity, in hexadecimal. */
export function publicKeyOf(identity: Uint8Array | string): string;

/** The message is not sent. */
export class Refused extends Error {}
