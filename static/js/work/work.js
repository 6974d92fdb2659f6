// The work page: one keystroke a rating, the next trace on screen before the finger is up.

import { ask } from "./text_prompt.js";
import { ActiveClock } from "./clock.js";
import { Dock } from "./dock.js";
import { goWhenAnswered, goWhenSaved, delayLinksUntilSaved, warnBeforeUnload } from "./unload.js";
import { listen } from "./keyboard.js";
import { MessagePanel } from "./messages.js";
import { TraceView, stopId } from "./trace_view.js";
import { LoggedOut, Outbox, Refused, Unreachable, post } from "./network.js";
import { Store } from "./store.js";
import { TraceSupply } from "./prefetch.js";
import { loadMath } from "./rendering.js";

const read = (id) => JSON.parse(document.getElementById(id)?.textContent || "null");
const config = read("work-config");
const store = await Store.open(config.user);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const QUICK_PRESS_MS = 250; // quick presses jump, or the scroll lags behind the hand
const RETRY_MS = 2000;

function say(name, values = {}) {
  const word = (store.isPersistent ? null : config.words.without_store[name]) ?? config.words[name];
  const text = typeof word === "string" ? word : values.count === 1 ? word.one : word.other;
  return text.replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}

const urlOf = (assignment, verb) => config.urls[verb].replace("/0/", `/${assignment}/`);

const RECLAIMED_STATES = new Set(["released", "lapsed"]);

class WorkPage {
  #movedAt = 0;
  #leaving = false;
  #reclaimedNotice = null; // what is said of a trace that is no longer kept for the rater

  constructor(store) {
    this.stage = document.getElementById("stage");
    this.dock = new Dock(document.querySelector(".dock"), { say });
    this.clock = new ActiveClock().listen();
    const client = crypto.getRandomValues(new Uint8Array(12)).reduce((hex, byte) => hex + byte.toString(16).padStart(2, "0"), "");
    this.outbox = new Outbox(store, { client, urlOf });
    this.supply = new TraceSupply(store, this.outbox, { urls: config.urls, ladder: (work) => new TraceView(work, { say }) });
    this.outbox.addEventListener("state", (event) => this.dock.showState(event.detail));
    this.outbox.addEventListener("answer", (event) => this.#answered(event.detail));
    this.outbox.addEventListener("refused", (event) => this.#refused(event.detail));
    this.letters = new MessagePanel(config.urls.unread, (assignment) => this.supply.isCurrentOrLeft(assignment));
    this.now = null;
  }

  // --- one trace after another ---------------------------------------------------------------------------------

  async start(trace) {
    const ready = trace && (await this.supply.prepared(trace).catch(() => null)); // before the outbox forgets what it has sent
    this.outbox.hurry();
    if (ready) this.show(ready);
    else await this.#next();
  }

  show(ladder) {
    this.#leaving = false;
    this.#reclaimedNotice?.remove();
    this.#reclaimedNotice = null;
    this.ladder = ladder;
    this.work = ladder.work;
    this.supply.current = this.work.trace.assignment;
    this.stage.replaceChildren(ladder.node);
    ladder.typeset();
    document.title = say("title", { project: config.project });
    this.#showLeaseEnd(this.work.trace.lease_ends_at);
    if (RECLAIMED_STATES.has(this.work.trace.state)) this.#showReclaimed();
    if (this.work.trace.is_correction) this.#showCorrection();
    this.clock.take();
    // The first rating opens a held trace as well; this tells the server when reading begins.
    if (ladder.work.trace.state === "held") post(urlOf(ladder.work.trace.assignment, "open"), {}).catch((error) => this.#handleOpenRefused(ladder, error));
    const first = this.work.unrated()[0] ?? this.work.stops()[0] ?? null;
    this.now = first;
    this.paint();
    this.#scroll(false);
    document.documentElement.dataset.ready = ladder.node.dataset.assignment;
    // After what a rating needs. A place for each formula stands there already, with its source in it.
    setTimeout(() => loadMath(config.katex).then(() => ladder.typeset()));
  }

  // It went back meanwhile, or something comes first: the guideline has changed. What was rated here is kept.
  #handleOpenRefused(ladder, error) {
    if (error instanceof Refused && this.ladder === ladder) this.#fetchNext();
  }

  async #next() {
    this.letters.look();
    await this.outbox.written(); // whoever sees the next trace may close the tab
    const ready = await this.supply.ahead();
    return ready ? this.show(ready) : this.#fetchNext();
  }

  async #fetchNext() {
    this.stage.setAttribute("aria-busy", "true");
    try {
      this.show(await this.supply.fetch());
    } catch (error) {
      this.#nothing(error);
    } finally {
      this.stage.removeAttribute("aria-busy");
    }
  }

