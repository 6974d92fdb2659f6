// The menu under the name is a <details>; this closes it by Escape or a click elsewhere.
const menus = document.querySelectorAll("details.menu");

// On a phone the places of a project stand in one line: the present one is brought into sight.
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
