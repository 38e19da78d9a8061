// The parts of the page beside the maps: lesson, clock, what waits, what happened, tables, what was saved.
"use strict";

const SPEEDS = [0, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 100, 300, 1000];
const STORY = 60;
const SPOKEN_MS = 1500;

const byId = (id) => document.getElementById(id);

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function fill(list, items) {
  list.replaceChildren(...items);
}

class Panel {
  constructor(hello, words) {
    Object.assign(this, { hello, words });
    this.delivered = { unordered: hello.nodes.map(() => []), ordered: hello.nodes.map(() => []) };
    this.spokenAt = 0;
    this.toSay = [];
    byId("title").textContent = hello.title;
    byId("where").textContent = `${hello.nodes.length} nodes, ${hello.protocol} (${hello.order} order), seed ${hello.seed}`;
    byId("ordered-title").textContent = `With ${hello.order} order (${hello.protocol})`;
    fill(byId("story"), []);
    byId("saved").hidden = true;
    this.note("");
    this.nodes("node", hello.speakers[0] ?? 0);
    this.nodes("peer", hello.nodes.length > 1 ? 1 : 0);
    this.worlds();
    this.lesson(hello.lesson, null);
  }

  nodes(id, chosen) {
    fill(byId(id), this.hello.nodes.map((name, node) => {
      const option = element("option", name);
      option.value = String(node);
      option.selected = node === chosen;
      return option;
    }));
  }

  worlds() {
    const chosen = this.hello.lesson ? this.hello.lesson.key : "";
    const option = (key, text) => {
      const made = element("option", text);
      made.value = key;
      made.selected = key === chosen;
      return made;
    };
    const group = (name, lessons) => {
      const made = document.createElement("optgroup");
      made.label = name;
      made.append(...lessons.map((lesson) => option(lesson.key, lesson.title)));
      return made;
    };
    const orders = this.hello.lessons.filter((lesson) => !lesson.paper);
    const papers = this.hello.lessons.filter((lesson) => lesson.paper);
    fill(byId("lessons"), [
      ...(this.hello.own ? [option("", "your own world")] : []),
      group("lessons", orders), ...(papers.length ? [group("figures of the papers", papers)] : []),
    ]);
  }

  // Shows the steps that were reached; the newest one stands out.
  lesson(lesson, seen) {
    byId("lesson").hidden = !lesson;
    document.body.classList.toggle("free", !lesson);
    if (!lesson) return;
    byId("question").textContent = lesson.question + (lesson.paper ? ` (${lesson.paper})` : "");
    byId("try").textContent = lesson.try_this;
    const key = JSON.stringify(seen);
    if (key === this.lessonKey) return;
    this.lessonKey = key;
    const done = seen ? seen.done : [];
    const items = done.map((text, k) => {
      const item = element("li", text, k === done.length - 1 ? "now" : "");
      item.value = k + 1; // a phone hides the earlier ones
      return item;
    });
    if (seen) items.push(...seen.asides.map((text) => element("li", text, "aside")));
    fill(byId("steps"), items);
    byId("steps").scrollTop = byId("steps").scrollHeight;
  }

  clock(shown, speed, running, behind) {
    const pace = running && speed ? ` at ${speed}×` : ", paused";
    const text = `${instantText(shown, 1e5)}${pace}${behind ? " (behind)" : ""}`;
    if (byId("clock").textContent !== text) byId("clock").textContent = text;
    const button = byId("run");
    if (button.getAttribute("aria-pressed") !== String(running)) {
      button.setAttribute("aria-pressed", String(running));
      button.textContent = running ? "Pause" : "Play";
    }
  }

  note(text) {
    byId("note").textContent = text;
  }

  // The verdict and the waiting messages of one side.
  side(name, side, now) {
    const section = byId(name);
    const verdict = section.querySelector(".verdict");
    const { violations } = side;
    const count = `${side.counts.delivered.toLocaleString("en")} deliveries`;
    const text = !side.counts.delivered ? "nothing delivered yet" : violations
      ? `${violations.toLocaleString("en")} of ${count} out of ${this.hello.order} order`
      : `${count}, ${this.hello.order} order holds`;
    if (verdict.textContent !== text) {
      verdict.textContent = text;
      verdict.className = `verdict ${violations ? "bad" : side.counts.delivered ? "good" : "quiet"}`;
    }
    const lines = side.waiting.slice(0, 8).map((item) => element("li", this.words.waiting(item, now)));
    if (side.waiting_count > 8) lines.push(element("li", `and ${side.waiting_count - 8} more wait.`));
    if (!lines.length) lines.push(element("li", "Nothing is held back.", "none"));
    fill(section.querySelector(".waiting"), lines);
  }

  tell(sentence, className, aloud) {
    const story = byId("story");
    story.prepend(element("li", sentence, className));
    while (story.children.length > STORY) story.lastChild.remove();
    if (aloud) this.toSay.push(sentence);
    if (this.toSay.length > 4) this.toSay.shift();
  }

  // Hands one sentence at a time to screen readers: a world at a thousand times its speed says more than anybody can hear.
  speak(clock) {
    if (!this.toSay.length || clock - this.spokenAt < SPOKEN_MS) return;
    this.spokenAt = clock;
    byId("live").textContent = this.toSay.shift();
  }

  noteDelivery(name, node, message) {
    const list = this.delivered[name][node];
    list.unshift(message);
    if (list.length > 6) list.pop();
  }

  tables(sides) {
    if (!byId("tables").open) return;
    const { ordered } = sides;
    const down = new Set(ordered.down);
    const row = (cells) => {
      const made = document.createElement("tr");
      made.append(...cells.map((cell) => element("td", cell)));
      return made;
    };
    const said = (messages) => messages.map((name) => this.words.message(name)).join(", ");
    fill(byId("nodes-table").tBodies[0], this.hello.nodes.map((name, node) => row([
      name,
      down.has(node) ? "down" : "up",
      ordered.cuts.filter((pair) => pair.includes(node)).map(([a, b]) => this.hello.nodes[a === node ? b : a]).join(", "),
      said(this.delivered.unordered[node]),
      said(this.delivered.ordered[node]),
      ordered.waiting.filter(([at]) => at === node).map(([, message, waitsFor]) =>
        `${this.words.message(message)} waits ${waitsFor.map((one) => this.words.awaited(one)).join(" and ")}`).join("; "),
    ])));
  }

  saved({ folder, verdicts }) {
    const words = Object.entries(verdicts).map(([name, v]) =>
      `${name === "ordered" ? "with" : "without"} order ${v.order} order is ${v.verdict === "holds" ? "kept" : v.verdict} (${v.violations} violations in ${v.deliveries} deliveries)`);
    byId("saved").hidden = false;
    byId("saved-text").textContent = `The world is in ${folder}. The verifier says: ${words.join("; ")}.`;
    byId("saved-commands").textContent =
      `precede verify ${folder}/ordered\nprecede verify ${folder}/unordered --order ${this.hello.order} --duplicates allow\nprecede play --replay ${folder}`;
    this.note(`Saved in ${folder}.`);
  }
}
