// Close the user menu, a <details> element, on Escape or a click elsewhere.
const menus = document.querySelectorAll("details.menu");

// On phones the navigation is one scrolling line: scroll to the current page.
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
