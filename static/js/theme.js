// Light or dark without a round trip. The same cookie as the form's own answer, so the next page is painted right.
const form = document.querySelector("[data-theme-form]");

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const root = document.documentElement;
  const shown = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const theme = shown === "dark" ? "light" : "dark";
  root.dataset.theme = theme;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `theme=${theme}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
});
