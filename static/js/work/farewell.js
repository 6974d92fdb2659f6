// After a trace of training its answer is looked at, after the last one of a screening its result: pages of their own.
// They know of a submission only when the server has it, so the page waits for that; without a network it stays.

export function followTo(outbox, { assignment, after }) {
  outbox.addEventListener("answer", ({ detail }) => {
    if (detail.assignment === assignment && detail.verb !== "record") location.assign(after);
  });
  outbox.hurry();
}
