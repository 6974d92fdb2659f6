// What htmx may do under the page's policy (Trusted Types): parse a response into a document of its own, in which no
// script runs. Setting HTML of the page itself, scripts and their addresses stay refused. Loaded before htmx.

const inert = new Set(["DOMParser parseFromString", "Document parseHTMLUnsafe"]);
window.trustedTypes?.createPolicy("default", { createHTML: (html, type, sink) => (inert.has(sink) ? html : null) });
