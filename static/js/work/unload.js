// From the work page to another one, once the server has what was submitted here: those pages know of nothing else.
// Without a network the page stays, and says what waits.

// After a trace of training its answer is looked at, after the last one of a screening its result.
export function goWhenAnswered(outbox, { assignment, after }) {
  outbox.addEventListener("answer", ({ detail }) => {
    if (detail.assignment === assignment && detail.verb !== "record") location.assign(after);
  });
  outbox.hurry();
}

// Links to pages that count what was submitted.
export function delayLinksUntilSaved(page, outbox) {
  for (const link of page.querySelectorAll("a[data-when-saved]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      goWhenSaved(outbox, link.href);
    });
  }
}

// Something comes before the next trace.
export function goWhenSaved(outbox, url) {
  if (outbox.state === "saved") return location.assign(url);
  outbox.addEventListener("state", ({ detail }) => detail.state === "saved" && location.assign(url));
  outbox.hurry();
}

// Where the browser stores nothing, closing the tab would lose what the server does not have yet.
export function warnBeforeUnload(outbox, store) {
  addEventListener("beforeunload", (event) => {
    if (!store.isPersistent && outbox.state !== "saved") event.preventDefault();
  });
}
