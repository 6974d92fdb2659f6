// Turns hostile text into nodes. Nothing is ever parsed as HTML: text nodes, and KaTeX with trust switched off.

const FENCE = /```[^\n]*\n([\s\S]*?)(?:```|$)/g;
// $$…$$, \[…\], \begin{align}…, \(…\), and $…$ by the rule that keeps prices out: no space inside the dollars, no digit
// after them. Bounded, so that a text of openings alone is not searched to its end from each of them.
const MATHS = new RegExp(
  [
    /\$\$([\s\S]{1,4000}?)\$\$/,
    /\\\[([\s\S]{1,4000}?)\\\]/,
    /(\\begin\{((?:equation|align|alignat|gather)\*?)\}[\s\S]{1,4000}?\\end\{\4\})/,
    /\\\(([\s\S]{1,2000}?)\\\)/,
    /\$(?!\s)((?:\\.|[^$\\\n]|\n(?!\n))+?)(?<![\s\\])\$(?!\d)/,
    /(\\boxed\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\})/,
  ]
    .map((each) => each.source)
    .join("|"),
  "g",
);
export const FOLD_AT = 6000; // characters; longer texts show their beginning until they are asked for
const LINES = 40; // of what a tool answered
const TAIL = 1200;
const LONGEST = 8000; // characters of a formula: a longer one is no formula, and would hold up the hand
const CODE = /`([^`\n]+)`/g;
const BARE = /\\[a-zA-Z]{2,}|[\w)}]\^[\w({-]/; // what only a formula has
const NAMES = /\\(?:(?:begin|end|text\w*|math\w+|operatorname)\s*\{[^{}]*\}|[a-zA-Z]+)/g;
const WORD = /(?:^|\s)\p{L}{2,}[.,;:]?(?=\s|$)/u;

// What reaches beyond its formula (links, images, classes) is not typeset: KaTeX alone would show the command's name and
// drop what stands in it.
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

// A place for a formula: its source now, typeset when KaTeX is there.
const formula = (source, tex, display) => {
  const node = element("span", display ? "tex tex--display" : "tex", source);
  node.dataset.tex = tex;
  if (display) node.dataset.display = "";
  return node;
};

// Words between backticks are code, where no formula claims them.
function withCode(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(CODE)) {
    out.append(text.slice(from, found.index), element("code", "", found[1]));
    from = found.index + found[0].length;
  }
  out.append(text.slice(from));
  return out;
}

function withMath(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(MATHS)) {
    const [source, dollars, brackets, lines, , parens, single, boxed] = found;
    const displayed = dollars ?? brackets ?? lines;
    const tex = displayed ?? parens ?? single ?? boxed;
    out.append(withCode(text.slice(from, found.index)), formula(source, tex, displayed !== undefined));
    from = found.index + source.length;
  }
  out.append(withCode(text.slice(from)));
  return out;
}

function prose(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(FENCE)) {
    if (found.index > from) out.append(element("p", "", withMath(text.slice(from, found.index).trimEnd())));
    out.append(scrolling("pre", "code", found[1]));
    from = found.index + found[0].length;
  }
  const rest = text.slice(from);
  if (rest.trim() || !from) out.append(element("p", "", withMath(rest)));
  return out;
}

// What may be wider than the page scrolls in its own box, so the keyboard must be able to reach it.
function scrolling(tag, className, content, name) {
  const node = element(tag, className, content);
  node.tabIndex = 0;
  node.setAttribute("role", "group");
  if (name) node.setAttribute("aria-label", name);
  return node;
}

// JSON as people read it, or null where it is none. Only the spaces between its parts change: numbers and names stay as
// the model wrote them, and texts of several lines stand in several.
function json(source) {
  if (!/^\s*[{[]/.test(source)) return null;
  try {
    JSON.parse(source);
  } catch {
    return null; // what is not JSON is shown as it was written
  }
  const parts = source.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  const flat = parts.map((part) => ({ ",": ", ", ":": ": " })[part] ?? part).join("");
  return flat.length <= 72 ? flat : indented(parts);
}

function indented(parts) {
  let out = "";
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  parts.forEach((part, n) => {
    const isEmpty = "{[".includes(parts[n - 1]) && "}]".includes(part);
    if ("}]".includes(part) && !isEmpty) out += ((depth -= 1), line());
    out += part.startsWith('"') && part.length > 72 && part.includes("\\n") ? `"${JSON.parse(part)}"` : part;
    if ("{[".includes(part) && !"}]".includes(parts[n + 1])) out += ((depth += 1), line());
    if (part === ",") out += line();
    if (part === ":") out += " ";
  });
  return out;
}

function diff(text) {
  const node = scrolling("pre", "code diff", "");
  for (const line of text.split("\n")) {
    const kind = { "+": "a", "-": "d", "@": "h" }[line[0]];
    node.append(element("span", kind ?? "", line || " "));
  }
  return node;
}

const size = (text) => {
  const bytes = new Blob([text]).size;
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;
};

// Long text: its first part now, the whole in its place when it is opened. The telling last lines of an output stay in
// sight.
function folded(text, say, render, { tail = false, lines = Infinity } = {}) {
  const count = text.split("\n").length;
  if (text.length <= FOLD_AT && count <= lines) return render(text);
  const part = element("div", "", render(tail ? text.slice(-TAIL).split("\n").slice(-12).join("\n") : beginning(text, lines)));
  const whole = element("details", "fold", element("summary", "", say("show_all", { size: size(text), lines: count })));
  whole.addEventListener("toggle", () => {
    if (whole.open && whole.childElementCount === 1) {
      whole.append(render(text));
      typeset(whole);
    }
    part.hidden = whole.open;
  });
  const out = document.createDocumentFragment();
  out.append(part, whole);
  return out;
}

const beginning = (text, lines) => {
  const cut = text.slice(0, FOLD_AT);
  return lines === Infinity ? cut : cut.split("\n").slice(0, lines / 2).join("\n");
};

// What came back from a tool.
function output(text, say) {
  const read = json(text);
  return folded(read ?? text, say, (shown) => scrolling("pre", "", shown), { tail: read === null, lines: LINES });
}

function part(item, say) {
  if (item.kind === "call") return folded(json(item.text) ?? item.text, say, (text) => scrolling("pre", "code", text, item.name));
  if (item.kind === "diff") return folded(item.text, say, diff);
  if (item.kind === "image") return image(item, say);
  if (item.kind === "result") return output(item.text, say);
  return folded(item.text, say, prose);
}

function image(item, say) {
  const node = element("img", "step__image");
  node.src = item.url;
  node.alt = item.name || say("image");
  node.loading = "lazy";
  return node;
}

export function optionBody(step, option, say) {
  const body = document.createDocumentFragment();
  if (option.parts?.length) body.append(...option.parts.map((item) => part(item, say)));
  else if (step.kind === "observation") body.append(output(option.text, say));
  else body.append(folded(option.text, say, prose));
  return body;
}

export function problemBody(text) {
  return prose(text);
}

// An answer as it is kept beside its problem: datasets of maths leave the dollars out. Among words it is no formula.
export function answerBody(text) {
  const isBare = BARE.test(text) && !/[`\n]/.test(text) && text.search(MATHS) < 0 && !WORD.test(text.replace(NAMES, ""));
  if (!isBare) return prose(text);
  const out = document.createDocumentFragment();
  out.append(element("p", "", formula(text, text, false)));
  return out;
}

