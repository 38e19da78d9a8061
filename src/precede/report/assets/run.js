// The page of a run: the diagram, the map and the controls, which share the selected message and the instant.
"use strict";

// The data scripts of the page call PRECEDE.run and PRECEDE.map.
const PRECEDE = { data: {}, run(data) { this.data.run = data; }, map(data) { this.data.map = data; } };

async function openRun() {
  const data = PRECEDE.data.run;
  const model = new RunModel(data, await unpack(data.packed));
  const page = new RunPage(model);
  if (PRECEDE.data.map) await page.addMap(PRECEDE.data.map);
  page.follow(location.hash);
  window.addEventListener("hashchange", () => page.follow(location.hash));
  window.precede = page;
  document.documentElement.dataset.ready = "yes";
}

class RunPage {
  constructor(model) {
    this.model = model;
    this.of = (id) => document.getElementById(id);
    this.diagram = new Diagram(this.of("diagram"), model, () => this.describe());
    this.of("diagram").addEventListener("drawn", () => this.window());
    this.controls();
    this.describe();
  }

  controls() {
    const { diagram, model } = this;
    const press = (id, action) => this.of(id).addEventListener("click", action);
    press("zoom-in", () => diagram.zoom(0.5));
    press("zoom-out", () => diagram.zoom(2));
    press("zoom-all", () => {
      this.of("nodes").value = "";
      diagram.keep(null);
      diagram.showAll();
    });
    press("previous", () => diagram.step(-1));
    press("next", () => diagram.step(1));
    press("clear", () => diagram.select(NONE));
    press("shiviz", () => this.exportShiviz());
    this.of("nodes").addEventListener("change", () => this.filterNodes());
    for (const id of ["from", "to"]) this.of(id).addEventListener("change", () => this.filterTime());
    this.of("message").addEventListener("change", (event) => {
      const message = model.find(event.target.value.trim());
      event.target.setCustomValidity(message < 0 && event.target.value ? "no such message on this page" : "");
      event.target.reportValidity();
      diagram.select(message < 0 ? NONE : message);
    });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => {
      colours = null;
      diagram.draw();
      if (this.map) this.map.draw();
    };
    dark.addEventListener("change", repaint);
    matchMedia("print").addEventListener("change", repaint);
  }

  // Shows only some nodes: "L01-1, L02-*" are names, or prefixes with a star.
  filterNodes() {
    const field = this.of("nodes");
    const patterns = field.value.split(",").map((part) => part.trim()).filter(Boolean);
    const kept = this.model.nodes.flatMap((name, k) =>
      patterns.some((pattern) => (pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern)) ? [k] : []);
    field.setCustomValidity(patterns.length && !kept.length ? "no node has such a name" : "");
    field.reportValidity();
    this.diagram.keep(patterns.length && kept.length ? kept : null);
  }

  filterTime() {
    const [from, to] = ["from", "to"].map((id) => parseInstant(this.of(id).value));
    this.diagram.show(from ?? this.model.begin, to ?? this.model.end);
  }

  follow(hash) {
    const [key, value] = decodeURIComponent(hash.slice(1)).split("=");
    if (key === "message" && this.model.find(value) >= 0) this.diagram.select(this.model.find(value));
    if (key === "violation") this.openViolation(Number(value));
  }

  openViolation(number) {
    const violation = this.model.data.violations.find((entry) => entry.number === number);
    if (!violation) return;
    const { model } = this;
    const node = model.nodes.indexOf(violation.node);
    let late = NONE;
    for (let p = model.byNode.start[node]; p < model.byNode.start[node + 1]; p++) {
      const row = model.byNode.rows[p];
      if (model.step[row] === violation.step && model.kind[row] === KIND.delivered) late = row;
    }
    if (late === NONE) return;
    const chain = model.chain(model.message[late], late);
    if (chain.length > 1) this.diagram.violation(chain, late);
    else this.diagram.select(model.message[late]);
    this.of("nodes").value = this.diagram.lanes.length < model.nodes.length ? this.diagram.lanes.map((k) => model.nodes[k]).join(", ") : "";
    this.of("diagram").scrollIntoView({ block: "center" });
  }

  window() {
    const { diagram } = this;
    const step = (diagram.to - diagram.from) / 200;
    const [from, to] = [Math.max(0, diagram.from), Math.max(0, diagram.to)].map((t) => instantText(t, step));
    if (document.activeElement !== this.of("from")) this.of("from").value = from;
    if (document.activeElement !== this.of("to")) this.of("to").value = to;
    const every = diagram.oneIn > 1 ? `; one in ${diagram.oneIn} is drawn, zoom in to see all` : "";
    this.of("window").textContent = `${diagram.inWindow.toLocaleString("en")} events in this window${every}.`;
  }

