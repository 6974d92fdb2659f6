// The page of live labeling: rate the options of a step with one key each, choose one or write a step.
// Ratings and texts are in the browser's storage from the first keystroke until the server has confirmed them. A decision
// is stored in the same way, so that it survives a reload, and sent until the server answers; repeating it is harmless.

import "../image_zoom.js";
import { ActiveClock } from "../work/clock.js";
import { parsePage } from "../work/html.js";
import { Limited, LoggedOut, Refused, get, post } from "../work/network.js";
import { loadMath, typeset } from "../work/nodes.js";
import { loadRenderers, problemBody } from "../work/rendering.js";

const config = JSON.parse(document.getElementById("live-config").textContent);
const root = document.getElementById("live");
const own = document.getElementById("own");
const ending = document.getElementById("ending");
const refusal = document.getElementById("refusal");
const save = document.getElementById("save");
const PLACE = `stepmark-live-${config.user}-${config.session}`;
const RECORD_AFTER_MS = 250; // after the last change
const RETRY_MS = 1500;
const POLL_MS = { waiting: [100, 250], away: [1500, 1500] }; // during the first seconds, and later
const FIRST_POLLS = 40;

const clock = new ActiveClock().listen();
clock.touch();
let owedMs = 0; // active time that was not sent yet
let ratings = new Map(); // index -> {rating, flagged}, of this turn
let draft = ""; // the rater's own step
let pending = null; // a decision that the server has not confirmed: {verb, body}
let isDirty = false;
let isSending = false;
let lit = null; // index of the highlighted option
let endReason = "";
let timer = 0;
let waitMs = RETRY_MS; // before the next attempt

const stage = () => document.getElementById("stage");
const stateOf = () => stage().dataset.state;
const positionOf = () => Number(stage().dataset.position);
const rows = () => [...stage().querySelectorAll("[data-option]")];
const indexOf = (row) => Number(row.dataset.option);
const rowOf = (index) => stage().querySelector(`[data-option="${index}"]`);
const isWhole = (row) => row.dataset.ending !== "truncated";
const ratingOf = (row) => ratings.get(indexOf(row))?.rating ?? null;
const unrated = () => rows().filter((row) => isWhole(row) && ratingOf(row) === null);
const isChoosable = (row) => isWhole(row) && ratingOf(row) === 1 && unrated().length === 0;

// --- storage -------------------------------------------------------------------------------------------------------

function keep() {
  const content = { position: positionOf(), ratings: [...ratings], draft, ends: own.ends_solution.checked, pending, isDirty };
  try {
    localStorage.setItem(PLACE, JSON.stringify(content));
  } catch {
    // Private windows may have no storage. Everything is sent all the same.
  }
}

function readKept() {
  try {
    return JSON.parse(localStorage.getItem(PLACE));
  } catch {
    return null;
  }
}

// Take over what an earlier page of this session has not sent.
function restore() {
  const kept = readKept();
  if (!kept) return;
  if (kept.position === positionOf()) {
    if (kept.isDirty) {
      ratings = new Map([...ratings, ...kept.ratings]);
      isDirty = true;
    }
    pending = kept.pending;
  }
  if (kept.draft && (kept.isDirty || kept.position !== positionOf())) draft = kept.draft;
  own.text.value = draft;
  own.ends_solution.checked = kept.ends;
}

// --- the stage -----------------------------------------------------------------------------------------------------

function readStage() {
  ratings = new Map();
  for (const row of rows()) {
    const checked = row.querySelector("input:checked");
    const isFlagged = !row.querySelector("[data-slot=unsure]").hidden;
    if (checked || isFlagged) ratings.set(indexOf(row), { rating: checked ? Number(checked.value) : null, flagged: isFlagged });
  }
}

async function renderTexts() {
  const shown = stage();
  const plain = [...shown.querySelectorAll("[data-plain]")];
  await loadRenderers(plain.map((each) => each.textContent));
  for (const each of plain) each.replaceChildren(problemBody(each.textContent.trim()));
  if (shown.querySelector("[data-tex]")) loadMath(document.getElementById("katex").dataset).then(() => typeset(shown));
}

