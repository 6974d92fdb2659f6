// Claims traces, prefetches the next one while the current one is rated, and releases it when the page closes.

import { Unreachable, get, post } from "./network.js";
import { loadRenderers } from "./rendering.js";
import { TraceState } from "./trace_state.js";

const revisionKey = (assignment, revision) => `${assignment}.${revision}`;
const STALE_BEFORE = 60_000; // claim again if the lease of a held trace ends within a minute

export class TraceSupply {
  #prefetched = null;
  #left = new Set(); // "assignment.revision" of traces that were submitted, skipped or given up in this browser
  current = null; // the assignment on the page
  kept = () => (this.current ? [this.current] : []); // assignments that this page shows, or will show again

  // `onNews(news)` is called with the server's description of the notices.
  constructor(drafts, outbox, { urls, urlOf, buildView, onNews }) {
    this.drafts = drafts;
    this.outbox = outbox;
    this.urls = urls;
    this.urlOf = urlOf;
    this.buildView = buildView;
    this.onNews = onNews;
  }

  markLeft(trace) {
    this.#left.add(revisionKey(trace.assignment, trace.revision));
  }

  isCurrentOrLeft(assignment) {
    return this.current === assignment || [...this.#left].some((id) => id.startsWith(`${assignment}.`));
  }

  // The server refused the ending permanently, so the trace is open again.
  unmarkLeft(assignment, revision) {
    this.#left.delete(revisionKey(assignment, revision));
  }

  // Endings of a page that was closed are only in the store, and only until they are sent. Read them before each claim,
  // which the server may answer before it gets them.
  async #loadLeftFromStore() {
    const endings = (await this.outbox.unanswered()).filter((item) => item.verb);
    for (const item of endings) this.#left.add(revisionKey(item.assignment, item.body.revision));
    return endings.map((item) => item.assignment);
  }

  // The server returns an open trace that this page does not show before a new one.
  async claim(opened = true) {
    const left = await this.#loadLeftFromStore();
    const shown = [...new Set([...left, ...this.kept()])];
    const { news, ...trace } = await post(this.urls.claim, { opened, shown }).catch(async (error) => {
      // If an ending is not sent yet, the limit is temporary: the server will count one open trace less.
      const isFull = error.answer?.code === "open_traces_limit" && (await this.outbox.unanswered()).some((item) => item.verb);
      throw isFull ? new Unreachable("not sent yet") : error;
    });
    this.onNews(news);
    return this.prepare(trace);
  }

  // Open a held trace, with the ending of the trace before if that is still to be sent.
  async open(assignment, before) {
    const answer = before === undefined ? null : await this.outbox.ask(before, { opens: assignment });
    // No one has edited a trace that was still held.
    if (answer?.opened) this.outbox.noteShown(assignment, answer.opened);
    else await post(this.urlOf(assignment, "open"), {});
  }

  // The next trace comes with the answer to the edits or the ending of the current one.
  async #claimWithMessage() {
    const left = [...this.#left].map((key) => Number(key.split(".")[0]));
    const answer = await this.outbox.ask(this.current, { next: { shown: [...new Set([...left, ...this.kept()])] } });
    if (!answer) return this.claim(false);
    return answer.next ? this.prepare(answer.next) : null;
  }

  // Compare a trace with the server's: another tab or device may have changed it. Take over everything but unsent
  // edits, and return what differed; do neither if the revision differs, or if the trace `isLeft` by then, because what
  // is taken over must be shown.
  async compare(work, isLeft) {
    const { assignment, revision } = work.trace;
    const { sequence } = this.outbox;
    const content = await get(this.urlOf(assignment, "content")).catch(() => null);
    if (!content || content.is_submitted || content.revision !== revision) return { content };
    const unsent = await this.outbox.unsentEdits(assignment);
    if (isLeft()) return { content };
    const isOutdated = content.version < this.outbox.versions.get(assignment) || sequence !== this.outbox.sequence;
    if (isOutdated) return this.compare(work, isLeft); // an edit was made here in the meantime
    this.outbox.noteShown(assignment, content.version);
    return { content, differences: work.adopt(content, unsent) };
  }

  // Called when half of the current trace is rated: early enough to be ready, and late enough not to hold it for long.
  prefetch() {
    this.#prefetched ??= this.#claimWithMessage()
      .then((view) => view?.typeset(0) ?? null)
      .catch(() => null);
  }

  // Return the prefetched trace if its lease is still valid.
  async takePrefetched() {
    const ready = await this.#prefetched;
    this.#prefetched = null;
    const ends = ready?.work.trace.lease_ends_at;
    return ready && (!ends || Date.parse(ends) - Date.now() > STALE_BEFORE) ? ready : null;
  }

  releasePrefetched() {
    if (this.#prefetched) post(this.urls.release_held, {}, { keepalive: true }).catch(() => {});
  }

  // Apply unsent edits of this browser to the trace. A server that does not know yet that a trace was begun or left here
  // assigns the same one again; that is an error here.
  async prepare(trace) {
    await this.outbox.whenStored();
    const items = (await this.outbox.unanswered()).filter((item) => item.assignment === trace.assignment);
    const isLeft = this.#left.has(revisionKey(trace.assignment, trace.revision)) || items.some((item) => item.verb);
    if (isLeft || this.current === trace.assignment) throw new Unreachable("not sent yet");
    const work = new TraceState(trace);
    this.outbox.noteShown(trace.assignment, trace.version);
    const open = items.length ? await this.outbox.openPages() : null;
    for (const item of items) {
      if (!this.outbox.clients.has(item.client) && open.has(item.client)) continue; // it comes when it is sent
      this.outbox.clients.add(item.client); // edits of a closed tab are now shown here
      work.applyEdit(item);
    }
    await loadRenderers(work.texts());
    work.drafts = await this.drafts.loadLeft(trace);
    return this.buildView(work);
  }
}
