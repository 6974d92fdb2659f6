// Nodes that every kind of text is made of: elements, formulas, boxes that scroll. Nothing is parsed as HTML.

import { scriptAddress } from "./html.js";

// $$…$$, \[…\], \begin{align}…, \(…\), and $…$ by the rule that keeps prices out: no space inside the dollars, no digit
// after them, no backslash before them. Lengths are bounded, and formulas in brackets contain no further opening, so that
// many unclosed openings do not make the search quadratic.
const MATH = new RegExp(
  [
    /\$\$([\s\S]{1,4000}?)\$\$/,
    /\\\[((?:\\\\|(?!\\\[)[\s\S]){1,4000}?)\\\]/,
    /(\\begin\{((?:equation|align|alignat|gather)\*?)\}[\s\S]{1,4000}?\\end\{\4\})/,
    /\\\(((?:\\\\|(?!\\\()[\s\S]){1,2000}?)\\\)/,
    /(?<!(?<!\\)\\)\$(?!\s)((?:\\.|[^$\\\n]|\n(?!\n)){1,2000}?)(?<![\s\\])\$(?!\d)/,
    /(\\boxed\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\})/,
  ]
    .map((each) => each.source)
    .join("|"),
  "g",
);
const MAX_FORMULA = 8000; // characters; typesetting a longer one would block the page

// Commands that reach beyond the formula (links, images, classes) make typesetting fail, so that the source is shown.
// KaTeX by itself would show the command's name without its argument.
const refuse = () => {
  throw new RangeError();
};
const KATEX = { throwOnError: true, strict: "ignore", trust: refuse, maxExpand: 500, maxSize: 20, output: "htmlAndMathml" };

const element = (tag, className, ...children) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children);
  return node;
};

// Create the element of a formula: it shows the source until KaTeX typesets it.
const formula = ({ source, tex, display }) => {
  const node = element("span", display ? "tex tex--display" : "tex", source);
  node.dataset.tex = tex;
  if (display) node.dataset.display = "";
  return node;
};

// Cut a text into strings and formulas.
function splitMath(text) {
  const pieces = [];
  let from = 0;
  for (const found of text.matchAll(MATH)) {
    const [source, dollars, brackets, lines, , parens, single, boxed] = found;
    const displayed = dollars ?? brackets ?? lines;
    const tex = displayed ?? parens ?? single ?? boxed;
    pieces.push(text.slice(from, found.index), { source, tex, display: displayed !== undefined });
    from = found.index + source.length;
  }
  return [...pieces, text.slice(from)];
}

// Create an element that scrolls horizontally and is focusable, so that the keyboard can scroll it.
function scrolling(tag, className, content, name) {
  const node = element(tag, className, content);
  node.tabIndex = 0;
  node.setAttribute("role", "group");
  if (name) node.setAttribute("aria-label", name);
  return node;
}

const size = (text) => {
  const bytes = new Blob([text]).size;
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;
};

let loading = null;

// Load KaTeX after the page is usable: a rating never waits for it.
export function loadMath({ css, js }) {
  loading ??= new Promise((resolve) => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: css });
    const script = Object.assign(document.createElement("script"), { src: scriptAddress(js), onload: resolve, onerror: resolve });
    document.head.append(sheet, script);
  });
  return loading;
}

function typesetOne(node) {
  const { tex } = node.dataset;
  const source = node.textContent;
  delete node.dataset.tex;
  try {
    if (tex.length > MAX_FORMULA) throw new RangeError();
    globalThis.katex.render(tex, node, { ...KATEX, displayMode: "display" in node.dataset });
  } catch {
    node.replaceChildren(source); // KaTeX empties the node before it parses the formula
    node.classList.add("tex-source");
  }
}

const IMMEDIATE_COUNT = 80; // formulas; more than a screen shows
const SLICE_MS = 8; // keeps the page responsive

// Typeset the formulas inside `root`: the first ones immediately, the rest in short slices. Folded ones wait until they are
// opened. Broken LaTeX keeps its source.
export async function typeset(root, immediateCount = IMMEDIATE_COUNT) {
  if (!globalThis.katex) return;
  const waiting = [...root.querySelectorAll("[data-tex]")].filter((node) => !node.closest(".gap[hidden]"));
  waiting.splice(0, immediateCount).forEach(typesetOne);
  let began = performance.now();
  for (const node of waiting) {
    if (performance.now() - began > SLICE_MS) {
      await new Promise((done) => setTimeout(done));
      began = performance.now();
    }
    if ("tex" in node.dataset) typesetOne(node);
  }
}

export { MATH, element, formula, scrolling, size, splitMath };
