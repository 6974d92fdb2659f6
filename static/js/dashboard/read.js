// Texts of traces on pages for reading: what stands there as plain text gets its formulas and code.

import { loadMaths, problemBody, typeset } from "../work/text.js";

export function readTexts(root = document) {
  for (const node of root.querySelectorAll("[data-text]")) node.replaceChildren(problemBody(node.textContent));
  const { katexCss: css, katexJs: js } = root.querySelector("[data-katex-js]")?.dataset ?? {};
  if (js) loadMaths({ css, js }).then(() => typeset(root));
}

readTexts();
