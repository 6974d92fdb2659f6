// Map keys, clicks and touches to actions of the page. A held key acts once, except for moving between steps.

import { enlargeImage, loadLater, withPanel } from "./later.js";
import { bindNavigation, explain, goToMissing, goToUnrated, markRecovery, move, searchClause, withEvidence } from "./navigation.js";
import { stopFromRow } from "./trace_view.js";

function actions(page) {
  return {
    negative: () => page.rate(-1), neutral: () => page.rate(0), positive: () => page.rate(1),
    next: () => move(page, 1), previous: () => move(page, -1), unrated: () => goToUnrated(page),
    unsure: (isLit) => page.toggleUnsure({ isLit }), comment: (isLit) => page.texts.comment(page.subject(isLit)?.step),
    missing: (isLit) => page.work?.trace.asks_omissions && page.texts.comment(page.subject(isLit)?.step, { field: "missing" }),
    quote: () => page.work?.trace.asks_evidence && withEvidence(page, (evidence) => evidence.quoteSelection()),
    clause: (isLit) => searchClause(page, page.subject(isLit)),
    recovery: (isLit, button) => markRecovery(page, button ? stopFromRow(button.closest(".step")) : page.subject(isLit)),
    undo: () => page.undo(), submit: () => page.submit(), edit: () => page.editSubmission(),
    skip: () => page.leaveWithReason("skip"), give_up: () => page.leaveWithReason("give_up"), report: () => page.leaveWithReason("report"),
    discard: () => page.discardCorrection(),
    guide: () => withPanel(page, (panel) => panel.toggleGuide(page)),
    ask: (isLit) => page.work && withPanel(page, (panel) => panel.askAbout(page, page.subject(isLit))),
    close_panel: () => withPanel(page, (panel) => panel.closePanel()),
    help: () => document.getElementById("help").togglePopover(),
    fold: () => page.view.toggleProblem(), explain: () => explain(page),
    open_output: (isAll) => page.reader.perform("toggleOutput", isAll), go_to: () => page.reader.perform("goToStep"),
    find: () => page.reader.perform("find"), source: (isProblem) => page.reader.perform("toggleSource", isProblem),
    enlarge: (isLit, button) => enlargeImage(page, button), copy: () => page.reader.perform("copy"), differences: () => page.reader.perform("toggleDifferences"),
  };
}

// Whether the key scrolls what has the focus, such as a wide formula or a long problem.
function scrolls(target, key) {
  const box = target.closest("[tabindex='0']:not(.step)");
  if (!box || !key.startsWith("Arrow")) return false;
  return /Left|Right/.test(key) ? box.scrollWidth > box.clientWidth : box.scrollHeight > box.clientHeight;
}

const ANSWER_KEYS = "1234567890ab"; // as templates/annotate/_work_templates.html shows them
const DOUBLED_MS = 400;
const MOVING_ON = new Set(["negative", "neutral", "positive", "submit"]);

// In the questions about an error, these keys choose an answer and arrows move between answers. After the only answer of a
// question, the next question has the focus, or what else the error requires, or the step.
function answersQuestion(page, event) {
  const chips = event.target.closest(".chips");
  if (!chips || page.isDeaf()) return false;
  const inputs = [...chips.querySelectorAll("input")];
  const isOne = inputs[0].type === "radio";
  if (event.key.startsWith("Arrow")) {
    // After the last rating, the page went to the question by itself, and the arrow means the step before.
    if (!page.current && /Up|Left/.test(event.key) && !inputs.some((input) => input.checked)) return false;
    if (isOne) return true; // the browser does it
    inputs.at((inputs.indexOf(event.target) + (/Down|Right/.test(event.key) ? 1 : -1)) % inputs.length).focus();
  } else if (inputs[ANSWER_KEYS.indexOf(event.key)]) {
    inputs[ANSWER_KEYS.indexOf(event.key)].click();
    if (isOne) leaveQuestion(page, chips);
  } else return false;
  event.preventDefault();
  return true;
}

