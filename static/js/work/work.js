// The work page: one keystroke per rating, and the next trace appears without waiting for the network.

import { ActiveClock } from "./clock.js";
import { Announcer, Dock } from "./dock.js";
import { Drafts, TextEdits, closePrompt, isPromptOpen, promptText } from "./drafts.js";
import { buildEmptyPage, goWhenAnswered, goWhenSaved, warnBeforeUnload } from "./unload.js";
import { bindActions } from "./keyboard.js";
import { loadAhead, showSuggestions } from "./later.js";
import { MessagePanel, clearNotices, linkNotice, showCorrection, showLeaseEnd, showLostRating, showNotice, showReplacedText, showSubmitted } from "./messages.js";
import { clockTime, config, getString, readJson, store, urlOf } from "./page_config.js";
import { TraceView, stopId } from "./trace_view.js";
import { LoggedOut, Outbox, Refused, Unreachable, post } from "./network.js";
import { ReaderLoader, goToMissing, loadQuestions, withQuestions } from "./navigation.js";
import { StepScroller } from "./step_scroller.js";
import { tabMemory } from "./store.js";
import { TraceSupply } from "./prefetch.js";
import { loadMath } from "./nodes.js";

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const QUICK_PRESS_MS = 250; // after a shorter interval, jump instead of scrolling smoothly
const RETRY_MS = 2000;
const UNDO_SUBMIT_MS = 10_000;
const SURPRISE_MS = 700; // keys pressed so soon after another trace appeared were meant for the one before
const MAX_UNDO = 100; // changes that can be undone after a reload
const RECLAIMED_STATES = new Set(["released", "lapsed"]);

class WorkPage {
  #movedAt = 0;
  #isLeaving = false;
  #isSubmittedElsewhere = false;
  #reclaimedNotice = null;
  #shownAt = 0;
  #hasChanged = false; // the annotator has changed the trace since it appeared
  #deafUntil = 0;
  #rated = null; // the step just rated, if the highlight moved on from it by itself
  #inSight = null; // the step that a key has brought into view
  #left = new Map(); // assignment -> view of a trace whose ending the server has not answered
  #waiting = []; // views that come before the next trace
  #lastSubmit = null;
  #arriving = null; // settles when the next trace is on the page
  #retryTimer = null;

