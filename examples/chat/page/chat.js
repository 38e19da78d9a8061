// The chat as a page: a member of the group in this browser, with an identity and a store of its own.

import { IndexedDbStore, join, joinAsGuest } from "precede";

const element = (id) => document.getElementById(id);

/** The invitation behind `#`, or that of this tab, or the last one of this browser; null if there is none. */
function invitation() {
  if (location.hash.length > 1) {
    const kept = readLink(location.hash.slice(1));
    sessionStorage.setItem("invitation", kept);
    localStorage.setItem("invitation", kept);
    history.replaceState(null, "", location.pathname); // the secrets leave the address bar
  }
  const kept = sessionStorage.getItem("invitation") ?? localStorage.getItem("invitation");
  return kept && JSON.parse(kept);
}

function readLink(code) {
  const bytes = Uint8Array.from(atob(code.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  JSON.parse(text);
  return text;
}

function bubble({ source, text, born }, own, state = "") {
  const article = document.createElement("article");
  article.className = `message ${own ? "own" : ""} ${state && "waiting"}`;
  const who = document.createElement("div");
  who.className = "who";
  const name = document.createElement("b");
  name.textContent = source;
  const when = document.createElement("span");
  when.textContent = state || born.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  who.append(name, when);
  const said = document.createElement("div");
  said.className = "text";
  said.textContent = text;
  article.append(who, said);
  return article;
}

function trouble(text) {
  element("trouble").textContent = text;
  element("trouble").hidden = !text;
}

async function chat(settings) {
  const { group, name } = settings;
  element("title").textContent = `${group}, as ${name}`;
  document.title = `${group} (${name})`;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const member = await (settings.gateway ? joinAsGuest : join)({ ...settings, urls: [`${scheme}://${location.host}`], store: new IndexedDbStore(`chat ${group} ${name}`) });
  const messages = element("messages");
  const add = (message) => {
    const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 80;
    messages.insertBefore(bubble(message, message.source === name), messages.querySelector(".waiting"));
    if (atEnd || message.source === name) messages.scrollTop = messages.scrollHeight;
  };
  const show = () => {
    const near = member.neighbours();
    element("presence").textContent = near.length ? `connected through ${near.join(", ")}` : "not connected";
    const { failure, warnings } = member.status();
    trouble(failure ?? warnings.at(-1) ?? "");
    for (const old of messages.querySelectorAll(".waiting")) old.remove();
    for (const each of member.waiting()) {
      const why = settings.gateway ? "has no place in the order yet" : `waits for ${each.waitsFor.length} earlier`;
      messages.append(bubble(each, each.source === name, why));
    }
  };
  member.history().forEach(add);
  member.onChange(show);
  show();
  element("writing").hidden = false;
  element("writing").onsubmit = (event) => {
    event.preventDefault();
    const line = element("line").value.trim();
    if (!line) return;
    element("line").value = "";
    member.broadcast(line).catch((error) => trouble(error.message));
  };
  for await (const message of member) {
    add(message);
    show();
  }
}

try {
  const settings = invitation();
  if (settings) chat(settings).catch((error) => {
    trouble(error.message);
    element("invitation").hidden = !element("writing").hidden; // never joined: offer to paste another address
  });
  else element("invitation").hidden = false;
} catch {
  trouble("This address has no invitation that can be read. Paste it whole.");
  element("invitation").hidden = false;
}
element("invitation").onsubmit = (event) => {
  event.preventDefault();
  location.hash = element("link").value.trim().replace(/^.*#/, "");
  location.reload();
};
