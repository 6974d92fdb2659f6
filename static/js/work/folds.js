// Long texts: the lines that matter are shown, the rest is folded. Folded text is in the document, so that the browser's
// own search finds and opens it. Text is laid out in blocks, of which the browser skips those that are off the screen.

import { element, scrolling, size, typeset } from "./nodes.js";

const SHOWN_LINES = 24; // of output; longer output is folded
const SHOWN_CHARACTERS = 2500;
const STEP_LINES = 60; // of a step to rate, at its beginning
const HEAD = 4; // lines of a folded output that are always shown
const TAIL = 6;
const GROUP = 60; // lines in a block
const AROUND = 2; // lines around a line that the next step uses
const MAX_USED = 14; // lines
const BLOCK = 4000; // characters
const OPENED_COUNT = 10; // formulas that are typeset at once
const MIN_GAP = 3; // lines; fewer are not worth folding
const TOKEN = /[\p{L}\p{N}_](?:[\p{L}\p{N}_.:/@-]*[\p{L}\p{N}_])?/gu;

const tokens = (text) => new Set((text.toLowerCase().match(TOKEN) ?? []).filter((token) => token.length > 2 || /\d\d/.test(token)));

// Return the indexes of the lines that contain rare words, numbers or names of the text that follows, the most specific
// lines first.
export function findUsedLines(lines, next) {
  const wanted = tokens(next);
  const counts = new Map();
  const found = lines.map((line) => [...tokens(line)].filter((token) => wanted.has(token)));
  for (const each of found) for (const token of each) counts.set(token, (counts.get(token) ?? 0) + 1);
  const rare = Math.max(2, lines.length / 12);
  const score = (each) => each.reduce((sum, token) => sum + (counts.get(token) <= rare ? 1 / counts.get(token) : 0), 0);
  return found
    .map((each, index) => ({ index, score: score(each) }))
    .filter((each) => each.score > 0)
    .sort((one, other) => other.score - one.score || one.index - other.index)
    .slice(0, MAX_USED)
    .map((each) => each.index);
}

// Cut a text into blocks at line breaks. An endless line is cut at a space.
export function cutBlocks(text, length = BLOCK) {
  const blocks = [];
  let from = 0;
  while (text.length - from > length) {
    const line = text.indexOf("\n", from + length);
    const isNear = line >= 0 && line < from + 2 * length;
    const space = isNear ? line : text.lastIndexOf(" ", from + length);
    const at = space > from ? space : from + length;
    blocks.push(text.slice(from, at));
    from = at + (/\s/.test(text[at]) ? 1 : 0);
  }
  blocks.push(text.slice(from));
  return blocks;
}

const block = (text) => {
  const node = element("span", "block", text);
  node.style.containIntrinsicBlockSize = `auto ${Math.max(text.split("\n").length, text.length / 100) * 1.55}em`;
  return node;
};

const inBlocks = (text) => (text.length <= BLOCK ? [element("span", "block", text)] : cutBlocks(text).map(block));

// A folded part and the mark in its place. `hidden="until-found"` keeps it searchable.
function gap(count, getString, tag, ...children) {
  const node = element(tag, "gap", ...children);
  node.setAttribute("hidden", "until-found");
  const mark = element(tag, "gap__mark", getString("folded_lines", { count }));
  return [node, mark];
}

function toggleButton(box, text, source, getString) {
  const button = element("button", "fold__toggle");
  button.type = "button";
  button.addEventListener("click", () => setOpen(box, isFolded(box), getString));
  box.dataset.size = size(source);
  box.dataset.lines = text.split("\n").length;
  labelToggle(box, button, getString);
  return button;
}

function labelToggle(box, button, getString) {
  const isOpen = !isFolded(box);
  button.setAttribute("aria-expanded", String(isOpen));
  button.textContent = isOpen ? getString("show_less") : getString("show_all", { size: box.dataset.size, lines: box.dataset.lines });
}

export const isFolded = (box) => box.querySelector(".gap[hidden]") !== null;

// Open or close a folded text. Closing brings back the folds that it had at first.
export function setOpen(box, isOpen, getString) {
  for (const each of box.querySelectorAll(".gap")) {
    if (isOpen) each.hidden = false;
    else each.setAttribute("hidden", "until-found");
  }
  if (isOpen) typeset(box, OPENED_COUNT);
  labelToggle(box, box.querySelector(".fold__toggle"), getString);
}

// Open the part that contains a node, as the browser does when its search finds it.
export function openAround(node, getString) {
  const part = node.parentElement?.closest(".gap[hidden]");
  if (!part) return;
  part.hidden = false;
  const box = part.closest(".folded");
  typeset(part, OPENED_COUNT);
  labelToggle(box, box.querySelector(".fold__toggle"), getString);
}

