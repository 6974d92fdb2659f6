// The labels of a machine beside the steps, for raters who were drawn to see them. If the trace has a URL to reveal labels,
// each label appears after the annotator's own answer to its step. Loaded only with such a trace.

import { post } from "../network.js";

const textOf = (view, step, label) => view.work.trace.suggestions.texts[label].replace("{number}", view.numberOf(step));

function showLabel(view, step, label) {
  const row = view.rowFor({ step, option: 0 });
  if (!row || row.querySelector("[data-suggestion]")) return;
  const mark = document.createElement("p");
  mark.className = "step__notes";
  mark.dataset.suggestion = label;
  mark.setAttribute("role", "note");
  mark.textContent = textOf(view, step, label);
  row.querySelector(".step__body").append(mark);
}

// Ask for the labels of the steps that have an answer, once each. The highlight has moved on by the time of the answer,
// so a different label is announced.
function revealAnswered(page, view, asked) {
  for (const { position } of view.work.rateable()) {
    const { rating } = view.work.cell(position);
    if (rating === null || asked.has(position)) continue;
    asked.add(position);
    post(view.work.trace.suggestions.reveal_url, { step: position, rating }).then(
      ({ label }) => {
        if (label === null) return;
        showLabel(view, position, label);
        if (page.view === view && label !== rating) page.dock.showToast(textOf(view, position, label));
      },
      () => asked.delete(position), // no network: with the next answer
    );
  }
}

export function show(page, view) {
  const { labels, reveal_url: revealUrl } = view.work.trace.suggestions;
  for (const [step, label] of Object.entries(labels)) showLabel(view, Number(step), label);
  if (!revealUrl || view.node.dataset.reveals) return;
  view.node.dataset.reveals = "yes";
  const asked = new Set(Object.keys(labels).map(Number));
  const reveal = () => revealAnswered(page, view, asked);
  new MutationObserver(reveal).observe(view.node, { subtree: true, attributes: true, attributeFilter: ["class"] });
  reveal();
}
