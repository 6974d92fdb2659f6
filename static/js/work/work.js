// The work page: one keystroke per rating, and the next trace appears without waiting for the network.

import { promptText } from "./text_prompt.js";
import { ActiveClock } from "./clock.js";
import { Dock } from "./dock.js";
import { goWhenAnswered, goWhenSaved, delayLinksUntilSaved, warnBeforeUnload } from "./unload.js";
import { bindActions } from "./keyboard.js";
import { MessagePanel } from "./messages.js";
import { TraceView, stopId } from "./trace_view.js";
import { LoggedOut, Outbox, Refused, Unreachable, post } from "./network.js";
import { Store } from "./store.js";
import { TraceSupply } from "./prefetch.js";
import { loadMath } from "./rendering.js";

const readJson = (id) => JSON.parse(document.getElementById(id)?.textContent || "null");
const config = readJson("work-config");
const store = await Store.open(config.user);
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const QUICK_PRESS_MS = 250; // after a shorter interval, jump instead of scrolling smoothly
const RETRY_MS = 2000;

function getString(name, values = {}) {
  const forms = (store.isPersistent ? null : config.strings.memory_only[name]) ?? config.strings[name];
  const text = typeof forms === "string" ? forms : values.count === 1 ? forms.one : forms.other;
  return text.replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}

const urlOf = (assignment, verb) => config.urls[verb].replace("/0/", `/${assignment}/`);

const RECLAIMED_STATES = new Set(["released", "lapsed"]);

class WorkPage {
  #movedAt = 0;
  #isLeaving = false;
  #reclaimedNotice = null;

  constructor(store) {
    this.stage = document.getElementById("stage");
    this.dock = new Dock(document.querySelector(".dock"), { getString });
    this.clock = new ActiveClock().listen();
    const client = crypto.getRandomValues(new Uint8Array(12)).reduce((hex, byte) => hex + byte.toString(16).padStart(2, "0"), "");
    this.outbox = new Outbox(store, { client, urlOf });
    this.supply = new TraceSupply(store, this.outbox, { urls: config.urls, buildView: (work) => new TraceView(work, { getString }) });
    this.outbox.addEventListener("state", (event) => this.dock.showState(event.detail));
    this.outbox.addEventListener("answer", (event) => this.#handleAnswer(event.detail));
    this.outbox.addEventListener("refused", (event) => this.#handleRefusal(event.detail));
    this.messages = new MessagePanel(config.urls.unread, (assignment) => this.supply.isCurrentOrLeft(assignment));
    this.current = null;
  }

  // --- showing traces --------------------------------------------------------------------------------------------

  async start(trace) {
    const ready = trace && (await this.supply.prepare(trace).catch(() => null)); // first: sending removes items from the store
    this.outbox.sendNow();
    if (ready) this.show(ready);
    else await this.#showNext();
  }

  show(view) {
    this.#isLeaving = false;
    this.#reclaimedNotice?.remove();
    this.#reclaimedNotice = null;
    this.view = view;
    this.work = view.work;
    this.supply.current = this.work.trace.assignment;
    this.stage.replaceChildren(view.node);
    view.typeset();
    document.title = getString("title", { project: config.project });
    this.#showLeaseEnd(this.work.trace.lease_ends_at);
    if (RECLAIMED_STATES.has(this.work.trace.state)) this.#showReclaimed();
    if (this.work.trace.is_correction) this.#showCorrection();
    this.clock.take();
    // The first rating would open a held trace too, but the time of reading starts now.
    if (view.work.trace.state === "held") post(urlOf(view.work.trace.assignment, "open"), {}).catch((error) => this.#handleOpenRefused(view, error));
    this.current = this.work.unrated()[0] ?? this.work.stops()[0] ?? null;
    this.paint();
    this.#scroll(false);
    document.documentElement.dataset.ready = view.node.dataset.assignment;
    // Load KaTeX last: formulas show their source until then.
    setTimeout(() => loadMath(config.katex).then(() => view.typeset()));
  }

  // The trace was reclaimed in the meantime, or an onboarding step is due. Ratings made here are kept.
  #handleOpenRefused(view, error) {
    if (error instanceof Refused && this.view === view) this.#fetchNext();
  }

  async #showNext() {
    this.messages.refresh();
    await this.outbox.whenStored(); // the annotator may close the tab as soon as the next trace is visible
    const ready = await this.supply.takePrefetched();
    return ready ? this.show(ready) : this.#fetchNext();
  }

  async #fetchNext() {
    this.stage.setAttribute("aria-busy", "true");
    try {
      this.show(await this.supply.claim());
    } catch (error) {
      this.#showNothing(error);
    } finally {
      this.stage.removeAttribute("aria-busy");
    }
  }

