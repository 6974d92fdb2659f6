// Messages from leads and notices of reclaimed traces, as a line above the trace until they are read.
// Loaded when the next trace appears and the server has said that they differ, never while a trace is being rated. A failure
// is retried with the next trace.

import { parsePage } from "./html.js";
import { clockTime, config, getString } from "./page_config.js";

const cloneNote = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
const notices = document.getElementById("notices");

// `assignment`: the trace that the notice is about.
export function showNotice(text, kind, assignment = "") {
  const notice = cloneNote("t-notice");
  Object.assign(notice.dataset, { notice: kind, assignment });
  notice.querySelector("[data-slot=text]").textContent = text;
  notice.querySelector("button").addEventListener("click", () => notice.remove());
  notices.append(notice);
  return notice;
}

export function linkNotice(notice, href) {
  Object.assign(notice.querySelector("a"), { href, hidden: false });
}

// Another tab or device has replaced a text that was written here.
export function showReplacedText({ field, yours }, { number, assignment }) {
  showNotice(getString(`replaced_${field}`, { number, text: yours }), "replaced", assignment);
}

export function showCorrection() {
  notices.replaceChildren(document.getElementById("t-correction").content.cloneNode(true));
}

// The trace was submitted in another tab or device. Without `edit` it cannot be edited. The notice stays until another
// trace is shown: the request for it may fail.
export function showSubmitted(text, { assignment, url, edit, next }) {
  const note = cloneNote("t-submitted");
  note.dataset.assignment = assignment;
  note.querySelector("[data-slot=text]").textContent = text;
  note.querySelector("a").href = url;
  const [editButton, nextButton] = note.querySelectorAll("button");
  editButton.hidden = !edit;
  editButton.addEventListener("click", edit);
  nextButton.addEventListener("click", next ?? (() => note.remove()));
  notices.append(note);
}

export function showLeaseEnd(moment) {
  if (document.documentElement.dataset.leaseEnds === (moment ?? "")) return;
  document.documentElement.dataset.leaseEnds = moment ?? "";
  for (const slot of document.querySelectorAll("[data-lease]")) slot.textContent = moment ? clockTime(moment) : "–";
}

// The notices that belong to the trace shown before.
export function clearNotices() {
  for (const notice of notices.querySelectorAll(":scope > :is([data-correction], [data-notice=submitted])")) notice.remove();
}

// Show beside a step which rating another tab or device has given, and offer to restore the one given here.
export function showLostRating(row, current, yours, restore) {
  row?.querySelector(".step__lost")?.remove();
  if (!row || current === yours) return;
  const note = cloneNote("t-lost");
  const names = { theirs: getString(`rating_${current}`), yours: getString(`rating_${yours}`) };
  Object.assign(note.dataset, { theirs: current, yours });
  note.querySelector("[data-slot=text]").textContent = getString("lost", names);
  const button = note.querySelector("button");
  button.textContent = getString("keep_rating", { rating: names.yours });
  button.addEventListener("click", () => {
    note.remove();
    restore();
  });
  row.querySelector("[data-slot=body]").append(note);
}

export class MessagePanel {
  #url;
  #isCurrentOrLeft;
  #onSent;
  #shown = config.news; // the page came with these
  #latest = config.news;
  #toldAt = -Infinity;

  // `isCurrentOrLeft(assignment)`: whether this page shows the trace or has just submitted it; then no notice is needed.
  // `onSent()` is called after a reply was sent.
  constructor(url, isCurrentOrLeft, onSent) {
    this.#url = url;
    this.#isCurrentOrLeft = isCurrentOrLeft;
    this.#onSent = onSent;
    document.addEventListener("submit", (event) => {
      if (event.target.closest("#unread")) this.#send(event);
    });
  }

  // `isShown`: load them now if they differ.
  noteNews(news, { isShown = false } = {}) {
    if (news === undefined) return;
    this.#latest = news;
    this.#toldAt = performance.now();
    if (isShown) this.refreshIfNews();
  }

  // Whether the server has told the news within these milliseconds.
  isTold(within) {
    return performance.now() - this.#toldAt < within;
  }

  async refreshIfNews() {
    if (this.#latest !== this.#shown) await this.refresh();
  }

  async refresh() {
    const latest = this.#latest;
    const html = await this.#fetchHtml(this.#url);
    const isInUse = document.querySelector("#unread :is([open], :focus-within)"); // may have been opened during the request
    if (isInUse || !html) return;
    this.#shown = latest;
    this.#replace(html);
  }

  async #send(event) {
    event.preventDefault();
    const { target: form, submitter } = event;
    const body = new FormData(form);
    const answer = await this.#fetchHtml(submitter?.getAttribute("formaction") ?? form.action, { method: "POST", body });
    if (answer) {
      if (body.get("answer") && !submitter?.hasAttribute("formaction")) this.#onSent();
      await this.#replace(await this.#fetchHtml(this.#url));
    } else HTMLFormElement.prototype.submit.call(form); // submit normally, so that the browser shows the error
  }

  #fetchHtml(url, options = {}) {
    return fetch(url, { credentials: "same-origin", headers: { Accept: "text/html" }, ...options })
      .then((answer) => (answer.ok ? answer.text() : null))
      .catch(() => null);
  }

  #replace(html) {
    const fresh = html && parsePage(html).getElementById("unread");
    for (const note of fresh?.querySelectorAll("[data-notice]") ?? []) if (this.#isCurrentOrLeft(Number(note.dataset.notice))) note.remove();
    if (fresh) document.getElementById("unread").replaceWith(fresh);
  }
}