function foldedBox(content, text, getString, source = text) {
  const box = element("div", "folded", content);
  box.append(toggleButton(box, text, source, getString));
  content.addEventListener("beforematch", ({ target }) => setTimeout(() => {
    typeset(target);
    labelToggle(box, box.querySelector(".fold__toggle"), getString);
  }));
  content.addEventListener("click", ({ target }) => {
    if (target.matches(".gap__mark")) openAround(target.previousElementSibling.firstChild, getString);
  });
  return box;
}

// Preformatted text, such as the output of a tool: its beginning, its end, and the lines that the next step uses.
// `isStep`: the text is rated, and long. `source`: the text as it was written, if it is formatted here. `lineNode` makes the
// element of a line.
export function foldOutput(text, getString, { className = "", name = "", next = "", isStep = false, source = text, lineNode = null } = {}) {
  const node = scrolling("pre", className, "", name);
  const lines = text.split("\n");
  if (lines.length <= SHOWN_LINES && text.length <= SHOWN_CHARACTERS) {
    node.append(text);
    return node;
  }
  if (lines.length <= SHOWN_LINES) return foldWide(node, text, getString, source);
  const used = new Set(next ? findUsedLines(lines, next) : []);
  const shown = chooseLines(lines.length, used, isStep);
  const make = lineNode ?? ((line, isUsed) => element("span", isUsed ? "block used" : "block", line || " "));
  for (let index = 0; index < lines.length; index += 1) {
    const from = index;
    const isShown = shown.has(from);
    while (index + 1 < lines.length && shown.has(index + 1) === isShown) index += 1;
    const part = lines.slice(from, index + 1);
    if (isShown || part.length < MIN_GAP) node.append(...part.map((line, n) => make(line, used.has(from + n))));
    else node.append(...gap(part.length, getString, "span", ...(lineNode ? inGroups(part, lineNode) : inBlocks(part.join("\n")))));
  }
  return node.querySelector(".gap") ? foldedBox(node, text, getString, source) : node;
}

function chooseLines(count, used, isStep) {
  const shown = new Set();
  const show = (from, to) => {
    for (let index = Math.max(0, from); index <= Math.min(count - 1, to); index += 1) shown.add(index);
  };
  const more = used.size ? 1 : 2;
  show(0, (isStep ? STEP_LINES : more * HEAD) - 1);
  show(count - more * TAIL, count - 1);
  for (const index of used) show(index - AROUND, index + AROUND);
  return shown;
}

function inGroups(lines, lineNode) {
  const groups = [];
  for (let from = 0; from < lines.length; from += GROUP) {
    const group = block(lines.slice(from, from + GROUP).join("\n"));
    group.replaceChildren(...lines.slice(from, from + GROUP).map(lineNode));
    groups.push(group);
  }
  return groups;
}

// A few very long lines.
function foldWide(node, text, getString, source) {
  const [first, ...rest] = cutBlocks(text, SHOWN_CHARACTERS);
  node.append(element("span", "block", first));
  if (!rest.length) return node;
  node.append(...gap(text.slice(first.length).split("\n").length, getString, "span", ...inBlocks(text.slice(first.length).trimStart())));
  return foldedBox(node, text, getString, source);
}

// Prose: its beginning, cut at the end of a paragraph, a line or a word. `render` turns a part into nodes.
export function foldProse(text, getString, render, shown) {
  if (text.length <= shown) return render(text);
  const head = text.slice(0, shown);
  const isInFence = (head.match(/^```/gm) ?? []).length % 2 === 1;
  const ends = [isInFence ? head.lastIndexOf("```") : 0, ...["\n\n", "\n", " "].map((end) => head.lastIndexOf(end))];
  const at = ends.find((each) => each > shown / 2) ?? shown;
  const content = element("div", "", render(text.slice(0, at)));
  const rest = text.slice(at).trimStart();
  const pieces = rest.length > BLOCK ? cutParagraphs(rest) : [rest];
  content.append(...gap(rest.split("\n").length, getString, "div", ...pieces.map((piece) => {
    const node = element("div", "block", render(piece));
    if (rest.length > BLOCK) node.style.containIntrinsicBlockSize = `auto ${piece.length / 60}em`;
    return node;
  })));
  return foldedBox(content, text, getString);
}

// Blocks of whole paragraphs; an endless paragraph is cut at spaces.
function cutParagraphs(text) {
  const pieces = [];
  let piece = "";
  for (const paragraph of text.split(/\n{2,}/)) {
    if (piece && piece.length + paragraph.length > BLOCK) {
      pieces.push(piece);
      piece = "";
    }
    piece = piece ? `${piece}\n\n${paragraph}` : paragraph;
    if (piece.length > 2 * BLOCK) {
      pieces.push(...cutBlocks(piece));
      piece = "";
    }
  }
  return piece ? [...pieces, piece] : pieces;
}
