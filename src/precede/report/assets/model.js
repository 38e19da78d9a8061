// A run in memory: the rows of its log as columns, indexed by node and by message; causal past and future, waits, chains.
"use strict";

const KIND = { started: 0, crashed: 1, left: 2, broadcast: 3, received: 4, delivered: 5, discarded: 6 };
const NONE = 0xffffffff;

class RunModel {
  // `data` is the content of the page's data script; `bytes` are its columns as byte planes: time, node, kind, message, step.
  constructor(data, bytes) {
    this.data = data;
    this.nodes = data.nodes;
    this.count = data.events;
    const n = this.count;
    let at = 0;
    const plane = () => bytes.subarray(at, (at += n));
    const column = (width) => {
      const out = new Float64Array(n);
      for (let b = 0, scale = 1; b < width; b++, scale *= 256) {
        const part = plane();
        for (let i = 0; i < n; i++) out[i] += part[i] * scale;
      }
      return out;
    };
    const gaps = column(5);
    this.time = new Float64Array(n);
    for (let i = 0, t = data.begin; i < n; i++) this.time[i] = t += gaps[i] * data.unit;
    this.node = Uint32Array.from(column(2));
    this.kind = plane();
    this.message = Uint32Array.from(column(4));
    this.step = column(4);
    this.begin = data.begin;
    this.end = Math.max(data.end, data.begin + 1);
    this.indexRows();
  }

  // Indexes the rows of each node and of each message as slices of one array, without an object per row.
  indexRows() {
    const group = (key, size) => {
      const start = new Uint32Array(size + 1);
      for (let i = 0; i < this.count; i++) if (key[i] < size) start[key[i] + 1]++;
      for (let k = 0; k < size; k++) start[k + 1] += start[k];
      const rows = new Uint32Array(start[size]);
      const next = start.slice(0, size);
      const place = new Uint32Array(this.count);
      for (let i = 0; i < this.count; i++) {
        if (key[i] < size) {
          place[i] = next[key[i]];
          rows[next[key[i]]++] = i;
        }
      }
      return { start, rows, place };
    };
    this.messages = this.data.messages.length;
    this.byNode = group(this.node, this.nodes.length);
    this.byMessage = group(this.message, this.messages);
    this.origin = new Uint32Array(this.messages).fill(NONE);
    const born = [];
    for (let i = 0; i < this.count; i++) {
      if (this.kind[i] === KIND.broadcast && this.origin[this.message[i]] === NONE) {
        this.origin[this.message[i]] = i;
        born.push(this.message[i]);
      }
    }
    this.born = Uint32Array.from(born);
  }

  rowsOf(message) {
    return this.byMessage.rows.subarray(this.byMessage.start[message], this.byMessage.start[message + 1]);
  }

  name(message) {
    const [source, incarnation, number] = this.data.messages[message];
    return `${this.nodes[source]}${incarnation ? "'" + incarnation : ""}:${number}`;
  }

  find(name) {
    for (let m = 0; m < this.messages; m++) if (this.name(m) === name) return m;
    return -1;
  }

  // The index of the first row at or after an instant, in a list of rows sorted by time (all rows if the list is null).
  firstAt(instant, rows) {
    let low = 0;
    let high = rows ? rows.length : this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[rows ? rows[middle] : middle] < instant) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Marks every message that happened before this one: those that its source had seen, and theirs. Visits each row once.
  past(message, into) {
    const marked = into || new Uint8Array(this.messages);
    const explored = this.byNode.start.slice(0, this.nodes.length);
    const queue = [message];
    while (queue.length) {
      const row = this.origin[queue.pop()];
      if (row === NONE) continue;
      const node = this.node[row];
      const until = this.byNode.place[row];
      for (let p = explored[node]; p < until; p++) {
        const seen = this.byNode.rows[p];
        const kind = this.kind[seen];
        if (kind !== KIND.broadcast && kind !== KIND.delivered) continue;
        const m = this.message[seen];
        if (!marked[m] && m !== message) {
          marked[m] = 1;
          queue.push(m);
        }
      }
      explored[node] = Math.max(explored[node], until);
    }
    return marked;
  }

  // Marks every message that happened after this one.
  future(message) {
    const marked = new Uint8Array(this.messages);
    const reached = this.byNode.start.slice(1);
    const queue = [message];
    while (queue.length) {
      for (const row of this.rowsOf(queue.pop())) {
        const kind = this.kind[row];
        if (kind !== KIND.broadcast && kind !== KIND.delivered) continue;
        const node = this.node[row];
        const from = this.byNode.place[row] + 1;
        for (let p = from; p < reached[node]; p++) {
          const next = this.byNode.rows[p];
          const m = this.message[next];
          if (this.kind[next] === KIND.broadcast && !marked[m] && m !== message) {
            marked[m] = 1;
            queue.push(m);
          }
        }
        reached[node] = Math.min(reached[node], from);
      }
    }
    return marked;
  }

