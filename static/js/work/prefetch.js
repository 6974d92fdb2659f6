// Where the next trace comes from: fetched ahead while the present one is rated, typeset while hidden, and given back
// when the page closes.

import { Unreachable, post } from "./network.js";
import { TraceState } from "./trace_state.js";

const stopId = (assignment, revision) => `${assignment}.${revision}`;
const STALE_BEFORE = 60_000; // a held trace whose lease ends within a minute is asked for again

export class TraceSupply {
  #ahead = null;
  #left = new Set(); // "assignment.revision" of what was submitted, skipped or given up in this browser
  current = null; // the assignment on the page

  constructor(store, outbox, { urls, ladder }) {
    this.store = store;
    this.outbox = outbox;
    this.urls = urls;
    this.ladder = ladder;
  }

  leave(trace) {
    this.#left.add(stopId(trace.assignment, trace.revision));
  }

  // Whether this page is at a trace, or has left it.
  isCurrentOrLeft(assignment) {
    return this.current === assignment || [...this.#left].some((id) => id.startsWith(`${assignment}.`));
  }

  // The server has refused it for good: it is to be done after all.
  unmarkLeft(assignment, revision) {
    this.#left.delete(stopId(assignment, revision));
  }

  // What a page that was closed has left is known to the store alone, and only until it is sent. A claim that the
  // server answers just before must find it noted.
  async #loadLeftFromStore() {
    for (const item of await this.store.all()) {
      if (item.verb) this.#left.add(stopId(item.assignment, item.body.revision));
    }
  }

  async fetch(opened = true) {
    await this.#loadLeftFromStore();
    return this.prepared(await post(this.urls.claim, { opened }));
  }

  // When half of the present trace is done: early enough to be there, late enough not to keep it from others for long.
  prefetch() {
    this.#ahead ??= this.fetch(false)
      .then((ladder) => ladder.typeset(0))
      .catch(() => null);
  }

  // What was fetched ahead, if it is still ours.
  async ahead() {
    const ready = await this.#ahead;
    this.#ahead = null;
    const ends = ready?.work.trace.lease_ends_at;
    return ready && (!ends || Date.parse(ends) - Date.now() > STALE_BEFORE) ? ready : null;
  }

  // The page closes: what was only fetched ahead goes back to others at once.
  releasePrefetched() {
    if (this.#ahead) post(this.urls.release_held, {}, { keepalive: true }).catch(() => {});
  }

  // What this browser still holds for the trace is laid over what the server knew. A server that has not heard yet
  // that a trace was begun or left here gives the same one again: that is no next one.
  async prepared(trace) {
    await this.outbox.written();
    const items = (await this.store.all()).filter((item) => item.assignment === trace.assignment);
    const isLeft = this.#left.has(stopId(trace.assignment, trace.revision)) || items.some((item) => item.verb);
    if (isLeft || this.current === trace.assignment) throw new Unreachable("on its way");
    const work = new TraceState(trace);
    this.outbox.knows(trace.assignment, trace.version);
    for (const item of items) {
      this.outbox.clients.add(item.client); // a tab that was closed, perhaps: its writes are shown here now
      if (item.kind === "comment") work.comments.set(item.step, item.text);
      else if (item.kind === "write_step") work.written.set(item.step, item.text);
      else work.applyServerCell(item.step, item.option, { ...item, reason: item.text });
    }
    return this.ladder(work);
  }
}
