// A run that still grows, for the space-time diagram of reports: rows are added as they are shown.
"use strict";

const MOST_ROWS = 60000;
const SHORTEST = 8e6; // so many microseconds fit into the diagram of a world that has just begun

class GrowingModel extends RunModel {
  constructor(nodes) {
    super({ nodes, events: 0, messages: [], begin: 0, end: 1, unit: 1 }, new Uint8Array(0));
    this.clear();
  }

  clear() {
    this.data.messages = [];
    Object.assign(this, { time: [], node: [], kind: [], message: [], step: [], origin: [], born: [], count: 0, messages: 0 });
    Object.assign(this, { names: [], numbers: new Map(), open: new Map(), waits: [], late: [] });
  }

  name(message) {
    return this.names[message];
  }

  find(name) {
    return this.numbers.get(name) ?? -1;
  }

  indexRows() {
    super.indexRows();
    this.origin = [...this.origin];
    this.born = [...this.born];
  }

  number(name) {
    if (!this.numbers.has(name)) {
      this.numbers.set(name, this.messages++);
      this.names.push(name);
      this.data.messages.push(name);
      this.origin.push(NONE);
    }
    return this.numbers.get(name);
  }

  // Adds one event of a frame. Packets have no row.
  add([at, word, node, name]) {
    const kind = KIND[word];
    if (kind === undefined) return;
    if (this.count >= MOST_ROWS) this.clear();
    const message = name === null ? NONE : this.number(name);
    this.time.push(at);
    this.node.push(node);
    this.kind.push(kind);
    this.message.push(message);
    this.step.push(0);
    if (kind === KIND.broadcast && this.origin[message] === NONE) {
      this.origin[message] = this.count;
      this.born.push(message);
    }
    this.noteWait(kind, node, name, at);
    this.count++;
  }

  noteWait(kind, node, name, at) {
    const key = `${node} ${name}`;
    if (kind === KIND.received) this.open.set(key, { node, from: at });
    else if (kind === KIND.delivered || kind === KIND.discarded) {
      const wait = this.open.get(key);
      if (wait && at > wait.from) this.waits.push({ ...wait, to: at });
      this.open.delete(key);
    } else if (kind === KIND.crashed) {
      for (const [other, wait] of this.open) if (wait.node === node) this.open.delete(other);
    }
  }
}

// The diagram follows the newest events until the player moves it; it marks waits and deliveries out of order.
class GrowingDiagram extends Diagram {
  constructor(canvas, model, changed) {
    super(canvas, model, changed);
    this.following = true;
    this.now = 0;
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "End") this.following = true;
    });
  }

  pan(share) {
    this.following = false;
    super.pan(share);
  }

  zoom(factor, share) {
    this.following = false;
    super.zoom(factor, share);
  }

  select(message) {
    this.model.indexRows();
    super.select(message);
  }

  // Shows the time until `now`; at most `span` microseconds fit into the window.
  follow(now, span) {
    const shown = Math.min(span, Math.max(SHORTEST, 1.1 * now));
    this.model.end = Math.max(now, shown);
    this.now = now;
    if (this.following) this.show(Math.max(0, now - shown), Math.max(now, shown));
    else this.request();
  }

  drawRows(c, ink) {
    this.drawWaits(c, ink);
    super.drawRows(c, ink);
    c.strokeStyle = ink.bad;
    c.lineWidth = 2.5;
    for (const { node, at } of this.model.late) {
      const y = this.y(node);
      if (y === null || at < this.from || at > this.to) continue;
      c.beginPath();
      c.arc(this.x(at), y, 7, 0, 7);
      c.stroke();
    }
  }

  drawWaits(c, ink) {
    const waits = new Path2D();
    const line = (node, from, to) => {
      const y = this.y(node);
      if (y === null || to < this.from || from > this.to) return;
      waits.moveTo(this.x(from), y);
      waits.lineTo(this.x(to), y);
    };
    for (let k = this.model.waits.length - 1, seen = 0; k >= 0 && seen < DRAWN; k--, seen++) {
      const wait = this.model.waits[k];
      line(wait.node, wait.from, wait.to);
    }
    for (const wait of this.model.open.values()) line(wait.node, wait.from, this.now);
    c.strokeStyle = ink.wait;
    c.globalAlpha = 0.6;
    c.lineWidth = 5;
    c.stroke(waits);
    c.globalAlpha = 1;
  }
}
