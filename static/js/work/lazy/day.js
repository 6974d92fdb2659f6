// The working day: figures of today, a break reminder, a warning before the lease ends, and news from the leads.
// Loaded after the page is ready, because the first rating needs none of it.

import { showLeaseEnd } from "../messages.js";
import { parsePage } from "../html.js";
import { clockTime, config, getString, urlOf } from "../page_config.js";
import { post } from "../network.js";

const TICK_MS = 5000;
const NEWS_EVERY_MS = 60_000;
const FIGURES_EVERY_MS = 5 * 60_000; // the figures of today, unless they are opened
const PAUSE_MS = 5 * 60_000; // so long without activity is a break
const LATER_MS = 10 * 60_000;
const WARN_MS = 5 * 60_000; // before the end of the lease
const MEMORY = `stepmark-break-${config.user}`;

const reminder = document.getElementById("reminder");
const slot = (name) => reminder.querySelector(`[data-slot=${name}]`);

function hideReminder(kind) {
  if (!kind || reminder.dataset.kind === kind) reminder.hidden = true;
}

// One at a time; notices about the trace come before the break.
function showReminder(kind, text, { act, onAct, onClose = () => {} }) {
  if (!reminder.hidden && (reminder.dataset.kind === kind || reminder.dataset.kind === "lease")) return;
  reminder.dataset.kind = kind;
  reminder.hidden = false;
  slot("act").textContent = act;
  slot("act").onclick = () => {
    hideReminder();
    onAct();
  };
  slot("close").onclick = () => {
    hideReminder();
    onClose();
  };
  slot("text").textContent = text;
}

// --- break ------------------------------------------------------------------------------------------------------

const readWork = () => {
  try {
    return JSON.parse(localStorage.getItem(MEMORY)) ?? { ms: 0, at: 0 };
  } catch {
    return { ms: 0, at: 0 };
  }
};
const writeWork = (ms, at) => {
  try {
    localStorage.setItem(MEMORY, JSON.stringify({ ms, at }));
  } catch {
    // full or refused: the break is suggested by the next page
  }
};

// Count work across tabs and reloads; a pause starts over.
function countWork(active, minutes) {
  const now = Date.now();
  const { ms, at } = readWork();
  const worked = (now - at > PAUSE_MS ? 0 : ms) + active;
  if (active) writeWork(worked, now);
  if (!active && now - at > PAUSE_MS) hideReminder("break");
  if (!minutes || !active || worked < minutes * 60_000) return;
  showReminder("break", getString("break_text", { minutes: Math.round(worked / 60_000) }), {
    act: getString("break_later"),
    onAct: () => writeWork(minutes * 60_000 - LATER_MS, Date.now()),
    onClose: () => writeWork(0, Date.now()),
  });
}

// --- lease ------------------------------------------------------------------------------------------------------

let warned = ""; // the end of the lease that the annotator knows of

function watchLease(page) {
  const ends = document.documentElement.dataset.leaseEnds ?? "";
  const left = Date.parse(ends) - Date.now();
  const isNear = left > 0 && left <= Math.min(WARN_MS, config.lease_seconds * 300); // the last third of a short lease
  if (!isNear || ends === warned || !page.isOpen() || page.work.trace.is_onboarding) return hideReminder("lease");
  const { assignment } = page.work.trace;
  return showReminder("lease", getString("lease_ends_soon", { time: clockTime(ends) }), {
    act: getString("lease_keep"),
    onAct: () => keepTrace(page, assignment),
    onClose: () => (warned = ends),
  });
}

async function keepTrace(page, assignment) {
  try {
    const answer = await post(urlOf(assignment, "keep"), {});
    if (page.work?.trace.assignment === assignment) showLeaseEnd(answer.lease_ends_at);
  } catch {
    page.dock.showToast(getString("offline"));
  }
}

// --- figures and news -------------------------------------------------------------------------------------------

let figuresAt = -Infinity;

function refreshFiguresIfDue() {
  if (performance.now() - figuresAt < FIGURES_EVERY_MS) return;
  figuresAt = performance.now();
  refreshFigures();
}

async function refreshFigures() {
  const answer = await fetch(config.urls.day, { credentials: "same-origin", redirect: "error" }).catch(() => null);
  if (!answer?.ok) return; // with the next trace
  const fresh = parsePage(await answer.text());
  for (const id of ["day-figures", "day-facts"]) document.getElementById(id).replaceWith(fresh.getElementById(id));
}

// Steps of this trace that the annotator has asked about get a mark; new answers appear beside the trace.
async function refreshQuestions(page) {
  const asked = document.getElementById("unread")?.dataset.asked.split(" ") ?? [];
  if (!page.work || !asked.includes(String(page.work.trace.assignment))) return;
  const { bindPanel, loadQuestions } = await import("./panel.js");
  bindPanel(page);
  await loadQuestions(page);
}

export function startDay(page) {
  let minutes = config.break_minutes;
  let counted = 0;
  let newsAt = Date.now();
  document.querySelector("[data-break]").addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    minutes = Number(form.elements.minutes.value);
    hideReminder("break");
    fetch(form.action, { method: "POST", body: new FormData(form), redirect: "manual" })
      .then(() => page.dock.showToast(getString("break_saved")))
      .catch(() => page.dock.showToast(getString("offline")));
    document.getElementById("day").hidePopover();
  });
  page.outbox.addEventListener("answer", ({ detail }) => detail.verb !== "record" && refreshFiguresIfDue());
  document.getElementById("day").addEventListener("beforetoggle", (event) => event.newState === "open" && refreshFigures());
  new MutationObserver(() => refreshQuestions(page)).observe(document.documentElement, { attributeFilter: ["data-ready"] });
  refreshFigures();
  refreshQuestions(page);
  setInterval(async () => {
    const total = page.clock.total();
    countWork(total - counted, minutes);
    counted = total;
    watchLease(page);
    if (Date.now() - newsAt < NEWS_EVERY_MS || document.visibilityState === "hidden") return;
    newsAt = Date.now();
    // While traces are rated, the server's answers say whether there is news.
    if (page.messages.isTold(NEWS_EVERY_MS)) await page.messages.refreshIfNews();
    else await page.messages.refresh();
    await refreshQuestions(page);
  }, TICK_MS);
}