  #nothing(error) {
    if (error.answer?.station) return goWhenSaved(this.outbox, config.urls.enter);
    this.ladder = this.work = this.now = this.supply.current = null;
    const page = document.getElementById("t-nothing").content.cloneNode(true);
    const kind = error instanceof Refused ? error.message : say(error instanceof LoggedOut ? "save_logged_out" : "no_network");
    page.querySelector("[data-slot=why]").textContent = kind;
    page.querySelector("button").addEventListener("click", () => this.#fetchNext());
    delayLinksUntilSaved(page, this.outbox);
    this.stage.replaceChildren(page);
    document.documentElement.dataset.ready = "nothing";
    if (error instanceof Unreachable) setTimeout(() => this.work || this.#fetchNext(), RETRY_MS);
  }

  // --- rating --------------------------------------------------------------------------------------------------

  paint() {
    this.ladder.paint(this.now);
    this.dock.paint(this.work, this.now);
  }

  #keep(write) {
    this.outbox.keep(this.work.trace.assignment, { ...write, active_ms: this.clock.take() });
    if (!this.work.trace.after && this.work.unrated().length <= this.work.stops().length / 2) this.supply.prefetch();
  }

  rate(rating) {
    if (!this.now || this.#leaving) return;
    const at = this.now;
    this.#keep(this.work.rate(at, rating));
    this.dock.hit(rating);
    const stops = this.work.stops();
    const here = stops.findIndex((stop) => stopId(stop) === stopId(at));
    this.now = stops[here + 1] ?? at;
    this.paint();
    if (stopId(this.now) !== stopId(at)) this.#scroll();
    if (at.option === 0 && this.work.end()?.position === at.step) {
      this.dock.tell(say("first_negative", { number: this.ladder.rowFor(at).dataset.number }), { undo: true });
    }
  }

  move(by) {
    const stops = this.work?.stops() ?? [];
    const here = stops.findIndex((stop) => stopId(stop) === stopId(this.now));
    const to = stops[Math.max(0, Math.min(stops.length - 1, here + by))];
    if (to) this.light(to);
  }

  light(stop) {
    if (!this.work.stops().some((one) => stopId(one) === stopId(stop))) return;
    this.now = stop;
    this.paint();
    this.#scroll();
  }

  #scroll(smooth = true) {
    const row = this.now && this.ladder.rowFor(this.now);
    const hurried = performance.now() - this.#movedAt < QUICK_PRESS_MS;
    this.#movedAt = performance.now();
    row?.scrollIntoView({ block: "center", behavior: !smooth || hurried || calm.matches ? "auto" : "smooth" });
  }

  unsure() {
    if (!this.now) return;
    this.#keep(this.work.toggleUnsure(this.now));
    this.paint();
  }

  undo() {
    const undone = this.work?.undo();
    if (!undone) return this.dock.tell(say("nothing_to_undo"));
    this.#keep(undone.write);
    this.now = this.work.stops().find((stop) => stopId(stop) === stopId(undone.stop)) ?? this.work.stops()[0];
    this.paint();
    return this.#scroll();
  }

  comment() {
    if (!this.now) return;
    const { step } = this.now;
    ask(say("ask_comment"), this.work.comments.get(step) ?? "", (text) => {
      this.#keep(this.work.comment(step, text));
      this.paint();
    });
  }

  fold() {
    const problem = this.stage.querySelector(".problem");
    const isFolded = problem.classList.toggle("is-folded");
    problem.querySelector(".problem__fold").setAttribute("aria-expanded", String(!isFolded));
  }

