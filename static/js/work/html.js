// The only place of our scripts where text becomes HTML, or the address of a script. The page's policy (Trusted Types)
// refuses both everywhere else. The HTML becomes a document of its own, in which no script runs; scripts come from here.

const ownAddress = (url) => {
  if (new URL(url, location.href).origin !== location.origin) throw new TypeError(`a script of another origin: ${url}`);
  return url;
};
const policy = window.trustedTypes?.createPolicy("stepmark", { createHTML: (html) => html, createScriptURL: ownAddress });

export const parsePage = (html) => new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, "text/html");

export const scriptAddress = (url) => (policy ? policy.createScriptURL(url) : ownAddress(url));
