// The game: asks for frames a little ahead of what is shown, shows them smoothly, and sends what the player does.
"use strict";

const AHEAD_MS = 150; // so much of the future is fetched before it is shown
const FETCH_MS = 200;
const SIDES = ["unordered", "ordered"];
const SPAN_MS = 25000; // so much time at the current speed fits into a diagram

// A server that runs the simulator.
class LiveWorld {
  async ask(request) {
    const response = await fetch("api", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }
}

class Game {
  constructor(world) {
    this.world = world;
    this.speed = SPEEDS[Number(byId("speed").value)];
    this.running = false;
    this.asking = false;
    this.drawn = 0;
    this.ticks = 0; // how many frames were drawn, for measurements
    this.listen();
    this.ask({ do: "state" });
    requestAnimationFrame((clock) => this.tick(clock));
  }

  // Asks the world for something; one request at a time, in the order in which they were made.
  async ask(request) {
    this.asking = true;
    const before = this.last;
    this.last = (async () => {
      await before;
      try {
        this.take(await this.world.ask(request));
      } catch (error) {
        this.running = false;
        if (this.panel) this.panel.note(error.message);
        else byId("title").textContent = `The game does not answer: ${error.message}`;
      }
    })();
    const mine = this.last;
    await mine;
    if (this.last === mine) this.asking = false;
  }

  take(answer) {
    if (answer.hello) this.begin(answer.hello);
    if (answer.frame) this.receive(answer.frame, Boolean(answer.hello || answer.reasons));
    if (answer.reasons) this.panel.note(answer.reasons.join(" "));
    if (answer.folder) this.panel.saved(answer);
  }

  begin(hello) {
    this.hello = hello;
    this.words = { unordered: new Words(hello), ordered: new Words(hello) };
    this.panel = new Panel(hello, this.words.ordered);
    this.shown = this.known = 0;
    this.queue = [];
    this.ended = false;
    this.released = new Map();
    const act = { tool: () => document.querySelector("input[name=tool]:checked").value,
      node: (node, tool) => this.useTool(node, tool), link: (a, b) => this.toggleLink(a, b) };
    this.stages = {};
    this.diagrams = {};
    for (const name of SIDES) {
      const section = byId(name);
      this.stages[name] = new Stage(section.querySelector(".stage"), hello, act, this.words[name].texts);
      const old = section.querySelector(".diagram"); // a new canvas: the old diagram's listeners go with the old one
      const canvas = old.cloneNode();
      canvas.removeAttribute("style");
      old.replaceWith(canvas);
      this.diagrams[name] = new GrowingDiagram(canvas, new GrowingModel(hello.nodes), () => {});
    }
    if (hello.lesson) this.setSpeed(hello.lesson.speed);
  }

  // Queues a frame; it is shown when its time has come. What the player did is shown at once.
  receive(frame, now) {
    for (const name of SIDES) {
      this.words[name].learn(frame.sides[name].texts);
      for (const event of frame.sides[name].events) this.stages[name].foresee(event);
    }
    this.queue.push({ frame, places: Object.fromEntries(SIDES.map((name) => [name, 0])) });
    this.known = frame.now;
    this.ended = frame.ended;
    if (now) {
      this.shown = frame.now;
      this.show();
    }
  }

  // Shows all events up to the shown instant, and the state after each frame that is over.
  show() {
    while (this.queue.length) {
      const item = this.queue[0];
      for (const name of SIDES) {
        const { events } = item.frame.sides[name];
        while (item.places[name] < events.length && events[item.places[name]][0] <= this.shown) this.event(name, events[item.places[name]++]);
      }
      if (item.frame.now > this.shown) return;
      this.queue.shift();
      this.state(item.frame);
    }
  }

