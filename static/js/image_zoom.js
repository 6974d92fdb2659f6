// Enlarge images on pages that the server renders.

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act=enlarge]");
  if (button) import("./work/lazy/image_dialog.js").then(({ openImage }) => openImage(button));
});