let loading = null;

// KaTeX comes after the page can be used: a rating never waits for it.
export function loadMath({ css, js }) {
  loading ??= new Promise((resolve) => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: css });
    const script = Object.assign(document.createElement("script"), { src: js, onload: resolve, onerror: resolve });
    document.head.append(sheet, script);
  });
  return loading;
}

function typesetOne(node) {
  const { tex } = node.dataset;
  const source = node.textContent;
  delete node.dataset.tex;
  try {
    if (tex.length > LONGEST) throw new RangeError();
    globalThis.katex.render(tex, node, { ...KATEX, displayMode: "display" in node.dataset });
  } catch {
    node.replaceChildren(source); // KaTeX empties the place before it reads the formula
    node.classList.add("tex-source");
  }
}

const AT_ONCE = 80; // formulas: more than a screen shows
const SLICE = 8; // ms: the hand is not to wait for the rest

// Typesets what waits inside `root`: what is seen first at once, the rest between two strokes of the hand. Broken LaTeX
// keeps its source.
export async function typeset(root, atOnce = AT_ONCE) {
  if (!globalThis.katex) return;
  const waiting = [...root.querySelectorAll("[data-tex]")];
  waiting.splice(0, atOnce).forEach(typesetOne);
  let began = performance.now();
  for (const node of waiting) {
    if (performance.now() - began > SLICE) {
      await new Promise((done) => setTimeout(done));
      began = performance.now();
    }
    if ("tex" in node.dataset) typesetOne(node);
  }
}

export { json, size };
