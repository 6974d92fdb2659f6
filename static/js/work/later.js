// Load what a trace does not need at first.

import { loadMath } from "./nodes.js";
import { config, getString } from "./page_config.js";

const WAIT_MS = 20_000;
const RETRY_MS = 60_000;

// The working day: at once if the annotator waits for an answer to a question, otherwise when the page is quiet.
export function loadLater(page) {
  const load = () =>
    import("./lazy/day.js").then(
      ({ startDay }) => startDay(page),
      () => setTimeout(load, RETRY_MS), // no network
    );
  setTimeout(load, document.getElementById("unread").dataset.asked ? 0 : WAIT_MS);
}

// Load what keys and texts need later, as long as there is a network. What the first trace needs comes first.
export async function loadAhead() {
  await loadMath(config.katex);
  await Promise.allSettled([import("./reader.js"), import("./folds.js"), import("./markdown.js"), import("./lazy/panel.js")]);
}

// A panel beside the trace.
export const withPanel = (page, act) =>
  import("./lazy/panel.js").then(
    (panel) => {
      panel.bindPanel(page);
      return act(panel);
    },
    () => page.dock.showToast(getString("panel_offline")),
  );

// The image of a button, or the nearest one at or before the highlighted step.
export function enlargeImage(page, button) {
  const chosen = button?.matches("[data-act=enlarge]") ? button : findImage(page);
  if (!chosen) return page.dock.showToast(getString("no_image"));
  return import("./lazy/image_dialog.js").then(
    ({ openImage }) => openImage(chosen),
    () => page.dock.showToast(getString("not_loaded")),
  );
}

function findImage(page) {
  const row = page.current ? page.view?.rowFor(page.current) : null;
  const shown = [...(page.view?.node.querySelectorAll("[data-act=enlarge]") ?? [])].filter((each) => each.checkVisibility());
  const isBefore = (each) => !row || row.contains(each) || row.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING;
  return shown.find((each) => row?.contains(each)) ?? shown.findLast(isBefore);
}

// The labels of a machine beside the steps, for raters who were drawn to see them.
export const showSuggestions = (page, view) => import("./lazy/suggestions.js").then((suggestions) => suggestions.show(page, view), () => {});