function paint() {
  for (const row of rows()) {
    const { rating = null, flagged = false } = ratings.get(indexOf(row)) ?? {};
    for (const input of row.querySelectorAll("input")) input.checked = rating !== null && Number(input.value) === rating;
    row.querySelector("[data-slot=unsure]").hidden = !flagged;
    row.classList.toggle("is-now", indexOf(row) === lit);
    row.querySelector("[data-choose]")?.setAttribute("aria-disabled", String(!isChoosable(row)));
  }
}

const isTyping = () => document.activeElement?.matches("textarea, input[type=text]");

function light(row) {
  if (!row) return;
  lit = indexOf(row);
  paint();
  if (!isTyping()) row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

// Show the stage that the server sent. `isNew`: its turn is another one.
function show({ html, state, position }) {
  const isNew = position !== positionOf();
  if (!isNew && state === stateOf() && state !== "options") return;
  stage().replaceWith(document.adoptNode(parsePage(html).getElementById("stage")));
  if (isNew || ratings.size === 0) readStage();
  if (isNew) {
    isDirty = draft !== "";
    lit = null;
    say("");
  }
  renderTexts();
  light(unrated()[0] ?? rows()[0]);
  paint();
  if (state === "ended") forget();
  else keep();
}

function forget() {
  pending = null;
  isDirty = false;
  draft = "";
  localStorage.removeItem(PLACE);
  mark("saved");
}

function mark(state) {
  save.dataset.save = state;
  save.classList.toggle("save--wait", state === "kept" || state === "logged-out");
  save.textContent = root.dataset[state === "logged-out" ? "loggedOut" : state];
}

function say(text) {
  refusal.textContent = text;
  refusal.hidden = text === "";
}

// --- the server ----------------------------------------------------------------------------------------------------

const notes = () => ({
  position: positionOf(),
  ratings: [...ratings].map(([index, each]) => ({ index, ...each })),
  draft,
  active_ms: owedMs,
});

function change() {
  isDirty = true;
  keep();
  mark("saving");
  schedule(RECORD_AFTER_MS);
}

function schedule(after) {
  clearTimeout(timer);
  timer = setTimeout(send, after);
}

function decide(verb, body = {}) {
  if (pending) return;
  pending = { verb, body };
  say("");
  keep();
  mark("saving");
  schedule(0);
}

async function send() {
  if (isSending || !(pending || isDirty)) return;
  isSending = true;
  owedMs += clock.take();
  const { verb, body } = pending ?? { verb: "record", body: {} };
  const sent = { ...notes(), ...body };
  isDirty = false;
  waitMs = RETRY_MS;
  try {
    const answer = await post(root.dataset[`url${verb[0].toUpperCase()}${verb.slice(1)}`], sent);
    owedMs -= sent.active_ms;
    if (verb !== "record") {
      pending = null;
      if (verb === "write") clearOwn(sent.text);
      show(answer);
      poll(0);
    }
    if (!isDirty) mark("saved");
    keep();
  } catch (error) {
    isDirty = true;
    if (error instanceof Refused) {
      refuse(error);
    } else {
      mark(error instanceof LoggedOut ? "logged-out" : "kept");
      if (error instanceof Limited) waitMs = error.seconds * 1000;
      keep();
    }
  }
  isSending = false;
  if (pending || isDirty) schedule(save.dataset.save === "saving" ? 0 : waitMs);
}

// The server does not accept the message: say so, and keep everything that was typed. A refused decision has stored the
// ratings and the text that came with it.
function refuse(error) {
  say(error.message);
  mark(pending ? "saved" : "kept");
  if (error.answer.code === "unknown_turn") refresh();
  pending = null;
  keep(); // as changed, so that the next page sends it
  isDirty = false;
}

async function refresh() {
  show(await get(root.dataset.urlTurn).catch(() => ({ html: "", state: stateOf(), position: positionOf() })));
}

function clearOwn(text) {
  if (own.text.value.trim() !== text.trim()) return; // typed on in the meantime
  own.reset();
  draft = "";
}

// Look for the options until they are there.
async function poll(n) {
  const times = POLL_MS[stateOf()];
  if (!times) return;
  await new Promise((done) => setTimeout(done, times[n < FIRST_POLLS ? 0 : 1]));
  if (!isSending && !pending) await get(root.dataset.urlTurn).then(show, () => mark("kept"));
  if (save.dataset.save === "kept" && !isDirty && !pending) mark("saved");
  poll(n + 1);
}

// --- what the rater does -------------------------------------------------------------------------------------------

function rate(row, rating) {
  if (!row) return;
  ratings.set(indexOf(row), { flagged: false, ...ratings.get(indexOf(row)), rating });
  change();
  if (rating === 1) schedule(0); // the next steps after it are generated while the rater goes on
  paint();
}

function rateLit(rating) {
  const row = rowOf(lit);
  rate(row, rating);
  const all = rows();
  const after = [...all.slice(all.indexOf(row) + 1), ...all.slice(0, all.indexOf(row))];
  light(after.find((each) => isWhole(each) && ratingOf(each) === null) ?? all.find(isChoosable) ?? row);
}

function move(by) {
  const all = rows();
  light(all[Math.min(Math.max(all.indexOf(rowOf(lit)) + by, 0), all.length - 1)]);
}

function toggleUnsure() {
  const row = rowOf(lit);
  if (!row) return;
  const old = ratings.get(lit) ?? { rating: null };
  ratings.set(lit, { ...old, flagged: !old.flagged });
  change();
  paint();
}

function choose(row) {
  if (row && isChoosable(row)) decide("choose", { index: indexOf(row) });
}

function end(reason) {
  if (reason === "solution") return decide("end", { reason });
  endReason = reason;
  ending.hidden = false;
  ending.note.required = reason !== "found_error";
  ending.note.focus();
  return undefined;
}

const ACTIONS = {
  negative: () => rateLit(-1), neutral: () => rateLit(0), positive: () => rateLit(1),
  next: () => move(1), previous: () => move(-1), unsure: toggleUnsure, submit: () => choose(rowOf(lit)),
  explain: () => own.text.focus(), give_up: () => end("give_up"), report: () => end("bad_problem"), skip: () => decide("aside"),
};
const KEYS = { ArrowDown: "next", ArrowUp: "previous", ...config.keys };
const isAllowed = ({ key, target }) =>
  key.length > 1 || config.shortcuts === "on" || (config.shortcuts === "focus" && target.closest("[data-option]") !== null);

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("textarea, input[type=text]")) {
    if (event.key === "Escape") (rowOf(lit) ?? stage()).focus();
    return;
  }
  if (event.key === "Enter" && event.target.closest("button, a")) return;
  const name = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
  if (!ACTIONS[name] || !isAllowed(event)) return;
  event.preventDefault();
  if (!event.repeat && !pending) ACTIONS[name]();
});

