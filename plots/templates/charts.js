// Draws every chart of a page in the page's own colours, and again when the reader switches between light and dark.
"use strict";
const dark = matchMedia("(prefers-color-scheme: dark)");

function look() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const text = colour("--text"), dim = colour("--dim"), line = colour("--line");
  const axis = {
    labelColor: dim, titleColor: dim, domainColor: line, tickColor: line, gridColor: line, gridOpacity: 0.6,
    labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", labelLimit: 170,
  };
  return {
    background: null, font: "system-ui, sans-serif", view: { stroke: null },
    axis, text: { color: text }, rule: { color: dim }, title: { color: text },
    legend: { labelColor: text, titleColor: dim, labelFontSize: 12, symbolSize: 80 },
    header: { labelColor: text, titleColor: dim },
  };
}

function draw() {
  for (const spec of document.querySelectorAll("script.spec")) {
    const options = { actions: false, renderer: "svg", config: look(), tooltip: { theme: dark.matches ? "dark" : "light" } };
    vegaEmbed("#" + spec.dataset.chart, JSON.parse(spec.textContent), options);
  }
}

draw();
dark.addEventListener("change", draw);