  #showNothing(error) {
    if (error.answer?.gate) return goWhenSaved(this.outbox, config.urls.enter);
    this.view = this.work = this.current = this.supply.current = null;
    const page = document.getElementById("t-nothing").content.cloneNode(true);
    const reason = error instanceof Refused ? error.message : getString(error instanceof LoggedOut ? "logged_out" : "offline");
    page.querySelector("[data-slot=reason]").textContent = reason;
    page.querySelector("section").dataset.nothing = error.answer?.code ?? "offline";
    page.querySelector("button").addEventListener("click", () => this.#fetchNext());
    delayLinksUntilSaved(page, this.outbox);
    this.stage.replaceChildren(page);
    document.documentElement.dataset.ready = "nothing";
    if (error instanceof Unreachable) setTimeout(() => this.work || this.#fetchNext(), RETRY_MS);
  }

  // --- rating --------------------------------------------------------------------------------------------------

  paint() {
    this.view.paint(this.current);
    this.dock.paint(this.work, this.current);
  }

  #enqueue(write) {
    this.outbox.enqueue(this.work.trace.assignment, { ...write, active_ms: this.clock.take() });
    if (!this.work.trace.after && this.work.unrated().length <= this.work.stops().length / 2) this.supply.prefetch();
  }

  rate(rating) {
    if (!this.current || this.#isLeaving) return;
    const stop = this.current;
    this.#enqueue(this.work.rate(stop, rating));
    this.dock.flashButton(rating);
    const stops = this.work.stops();
    const index = stops.findIndex((each) => stopId(each) === stopId(stop));
    this.current = stops[index + 1] ?? stop;
    this.paint();
    if (stopId(this.current) !== stopId(stop)) this.#scroll();
    if (stop.option === 0 && this.work.end()?.position === stop.step) {
      this.dock.showToast(getString("first_negative", { number: this.view.rowFor(stop).dataset.number }), { undo: true });
    }
  }

  move(by) {
    const stops = this.work?.stops() ?? [];
    const index = stops.findIndex((stop) => stopId(stop) === stopId(this.current));
    const to = stops[Math.max(0, Math.min(stops.length - 1, index + by))];
    if (to) this.goTo(to);
  }

  goTo(stop) {
    if (!this.work.stops().some((each) => stopId(each) === stopId(stop))) return;
    this.current = stop;
    this.paint();
    this.#scroll();
  }

  #scroll(smooth = true) {
    const row = this.current && this.view.rowFor(this.current);
    const isQuick = performance.now() - this.#movedAt < QUICK_PRESS_MS;
    this.#movedAt = performance.now();
    row?.scrollIntoView({ block: "center", behavior: !smooth || isQuick || reducedMotion.matches ? "auto" : "smooth" });
  }

  toggleUnsure() {
    if (!this.current) return;
    this.#enqueue(this.work.toggleUnsure(this.current));
    this.paint();
  }

  undo() {
    const undone = this.work?.undo();
    if (!undone) return this.dock.showToast(getString("nothing_to_undo"));
    this.#enqueue(undone.write);
    this.current = this.work.stops().find((stop) => stopId(stop) === stopId(undone.stop)) ?? this.work.stops()[0];
    this.paint();
    return this.#scroll();
  }

  comment() {
    if (!this.current) return;
    const { step } = this.current;
    promptText(getString("ask_comment"), getString("confirm_comment"), this.work.comments.get(step) ?? "", (text) => {
      this.#enqueue(this.work.comment(step, text));
      this.paint();
    });
  }

  toggleProblem() {
    const problem = this.stage.querySelector(".problem");
    const isFolded = problem.classList.toggle("is-folded");
    problem.querySelector(".problem__fold").setAttribute("aria-expanded", String(!isFolded));
  }

