// Plain sentences about what happens, for the eye and for the ear.
"use strict";

class Words {
  constructor(hello) {
    this.nodes = hello.nodes;
    this.texts = new Map();
  }

  learn(texts) {
    for (const [name, text] of Object.entries(texts)) this.texts.set(name, text);
  }

  message(name) {
    const text = this.texts.get(name);
    return text ? `“${text}” (${name})` : `message ${name}`;
  }

  // A protocol that waits to hear from a source names its message number 0.
  awaited(name) {
    const [source, number] = [name.slice(0, name.lastIndexOf(":")), name.slice(name.lastIndexOf(":") + 1)];
    return number === "0" ? `to hear from ${source}` : `for ${this.message(name)}`;
  }

  waiting([node, message, waitsFor, since], now) {
    const listed = waitsFor.slice(0, 3).map((name) => this.awaited(name));
    const more = waitsFor.length > 3 ? ` and ${waitsFor.length - 3} more` : "";
    const held = now > since ? ` since ${durationText(now - since)}` : "";
    return `${this.nodes[node]} holds back ${this.message(message)}: it waits ${listed.join(" and ") || "for its turn"}${more}${held}.`;
  }

  // A sentence about an event, or null if it is too small to be told.
  event([, kind, node, message, , , detail]) {
    const name = this.nodes[node];
    if (kind === "broadcast") return `${name} says ${this.message(message)}.`;
    if (kind === "crashed") return `${name} crashes.`;
    if (kind === "left") return `${name} leaves.`;
    if (kind === "started") return `${name} starts.`;
    if (kind === "discarded") return `${name} discards ${this.message(message)} (${String(detail).replaceAll("_", " ")}).`;
    return null;
  }

  released(node, message, waited) {
    return `${this.nodes[node]} releases ${this.message(message)} after ${durationText(waited)}.`;
  }

  violation({ node, message, other, kind }) {
    const name = this.nodes[node];
    const rest = other ? ` after ${this.message(other)}, which it should precede` : ` out of order (${kind.replaceAll("_", " ")})`;
    if (kind === "total") return `Without order ${name} delivers ${this.message(message)} and ${this.message(other)} in another order than others do.`;
    if (kind === "expired") return `Without order ${name} delivers ${this.message(message)} after its deadline.`;
    return `Without order ${name} delivers ${this.message(message)}${rest}.`;
  }
}
