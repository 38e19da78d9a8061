// The map of one side: nodes, links, messages that travel, that are held back, that come out of order.
"use strict";

const FLASH_MS = 450;
const LATE_MS = 6000;
const BUBBLE_MS = 3000;
const MOST_FLIGHTS = 300;
const ALL_LINKS = 12; // a network that reports no links, with so few nodes: every pair is drawn, to be cut by a click

class Stage {
  constructor(canvas, hello, act, texts) {
    Object.assign(this, { canvas, hello, act, texts });
    this.stations = new Set(hello.roles.flatMap((role, node) => (role === "station" ? [node] : [])));
    this.chosen = 0;
    this.armed = -1;
    this.flights = [];
    this.waves = [];
    this.flash = new Map();
    this.bubbles = new Map();
    this.late = new Map();
    this.usual = 0;
    this.before = this.state = null;
    this.box = null;
    this.listen();
  }

  // Takes the state after a frame; `before` is kept, so that nodes move smoothly between the two.
  set(now, places, side) {
    this.before = this.state;
    this.state = { now, places, side, waiting: new Map() };
    for (const [node] of side.waiting) this.state.waiting.set(node, (this.state.waiting.get(node) || 0) + 1);
    for (const place of places) {
      if (!place) continue;
      const [x, y] = place;
      const b = this.box || (this.box = [x, y, x, y]);
      this.box = [Math.min(b[0], x), Math.min(b[1], y), Math.max(b[2], x), Math.max(b[3], y)];
    }
  }

  // A packet leaves or lands. Its landing is known only then: until it lands it moves at the usual pace.
  foresee([at, kind, node, , peer, messages]) {
    if (kind === "sent") {
      if (peer === null) this.waves.push({ node, at });
      else if (this.flights.length < MOST_FLIGHTS) this.flights.push({ from: node, to: peer, at, lands: null, messages });
    } else if (kind === "packet_received" && peer !== null) {
      let flight = this.flights.find((f) => f.from === peer && f.to === node && f.lands === null && f.at <= at);
      if (!flight) {
        const wave = this.waves.findLast((w) => w.node === peer && w.at <= at);
        flight = { from: peer, to: node, at: wave ? wave.at : at, lands: null, messages };
        if (this.flights.length < MOST_FLIGHTS) this.flights.push(flight);
      }
      flight.lands = at;
      flight.messages = messages;
      const took = at - flight.at;
      this.usual = this.usual ? 0.8 * this.usual + 0.2 * took : took;
    }
  }

  event([, kind, node, message]) {
    if (kind === "broadcast" && this.texts.has(message)) this.bubbles.set(node, { text: this.texts.get(message), since: performance.now() });
    if (kind === "broadcast" || kind === "delivered" || kind === "discarded") this.flash.set(node, { kind, since: performance.now() });
  }

  outOfOrder(node) {
    this.late.set(node, performance.now());
  }

