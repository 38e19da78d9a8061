// The page of a running group: asks for /group every two seconds and writes it. Names are always written as text.
"use strict";

const EVERY_MS = 2000;
const LATE_S = 30;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function fill(id, head, rows) {
  const table = document.getElementById(id);
  const top = element("thead"), line = element("tr"), body = element("tbody");
  for (const [text, className] of head) {
    const cell = element("th", text, className);
    cell.scope = "col";
    line.append(cell);
  }
  top.append(line);
  for (const row of rows) body.append(row);
  table.replaceChildren(top, body);
}

function row(cells, className) {
  const line = element("tr", undefined, className);
  for (const [text, style] of cells) line.append(element("td", text, style));
  return line;
}

const whole = (number) => number.toLocaleString("en");
const bytes = (count) => (count < 1000 ? `${count.toFixed(0)} B` : count < 1e6 ? `${(count / 1e3).toFixed(1)} kB` : `${(count / 1e6).toFixed(1)} MB`);
const rate = (count) => (count === null ? "–" : bytes(count));
const lasting = (s) => (s < 60 ? `${s.toFixed(1)} s` : s < 3600 ? `${(s / 60).toFixed(1)} min` : `${(s / 3600).toFixed(1)} h`);

function showMembers(members) {
  const numbers = ["delivered", "lag", "waits", "oldest", "in/s", "out/s", "refused", "warnings"];
  const head = [["member", "name"], ["address"], ["order"], ...numbers.map((name) => [name, "number"])];
  fill("members", head, members.map((one) => {
    if (one.problem) {
      const line = row([["?", "name"], [one.address], [one.problem]], "problem");
      line.lastChild.colSpan = numbers.length + 1;
      return line;
    }
    const oldest = one.waiting ? lasting(one.oldest_wait_s) : "–";
    return row([
      [one.failed ? `${one.member} (store failed)` : one.member, "name"], [one.address], [one.order], [whole(one.deliveries), "number"],
      [whole(one.lag), one.lag ? "number late" : "number"], [whole(one.waiting), "number"],
      [oldest, one.oldest_wait_s > LATE_S ? "number late" : "number"], [rate(one.bytes_in_s), "number"],
      [rate(one.bytes_out_s), "number"], [whole(one.refused), "number"], [whole(one.warnings), "number"],
    ], one.failed ? "problem" : "");
  }));
}

function showHearing(members) {
  const known = members.filter((one) => !one.problem);
  const names = [...new Set(known.flatMap((one) => [one.member, ...one.hears]))];
  fill("hearing", [["", "name"], ...names.map((name) => [name, "name"])], known.map((one) => {
    const line = element("tr"), title = element("th", one.member, "name");
    title.scope = "row";
    line.append(title);
    for (const name of names) {
      const heard = one.hears.includes(name), self = name === one.member;
      const cell = element("td", self ? "·" : heard ? "●" : "○", self ? "self" : heard ? "heard" : "missing");
      cell.setAttribute("aria-label", self ? "itself" : heard ? "heard" : "not heard");
      line.append(cell);
    }
    return line;
  }));
}

function showWaits(waits) {
  const head = [["at", "name"], ["message", "name"], ["waits for", "name"], ["since", "number"]];
  const rows = waits.slice(0, 50).map(([member, wait]) => row([
    [member, "name"], [wait.message, "name"], [wait.for.join(", ") || "?", "name"],
    [lasting(wait.since_s), wait.since_s > LATE_S ? "number late" : "number"],
  ]));
  fill("waits", head, rows.length ? rows : [row([["nothing waits"], [""], [""], [""]])]);
}

function showOrder(found) {
  document.getElementById("order").hidden = !found;
  if (!found) return;
  const counted = Object.entries(found.violations).map(([kind, count]) => `${whole(count)} ${kind} violation${count === 1 ? "" : "s"}`).join(", ");
  const verdict = document.getElementById("verdict");
  verdict.textContent = `${found.order} order, ${whole(found.deliveries)} deliveries verified: ${counted || "no violations"}.`;
  verdict.className = counted ? "violated" : "";
  document.getElementById("stories").replaceChildren(...found.latest.map((story) => element("pre", story)));
}

async function look() {
  const state = document.getElementById("state");
  try {
    const answer = await fetch("group", { cache: "no-store" });
    const group = await answer.json();
    showMembers(group.members);
    showHearing(group.members);
    showWaits(group.waits);
    showOrder(group.followed);
    const heard = group.members.filter((one) => !one.problem).length;
    const answers = group.members.length ? `${heard} of ${group.members.length} members answer.` : "Only the logs are watched.";
    state.textContent = `${answers} Looked at ${new Date().toLocaleTimeString()}.`;
    for (const part of document.querySelectorAll("section.members")) part.hidden = !group.members.length;
  } catch (error) {
    state.textContent = "precede top does not answer any more; what is below is the last look.";
  }
  setTimeout(look, EVERY_MS);
}

look();