  // The fate of a message at each node: when it was received and delivered, how long it waited, and for which message.
  fates(message, past) {
    const received = new Map();
    const fates = [];
    for (const row of this.rowsOf(message)) {
      const node = this.node[row];
      if (this.kind[row] === KIND.received) received.set(node, row);
      if (this.kind[row] === KIND.delivered) {
        const first = received.get(node);
        received.delete(node);
        const from = first === undefined ? row : first;
        fates.push({ node, received: from, delivered: row, wait: this.time[row] - this.time[from],
          waitedFor: this.waitedFor(row, from, past) });
      }
    }
    for (const [node, row] of received) fates.push({ node, received: row, delivered: NONE, wait: null, waitedFor: NONE });
    return fates;
  }

  // The last message of the past that the node delivered during the wait: the wait ended with it.
  waitedFor(delivered, received, past) {
    if (this.time[delivered] === this.time[received]) return NONE;
    const from = this.byNode.place[received];
    for (let p = this.byNode.place[delivered] - 1; p > from; p--) {
      const row = this.byNode.rows[p];
      if (this.kind[row] === KIND.delivered && past[this.message[row]]) return this.message[row];
    }
    return NONE;
  }

  // A shortest causal chain from `late` to a message that the node of row `at` had delivered before, as [{message, row}].
  // A row is the delivery or broadcast of the message at the source of the next one; the last row is the node's own delivery.
  chain(late, at) {
    const node = this.node[at];
    const parent = new Int32Array(this.messages).fill(-1);
    const through = new Uint32Array(this.messages);
    const explored = this.byNode.start.slice(0, this.nodes.length);
    const queue = [];
    for (let p = this.byNode.start[node]; p < this.byNode.place[at]; p++) {
      const row = this.byNode.rows[p];
      if (this.kind[row] === KIND.delivered && parent[this.message[row]] === -1) {
        parent[this.message[row]] = -2;
        through[this.message[row]] = row;
        queue.push(this.message[row]);
      }
    }
    for (let head = 0; head < queue.length; head++) {
      const m = queue[head];
      if (m === late) break;
      const origin = this.origin[m];
      if (origin === NONE) continue;
      const source = this.node[origin];
      for (let p = explored[source]; p < this.byNode.place[origin]; p++) {
        const row = this.byNode.rows[p];
        const seen = this.message[row];
        const counts = this.kind[row] === KIND.broadcast || this.kind[row] === KIND.delivered;
        if (counts && parent[seen] === -1) {
          parent[seen] = m;
          through[seen] = row;
          queue.push(seen);
        }
      }
      explored[source] = Math.max(explored[source], this.byNode.place[origin]);
    }
    if (parent[late] === -1) return [];
    const chain = [];
    for (let m = late; m >= 0; m = parent[m]) chain.push({ message: m, row: through[m] });
    return chain;
  }

  // Some rows of the log in the format of ShiViz (see `report/shiviz.py`).
  shiviz(rows) {
    const clocks = this.nodes.map(() => new Map());
    const stamps = new Map();
    const host = (node) => this.nodes[node].replace(/\s/g, "_");
    const lines = [];
    for (const row of rows) {
      const kind = this.kind[row];
      if (kind !== KIND.broadcast && kind !== KIND.delivered) continue;
      const node = this.node[row];
      const message = this.message[row];
      const clock = clocks[node];
      const stamp = kind === KIND.delivered ? stamps.get(message) : undefined;
      if (stamp) for (const [k, v] of stamp) clock.set(k, Math.max(v, clock.get(k) || 0));
      clock.set(node, (clock.get(node) || 0) + 1);
      if (kind === KIND.broadcast) stamps.set(message, new Map(clock));
      const written = [...clock].sort((a, b) => a[0] - b[0]).map(([k, v]) => `${JSON.stringify(host(k))}:${v}`);
      const what = kind === KIND.broadcast ? "broadcast" : "delivered";
      lines.push(`${what} ${this.name(message)}\n${host(node)} {${written.join(",")}}`);
    }
    return lines.join("\n") + "\n";
  }
}

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function durationText(us) {
  const s = us / 1e6;
  if (s < 0.001) return `${Math.round(us)} µs`;
  if (s < 1) return `${+(us / 1e3).toPrecision(3)} ms`;
  if (s < 60) return `${+s.toPrecision(3)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

// An instant as h:mm:ss, with as many decimals as labels at this step need.
function instantText(us, step) {
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / 1e6) + 1e-9)));
  const s = us / 1e6;
  const rest = (s % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return `${Math.floor(s / 3600)}:${String(Math.floor(s / 60) % 60).padStart(2, "0")}:${rest}`;
}

function parseInstant(text) {
  const parts = text.trim().split(":").map(Number);
  if (!text.trim() || parts.some(Number.isNaN) || parts.length > 3) return null;
  return parts.reduce((sum, part) => sum * 60 + part, 0) * 1e6;
}