  // Describes the selected message in words and as a table.
  describe() {
    const { diagram, model } = this;
    const status = this.of("selection");
    const body = this.of("fates").tBodies[0];
    body.replaceChildren();
    this.of("fates").hidden = diagram.selected === NONE;
    if (this.map) this.map.follow(diagram.selected);
    if (diagram.selected === NONE) {
      status.textContent = "No message is selected. Click an event, or press N in the diagram for the first message in view.";
      this.of("message").value = "";
      return;
    }
    const name = model.name(diagram.selected);
    this.of("message").value = name;
    status.textContent = this.sentence(name);
    const shown = [...diagram.fates].sort((a, b) => (b.wait ?? Infinity) - (a.wait ?? Infinity)).slice(0, 100);
    for (const fate of shown) {
      const row = body.insertRow();
      const who = document.createElement("th");
      who.scope = "row";
      who.textContent = model.nodes[fate.node];
      row.append(who);
      const since = model.time[fate.received] - (model.origin[diagram.selected] === NONE ? model.begin : model.time[model.origin[diagram.selected]]);
      row.insertCell().textContent = fate.node === model.data.messages[diagram.selected][0] ? "own message" : durationText(since);
      row.insertCell().textContent = fate.wait === null ? "not delivered" : fate.wait > 0 ? durationText(fate.wait) : "no wait";
      row.insertCell().textContent = fate.waitedFor !== NONE ? model.name(fate.waitedFor) : fate.wait === null || fate.wait > 0 ? "a message that did not come" : "";
    }
    if (diagram.fates.length > shown.length) {
      body.insertRow().insertCell().textContent = `… and ${diagram.fates.length - shown.length} more`;
    }
  }

  sentence(name) {
    const { diagram, model } = this;
    const origin = model.origin[diagram.selected];
    const count = (marks) => marks.reduce((sum, mark) => sum + mark, 0).toLocaleString("en");
    const delivered = diagram.fates.filter((fate) => fate.delivered !== NONE);
    const waited = delivered.filter((fate) => fate.wait > 0);
    const stuck = diagram.fates.length - delivered.length;
    const longest = waited.reduce((a, b) => (b.wait > a.wait ? b : a), { wait: 0 });
    const parts = [
      origin === NONE ? `${name} was broadcast before this window.` : `${name} was broadcast by ${model.nodes[model.node[origin]]} at ${instantText(model.time[origin], 1e6)}.`,
      `${delivered.length} ${delivered.length === 1 ? "node" : "nodes"} delivered it, ${waited.length} of them after a wait${stuck ? `; ${stuck} received it and did not deliver it here` : ""}.`,
    ];
    if (longest.wait) {
      const awaited = longest.waitedFor === NONE ? "a message that did not come" : model.name(longest.waitedFor);
      parts.push(`The longest wait was ${durationText(longest.wait)}, at ${model.nodes[longest.node]}, for ${awaited}.`);
    }
    parts.push(`${count(diagram.past)} messages happened before it, ${count(diagram.future)} after it.`);
    if (diagram.chain) parts.unshift(`The chain: ${diagram.chain.links.map((link) => model.name(link.message)).join(" → ")}.`);
    return parts.join(" ");
  }

  exportShiviz() {
    const { diagram, model } = this;
    const rows = [];
    for (let i = 0; i < model.count; i++) if (diagram.laneOf[model.node[i]] >= 0 && model.time[i] <= diagram.to) rows.push(i);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([model.shiviz(rows)], { type: "text/plain" }));
    link.download = `${model.data.id}.shiviz.log`;
    link.click();
  }

  async addMap(data) {
    const { model } = this;
    const view = new MapView(this.of("map"), model, { ...data, messages: model.data.messages }, await unpack(data.packed), () => this.atInstant());
    this.map = view;
    this.of("play").addEventListener("click", () => view.toggle(Number(this.of("speed").value)));
    this.of("speed").addEventListener("change", (event) => {
      view.speed = Number(event.target.value);
      if (view.rate) {
        view.toggle();
        view.toggle(view.speed);
      }
    });
    this.of("time").addEventListener("input", (event) => view.set(model.begin + (event.target.value / 1000) * (model.end - model.begin)));
    view.follow(this.diagram.selected);
  }

  atInstant() {
    const { map, model } = this;
    if (!map || !map.counts) return;
    this.of("time").value = Math.round(((map.time - model.begin) / (model.end - model.begin)) * 1000);
    this.of("play").textContent = map.rate ? "Pause" : "Play";
    this.of("play").setAttribute("aria-pressed", String(Boolean(map.rate)));
    const at = instantText(Math.max(0, map.time), 1e6);
    const { here, links } = map.counts;
    let text = `At ${at}: ${here} nodes are present, ${links} pairs are in range.`;
    if (map.spread) {
      const count = (marks) => [...marks.values()].filter((t) => t <= map.time).length;
      text += ` ${model.name(map.message)} has been delivered ${count(map.spread.delivered)} times.`;
    }
    this.of("instant").textContent = text;
    this.of("time").setAttribute("aria-valuetext", at);
  }
}

document.addEventListener("DOMContentLoaded", openRun);
