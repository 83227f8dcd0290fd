// What changed between two runs that the reader chooses; and menus that close when the reader goes elsewhere.
"use strict";
for (const menu of document.querySelectorAll("nav details")) {
  menu.addEventListener("keydown", (e) => { if (e.key === "Escape") { menu.open = false; menu.firstElementChild.focus(); } });
  document.addEventListener("click", (e) => { if (!menu.contains(e.target)) menu.open = false; });
}

const block = document.getElementById("runs-data");
if (block) {
  const { runs, series } = JSON.parse(block.textContent);
  const [older, newer] = ["older", "newer"].map((id) => document.getElementById(id));
  const body = document.getElementById("changes"), facts = document.getElementById("changed-facts");
  const row = (cells, kinds = []) => {
    const tr = document.createElement("tr");
    cells.forEach((text, i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (!i) cell.scope = "row";
      cell.textContent = text;
      if (kinds[i]) cell.className = kinds[i];
      tr.append(cell);
    });
    return tr;
  };
  const show = () => {
    const a = Number(older.value), b = Number(newer.value);
    const keys = [...new Set([...Object.keys(runs[a].facts), ...Object.keys(runs[b].facts)])];
    facts.replaceChildren(...keys.map((key) => [key, runs[a].facts[key] ?? "", runs[b].facts[key] ?? ""])
      .filter(([, x, y]) => x !== y).map((cells) => row(cells)));
    if (!facts.children.length) facts.replaceChildren(row(["nothing that the history records", "", ""]));
    const lines = series.filter((s) => s.values[a] !== null || s.values[b] !== null).map((s) => {
      const x = s.values[a], y = s.values[b];
      if (x === null || y === null) return [Infinity, row([s.name, x === null ? "not measured" : x.toPrecision(4), y === null ? "not measured" : y.toPrecision(4), ""])];
      const change = y / x - 1, shown = (change >= 0 ? "+" : "\u2212") + Math.abs(100 * change).toFixed(2) + " %";
      const beyond = s.noise && Math.abs(change) > s.noise ? (change > 0 ? "up" : "down") : "";
      return [Math.abs(change), row([s.name, x.toPrecision(4), y.toPrecision(4), shown], ["", "", "", beyond])];
    });
    body.replaceChildren(...lines.sort((x, y) => y[0] - x[0]).map(([, line]) => line));
  };
  older.addEventListener("change", show);
  newer.addEventListener("change", show);
  show();
}
