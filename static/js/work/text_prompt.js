// Ask for a text below the trace. A dialog would cover the steps.

// `typed` gets the text at each input, `done` the text at the end, `dropped` is called if the annotator cancels. Escape only
// closes the field. `isSavedOnLeaving`: leaving the trace saves the text.
export function promptText({ question, confirm, text, typed = () => {}, done, dropped = () => {}, isFocused = true, isSavedOnLeaving = false }) {
  const form = document.getElementById("ask");
  form.dataset.saved = isSavedOnLeaving;
  form.querySelector("label span").textContent = question;
  form.querySelector("[type=submit]").textContent = confirm;
  const field = form.querySelector("textarea");
  field.value = text;
  form.hidden = false;
  if (isFocused) field.focus();
  const close = () => {
    form.hidden = true;
    form.onsubmit = form.onkeydown = form.onreset = form.oninput = null;
  };
  form.onreset = () => {
    close();
    dropped();
  };
  form.oninput = () => typed(field.value);
  form.onsubmit = (event) => {
    event?.preventDefault();
    close();
    done(field.value);
  };
  form.onkeydown = (event) => {
    if (event.isComposing || event.keyCode === 229) return; // Enter ends the composition of a character
    if (event.key === "Escape") close();
    if (event.key === "Enter" && !event.shiftKey && event.target === field) form.onsubmit(event);
  };
}

// The annotator leaves the trace: save the text if it belongs to the trace.
export function finishPrompt() {
  const form = document.getElementById("ask");
  if (!form.hidden && form.dataset.saved === "true") form.onsubmit();
  form.hidden = true;
}

export function closePrompt() {
  const form = document.getElementById("ask");
  form.hidden = true;
}