document.addEventListener("click", (event) => {
  const row = event.target.closest("[data-option]");
  const button = event.target.closest("[data-choose], [data-end], [data-aside]");
  if (button?.dataset.end) end(button.dataset.end);
  else if (button && "aside" in button.dataset) decide("aside");
  else if (button) choose(row);
  else if (row && !event.target.closest(".rate")) light(row);
});

document.addEventListener("change", (event) => {
  const row = event.target.closest("[data-option]");
  if (!row) return;
  lit = indexOf(row);
  rate(row, Number(event.target.value));
});

own.addEventListener("input", () => {
  draft = own.text.value;
  change();
});
own.addEventListener("submit", (event) => {
  event.preventDefault();
  decide("write", { text: own.text.value, ends_solution: own.ends_solution.checked });
});
ending.addEventListener("submit", (event) => {
  event.preventDefault();
  ending.hidden = true;
  decide("end", { reason: endReason, note: ending.note.value });
});
ending.addEventListener("reset", () => {
  ending.hidden = true;
});
// A page that is left sends what it can; the rest stays in the storage.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") send();
});

readStage();
draft = stage().dataset.draft;
own.text.value = draft;
restore();
renderTexts();
light(unrated()[0] ?? rows()[0]);
paint();
mark("saved");
if (pending || isDirty) schedule(0);
poll(0);
