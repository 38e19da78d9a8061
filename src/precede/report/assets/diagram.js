// The space-time diagram: time to the right, a lane for each node. The number of drawn rows is bounded, whatever the length of the run.
"use strict";

const DRAWN = 1200; // the largest number of rows drawn at once; of more rows a sample is drawn, and the page says so
const NEAR = 9; // the largest distance in pixels between the pointer and an event
const LANE = 15;

class Diagram {
  constructor(canvas, model, changed) {
    this.canvas = canvas;
    this.model = model;
    this.changed = changed;
    this.selected = NONE;
    this.chain = null;
    this.top = 0;
    this.keep(null);
    this.showAll();
    this.listen();
    new ResizeObserver(() => this.request()).observe(canvas);
  }

  // Sets the nodes that have a lane; null means all nodes.
  keep(nodes) {
    const model = this.model;
    const all = nodes === null;
    this.lanes = all ? model.nodes.map((_, k) => k) : nodes;
    this.laneOf = new Int32Array(model.nodes.length).fill(-1);
    this.lanes.forEach((node, lane) => (this.laneOf[node] = lane));
    this.rows = null;
    if (!all) {
      const rows = [];
      for (let i = 0; i < model.count; i++) if (this.laneOf[model.node[i]] >= 0) rows.push(i);
      this.rows = Uint32Array.from(rows);
    }
    this.top = 0;
    const room = window.innerHeight * 0.7;
    this.canvas.style.height = `${Math.max(130, Math.min(room, this.lanes.length * 40 + 34, 720))}px`;
    this.request();
  }

  show(from, to) {
    const model = this.model;
    const least = Math.max(10, (model.end - model.begin) / 1e6);
    const span = Math.min(Math.max(to - from, least), (model.end - model.begin) * 1.02);
    const low = model.begin - (model.end - model.begin) * 0.01;
    const high = model.end + (model.end - model.begin) * 0.01;
    this.from = Math.max(low, Math.min(from, high - span));
    this.to = this.from + span;
    this.request();
  }

  showAll() {
    const margin = (this.model.end - this.model.begin) * 0.01;
    this.show(this.model.begin - margin, this.model.end + margin);
  }

  zoom(factor, share = 0.5) {
    const span = this.to - this.from;
    const fixed = this.from + share * span;
    this.show(fixed - share * span * factor, fixed + (1 - share) * span * factor);
  }

  pan(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }

  scroll(lanes) {
    const most = Math.max(0, this.lanes.length - this.shownLanes());
    this.top = Math.max(0, Math.min(most, this.top + lanes));
    this.request();
  }

  select(message) {
    this.chain = null;
    this.selected = message;
    this.past = message === NONE ? null : this.model.past(message);
    this.future = message === NONE ? null : this.model.future(message);
    this.fates = message === NONE ? [] : this.model.fates(message, this.past);
    this.request();
    this.changed();
  }

  // Shows a violation: its two messages and the chain between them. Lanes and window are set to fit.
  violation(chain, late) {
    this.select(chain[0].message);
    this.chain = { links: chain, late };
    const model = this.model;
    const rows = [late, ...chain.flatMap((link) => [link.row, model.origin[link.message]])].filter((r) => r !== NONE);
    this.keep([...new Set(rows.map((row) => model.node[row]))].sort((a, b) => a - b));
    const times = rows.map((row) => model.time[row]);
    const [low, high] = [Math.min(...times), Math.max(...times)];
    const margin = (high - low) * 0.08 || 1e6;
    this.show(low - margin, high + margin);
    this.changed();
  }

  // ---- drawing

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  shownLanes() {
    return Math.max(1, Math.floor((this.height - 26) / this.laneHeight));
  }

  measure() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.width = Math.max(50, box.width);
    this.height = Math.max(60, box.height);
    const [w, h] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    this.gutter = this.width < 500 ? 58 : 84;
    this.laneHeight = Math.max(LANE, Math.min(44, (this.height - 30) / this.lanes.length));
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  x(time) {
    return this.gutter + ((time - this.from) / (this.to - this.from)) * (this.width - this.gutter);
  }

  y(node) {
    const lane = this.laneOf[node];
    return lane < 0 ? null : 26 + (lane - this.top + 0.5) * this.laneHeight;
  }

