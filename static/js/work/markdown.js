// Markdown as models write it, turned into nodes. What a reader needs to check stays as written: characters that may
// belong to a calculation are never taken for markup, numbers and dashes of lists stay, URLs are shown as text, not as
// links.

import { element, formula, scrolling, splitMath } from "./nodes.js";

const FENCE = /^\s*(```+|~~~+)/;
const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/;
const RULE = /^\s*([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+•]|\d{1,4}[.)])\s+(?=\S)/;
const QUOTE = /^>\s?(?=[\p{L}"'“*>]|$)/u;
const TABLE_LINE = /^\s*\|.*\|\s*$/;
const TABLE_RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const HOLE = /\uE000(\d+)\uE001/; // stands for a formula
// Code, bold, italic, struck out, link or image. Emphasis begins after a space or bracket, and ends before one, so that
// 2*3*4 and names with underscores stay as they are.
const INLINE = new RegExp(
  [
    /(`+)(?!`)(.+?)(?<!`)\1(?!`)/,
    /\*\*(?=\S)([\s\S]+?\S?)\*\*(?!\*)/,
    /(?<![\p{L}\p{N}\\*)\]}])\*(?![\s*])([^*\n]*[^\s*\\])\*(?![\p{L}\p{N}*])/,
    /~~(?=\S)([^~\n]+\S?)~~/,
    /!?\[([^\]\n]*)\]\((\S{1,2000}?)\)/,
    /\\([\\`*_{}[\]()#+\-.!~>|&%$])/,
    HOLE,
  ]
    .map((each) => each.source)
    .join("|"),
  "gu",
);

// Return the nodes of a text.
export function renderMarkdown(text) {
  const formulas = [];
  if (/[\uE000\uE001]/.test(text)) return element("p", "", text);
  const pieces = splitMath(text).map((piece) => {
    if (typeof piece === "string") return piece;
    formulas.push(piece);
    return `\uE000${formulas.length - 1}\uE001`;
  });
  return blocks(pieces.join("").split("\n"), formulas);
}

function blocks(lines, formulas) {
  const out = document.createDocumentFragment();
  let at = 0;
  while (at < lines.length) {
    const [node, next] = nextBlock(lines, at, formulas);
    if (node) out.append(node);
    at = next;
  }
  return out;
}

// Return the block that begins at a line, and the line after it.
function nextBlock(lines, at, formulas) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (FENCE.test(line)) return fence(lines, at, formulas);
  const heading = HEADING.exec(line);
  if (heading) return [element("p", "md__heading", inline(heading[2], formulas)), at + 1];
  if (RULE.test(line)) return [element("hr", "md__rule"), at + 1];
  if (ITEM.test(line)) return list(lines, at, formulas);
  if (QUOTE.test(line)) return quote(lines, at, formulas);
  if (TABLE_LINE.test(line) && TABLE_RULE.test(lines[at + 1] ?? "")) return table(lines, at, formulas);
  return paragraph(lines, at, formulas);
}

const isBlock = (lines, at) =>
  [FENCE, HEADING, RULE, QUOTE].some((each) => each.test(lines[at])) ||
  isListStart(lines[at]) ||
  (TABLE_LINE.test(lines[at]) && TABLE_RULE.test(lines[at + 1] ?? ""));

// In the middle of a paragraph, "- 5" and "1984." may be part of a calculation or a sentence.
const isListStart = (line) => /^\s*(?:[-*+•]\s+(?=[^\d\s=<>+\-*/\uE000])|(?:[1-9]|1\d)[.)]\s+\S)/u.test(line);

function paragraph(lines, from, formulas) {
  let at = from + 1;
  while (at < lines.length && lines[at].trim() && !isBlock(lines, at)) at += 1;
  return [element("p", "", inline(lines.slice(from, at).join("\n"), formulas)), at];
}

function fence(lines, from, formulas) {
  const [, mark] = FENCE.exec(lines[from]);
  let at = from + 1;
  while (at < lines.length && !lines[at].trim().startsWith(mark)) at += 1;
  return [scrolling("pre", "code", restore(lines.slice(from + 1, at).join("\n"), formulas)), at + 1];
}