  event(name, event) {
    const [at, kind, node, message] = event;
    this.diagrams[name].model.add(event);
    this.stages[name].event(event);
    if (kind === "delivered") this.panel.noteDelivery(name, node, message);
    if (name !== "ordered") return;
    if (kind === "delivered" && this.released.has(`${node} ${message}`)) {
      const waited = at - this.released.get(`${node} ${message}`);
      this.panel.tell(this.words.ordered.released(node, message, waited), "", true);
      this.released.delete(`${node} ${message}`);
    }
    const sentence = kind === "started" && at === 0 ? null : this.words.ordered.event(event);
    if (sentence) this.panel.tell(sentence, "", this.hello.nodes.length <= 12);
  }

  state(frame) {
    this.frame = frame;
    for (const name of SIDES) {
      const side = frame.sides[name];
      this.stages[name].set(frame.now, frame.places, side);
      for (const violation of side.new_violations) this.late(name, violation, frame.now);
      this.panel.side(name, side, frame.now);
    }
    for (const [node, message, waitsFor, since] of frame.sides.ordered.waiting) {
      const key = `${node} ${message}`;
      if (!this.released.has(key)) {
        this.released.set(key, since);
        if (this.hello.nodes.length <= 24) this.panel.tell(this.words.ordered.waiting([node, message, waitsFor, frame.now], frame.now), "", true);
      }
    }
    if (this.hello.lesson) this.panel.lesson(this.hello.lesson, frame.lesson);
    this.panel.tables(frame.sides);
  }

  late(name, violation, now) {
    const model = this.diagrams[name].model;
    const message = model.find(violation.message);
    let at = now;
    for (let row = model.count - 1; row >= 0; row--) {
      if (model.message[row] === message && model.node[row] === violation.node && model.kind[row] === KIND.delivered) {
        at = model.time[row];
        break;
      }
    }
    model.late.push({ node: violation.node, at });
    if (model.late.length > 500) model.late.shift();
    this.stages[name].outOfOrder(violation.node);
    const sentence = this.words[name].violation(violation);
    this.panel.tell(name === "ordered" ? sentence.replace("Without order", "With order") : sentence, "bad", true);
  }

  tick(clock) {
    const passed = Math.min(100, clock - (this.clock ?? clock));
    this.clock = clock;
    this.ticks++;
    if (this.hello) {
      if (this.running && this.speed) {
        this.shown = Math.min(this.known, this.shown + passed * 1000 * this.speed);
        const ahead = this.known - this.shown;
        if (!this.asking && !this.ended && ahead < AHEAD_MS * 1000 * this.speed) {
          this.ask({ do: "advance", us: Math.min(3.6e9, Math.ceil(FETCH_MS * 1000 * this.speed)) });
        }
        this.behind = this.asking && this.shown >= this.known && this.speed > 1;
        if (this.ended && this.shown >= this.known) {
          this.running = false;
          this.panel.note("The world has ended.");
        }
      }
      this.show();
      this.draw(clock);
    }
    requestAnimationFrame((next) => this.tick(next));
  }

  // Maps are drawn in every frame, diagrams and the clock ten times a second.
  draw(clock) {
    for (const name of SIDES) this.stages[name].draw(this.shown);
    if (clock - this.drawn < 100) return;
    this.drawn = clock;
    const span = SPAN_MS * 1000 * Math.max(1, this.speed);
    for (const name of SIDES) this.diagrams[name].follow(this.shown, span);
    this.panel.clock(this.shown, this.speed, this.running, this.behind);
    this.panel.speak(clock);
  }

  // ---- what the player does

  setSpeed(speed) {
    this.speed = speed;
    byId("speed").value = String(SPEEDS.indexOf(speed));
    byId("speed").setAttribute("aria-valuetext", speed ? `${speed} times` : "pause");
  }

  run(running) {
    this.running = running && !this.ended;
    if (this.running && !this.speed) this.setSpeed(1);
  }

  input(values) {
    this.ask({ do: "input", input: values });
  }

