// Keys, clicks and touches become actions of the page. A held key acts once.

import { stopFromRow } from "./trace_view.js";

function actions(page) {
  return {
    negative: () => page.rate(-1), neutral: () => page.rate(0), positive: () => page.rate(1),
    next: () => page.move(1), previous: () => page.move(-1),
    unsure: () => page.unsure(), comment: () => page.comment(), undo: () => page.undo(), submit: () => page.submit(),
    skip: () => page.leaveWithReason("skip"), give_up: () => page.leaveWithReason("give_up"), report: () => page.leaveWithReason("report"),
    discard: () => page.discardCorrection(),
    help: () => document.getElementById("help").togglePopover(),
    fold: () => page.fold(),
  };
}

export function listen(page, remapped) {
  const act = actions(page);
  const keys = { ArrowDown: "next", ArrowUp: "previous", ArrowRight: "next", ArrowLeft: "previous", ...remapped };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=text], textarea, select")) return;
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
    const name = keys[event.key] ?? keys[event.key.toLowerCase()]; // a locked shift changes nothing
    if (!name) return;
    event.preventDefault(); // also keeps the arrow keys from rating in a radio group
    if (!event.repeat || name === "next" || name === "previous") act[name]();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-rate], [data-act]");
    if (button?.dataset.rate) return page.rate(Number(button.dataset.rate));
    if (button) return act[button.dataset.act]();
    const row = event.target.closest(".step[data-stop]");
    if (row && !event.target.closest(".rate, a, button, summary") && getSelection().isCollapsed) page.light(stopFromRow(row));
    return undefined;
  });
  document.addEventListener("change", (event) => {
    const box = event.target.closest(".errorbox__why");
    if (box) return page.explain(box.closest(".errorbox"));
    const row = event.target.closest(".step[data-stop]");
    if (!row || !event.target.matches(".rate input")) return undefined;
    page.now = stopFromRow(row);
    return page.rate(Number(event.target.value));
  });
  addEventListener("pagehide", () => page.supply.releasePrefetched());
}
