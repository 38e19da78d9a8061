// The map: positions of nodes, links between them, and the spread of a message, at one instant or as an animation.
"use strict";

const BUCKETS = 512;

class MapView {
  constructor(canvas, model, data, bytes, changed) {
    this.canvas = canvas;
    this.model = model;
    this.data = data;
    this.changed = changed;
    this.time = model.begin;
    this.rate = 0;
    this.spread = null;
    this.read(bytes);
    this.index();
    canvas.addEventListener("keydown", (event) => {
      const keys = { " ": () => this.toggle(), ArrowLeft: () => this.jump(-0.01), ArrowRight: () => this.jump(0.01),
        Home: () => this.jump(-2), End: () => this.jump(2) };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    new ResizeObserver(() => this.request()).observe(canvas);
    this.request();
  }

  // Unpacks the columns of segments, then of links, from byte planes; coordinates are differences from the segment before.
  read(bytes) {
    let at = 0;
    const column = (count, width, signed) => {
      const out = new Float64Array(count);
      for (let b = 0, scale = 1; b < width; b++, scale *= 256, at += count) {
        for (let i = 0; i < count; i++) out[i] += bytes[at + i] * scale;
      }
      if (signed) for (let i = 0; i < count; i++) out[i] = out[i] % 2 ? -(out[i] + 1) / 2 : out[i] / 2;
      return out;
    };
    const { segments: n, links: m, unit } = this.data;
    const node = column(n, 2);
    const [gap, length] = [column(n, 4), column(n, 4)];
    const [dx0, dy0, dx, dy] = [0, 1, 2, 3].map(() => column(n, 4, true));
    this.tracks = this.data.nodes.map(() => []);
    for (let i = 0, t = 0, x = 0, y = 0; i < n; i++) {
      if (i === 0 || node[i] !== node[i - 1]) t = x = y = 0;
      const t0 = t + gap[i];
      const [x0, y0] = [x + dx0[i], y + dy0[i]];
      [t, x, y] = [t0 + length[i], x0 + dx[i], y0 + dy[i]];
      this.tracks[node[i]].push([t0 * unit, x0, y0, t * unit, x, y]);
    }
    const [a, b, start, duration] = [column(m, 2), column(m, 2), column(m, 4), column(m, 4)];
    this.links = [];
    for (let i = 0, t = 0; i < m; i++) {
      t += start[i];
      this.links.push([a[i], b[i], t * unit, (t + duration[i]) * unit]);
    }
  }

  // Indexes links by intervals of time, so that drawing an instant visits only the links of its interval.
  index() {
    this.interval = (this.model.end - this.model.begin) / BUCKETS;
    this.buckets = Array.from({ length: BUCKETS + 1 }, () => []);
    this.links.forEach(([, , from, to], k) => {
      const first = Math.max(0, this.bucket(from));
      const last = Math.min(BUCKETS, this.bucket(to));
      for (let b = first; b <= last; b++) this.buckets[b].push(k);
    });
    const names = new Map(this.data.nodes.map((name, k) => [name, k]));
    this.placeOf = this.model.nodes.map((name) => names.get(name) ?? -1);
    const xs = this.tracks.flat().flatMap((s) => [s[1], s[4]]);
    const ys = this.tracks.flat().flatMap((s) => [s[2], s[5]]);
    const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity);
    const most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
    this.box = [least(xs), least(ys), most(xs), most(ys)];
    this.stations = new Set(this.data.stations || []);
  }

  bucket(time) {
    return Math.floor((time - this.model.begin) / this.interval);
  }

  // Selects a message: records when each node received and delivered it.
  follow(message) {
    this.spread = null;
    this.message = message;
    if (message !== NONE) {
      this.spread = { received: new Map(), delivered: new Map() };
      for (const row of this.model.rowsOf(message)) {
        const place = this.placeOf[this.model.node[row]];
        const kind = this.model.kind[row];
        if (kind === KIND.received) this.spread.received.set(place, this.model.time[row]);
        if (kind === KIND.delivered || kind === KIND.broadcast) this.spread.delivered.set(place, this.model.time[row]);
      }
      const origin = this.model.origin[message];
      if (origin !== NONE && this.rate === 0) this.time = this.model.time[origin];
    }
    this.request();
  }

  where(node, time) {
    const track = this.tracks[node];
    let low = 0;
    let high = track.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track[middle][3] < time) low = middle + 1;
      else high = middle;
    }
    const s = track[low];
    if (!s || s[0] > time) return null;
    const share = s[3] > s[0] ? (time - s[0]) / (s[3] - s[0]) : 0;
    return [s[1] + (s[4] - s[1]) * share, s[2] + (s[5] - s[2]) * share];
  }

  jump(share) {
    this.set(this.time + share * (this.model.end - this.model.begin));
  }

  set(time) {
    this.time = Math.max(this.model.begin, Math.min(this.model.end, time));
    this.request();
  }

  // Starts or stops the animation; at speed 1 the whole run takes a minute and a half.
  toggle(speed = this.speed || 1) {
    this.speed = speed;
    this.rate = this.rate ? 0 : ((this.model.end - this.model.begin) / 90) * speed;
    if (this.rate && this.time >= this.model.end) this.time = this.model.begin;
    this.last = performance.now();
    this.request();
  }

  request() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame((now) => {
      this.pending = false;
      if (this.rate) {
        this.time += (this.rate * Math.min(200, now - this.last)) / 1000;
        this.last = now;
        if (this.time >= this.model.end) {
          this.time = this.model.end;
          this.rate = 0;
        } else this.request();
      }
      this.draw();
      this.changed();
    });
  }

  state(node) {
    if (!this.spread) return "plain";
    const delivered = this.spread.delivered.get(node);
    if (delivered !== undefined && delivered <= this.time) return "delivered";
    const received = this.spread.received.get(node);
    return received !== undefined && received <= this.time ? "waiting" : "without";
  }

  draw() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [Math.max(50, box.width), Math.max(50, box.height)];
    this.canvas.width = Math.round(w * ratio);
    this.canvas.height = Math.round(h * ratio);
    const c = this.canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    const [x0, y0, x1, y1] = this.box;
    const scale = Math.min((w - 40) / (x1 - x0 || 1), (h - 40) / (y1 - y0 || 1));
    const place = ([x, y]) => [w / 2 + (x - (x0 + x1) / 2) * scale, h / 2 - (y - (y0 + y1) / 2) * scale];
    const at = this.data.nodes.map((_, node) => this.where(node, this.time));
    const ink = palette();
    this.drawWays(c, ink, place);
    const reach = this.drawLinks(c, ink, at, place);
    this.drawNodes(c, ink, at, place);
    this.counts = { here: at.filter(Boolean).length, links: reach };
    this.canvas.dispatchEvent(new CustomEvent("drawn"));
  }

  // Draws the paths of all nodes faintly.
  drawWays(c, ink, place) {
    c.strokeStyle = ink.faint;
    c.lineWidth = 1;
    c.beginPath();
    for (const track of this.tracks) {
      for (const s of track.slice(0, 160)) {
        if (s[1] === s[4] && s[2] === s[5]) continue;
        c.moveTo(...place([s[1], s[2]]));
        c.lineTo(...place([s[4], s[5]]));
      }
    }
    c.stroke();
    for (const station of this.stations) {
      const [x, y] = place(this.where(station, this.model.begin) || [0, 0]);
      c.strokeRect(x - 9, y - 9, 18, 18);
    }
  }

  drawLinks(c, ink, at, place) {
    let reach = 0;
    c.strokeStyle = ink.event;
    c.lineWidth = 1.5;
    c.beginPath();
    for (const k of this.buckets[Math.max(0, Math.min(BUCKETS, this.bucket(this.time)))]) {
      const [a, b, from, to] = this.links[k];
      if (this.time < from || this.time > to || !at[a] || !at[b]) continue;
      reach++;
      c.moveTo(...place(at[a]));
      c.lineTo(...place(at[b]));
    }
    c.stroke();
    return reach;
  }

  drawNodes(c, ink, at, place) {
    const paints = { plain: ink.ink, without: ink.ink, waiting: ink.wait, delivered: ink.selected };
    const source = this.spread && this.message !== NONE ? this.placeOf[this.data.messages[this.message][0]] : -1;
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "left";
    at.forEach((where, node) => {
      if (!where) return;
      const [x, y] = place(where);
      const state = this.state(node);
      c.fillStyle = state === "without" ? ink.paper : paints[state];
      c.strokeStyle = paints[state];
      c.lineWidth = 1.5;
      c.beginPath();
      if (state === "waiting" || this.stations.has(node)) c.rect(x - 4.5, y - 4.5, 9, 9);
      else c.arc(x, y, node === source ? 7 : 4.5, 0, 7);
      c.fill();
      c.stroke();
      if (at.length <= 24 || node === source) {
        c.fillStyle = ink.ink;
        c.fillText(this.data.nodes[node], x + 8, y + 4);
      }
    });
  }
}
