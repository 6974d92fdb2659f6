// One line of text, asked for below the trace and never in a dialogue that blocks it.

export function ask(question, text, done) {
  const form = document.getElementById("ask");
  form.querySelector("label span").textContent = question;
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