  saveExplanation(box) {
    const stop = { step: Number(box.dataset.step), option: 0 };
    const category = box.querySelector("[name^=category]:checked")?.value ?? "";
    const reason = box.querySelector("[name=reason]").value;
    const corrected = box.querySelector("[name=corrected]").value;
    const cell = this.work.cell(stop.step);
    if (category !== cell.category || reason !== cell.reason) this.#enqueue(this.work.explain(stop, category, reason));
    if (corrected !== (this.work.written.get(stop.step) ?? "")) this.#enqueue(this.work.write(stop.step, corrected));
  }

  // --- leaving a trace -----------------------------------------------------------------------------------------

  submit() {
    if (!this.work || this.#isLeaving) return;
    if (this.work.submitState().missing) this.dock.showToast(this.dock.submit.textContent);
    else this.#finish("submit", {});
  }

  leaveWithReason(verb) {
    if (!this.work || this.#isLeaving) return;
    promptText(getString(`ask_${verb}`), getString(`confirm_${verb}`), "", (reason) => reason.trim() && this.#finish(verb, { reason }));
  }

  // The edits are sent for the history; the submission does not change.
  discardCorrection() {
    if (this.work && !this.#isLeaving) this.#finish("discard", {});
  }

  #finish(verb, body) {
    this.#isLeaving = true;
    this.supply.markLeft(this.work.trace);
    this.outbox.enqueue(this.work.trace.assignment, { verb, body: { ...body, revision: this.work.trace.revision, active_ms: this.clock.take() } });
    if (this.work.trace.after) goWhenAnswered(this.outbox, this.work.trace);
    else this.#showNext();
  }

  // --- answers of the server --------------------------------------------------------------------------------------

  #handleAnswer({ assignment, answer, writes }) {
    if (this.work?.trace.assignment !== assignment) return;
    for (const lost of answer.lost ?? []) {
      if (lost.part === "rating") this.#showLost({ ...lost, yours: writes.find((write) => write.sequence === lost.sequence) });
    }
    if (answer.lease_ends_at) this.#showLeaseEnd(answer.lease_ends_at);
    else if (RECLAIMED_STATES.has(answer.state)) this.#showReclaimed();
  }

  // A lead reclaimed the trace, or its lease expired. The annotator can still finish and submit it.
  #showReclaimed() {
    this.#showLeaseEnd(null);
    if (!this.#reclaimedNotice) this.#reclaimedNotice = this.#showNotice(getString("reclaimed"), "reclaimed");
  }

  #showCorrection() {
    document.getElementById("notices").replaceChildren(document.getElementById("t-correction").content.cloneNode(true));
  }

  #showLeaseEnd(moment) {
    const shown = moment ? new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }) : "";
    document.getElementById("lease").textContent = shown;
  }

  // Another tab or device overruled a rating: show the current one, and offer to restore the rating made here.
  #showLost({ step, option, current, yours }) {
    this.work.applyServerCell(step, option, current);
    const row = this.view.rowFor({ step, option });
    const note = document.getElementById("t-lost").content.firstElementChild.cloneNode(true);
    const names = { theirs: getString(`rating_${current.rating}`), yours: getString(`rating_${yours.rating}`) };
    Object.assign(note.dataset, { theirs: current.rating, yours: yours.rating });
    note.querySelector("[data-slot=text]").textContent = getString("lost", names);
    const button = note.querySelector("button");
    button.textContent = getString("keep_rating", { rating: names.yours });
    button.addEventListener("click", () => {
      this.current = { step, option };
      this.#enqueue(this.work.rate(this.current, yours.rating));
      note.remove();
      this.paint();
    });
    row?.querySelector("[data-slot=body]").append(note);
    this.paint();
  }

  #handleRefusal({ assignment, error, items }) {
    for (const item of items) if (item.verb) this.supply.unmarkLeft(assignment, item.body.revision);
    this.#showNotice(error.message, "refused");
  }

  #showNotice(text, kind) {
    const notice = document.getElementById("t-notice").content.firstElementChild.cloneNode(true);
    notice.dataset.notice = kind;
    notice.querySelector("[data-slot=text]").textContent = text;
    notice.querySelector("button").addEventListener("click", () => notice.remove());
    document.getElementById("notices").append(notice);
    return notice;
  }
}

const page = new WorkPage(store);
warnBeforeUnload(page.outbox, store);
bindActions(page, config.keys);
await page.start(readJson("first-trace"));
