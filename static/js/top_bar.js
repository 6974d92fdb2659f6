// The bar at the top of every page: theme, user menu, navigation.

// Switch the theme without a request. Sets the same cookie as the server does for the form.
const form = document.querySelector("[data-theme-form]");

const secure = location.protocol === "https:" ? "; Secure" : "";
const keep = (name, value) => (document.cookie = `${name}=${value}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`);

// From the next page on, the server shows times in the browser's time zone.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.includes(`zone=${zone}`)) keep("zone", zone);

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const root = document.documentElement;
  const shown = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const theme = shown === "dark" ? "light" : "dark";
  root.dataset.theme = theme;
  keep("theme", theme);
});

// The user menu is a <details>; Escape or a click elsewhere closes it.
const menus = document.querySelectorAll("details.menu");

// On a phone the project navigation is one scrolling line: scroll to the current entry.
const side = document.querySelector(".side");
const here = side?.querySelector("[aria-current]");
if (here) side.scrollLeft = here.offsetLeft - (side.clientWidth - here.clientWidth) / 2;

document.addEventListener("click", (event) => {
  for (const menu of menus) if (!menu.contains(event.target)) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus) {
    if (!menu.open) continue;
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});
