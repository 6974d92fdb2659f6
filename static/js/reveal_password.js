// Show and hide a password while it is typed.
for (const button of document.querySelectorAll("[data-reveal]")) {
  const field = document.getElementById(button.dataset.reveal);
  button.hidden = false;
  button.addEventListener("click", () => {
    const isShown = field.type === "text";
    field.type = isShown ? "password" : "text";
    button.setAttribute("aria-pressed", String(!isShown));
    field.focus();
  });
}