  place(node, shown) {
    const to = this.state.places[node];
    const from = this.before && this.before.places[node];
    if (!to || !from || this.state.now <= this.before.now) return to;
    const share = Math.max(0, Math.min(1, (shown - this.before.now) / (this.state.now - this.before.now)));
    return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share];
  }

  measure() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    [this.width, this.height] = [Math.max(50, box.width), Math.max(50, box.height)];
    const [w, h] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) [this.canvas.width, this.canvas.height] = [w, h];
    const c = this.canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, this.height);
    return c;
  }

  draw(shown) {
    if (!this.state) return;
    const c = this.measure();
    const ink = palette();
    const [x0, y0, x1, y1] = this.box || [0, 0, 1, 1];
    const scale = Math.min((this.width - 70) / (x1 - x0 || 1), (this.height - 56) / (y1 - y0 || 1));
    this.at = this.hello.nodes.map((_, node) => {
      const where = this.place(node, shown);
      return where && [this.width / 2 + (where[0] - (x0 + x1) / 2) * scale, this.height / 2 - (where[1] - (y0 + y1) / 2) * scale];
    });
    c.font = "12px system-ui, sans-serif";
    this.drawLinks(c, ink);
    this.drawFlights(c, ink, shown);
    this.drawNodes(c, ink);
    this.drawBubbles(c, ink);
  }

  // The links that can be seen and cut: those that the network has, or every pair if there are few nodes.
  pairs() {
    const { links, cuts } = this.state.side;
    if (links) return [...links, ...cuts];
    const n = this.hello.nodes.length;
    if (n > ALL_LINKS) return cuts;
    const all = [];
    for (let a = 0; a < n; a++) for (let b = a + 1; b < n; b++) all.push([a, b]);
    return all;
  }

  drawLinks(c, ink) {
    const cut = new Set(this.state.side.cuts.map(String));
    const [lines, broken] = [new Path2D(), new Path2D()];
    this.segments = [];
    for (const pair of this.pairs()) {
      const [a, b] = [this.at[pair[0]], this.at[pair[1]]];
      if (!a || !b) continue;
      const path = cut.has(String(pair)) ? broken : lines;
      path.moveTo(...a);
      path.lineTo(...b);
      this.segments.push({ pair, a, b });
    }
    c.strokeStyle = this.state.side.links ? ink.event : ink.lane;
    c.lineWidth = this.state.side.links ? 1.5 : 1;
    c.stroke(lines);
    c.strokeStyle = ink.bad;
    c.lineWidth = 2.5;
    c.setLineDash([5, 5]);
    c.stroke(broken);
    c.setLineDash([]);
  }

  drawFlights(c, ink, shown) {
    const usual = this.usual || 1e6;
    const [data, control, lost, several] = [new Path2D(), new Path2D(), new Path2D(), []];
    const patience = Math.max(4 * usual + 1e5, this.hello.kind === "switched" ? 2e7 : 0); // a switched network loses nothing
    const cut = new Set(this.state.side.cuts.map(String));
    this.flights = this.flights.filter((f) => {
      const gone = f.lands === null ? shown > f.at + patience : shown > f.lands;
      if (gone && !(f.lands !== null && f.trail === undefined)) return false;
      if (f.trail === undefined) f.trail = performance.now();
      return shown <= (f.lands ?? Infinity) || performance.now() - f.trail < FLASH_MS;
    });
    for (const f of this.flights) {
      const [a, b] = [this.at[f.from], this.at[f.to]];
      if (!a || !b || shown < f.at) continue;
      const stopped = f.lands === null && cut.has(String([Math.min(f.from, f.to), Math.max(f.from, f.to)]));
      let share = f.lands === null ? Math.min(stopped ? 0.5 : 0.85, (shown - f.at) / usual) : 1;
      if (f.lands !== null && f.lands > f.at) {
        if (f.guess === undefined) [f.guess, f.guessed] = [f.share || 0, Math.min(f.last ?? f.at, f.lands)];
        share = Math.min(1, f.guess + ((1 - f.guess) * (shown - f.guessed)) / Math.max(1, f.lands - f.guessed));
      } else if (f.lands !== null) share = Math.min(1, (performance.now() - f.trail) / FLASH_MS);
      [f.share, f.last] = f.lands === null ? [share, shown] : [f.share, f.last];
      const [x, y] = [a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share];
      const together = f.messages > 1 && this.hello.nodes.length <= ALL_LINKS;
      if (together && !stopped) several.push([x, y, f.messages]);
      const [path, r] = stopped ? [lost, 5] : f.messages ? [data, together ? 8 : 4.5] : [control, 1.8];
      path.moveTo(x + r, y);
      path.arc(x, y, r, 0, 7);
    }
    c.fillStyle = ink.event;
    c.fill(control);
    c.fillStyle = ink.past;
    c.fill(data);
    for (const [x, y, count] of several) this.drawCount(c, ink, count, x, y);
    c.strokeStyle = ink.bad;
    c.lineWidth = 2;
    c.stroke(lost);
    this.waves = this.waves.filter((w) => shown <= w.at + usual);
    c.strokeStyle = ink.past;
    c.lineWidth = 1;
    for (const w of this.waves) {
      if (!this.at[w.node] || shown < w.at) continue;
      const share = (shown - w.at) / usual;
      c.globalAlpha = 0.6 * (1 - share);
      c.beginPath();
      c.arc(...this.at[w.node], 8 + 60 * share, 0, 7);
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  drawNodes(c, ink) {
    const now = performance.now();
    const down = new Set(this.state.side.down);
    const few = this.hello.nodes.length <= 24;
    const r = few ? 9 : 6;
    c.textBaseline = "middle";
    this.at.forEach((where, node) => {
      if (!where) return;
      const [x, y] = where;
      this.drawRings(c, ink, node, x, y, r, now);
      c.beginPath();
      if (this.stations.has(node)) c.rect(x - r, y - r, 2 * r, 2 * r);
      else c.arc(x, y, r, 0, 7);
      c.fillStyle = down.has(node) ? ink.paper : ink.ink;
      c.strokeStyle = ink.ink;
      c.lineWidth = 2;
      if (down.has(node)) c.setLineDash([3, 3]);
      c.fill();
      c.stroke();
      c.setLineDash([]);
      this.drawHeld(c, ink, node, x, y, r);
      if (few || node === this.chosen) {
        c.fillStyle = ink.ink;
        c.textAlign = "center";
        label(c, ink, this.hello.nodes[node].slice(0, 14), x, y + r + 10);
      }
    });
  }

  drawRings(c, ink, node, x, y, r, now) {
    const ring = (colour, radius, width) => {
      c.strokeStyle = colour;
      c.lineWidth = width;
      c.beginPath();
      c.arc(x, y, radius, 0, 7);
      c.stroke();
    };
    const flash = this.flash.get(node);
    if (flash && now - flash.since < FLASH_MS) {
      const share = (now - flash.since) / FLASH_MS;
      c.globalAlpha = 1 - share;
      ring({ broadcast: ink.selected, delivered: ink.past, discarded: ink.event }[flash.kind], r + 3 + 10 * share, 3);
      c.globalAlpha = 1;
    }
    if (now - (this.late.get(node) ?? -LATE_MS) < LATE_MS) ring(ink.bad, r + 6, 3.5);
    if (node === this.armed) ring(ink.future, r + 5, 3);
    if (node === this.chosen && document.activeElement === this.canvas) ring(ink.selected, r + 9, 2);
  }

  drawHeld(c, ink, node, x, y, r) {
    const held = this.state.waiting.get(node);
    if (!held) return;
    c.fillStyle = ink.wait;
    c.fillRect(x + r - 2, y - r - 10, 17, 15);
    this.drawCount(c, ink, held, x + r + 6.5, y - r - 2);
  }

  drawCount(c, ink, count, x, y) {
    c.fillStyle = ink.paper;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.font = "bold 11px system-ui, sans-serif";
    c.fillText(count > 99 ? "99" : String(count), x, y);
    c.font = "12px system-ui, sans-serif";
  }

  // What a node says stands beside it for a moment.
  drawBubbles(c, ink) {
    const now = performance.now();
    for (const [node, { text, since }] of this.bubbles) {
      if (now - since > BUBBLE_MS) this.bubbles.delete(node);
      else if (this.at[node]) {
        const short = text.length > 28 ? `${text.slice(0, 27)}…` : text;
        const half = c.measureText(short).width / 2 + 4;
        c.fillStyle = ink.selected;
        c.textAlign = "center";
        label(c, ink, short, Math.max(half, Math.min(this.width - half, this.at[node][0])), Math.max(10, this.at[node][1] - 22));
      }
    }
  }

  // ---- pointer and keys

  nodeAt(px, py, reach = 16) {
    let [best, least] = [-1, reach * reach];
    (this.at || []).forEach((where, node) => {
      if (!where) return;
      const distance = (where[0] - px) ** 2 + (where[1] - py) ** 2;
      if (distance < least) [best, least] = [node, distance];
    });
    return best;
  }

  linkAt(px, py) {
    let [best, least] = [null, 10];
    for (const { pair, a, b } of this.segments || []) {
      const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
      const t = Math.max(0.1, Math.min(0.9, ((px - a[0]) * dx + (py - a[1]) * dy) / (dx * dx + dy * dy || 1)));
      const distance = Math.hypot(a[0] + t * dx - px, a[1] + t * dy - py);
      if (distance < least) [best, least] = [pair, distance];
    }
    return best;
  }

  listen() {
    this.canvas.onclick = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const node = this.nodeAt(x, y);
      if (node >= 0) this.choose(node, this.act.tool());
      else if (this.act.tool() === "cut") {
        const link = this.linkAt(x, y);
        if (link) this.act.link(...link);
      }
    };
    this.canvas.onkeydown = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const n = this.hello.nodes.length;
      const tools = { Enter: this.act.tool(), s: "say", a: "answer", c: "crash", x: "cut" };
      if (event.key === "ArrowRight" || event.key === "ArrowDown") this.choose((this.chosen + 1) % n, null);
      else if (event.key === "ArrowLeft" || event.key === "ArrowUp") this.choose((this.chosen + n - 1) % n, null);
      else if (event.key === "Escape") this.armed = -1;
      else if (tools[event.key]) this.choose(this.chosen, tools[event.key]);
      else return;
      event.preventDefault();
    };
  }

  // Chooses a node and uses a tool on it; a link is cut or mended by two nodes in turn.
  choose(node, tool) {
    this.chosen = node;
    if (tool !== "cut") {
      if (tool) this.armed = -1;
      this.act.node(node, tool);
    } else if (this.armed < 0 || this.armed === node) {
      this.armed = this.armed === node ? -1 : node;
      this.act.node(node, null);
    } else {
      const other = this.armed;
      this.armed = -1;
      this.act.link(other, node);
    }
  }
}