function leaveQuestion(page, chips) {
  const box = chips.closest(".errorbox");
  const questions = [...box.querySelectorAll(".chips")].filter((each) => each.checkVisibility());
  const next = questions[questions.indexOf(chips) + 1]?.querySelector("input");
  const stop = { step: Number(box.dataset.step), option: 0 };
  if (next) next.focus();
  else if (page.work.uncited().some(({ position }) => position === stop.step)) searchClause(page, stop);
  else if (page.current || !goToMissing(page)) page.view.rowFor(stop).focus();
}

// The page goes to a question by itself after the last rating, or if a submit lacks an answer. A key that is held or pressed
// twice must not answer it.
function ignoreDoubledKeys(keys) {
  let last = null; // the key that rated or submitted, and when
  const listen = (event) => {
    const { key, target, timeStamp: at } = event;
    const isAsked = target.closest(".chips, .question, .clausepick") !== null;
    const isHeld = event.repeat && (key === "Enter" || (key.length === 1 && !target.matches("textarea")));
    const isDoubled = isAsked && (isHeld || (key === last?.key && at - last.at < DOUBLED_MS));
    last = isDoubled || (!isAsked && MOVING_ON.has(keys[key])) ? { key, at } : null;
    if (!isDoubled) return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener("keydown", listen, { capture: true });
}

// Keys of a single character can be switched off, or work only while a step has the focus (WCAG 2.1.4).
const isAllowed = ({ key, target }, mode) => key.length > 1 || mode === "on" || (mode === "focus" && target.closest(".step") !== null);

export function bindActions(page, remapped, mode) {
  bindNavigation(page);
  const perform = actions(page);
  const keys = { ArrowDown: "next", ArrowUp: "previous", ArrowRight: "next", ArrowLeft: "previous", ...remapped };
  ignoreDoubledKeys(keys);
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return; // the key belongs to an input method
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=text], textarea, select")) return;
    if (answersQuestion(page, event)) return;
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
    const name = keys[event.key] ?? keys[event.key.toLowerCase()]; // ignore Caps Lock
    if (document.documentElement.hasAttribute("data-covered") && name !== "guide") return;
    if (!name || !isAllowed(event, mode) || scrolls(event.target, event.key)) return;
    event.preventDefault(); // also keeps the arrow keys from rating in a radio group
    if (page.isDeaf()) return;
    if (!event.repeat || name === "next" || name === "previous") perform[name](event.shiftKey);
  });
  document.addEventListener("click", (event) => {
    // A button that was clicked with a pointer must not repeat its action at the next Enter or Space.
    if (event.detail) event.target.closest("button, summary")?.blur();
    const button = event.target.closest("[data-rate], [data-act]");
    button?.closest("[popover]")?.hidePopover(); // it would cover what the action shows
    if (button?.dataset.rate) return page.rate(Number(button.dataset.rate));
    if (button) return perform[button.dataset.act](event.shiftKey, button);
    const row = event.target.closest(".step[data-stop]");
    if (row && !event.target.closest(".rate, a, button, summary") && getSelection().isCollapsed) page.goTo(stopFromRow(row));
    return undefined;
  });
  document.addEventListener("input", (event) => {
    const field = event.target.closest(".errorbox__why :is([name=reason], [name=corrected])");
    if (field) page.texts.typeExplanation(field.closest(".errorbox"), field);
  });
  document.addEventListener("change", (event) => {
    const box = event.target.closest(".errorbox__why");
    if (box) return page.texts.saveExplanation(box.closest(".errorbox"));
    const row = event.target.closest(".step[data-stop]");
    if (row && event.target.matches(".rate input")) page.rateStop(stopFromRow(row), Number(event.target.value));
    return undefined;
  });
  // A second click on the kind of error takes it back.
  let checked = null;
  document.addEventListener("pointerdown", (event) => {
    const input = event.target.closest(".chip")?.querySelector("input");
    checked = input?.checked && input.type === "radio" ? input : null;
  });
  document.addEventListener("click", (event) => {
    if (event.target !== checked) return;
    checked.checked = false;
    checked.dispatchEvent(new Event("change", { bubbles: true }));
    checked = null;
  });
  loadLater(page);
  addEventListener("pagehide", () => page.supply.releasePrefetched());
}