  constructor(store) {
    this.stage = document.getElementById("stage");
    this.dock = new Dock(document.querySelector(".dock"), { getString });
    this.clock = new ActiveClock().listen();
    const client = crypto.getRandomValues(new Uint8Array(12)).reduce((hex, byte) => hex + byte.toString(16).padStart(2, "0"), "");
    this.outbox = new Outbox(store, { client, urlOf });
    this.drafts = new Drafts(store, this.outbox);
    this.supply = new TraceSupply(this.drafts, this.outbox, { urls: config.urls, urlOf, buildView: (work) => new TraceView(work, { getString }), onNews: (news) => this.messages.noteNews(news) });
    this.outbox.addEventListener("state", (event) => this.dock.showState(event.detail));
    this.outbox.addEventListener("answer", (event) => this.#handleAnswer(event.detail));
    this.outbox.addEventListener("refused", (event) => event.detail.until(this.#handleRefusal(event.detail)));
    this.outbox.addEventListener("changed", (event) => this.#syncIfShown(event.detail.assignment));
    // Without a trace, the annotator may have logged in again elsewhere.
    const refresh = () => (document.documentElement.dataset.ready === "nothing" ? this.#showNext() : this.#sync());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());
    addEventListener("focus", () => this.view === null && refresh());
    this.texts = new TextEdits(this, this.drafts);
    this.scroller = new StepScroller();
    this.announcer = new Announcer();
    this.reader = new ReaderLoader(this);
    this.supply.kept = () => [this.view, ...this.#waiting, ...this.#left.values()].filter(Boolean).map((view) => view.work.trace.assignment);
    this.messages = new MessagePanel(config.urls.unread, (assignment) => this.supply.isCurrentOrLeft(assignment), () => this.dock.showToast(getString("reply_sent")));
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
    this.#isLeaving = this.#isSubmittedElsewhere = this.#hasChanged = false;
    this.#reclaimedNotice?.remove();
    this.#rated = this.#inSight = this.#reclaimedNotice = null;
    clearNotices();
    closePrompt();
    Object.assign(this, { view, work: view.work });
    this.supply.current = this.work.trace.assignment;
    this.stage.replaceChildren(view.node);
    view.typeset();
    document.title = getString("title", { project: config.project });
    showLeaseEnd(this.work.trace.lease_ends_at);
    if (RECLAIMED_STATES.has(this.work.trace.state)) this.#showReclaimed();
    if (this.work.trace.is_correction) showCorrection();
    this.clock.take();
    this.#setDead(false);
    document.documentElement.dataset.canSkip = this.#canSkip();
    // The first rating would open a held trace too, but the time of reading starts now.
    if (view.work.trace.state === "held") this.#open(view);
    this.current = this.work.unrated()[0] ?? this.work.stops()[0] ?? null;
    this.#restore();
    this.#hasChanged = false;
    this.paint();
    if (view.work.trace.suggestions) showSuggestions(this, view);
    this.scroller.watch(view.node); // it reads the style, so after what changes it
    this.reader.show(view);
    loadQuestions(this, view);
    this.#scroll(false);
    this.#shownAt = performance.now();
    document.documentElement.dataset.ready = view.node.dataset.assignment;
    // Load KaTeX last: formulas show their source until then.
    setTimeout(() => loadMath(config.katex).then(() => view.typeset()));
  }

  #open(view) {
    view.work.trace.state = "opened";
    this.supply.open(view.work.trace.assignment, [...this.#left.keys()].pop()).catch((error) => {
      // The trace was reclaimed or rated elsewhere in the meantime, or an onboarding step is due.
      if (!(error instanceof Refused) || this.view !== view) return undefined;
      if (this.#hasChanged) return this.#sync(); // what is being rated can still be finished, unless it was submitted
      this.#isLeaving = true;
      return this.#showNext().then(() => this.#ignoreKeys());
    });
  }

  // Restore what a reload or a closed tab left: changes that can be undone, and texts that were being typed.
  #restore() {
    if (!this.work.undone.length) this.work.restoreUndo(tabMemory.read(this.#undoKey()) ?? []);
    this.texts.restore();
  }

  #undoKey = () => `undo.${this.work.trace.assignment}.${this.work.trace.revision}`;

  // A trace that was submitted elsewhere takes no ratings.
  #setDead(isDead) {
    this.#isSubmittedElsewhere = isDead;
    this.view.node.inert = isDead;
    this.dock.setDead(isDead);
  }

  isOpen = () => Boolean(this.work) && !this.#isLeaving && !this.#isSubmittedElsewhere;

  // Whether a key may still have been meant for the trace that was here before.
  isDeaf = () => performance.now() < this.#deafUntil;

  // The trace that is shown changes without a key: keys pressed just now were meant for the one before.
  #ignoreKeys() {
    this.#deafUntil = performance.now() + SURPRISE_MS;
  }

  // Once at a time, so that no trace replaces another that has just appeared.
  #showNext() {
    this.#arriving ??= this.#prepareNext().finally(() => (this.#arriving = null));
    return this.#arriving;
  }

  async #prepareNext() {
    if (this.view !== undefined) this.messages.refreshIfNews(); // the page itself came with them
    await this.outbox.whenStored(); // the annotator may close the tab as soon as the next trace is visible
    const waiting = this.#waiting.pop();
    if (waiting) return this.#showAndSync(waiting);
    const ready = await this.supply.takePrefetched();
    if (!ready) return this.#fetchNext();
    // A trace that was begun earlier may have been rated elsewhere since it was fetched.
    return ready.work.trace.state === "opened" ? this.#showAndSync(ready) : this.show(ready);
  }

  #showAndSync(view) {
    this.show(view);
    this.#sync();
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
    this.dock.setDead(true);
    clearNotices();
    const code = error instanceof LoggedOut ? "logged_out" : (error.answer?.code ?? "offline");
    const page = buildEmptyPage(this.outbox, { code, message: error instanceof Refused ? error.message : null, retry: () => this.#showNext() });
    this.stage.replaceChildren(page);
    document.documentElement.dataset.ready = "nothing";
    clearTimeout(this.#retryTimer);
    if (error instanceof Unreachable) this.#retryTimer = setTimeout(() => this.work || this.#showNext(), RETRY_MS);
  }

  // --- rating --------------------------------------------------------------------------------------------------

  paint() {
    this.view.paint(this.current);
    for (const part of [this.reader, this.questions, this.evidence, this.clauses]) part?.paint();
    this.announcer.tell(this.work, this.view, this.current);
    this.dock.paint(this.work, this.current, this.subject()?.step);
  }

  enqueue(write) {
    this.#hasChanged = true;
    this.outbox.enqueue(this.work.trace.assignment, { ...write, active_ms: this.clock.take() });
    tabMemory.write(this.#undoKey(), this.work.undone.slice(-MAX_UNDO));
    if (!this.work.trace.after && this.work.unrated().length <= this.work.stops().length / 2) this.supply.prefetch();
  }

  rate(rating) {
    if (!this.current || !this.isOpen() || !this.#bringIntoSight(this.current)) return;
    this.dock.flashButton(rating);
    this.rateStop(this.current, rating);
    if (this.current) this.view.keepFocus(this.current);
    else if (this.work.questions.length) goToMissing(this);
  }

  // A key never rates a step that is out of sight: it brings the step into view.
  #bringIntoSight(stop) {
    if (this.#inSight === stopId(stop) || this.scroller.shows(this.view.rowFor(stop))) return true;
    this.#inSight = stopId(stop);
    this.#scroll(false);
    this.dock.showToast(getString("out_of_sight", { number: this.view.numberOf(stop.step) }));
    return false;
  }

  rateStop(stop, rating) {
    if (!this.isOpen()) return;
    this.texts.rate(stop, rating);
    const stops = this.work.stops();
    const index = stops.findIndex((each) => stopId(each) === stopId(stop));
    this.current = stops[index + 1] ?? null; // after the last one, only the submit button is highlighted
    this.#rated = stop;
    this.#inSight = null;
    this.paint();
    this.#scroll();
    if (stop.option === 0 && this.work.end()?.position === stop.step) {
      this.dock.showToast(getString("first_negative", { number: this.view.numberOf(stop.step) }), { undo: getString("undo") });
    }
  }

  goTo(stop) {
    if (!this.work.stops().some((each) => stopId(each) === stopId(stop))) return;
    this.current = stop;
    this.#rated = this.#inSight = null;
    this.paint();
    this.#scroll();
    this.view.keepFocus(stop);
  }

  #scroll(smooth = true) {
    const stop = this.current ?? this.#rated;
    const row = stop && this.view.rowFor(stop);
    const isQuick = performance.now() - this.#movedAt < QUICK_PRESS_MS;
    this.#movedAt = performance.now();
    if (row) this.scroller.follow(row, { isSmooth: smooth && !isQuick && !reducedMotion.matches });
  }

  // The step that "unsure" and "comment" mean: the one just rated, unless the annotator has chosen another since. With
  // Shift they mean the highlighted step.
  subject(isLit = false) {
    return (isLit ? this.current : null) ?? this.#rated ?? this.current;
  }

  toggleUnsure({ isLit = false } = {}) {
    const stop = this.subject(isLit);
    if (!stop || !this.isOpen()) return;
    this.enqueue(this.work.toggleUnsure(stop));
    this.paint();
    const { flagged } = this.work.cell(stop.step, stop.option);
    this.dock.showToast(getString(flagged ? "unsure_on" : "unsure_off", { number: this.view.numberOf(stop.step) }), { undo: getString("undo") });
  }

  undo() {
    if (!this.isOpen() || !this.work.undone.length) return this.#undoSubmit();
    const { stop, what, write } = this.work.undo();
    this.enqueue(write);
    if (what === "answer") return withQuestions(this, (questions) => questions.showUndone(stop.step));
    if (what === "rating") this.texts.saveDrafts(stop.step);
    this.#rated = this.#inSight = null;
    this.current = this.work.stops().find((each) => stopId(each) === stopId(stop)) ?? this.work.stops()[0];
    this.paint();
    this.view.fillErrorBoxes();
    this.#scroll();
    this.view.keepFocus(this.current);
    const rating = getString(`rating_${this.work.cell(stop.step, stop.option).rating}`);
    return this.dock.showToast(getString(`undone_${what}`, { number: this.view.numberOf(stop.step), rating }));
  }

  // --- leaving a trace -----------------------------------------------------------------------------------------

  submit() {
    if (!this.isOpen()) return undefined;
    const [unrated] = this.work.unrated();
    if (this.work.submitState().missing) {
      this.dock.showToast(this.dock.submit.textContent);
      return unrated ? this.goTo(unrated) : goToMissing(this);
    }
    if (this.work.isUnchanged()) return this.dock.showToast(getString("unchanged"));
    return this.#hasChanged || performance.now() - this.#shownAt > SURPRISE_MS ? this.#finish("submit", {}) : undefined;
  }

  #canSkip() {
    return !this.work.trace.is_onboarding && !this.work.trace.is_correction && config.skips_left > 0;
  }

  leaveWithReason(verb) {
    if (!this.isOpen()) return undefined;
    if (verb === "skip" && !this.#canSkip()) return this.dock.showToast(getString("no_skip"));
    return promptText({
      question: getString(`ask_${verb}`),
      confirm: getString(`confirm_${verb}`),
      text: "",
      missing: () => this.dock.showToast(getString("no_reason")),
      done: (reason) => this.#finish(verb, { reason }),
    });
  }

  // The edits are sent for the history; the submission does not change.
  discardCorrection() {
    if (this.isOpen()) this.#finish("discard", {});
  }

  #finish(verb, body) {
    this.texts.saveAll();
    const { view, work: { trace } } = this;
    this.drafts.dropAll(trace);
    if (!trace.after) this.supply.prefetch();
    const promised = this.work.promise();
    this.#isLeaving = true;
    tabMemory.write(this.#undoKey(), null);
    this.supply.markLeft(trace);
    this.#left.set(trace.assignment, view);
    if (verb === "skip") config.skips_left -= 1;
    this.outbox.enqueueEnding(view.work, verb, { ...body, active_ms: this.clock.take() });
    if (trace.after) return goWhenAnswered(this.outbox, trace);
    this.#lastSubmit = verb === "submit" && !trace.is_onboarding ? { assignment: trace.assignment, view, at: performance.now() } : null;
    if (this.#lastSubmit) tabMemory.write("last-submit", trace.assignment);
    return this.#showNext().then(() => this.#offerUndoSubmit(promised));
  }

  #offerUndoSubmit({ code, number }) {
    if (!this.#lastSubmit) return;
    this.dock.showToast(getString(`submitted_${code}`, { number }), { undo: getString("undo_submit"), lasts: UNDO_SUBMIT_MS });
  }

  // --- taking a submission back ------------------------------------------------------------------------------------

  #undoSubmit() {
    const last = this.#lastSubmit;
    if (last && performance.now() - last.at <= UNDO_SUBMIT_MS) this.#takeBack(last);
    else this.dock.showToast(getString("nothing_to_undo"));
  }

  // Show the trace again as if it had not been submitted, or correct it if the server has the submission.
  async #takeBack(last) {
    const { assignment, view } = last;
    this.#lastSubmit = null;
    const ending = await this.outbox.withdrawEnding(assignment);
    if (ending === "unclear") {
      this.#lastSubmit = last;
      return showNotice(getString("offline"), "refused", assignment);
    }
    this.#left.delete(assignment);
    if (ending === "sent") return this.editSubmission(assignment);
    this.supply.unmarkLeft(assignment, view.work.trace.revision);
    await this.#showInstead(view);
    return this.#sync();
  }

  // Correct a submission here; afterward the trace that was open comes back.
  async editSubmission(assignment = tabMemory.read("last-submit")) {
    if (this.#isLeaving) return undefined;
    if (this.#left.has(assignment)) return this.#lastSubmit?.assignment === assignment ? this.#takeBack(this.#lastSubmit) : undefined;
    const isHere = assignment === this.work?.trace.assignment && !this.#isSubmittedElsewhere;
    if (!assignment || isHere) return this.dock.showToast(getString("nothing_to_edit"));
    try {
      const trace = await post(urlOf(assignment, "reopen"), {});
      this.supply.current = null;
      return this.#showInstead(await this.supply.prepare({ ...trace, after: null }));
    } catch (error) {
      return showNotice(error instanceof Refused ? error.message : getString("offline"), "refused");
    }
  }

  // Show another trace than the annotator expects; the one shown now comes next.
  async #showInstead(view) {
    await this.#arriving?.catch(() => {}); // else the next trace would replace this one
    if (this.view && this.isOpen() && this.view !== view) this.#waiting.push(this.view);
    this.#ignoreKeys();
    this.show(view);
  }

  // --- answers of the server --------------------------------------------------------------------------------------

  #handleAnswer({ assignment, answer, writes, verb }) {
    if (verb !== "record") this.#left.delete(assignment);
    this.messages.noteNews(answer.news, { isShown: verb !== "record" && !this.#hasChanged });
    if (this.work?.trace.assignment !== assignment) return this.work ? undefined : this.#showNext();
    for (const lost of answer.lost ?? []) {
      if (lost.part === "rating" && !answer.is_late) {
        this.#showLost(this.view, { ...lost, yours: writes.find((write) => write.sequence === lost.sequence) });
      }
    }
    if (answer.lease_ends_at) showLeaseEnd(answer.lease_ends_at);
    else if (RECLAIMED_STATES.has(answer.state)) this.#showReclaimed();
  }

  // Compare a trace with the server: another tab or device may have rated or submitted it. Returns whether the page
  // shows the trace as it is now.
  async #sync(view = this.view, isLeft = () => view !== this.view || !this.isOpen()) {
    if (!view) return false;
    const { content, differences } = await this.supply.compare(view.work, isLeft);
    if (!content || isLeft()) return false;
    const isShown = view === this.view;
    if (isShown && content.is_submitted) this.#showSubmitted(content);
    else if (isShown && !differences) location.replace(`?assignment=${content.assignment}`); // a correction was begun elsewhere
    if (content.is_submitted || !differences) return false;
    for (const each of differences.ratings) this.#showLost(view, each);
    for (const each of differences.texts) showReplacedText(each, { number: view.numberOf(each.step), assignment: content.assignment });
    if (isShown) {
      this.view.fillErrorBoxes();
      this.paint();
    }
    return true;
  }

  #syncIfShown(assignment) {
    return this.work?.trace.assignment === assignment && this.#sync();
  }

  // Another tab or device has submitted this trace.
  #showSubmitted({ assignment, submitted_at: submittedAt }) {
    this.#setDead(true);
    closePrompt();
    showLeaseEnd(null);
    const text = getString("submitted_elsewhere", { time: clockTime(submittedAt) });
    const edit = this.work.trace.is_onboarding ? null : () => this.editSubmission(assignment);
    showSubmitted(text, { assignment, url: urlOf(assignment, "submitted_one"), edit, next: () => this.#showNext() });
  }

  // A lead reclaimed the trace, or its lease expired. The annotator can still finish and submit it.
  #showReclaimed() {
    showLeaseEnd(null);
    if (!this.#reclaimedNotice) this.#reclaimedNotice = showNotice(getString("reclaimed"), "reclaimed");
  }

  // Another tab or device overruled a rating: show the current one, and offer to restore the rating made here.
  #showLost(view, { step, option, current, yours }) {
    view.work.applyServerCell(step, option, current);
    view.fillErrorBoxes(); // else the answers below a negative step would be sent again as they were here
    showLostRating(view.rowFor({ step, option }), current.rating, yours.rating, () => this.rateStop({ step, option }, yours.rating));
    if (view === this.view) this.paint();
  }

  // The server refused an ending: the trace comes back with the reason, so that the annotator can decide again.
  async #handleRefusal({ assignment, error, items }) {
    const ending = items.find((item) => item.verb);
    if (!ending) return showNotice(error.message, "refused", assignment) && this.#syncIfShown(assignment);
    await this.#arriving?.catch(() => {});
    const view = this.#left.get(assignment);
    this.#left.delete(assignment);
    this.supply.unmarkLeft(assignment, ending.body.revision);
    if (this.#lastSubmit?.assignment === assignment) this.#lastSubmit = null;
    if (error.answer.code === "skip_limit_reached") config.skips_left = 0;
    else if (ending.verb === "skip") config.skips_left += 1;
    if (this.view === view) this.#isLeaving = false;
    if (error.answer.code === "already_submitted") {
      if (this.view === view) await this.#sync();
      return (this.#isSubmittedElsewhere && this.view === view) || showSubmitted(error.message, { assignment, url: urlOf(assignment, "submitted_one"), edit: () => this.editSubmission(assignment) });
    }
    const isCurrent = view ? await this.#sync(view, () => view === this.view && !this.isOpen()) : false;
    const isSame = isCurrent && view.work.snapshot() === view.work.confirmed;
    if (isSame && error.answer.code === "unseen_ratings" && !ending.body.is_repeat) return this.#repeatEnding(view, ending);
    return this.#bringBack(assignment, view, error.message);
  }

  // The page shows all that is stored, so the ending means the same as before.
  #repeatEnding(view, { verb, body }) {
    if (view === this.view) this.#isLeaving = true;
    this.supply.markLeft(view.work.trace);
    this.#left.set(view.work.trace.assignment, view);
    return this.outbox.enqueueEnding(view.work, verb, { ...body, active_ms: 0, is_repeat: true });
  }

  #bringBack(assignment, view, message) {
    const notice = showNotice(message, "refused", assignment);
    if (!view) linkNotice(notice, `?assignment=${assignment}`);
    else if (view === this.view) this.paint();
    else if (this.work && (this.#hasChanged || isPromptOpen())) this.#waiting.push(view);
    else this.#showInstead(view).then(() => this.#sync());
  }
}

// A page from the browser's history may show a trace as it once was.
addEventListener("pageshow", (event) => event.persisted && location.reload());

const page = new WorkPage(store);
warnBeforeUnload(page.outbox, store);
bindActions(page, config.keys, config.shortcuts);
page.start(readJson("first-trace")).then(loadAhead);