  say(node, answers) {
    const text = byId("text").value.trim();
    const to = byId("to").value.split(/[\s,]+/).filter(Boolean);
    const own = answers ? `re ${answers}` : "hello";
    this.panel.tell(`You let ${this.hello.nodes[node]} ${answers ? `answer ${this.words.ordered.message(answers)}` : "speak"}.`, "did");
    this.input({ action: "say", node: this.hello.nodes[node], text: text || own, ...(to.length ? { to } : {}), ...(answers ? { answers } : {}) });
    this.run(true);
  }

  answer(node) {
    const heard = SIDES.toReversed().flatMap((name) => this.panel.delivered[name][node]);
    const last = heard.find((message) => !message.startsWith(`${this.hello.nodes[node]}:`) && !message.startsWith(`${this.hello.nodes[node]}'`));
    if (last) this.say(node, last);
    else this.panel.note(`${this.hello.nodes[node]} has delivered nothing that it could answer.`);
  }

  act(action, node, peer) {
    const names = this.hello.nodes;
    const words = { crash: `crash ${names[node]}`, restart: `restart ${names[node]}`, cut: "cut", mend: "mend" };
    this.panel.tell(`You ${words[action]}${peer === undefined ? "" : ` the link of ${names[node]} and ${names[peer]}`}.`, "did");
    this.input({ action, node: names[node], ...(peer === undefined ? {} : { peer: names[peer] }) });
  }

  // Uses a tool on a node of a map; without a tool the node is only chosen, and described aloud.
  useTool(node, tool) {
    byId("node").value = String(node);
    if (document.body.classList.contains("recorded") || !tool) this.describe(node);
    else if (tool === "say") this.say(node);
    else if (tool === "answer") this.answer(node);
    else if (tool === "crash") this.act(this.frame.sides.ordered.down.includes(node) ? "restart" : "crash", node);
  }

  describe(node) {
    const { ordered } = this.frame.sides;
    const held = ordered.waiting.filter(([at]) => at === node).length;
    const state = ordered.down.includes(node) ? "down" : "up";
    byId("live").textContent = `Node ${this.hello.nodes[node]}, ${state}, holds back ${held} messages with order.`;
  }

  toggleLink(a, b) {
    if (document.body.classList.contains("recorded")) return;
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    const cut = this.frame.sides.ordered.cuts.some(([c, d]) => c === low && d === high);
    this.act(cut ? "mend" : "cut", low, high);
  }

  listen() {
    const on = (id, what) => byId(id).addEventListener("click", what);
    const node = () => Number(byId("node").value);
    const peer = () => Number(byId("peer").value);
    on("run", () => this.run(!this.running));
    on("step", () => {
      this.running = false;
      this.ask({ do: "advance", us: Math.ceil(1e6 * (this.speed || 1)) }).then(() => {
        this.shown = this.known;
      });
    });
    on("again", () => this.ask({ do: "again" }));
    on("seed", () => this.ask({ do: "again", seed: (this.hello.seed + 1) % 2147483647 }));
    on("save", () => {
      this.panel.note("Saving …");
      this.ask({ do: "save" });
    });
    on("do-say", () => this.say(node()));
    on("do-answer", () => this.answer(node()));
    for (const action of ["crash", "restart"]) on(`do-${action}`, () => this.act(action, node()));
    for (const action of ["cut", "mend"]) {
      on(`do-${action}`, () => (node() === peer() ? this.panel.note("Choose two different nodes.") : this.act(action, node(), peer())));
    }
    byId("lessons").addEventListener("change", (event) => {
      this.running = false;
      this.ask({ do: "open", lesson: event.target.value || null });
    });
    byId("speed").addEventListener("input", (event) => this.setSpeed(SPEEDS[Number(event.target.value)]));
    document.addEventListener("keydown", (event) => {
      if (event.key !== " " || event.target.closest("button, input, select, summary")) return;
      event.preventDefault();
      this.run(!this.running);
    });
    byId("tables").addEventListener("toggle", () => this.frame && this.panel.tables(this.frame.sides));
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      colours = null;
    });
  }
}

const game = new Game(typeof RecordedWorld === "undefined" ? new LiveWorld() : new RecordedWorld());
window.precedeGame = game;