  draw() {
    const began = performance.now();
    const c = this.measure();
    const ink = palette();
    c.clearRect(0, 0, this.width, this.height);
    c.font = "12px system-ui, sans-serif";
    this.drawLanes(c, ink);
    c.save();
    c.beginPath();
    c.rect(this.gutter, 22, this.width - this.gutter, this.height - 22);
    c.clip();
    this.drawRows(c, ink);
    if (this.selected !== NONE) this.drawSelected(c, ink);
    if (this.chain) this.drawChain(c, ink);
    c.restore();
    this.took = performance.now() - began;
    this.canvas.dispatchEvent(new CustomEvent("drawn"));
  }

  drawLanes(c, ink) {
    const step = niceStep((this.to - this.from) / Math.max(2, this.width / 130));
    c.fillStyle = ink.ink;
    c.textBaseline = "middle";
    c.textAlign = "center";
    c.strokeStyle = ink.faint;
    c.lineWidth = 1;
    c.beginPath();
    for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step) {
      const x = this.x(t);
      if (x < this.gutter) continue;
      c.moveTo(x, 20);
      c.lineTo(x, this.height);
      if (x > this.gutter + 24 && x < this.width - 24) c.fillText(instantText(t, step), x, 10);
    }
    c.stroke();
    c.textAlign = "right";
    const last = Math.min(this.lanes.length, this.top + Math.ceil((this.height - 26) / this.laneHeight));
    c.beginPath();
    for (let lane = this.top; lane < last; lane++) {
      const y = this.y(this.lanes[lane]);
      c.moveTo(this.gutter, y);
      c.lineTo(this.width, y);
      c.fillText(this.model.nodes[this.lanes[lane]].slice(0, 12), this.gutter - 6, y);
    }
    c.strokeStyle = ink.lane;
    c.stroke();
  }

  drawRows(c, ink) {
    const model = this.model;
    const first = model.firstAt(this.from, this.rows);
    const last = model.firstAt(this.to, this.rows);
    const stride = Math.max(1, Math.ceil((last - first) / DRAWN));
    this.inWindow = last - first;
    this.oneIn = stride;
    const dim = this.selected !== NONE;
    const groups = { plain: newStyle(), past: newStyle(), future: newStyle() };
    for (let k = first - (first % stride); k < last; k += stride) {
      if (k < 0) continue;
      const row = this.rows ? this.rows[k] : k;
      const message = model.message[row];
      if (message === this.selected) continue;
      const side = dim && message !== NONE ? (this.past[message] ? "past" : this.future[message] ? "future" : "plain") : "plain";
      this.addRow(groups[side], row, dim && side === "plain");
    }
    paint(c, groups.plain, ink.event, dim ? 0.25 : 0.9, dim ? 0.1 : Math.max(0.12, 0.5 / Math.sqrt(stride)));
    paint(c, groups.past, ink.past, 0.95, 0.3);
    paint(c, groups.future, ink.future, 0.95, 0.3);
    if (dim) this.drawOrigins(c, ink);
  }

  addRow(style, row, bare) {
    const model = this.model;
    const x = this.x(model.time[row]);
    const y = this.y(model.node[row]);
    if (y === null) return;
    const kind = model.kind[row];
    if (kind === KIND.broadcast) {
      style.dots.moveTo(x + 3, y);
      style.dots.arc(x, y, 3, 0, 7);
    } else if (kind === KIND.delivered || kind === KIND.received) {
      style.ticks.moveTo(x, y - (kind === KIND.delivered ? 4 : 2));
      style.ticks.lineTo(x, y + (kind === KIND.delivered ? 4 : 2));
      if (kind === KIND.delivered && !bare) this.addFlight(style.lines, row, x, y);
    } else {
      style.ticks.moveTo(x - 3, y - 3);
      style.ticks.lineTo(x + 3, y + 3);
      style.ticks.moveTo(x - 3, y + 3);
      style.ticks.lineTo(x + 3, y - 3);
    }
  }

  addFlight(path, row, x, y) {
    const origin = this.model.origin[this.model.message[row]];
    if (origin === NONE || this.model.node[origin] === this.model.node[row]) return;
    const from = this.y(this.model.node[origin]);
    if (from === null) return;
    path.moveTo(this.x(this.model.time[origin]), from);
    path.lineTo(x, y);
  }

  // Draws the broadcasts of all messages in the past and future, even if their rows are not in the sample.
  drawOrigins(c, ink) {
    const born = this.model.born;
    const first = this.model.firstAt(this.from, null);
    for (const [marks, colour] of [[this.past, ink.past], [this.future, ink.future]]) {
      c.fillStyle = colour;
      c.beginPath();
      let drawn = 0;
      let low = 0;
      for (let step = born.length; step >= 1; step = Math.floor(step / 2)) {
        while (low + step <= born.length && this.model.origin[born[low + step - 1]] < first) low += step;
      }
      for (let k = low; k < born.length && drawn < DRAWN; k++) {
        const row = this.model.origin[born[k]];
        if (this.model.time[row] > this.to) break;
        const y = this.y(this.model.node[row]);
        if (!marks[born[k]] || y === null) continue;
        const x = this.x(this.model.time[row]);
        c.moveTo(x + 4, y);
        c.arc(x, y, 4, 0, 7);
        drawn++;
      }
      c.fill();
    }
  }

  drawSelected(c, ink) {
    const model = this.model;
    const origin = model.origin[this.selected];
    const style = newStyle();
    const waits = new Path2D();
    for (const fate of this.fates) {
      const y = this.y(fate.node);
      if (y === null) continue;
      const arrived = this.x(model.time[fate.received]);
      this.addFlight(style.lines, fate.received, arrived, y);
      if (fate.delivered === NONE) {
        waits.moveTo(arrived, y);
        waits.lineTo(this.width, y);
      } else {
        this.addRow(style, fate.delivered, true);
        if (fate.wait > 0) {
          waits.moveTo(arrived, y);
          waits.lineTo(this.x(model.time[fate.delivered]), y);
        }
      }
    }
    c.strokeStyle = ink.wait;
    c.lineWidth = 5;
    c.globalAlpha = 0.75;
    c.stroke(waits);
    if (origin !== NONE) this.addRow(style, origin, true);
    paint(c, style, ink.selected, 1, 0.85, 1.6);
    const y = origin === NONE ? null : this.y(model.node[origin]);
    if (y === null) return;
    c.fillStyle = ink.selected;
    c.beginPath();
    c.arc(this.x(model.time[origin]), y, 6, 0, 7);
    c.fill();
    c.textAlign = "left";
    c.font = "bold 12px system-ui, sans-serif";
    label(c, ink, model.name(this.selected), this.x(model.time[origin]) + 9, Math.max(32, y - 8));
  }

  // Draws each link of the chain (how the source of the next message received this one), then the late delivery.
  drawChain(c, ink) {
    const model = this.model;
    const { links, late } = this.chain;
    const arrow = (from, to, colour, text, late) => {
      const [x0, y0, x1, y1] = [this.x(model.time[from]), this.y(model.node[from]), this.x(model.time[to]), this.y(model.node[to])];
      if (y0 === null || y1 === null) return;
      c.strokeStyle = c.fillStyle = colour;
      c.globalAlpha = 1;
      c.lineWidth = 3;
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
      c.stroke();
      c.beginPath();
      c.arc(x1, y1, 4.5, 0, 7);
      c.fill();
      c.font = "bold 12px system-ui, sans-serif";
      const [x, y] = late ? [x1, y1 + 17] : [x0, y0 - 9];
      c.textAlign = x > this.width - 130 ? "right" : "left";
      label(c, ink, text, x + (x > this.width - 130 ? 4 : 7), Math.max(34, y));
    };
    links.forEach((link, k) => {
      const origin = model.origin[link.message];
      const last = k === links.length - 1;
      if (origin !== NONE && origin !== link.row) arrow(origin, link.row, last ? ink.selected : ink.past, k ? model.name(link.message) : "");
    });
    const first = model.origin[links[0].message];
    if (first !== NONE) arrow(first, late, ink.bad, `${model.name(links[0].message)} is delivered too late`, true);
  }

  // ---- pointer and keys

  nearest(px, py) {
    const model = this.model;
    const span = ((this.to - this.from) / (this.width - this.gutter)) * NEAR;
    const time = this.from + ((px - this.gutter) / (this.width - this.gutter)) * (this.to - this.from);
    const first = model.firstAt(time - span, this.rows);
    const last = Math.min(model.firstAt(time + span, this.rows), first + 4000);
    let best = NONE;
    let least = NEAR * NEAR * 1.5;
    for (let k = first; k < last; k++) {
      const row = this.rows ? this.rows[k] : k;
      if (model.message[row] === NONE) continue;
      const y = this.y(model.node[row]);
      const dx = this.x(model.time[row]) - px;
      const distance = dx * dx + (y - py) * (y - py);
      if (distance < least) [best, least] = [row, distance];
    }
    return best;
  }

  step(direction) {
    const { born, origin, time } = this.model;
    if (!born.length) return;
    let k = this.selected === NONE ? -1 : born.indexOf(this.selected);
    if (k < 0) {
      k = 0;
      while (k < born.length - 1 && time[origin[born[k]]] < this.from) k++;
    } else k = (k + direction + born.length) % born.length;
    this.select(born[k]);
    const at = time[origin[born[k]]];
    if (at < this.from || at > this.to) this.show(at - (this.to - this.from) / 3, at + (2 * (this.to - this.from)) / 3);
    const lane = this.laneOf[this.model.node[origin[born[k]]]];
    if (lane >= 0 && (lane < this.top || lane >= this.top + this.shownLanes())) this.scroll(lane - this.top - 2);
  }

  listen() {
    const canvas = this.canvas;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const down = new Map();
    let moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      down.set(event.pointerId, place(event));
      moved = false;
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!down.has(event.pointerId)) return;
      const [x, y] = place(event);
      const [x0, y0] = down.get(event.pointerId);
      if (down.size === 2) {
        const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
        const before = Math.abs(x0 - other[0]);
        const now = Math.abs(x - other[0]);
        if (before > 10 && now > 10) this.zoom(before / now, (other[0] - this.gutter) / (this.width - this.gutter));
        moved = true;
      } else if (moved || Math.abs(x - x0) + Math.abs(y - y0) > 5) {
        moved = true;
        this.pan((x0 - x) / (this.width - this.gutter));
        const lanes = Math.trunc((y0 - y) / this.laneHeight);
        if (lanes) this.scroll(lanes);
        down.set(event.pointerId, [x, lanes ? y : y0]);
        return;
      } else return;
      down.set(event.pointerId, [x, y]);
    });
    const up = (event) => {
      if (down.delete(event.pointerId) && !moved && event.type === "pointerup") {
        const row = this.nearest(...place(event));
        this.select(row === NONE ? NONE : this.model.message[row]);
      }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      const share = (place(event)[0] - this.gutter) / (this.width - this.gutter);
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, Math.max(0, Math.min(1, share)));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const keys = {
        ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2),
        ArrowUp: () => this.scroll(-1), ArrowDown: () => this.scroll(1),
        PageUp: () => this.scroll(-this.shownLanes()), PageDown: () => this.scroll(this.shownLanes()),
        "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
        0: () => this.showAll(), Home: () => this.showAll(),
        n: () => this.step(1), p: () => this.step(-1), Enter: () => this.step(1), Escape: () => this.select(NONE),
      };
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}

