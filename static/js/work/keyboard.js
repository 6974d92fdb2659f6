// Map keys, clicks and touches to actions of the page. A held key acts once, except for moving between steps.

import { stopFromRow } from "./trace_view.js";

function actions(page) {
  return {
    negative: () => page.rate(-1), neutral: () => page.rate(0), positive: () => page.rate(1),
    next: () => page.move(1), previous: () => page.move(-1),
    unsure: () => page.toggleUnsure(), comment: () => page.comment(), undo: () => page.undo(), submit: () => page.submit(),
    skip: () => page.leaveWithReason("skip"), give_up: () => page.leaveWithReason("give_up"), report: () => page.leaveWithReason("report"),
    discard: () => page.discardCorrection(),
    help: () => document.getElementById("help").togglePopover(),
    fold: () => page.toggleProblem(),
  };
}

export function bindActions(page, remapped) {
  const perform = actions(page);
  const keys = { ArrowDown: "next", ArrowUp: "previous", ArrowRight: "next", ArrowLeft: "previous", ...remapped };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=text], textarea, select")) return;
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
    const name = keys[event.key] ?? keys[event.key.toLowerCase()]; // ignore Caps Lock
    if (!name) return;
    event.preventDefault(); // also keeps the arrow keys from rating in a radio group
    if (!event.repeat || name === "next" || name === "previous") perform[name]();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-rate], [data-act]");
    if (button?.dataset.rate) return page.rate(Number(button.dataset.rate));
    if (button) return perform[button.dataset.act]();
    const row = event.target.closest(".step[data-stop]");
    if (row && !event.target.closest(".rate, a, button, summary") && getSelection().isCollapsed) page.goTo(stopFromRow(row));
    return undefined;
  });
  document.addEventListener("change", (event) => {
    const box = event.target.closest(".errorbox__why");
    if (box) return page.saveExplanation(box.closest(".errorbox"));
    const row = event.target.closest(".step[data-stop]");
    if (!row || !event.target.matches(".rate input")) return undefined;
    page.current = stopFromRow(row);
    return page.rate(Number(event.target.value));
  });
  addEventListener("pagehide", () => page.supply.releasePrefetched());
}
