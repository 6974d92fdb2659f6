// Leave the work page for another one once the server has everything that was submitted here.
// Without a network the page stays and shows what is unsent.

import { getString } from "./page_config.js";

// Go to the page that follows this trace: the answer to a training trace, or the result of the screening.
export function goWhenAnswered(outbox, { assignment, after }) {
  outbox.addEventListener("answer", ({ detail }) => {
    if (detail.assignment === assignment && detail.verb !== "record") location.assign(after);
  });
  outbox.sendNow();
}

// Delay links to pages that show what was submitted.
function delayLinksUntilSaved(page, outbox) {
  for (const link of page.querySelectorAll("a[data-when-saved]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      goWhenSaved(outbox, link.href);
    });
  }
}

// The page without a trace. `message` is the server's reason; without one, the server was not asked.
export function buildEmptyPage(outbox, { message, code, retry }) {
  const page = document.getElementById("t-nothing").content.cloneNode(true);
  if (message === null) page.querySelector("h2").textContent = getString(`title_${code}`);
  page.querySelector("[data-slot=reason]").textContent = message ?? getString(code);
  page.querySelector("section").dataset.nothing = code;
  page.querySelector("button").addEventListener("click", retry);
  delayLinksUntilSaved(page, outbox);
  return page;
}

// Go to `url` as soon as everything is saved.
export function goWhenSaved(outbox, url) {
  if (outbox.state === "saved") return location.assign(url);
  outbox.addEventListener("state", ({ detail }) => detail.state === "saved" && location.assign(url));
  outbox.sendNow();
}

// If the browser cannot store ratings, closing the tab would lose unsent ones.
export function warnBeforeUnload(outbox, store) {
  addEventListener("beforeunload", (event) => {
    if (!store.isPersistent && outbox.state !== "saved") event.preventDefault();
  });
}
