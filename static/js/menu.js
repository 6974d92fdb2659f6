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
