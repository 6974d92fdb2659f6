// In a shortcut field, a pressed key becomes the field's value. Without JavaScript its name is typed.
const IGNORED = new Set(["Tab", "Escape", "Shift", "Control", "Alt", "Meta", "Dead", "Process", "Unidentified", "Backspace", " "]);

document.querySelector("[data-keys]")?.addEventListener("keydown", (event) => {
  const field = event.target;
  if (!field.matches("input[type=text]") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (IGNORED.has(event.key) || event.key.startsWith("Arrow") || /^F\d/.test(event.key)) return;
  event.preventDefault();
  field.value = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  field.select();
});
