// Focus the button of a page that must be read first: not while a key is held, and late enough that a second Enter
// meant for the previous page does not press it.
const WAIT_MS = 1500;
const button = document.querySelector("[data-focus-later]");
let timer = null;

function wait() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    removeEventListener("keydown", wait);
    if (document.activeElement === document.body) button.focus({ preventScroll: true });
  }, WAIT_MS);
}

if (button) {
  addEventListener("keydown", wait);
  wait();
}
