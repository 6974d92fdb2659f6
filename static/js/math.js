// Typesets the formulas of a page that came whole from the server. Without it their source can still be read.

import { json, loadMath, problemBody, typeset } from "./work/rendering.js";

for (const root of document.querySelectorAll("[data-maths]")) {
  // Plain text with maths delimiters: every word of it stays text.
  for (const plain of root.querySelectorAll("[data-plain]")) plain.replaceChildren(problemBody(plain.textContent.trim()));
  for (const told of root.querySelectorAll("[data-json]")) told.textContent = json(told.textContent) ?? told.textContent;
  if (root.querySelector("[data-tex]")) {
    loadMath(document.getElementById("katex").dataset).then(() => typeset(root));
  }
}