// Draws text with an outline, so that it stays readable over lines.
function label(c, ink, text, x, y) {
  const colour = c.fillStyle;
  c.lineJoin = "round";
  c.lineWidth = 4;
  c.strokeStyle = ink.paper;
  c.strokeText(text, x, y);
  c.fillStyle = colour;
  c.fillText(text, x, y);
}

function newStyle() {
  return { lines: new Path2D(), ticks: new Path2D(), dots: new Path2D() };
}

function paint(c, style, colour, strength, lines, width = 1) {
  c.strokeStyle = c.fillStyle = colour;
  c.lineWidth = width;
  c.globalAlpha = lines;
  c.stroke(style.lines);
  c.globalAlpha = strength;
  c.lineWidth = width + 0.4;
  c.stroke(style.ticks);
  c.fill(style.dots);
  c.globalAlpha = 1;
}

function niceStep(rough) {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 1.5e7, 3e7,
    6e7, 1.2e8, 3e8, 6e8, 9e8, 1.8e9, 3.6e9, 7.2e9, 1.44e10, 2.16e10, 4.32e10, 8.64e10];
  return steps.find((step) => step >= rough) || rough;
}

// The colours of the page's style sheet, for light or dark mode.
let colours = null;
function palette() {
  if (colours) return colours;
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  colours = Object.fromEntries(["ink", "faint", "lane", "event", "past", "future", "selected", "wait", "bad", "paper"].map((n) => [n, of(n)]));
  return colours;
}
