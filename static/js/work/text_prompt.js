// Ask for a text below the trace. A dialog would cover the steps.

export function promptText(question, confirmLabel, text, done) {
  const form = document.getElementById("ask");
  form.querySelector("label span").textContent = question;
  form.querySelector("[type=submit]").textContent = confirmLabel;
  const field = form.querySelector("textarea");
  field.value = text;
  form.hidden = false;
  field.focus();
  const close = () => {
    form.hidden = true;
    form.onsubmit = form.onkeydown = form.onreset = null;
  };
  form.onreset = close;
  form.onsubmit = (event) => {
    event.preventDefault();
    close();
    done(field.value);
  };
  form.onkeydown = (event) => {
    if (event.key === "Escape") close();
    if (event.key === "Enter" && !event.shiftKey) form.onsubmit(event);
  };
}
