// For every page: points of figures show their values, curves can be hidden, tables can be filtered.
"use strict";

function equipFigure(figure) {
  const svg = figure.querySelector("svg.figure");
  if (!svg) return;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  svg.addEventListener("pointermove", (event) => {
    const title = event.target.closest(".point, .diamond, .range")?.querySelector("title");
    tip.hidden = !title;
    if (!title) return;
    tip.textContent = title.textContent;
    tip.style.left = `${Math.min(event.pageX + 12, document.documentElement.clientWidth - 180)}px`;
    tip.style.top = `${event.pageY + 14}px`;
  });
  svg.addEventListener("pointerleave", () => (tip.hidden = true));
  const curves = [...svg.querySelectorAll(".curve[data-name]")];
  if (curves.length < 3) return;
  const row = document.createElement("div");
  row.className = "toggles controls";
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", "curves shown");
  for (const curve of curves) {
    const button = document.createElement("button");
    button.textContent = curve.dataset.name;
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      const dim = curve.classList.toggle("dim");
      button.setAttribute("aria-pressed", String(!dim));
    });
    row.append(button);
  }
  figure.append(row);
}

function equipFilter(field) {
  const table = document.getElementById(field.dataset.filters).querySelector("table");
  const count = document.getElementById(`${field.id}-count`);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = `${shown} shown`;
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("figure").forEach(equipFigure);
  document.querySelectorAll("input[data-filters]").forEach(equipFilter);
});
