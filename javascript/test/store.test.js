// A store in a file survives cut-off writes; a member goes on from it without losing or doubling a message.

import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import test from "node:test";
import { FileStore, join, Refused } from "../src/index.js";

const folder = () => mkdtempSync(path(tmpdir(), "precede-"));
const settings = { group: "picnic", name: "dora", key: "00".repeat(32), urls: [] };


test("what was written is read again, also after a write that was cut off", async () => {
  const file = path(folder(), "state");
  const store = new FileStore(file);
  assert.deepEqual(await store.load(), []);
  await store.write([[["a", 1], { number: 1, bytes: Uint8Array.of(1, 2) }], ["b", [1, null, "c"]]]);
  await store.write([["b", null], ["d", 2 ** 50]]);
  await store.close();
  const whole = readFileSync(file).length;
  const again = new FileStore(file);
  const expected = [[["a", 1], { number: 1, bytes: Uint8Array.of(1, 2) }], ["d", 2 ** 50]];
  assert.deepEqual(await again.load(), expected);
  await again.write([["e", 1]]);
  await again.close();
  truncateSync(file, readFileSync(file).length - 3);
  appendFileSync(file, "");
  const third = new FileStore(file);
  assert.deepEqual(await third.load(), expected);
  await third.close();
  assert.ok(whole > 0);
});

test("a second process is kept out, and the lock of one that has ended is taken over", async () => {
  const file = path(folder(), "state");
  writeFileSync(`${file}.lock`, "1"); // a process that runs
  await assert.rejects(new FileStore(file).load(), /process 1 uses this store/);
  writeFileSync(`${file}.lock`, "4194305"); // more than any system numbers
  const store = new FileStore(file);
  await store.load();
  await store.close();
});

test("a member goes on after a restart, and hands over what was not taken", async () => {
  const file = path(folder(), "state");
  const first = await join({ ...settings, store: new FileStore(file) });
  await first.broadcast("one");
  await first.broadcast("two");
  const iterator = first[Symbol.asyncIterator]();
  assert.equal((await iterator.next()).value.text, "one");
  const second = iterator.next(); // acknowledges "one"
  assert.equal((await second).value.text, "two");
  await first.close();
  await assert.rejects(first.broadcast("late"), Refused);
  const again = await join({ ...settings, store: new FileStore(file) });
  assert.deepEqual(again.history().map(({ text }) => text), ["one"]);
  assert.deepEqual(again.untaken().map(({ text }) => text), ["two"], "it was in hand, not acknowledged");
  await again.broadcast("three");
  assert.deepEqual(again.untaken().map(({ number }) => number), [2, 3]);
  assert.equal(again.status().incarnation, first.status().incarnation);
  await again.close();
  await assert.rejects(join({ ...settings, name: "eva", store: new FileStore(file) }), /belongs to picnic\/dora/);
});