function quote(lines, from, formulas) {
  let at = from;
  while (at < lines.length && QUOTE.test(lines[at])) at += 1;
  return [element("blockquote", "md__quote", blocks(lines.slice(from, at).map((line) => line.replace(QUOTE, "")), formulas)), at];
}

// A list, with nested blocks in its items. Each item keeps the number or sign that the model wrote.
function list(lines, from, formulas) {
  const [, indent, first] = ITEM.exec(lines[from]);
  const isOrdered = /\d/.test(first);
  const node = element(isOrdered ? "ol" : "ul", "md__list");
  let at = from;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[1].length !== indent.length || /\d/.test(item[2]) !== isOrdered) break;
    const content = [lines[at].slice(item[0].length)];
    at += 1;
    while (at < lines.length && belongs(lines, at, item[1].length, content)) content.push(lines[at++]);
    const entry = element("li", "", blocks(unindent(content), formulas));
    entry.dataset.mark = isOrdered ? item[2] : { "-": "–" }[item[2]] ?? "•";
    node.append(entry);
    while (at < lines.length && !lines[at].trim() && ITEM.exec(lines[at + 1] ?? "")?.[1].length === indent.length) at += 1;
  }
  return [node, at];
}

// A line belongs to an item if it is indented more than its sign, or continues its sentence.
function belongs(lines, at, indent, content) {
  const line = lines[at];
  if (!line.trim()) return /^\s/.test(lines[at + 1] ?? "") && lines[at + 1].search(/\S/) > indent;
  if (line.search(/\S/) > indent) return true;
  return content.at(-1).trim() !== "" && !ITEM.test(line) && !isBlock(lines, at);
}

const unindent = ([first, ...rest]) => {
  const depth = Math.min(...rest.filter((line) => line.trim()).map((line) => line.search(/\S/)), 8);
  return [first, ...rest.map((line) => line.slice(Math.min(depth, line.search(/\S|$/))))];
};

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());

function table(lines, from, formulas) {
  let at = from + 2;
  const rows = [];
  while (at < lines.length && TABLE_LINE.test(lines[at])) rows.push(cells(lines[at++]));
  const row = (tag, texts) => element("tr", "", ...texts.map((text) => element(tag, "", inline(text, formulas))));
  const node = element("table", "md__table", element("thead", "", row("th", cells(lines[from]))));
  node.append(element("tbody", "", ...rows.map((each) => row("td", each))));
  return [scrolling("div", "md__wide", node), at];
}

// Put the sources of formulas back, for places where nothing is typeset.
const restore = (text, formulas) => text.replace(new RegExp(HOLE, "g"), (_, n) => formulas[n].source);

function inline(text, formulas) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    out.append(text.slice(from, found.index), inlineNode(found, formulas));
    from = found.index + found[0].length;
  }
  out.append(text.slice(from));
  return trimAroundDisplay(out);
}

function inlineNode([whole, , code, bold, italic, struck, label, address, escaped, hole], formulas) {
  if (code !== undefined) return element("code", "", restore(code, formulas));
  if (bold !== undefined) return element("b", "", inline(bold, formulas));
  if (italic !== undefined) return element("i", "", inline(italic, formulas));
  if (struck !== undefined) return element("s", "", inline(struck, formulas));
  if (address !== undefined) return link(whole, label, restore(address, formulas), formulas);
  if (escaped !== undefined) return escaped;
  return formula(formulas[hole]);
}

// The URL is visible but is not a link: a trace must not lead anywhere.
function link(whole, label, address, formulas) {
  const node = element("span", "md__link", whole.startsWith("!") ? "" : inline(label, formulas));
  node.append(element("span", "md__address", ` (${address})`));
  return node;
}

// A displayed formula is a block by itself, so the line breaks around it would be empty lines.
function trimAroundDisplay(fragment) {
  for (const node of fragment.querySelectorAll?.(".tex--display") ?? []) {
    const { previousSibling: before, nextSibling: after } = node;
    if (before?.nodeType === Node.TEXT_NODE) before.data = before.data.replace(/\s*\n\s*$/, "");
    if (after?.nodeType === Node.TEXT_NODE) after.data = after.data.replace(/^\s*\n\s*/, "");
  }
  return fragment;
}