  explain(box) {
    const stop = { step: Number(box.dataset.step), option: 0 };
    const category = box.querySelector("[name^=category]:checked")?.value ?? "";
    const reason = box.querySelector("[name=reason]").value;
    const corrected = box.querySelector("[name=corrected]").value;
    const cell = this.work.cell(stop.step);
    if (category !== cell.category || reason !== cell.reason) this.#keep(this.work.explain(stop, category, reason));
    if (corrected !== (this.work.written.get(stop.step) ?? "")) this.#keep(this.work.write(stop.step, corrected));
  }

  // --- leaving a trace -----------------------------------------------------------------------------------------

  submit() {
    if (!this.work || this.#leaving) return;
    if (this.work.submitState().missing) this.dock.tell(this.dock.submit.textContent);
    else this.#leave("submit", {});
  }

  leaveWithReason(verb) {
    if (!this.work || this.#leaving) return;
    ask(say(`ask_${verb}`), "", (reason) => reason.trim() && this.#leave(verb, { reason }));
  }

  // The edits go along: the history keeps them, the submission does not change.
  discardCorrection() {
    if (this.work && !this.#leaving) this.#leave("discard", {});
  }

  #leave(verb, body) {
    this.#leaving = true;
    this.supply.leave(this.work.trace);
    this.outbox.keep(this.work.trace.assignment, { verb, body: { ...body, revision: this.work.trace.revision, active_ms: this.clock.take() } });
    if (this.work.trace.after) goWhenAnswered(this.outbox, this.work.trace);
    else this.#next();
  }

  // --- what the server says --------------------------------------------------------------------------------------

  #answered({ assignment, answer, writes }) {
    if (this.work?.trace.assignment !== assignment) return;
    for (const lost of answer.lost ?? []) {
      if (lost.part === "rating") this.#showLost({ ...lost, yours: writes.find((write) => write.sequence === lost.sequence) });
    }
    if (answer.lease_ends_at) this.#showLeaseEnd(answer.lease_ends_at);
    else if (RECLAIMED_STATES.has(answer.state)) this.#showReclaimed();
  }

  // A lead took it, or its lease ended. Whoever is in the middle of it may finish: what is submitted is kept.
  #showReclaimed() {
    this.#showLeaseEnd(null);
    if (!this.#reclaimedNotice) this.#reclaimedNotice = this.#notice(say("went_back"));
  }

  #showCorrection() {
    document.getElementById("notices").replaceChildren(document.getElementById("t-correction").content.cloneNode(true));
  }

  #showLeaseEnd(moment) {
    const shown = moment ? new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }) : "";
    document.getElementById("lease").textContent = shown;
  }

  // Another tab or device won: the page shows what stands, and keeps what was meant here in sight.
  #showLost({ step, option, stands, yours }) {
    this.work.applyServerCell(step, option, { ...stands, reason: stands.reason });
    const row = this.ladder.rowFor({ step, option });
    const note = document.getElementById("t-lost").content.firstElementChild.cloneNode(true);
    note.querySelector("[data-slot=text]").textContent = say("lost", { theirs: say(`rating_${stands.rating}`), yours: say(`rating_${yours.rating}`) });
    note.querySelector("button").addEventListener("click", () => {
      this.now = { step, option };
      this.#keep(this.work.rate(this.now, yours.rating));
      note.remove();
      this.paint();
    });
    row?.querySelector("[data-slot=body]").append(note);
    this.paint();
  }

  #refused({ assignment, error, items }) {
    for (const item of items) if (item.verb) this.supply.unmarkLeft(assignment, item.body.revision);
    this.#notice(error.message);
  }

  #notice(text) {
    const notice = document.getElementById("t-refused").content.firstElementChild.cloneNode(true);
    notice.querySelector("[data-slot=text]").textContent = text;
    notice.querySelector("button").addEventListener("click", () => notice.remove());
    document.getElementById("notices").append(notice);
    return notice;
  }
}

const page = new WorkPage(store);
warnBeforeUnload(page.outbox, store);
listen(page, config.keys);
await page.start(read("first-trace"));
