// Turns hostile text into nodes. Nothing is ever parsed as HTML: text nodes, and KaTeX with trust switched off.

const FENCE = /```[^\n]*\n([\s\S]*?)(?:```|$)/g;
// $$…$$, \[…\], \(…\), and $…$ by the rule that keeps prices out: no space inside the dollars, no digit after them.
const MATHS = /\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\]|\\\(([\s\S]+?)\\\)|\$(?!\s)((?:\\.|[^$\\\n]|\n(?!\n))+?)(?<![\s\\])\$(?!\d)|(\\boxed\{(?:[^{}]|\{[^{}]*\})*\})/g;
export const FOLD_AT = 6000; // characters; longer texts show their beginning until they are asked for
const TAIL = 1200;
const CODE = /`([^`\n]+)`/g;

const KATEX = { throwOnError: true, strict: "ignore", trust: false, maxExpand: 500, maxSize: 20, output: "htmlAndMathml" };

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

function withMaths(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(MATHS)) {
    const [source, dollars, brackets, parens, single, boxed] = found;
    const display = dollars !== undefined || brackets !== undefined;
    out.append(withCode(text.slice(from, found.index)), formula(source, dollars ?? brackets ?? parens ?? single ?? boxed, display));
    from = found.index + source.length;
  }
  out.append(withCode(text.slice(from)));
  return out;
}

function prose(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const found of text.matchAll(FENCE)) {
    if (found.index > from) out.append(element("p", "", withMaths(text.slice(from, found.index).trimEnd())));
    out.append(scrolling("pre", "code", found[1]));
    from = found.index + found[0].length;
  }
  const rest = text.slice(from);
  if (rest.trim() || !from) out.append(element("p", "", withMaths(rest)));
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

function json(source) {
  try {
    const value = JSON.parse(source);
    const flat = JSON.stringify(value);
    return flat.length <= 72 ? flat : JSON.stringify(value, null, 2);
  } catch {
    return source; // a call that is not JSON shows what the model wrote
  }
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

// Long text: its first part now, the whole when it is opened. The telling last lines of an output stay in sight.
function folded(text, say, render, { tail = false } = {}) {
  if (text.length <= FOLD_AT) return render(text);
  const cut = tail ? text.slice(-TAIL).split("\n").slice(-12).join("\n") : text.slice(0, FOLD_AT);
  const whole = element("details", "fold");
  whole.append(element("summary", "", say("show_all", { size: size(text), lines: text.split("\n").length })));
  whole.addEventListener("toggle", () => whole.open && whole.childElementCount === 1 && whole.append(render(text)), { once: true });
  const out = document.createDocumentFragment();
  out.append(render(cut), whole);
  return out;
}

function part(item, say) {
  if (item.kind === "call") return scrolling("pre", "code", json(item.text), item.name);
  if (item.kind === "diff") return folded(item.text, say, diff);
  if (item.kind === "image") return image(item);
  if (item.kind === "result") return folded(item.text, say, (text) => scrolling("pre", "", text), { tail: true });
  return folded(item.text, say, prose);
}

function image(item) {
  const node = element("img", "step__image");
  node.src = item.url;
  node.alt = item.name;
  node.loading = "lazy";
  return node;
}

export function optionBody(step, option, say) {
  const body = document.createDocumentFragment();
  if (option.parts?.length) body.append(...option.parts.map((item) => part(item, say)));
  else if (step.kind === "observation") body.append(folded(option.text, say, (text) => scrolling("pre", "", text), { tail: true }));
  else body.append(folded(option.text, say, prose));
  return body;
}

export function problemBody(text) {
  return prose(text);
}

let loading = null;

// KaTeX comes after the page can be used: a rating never waits for it.
export function loadMaths({ css, js }) {
  loading ??= new Promise((resolve) => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: css });
    const script = Object.assign(document.createElement("script"), { src: js, onload: resolve, onerror: resolve });
    document.head.append(sheet, script);
  });
  return loading;
}

// Typesets what waits inside `root`. Broken LaTeX keeps its source.
export function typeset(root) {
  if (!globalThis.katex) return;
  for (const node of root.querySelectorAll("[data-tex]")) {
    const { tex } = node.dataset;
    delete node.dataset.tex;
    try {
      globalThis.katex.render(tex, node, { ...KATEX, displayMode: "display" in node.dataset });
    } catch {
      node.classList.add("tex-source");
    }
  }
}

export { size };
