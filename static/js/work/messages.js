// What leads wrote to this person, and what went back while they had it open: a quiet line above the trace until it is
// read. Looked for with each trace, never while one is being rated, and never in the way of a rating: what fails here
// is tried again with the next trace.

export class MessagePanel {
  #address;
  #isCurrentOrLeft;

  // `isCurrentOrLeft` says of a trace that went back whether this page is at it, or has just submitted it: that is no news here.
  constructor(address, isCurrentOrLeft) {
    this.#address = address;
    this.#isCurrentOrLeft = isCurrentOrLeft;
    document.addEventListener("submit", (event) => {
      if (event.target.closest("#unread")) this.#send(event);
    });
  }

  async look() {
    const text = await this.#ask(this.#address);
    const atIt = document.querySelector("#unread :is([open], :focus-within)"); // opened, perhaps, while we asked
    if (!atIt) this.#show(text);
  }

  async #send(event) {
    event.preventDefault();
    const { target: form, submitter } = event;
    const body = new FormData(form);
    const answer = await this.#ask(submitter?.getAttribute("formaction") ?? form.action, { method: "POST", body });
    if (answer) await this.#show(await this.#ask(this.#address));
    else HTMLFormElement.prototype.submit.call(form); // as a page without scripts would: the browser says what is wrong
  }

  #ask(address, options = {}) {
    return fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" }, ...options })
      .then((answer) => (answer.ok ? answer.text() : null))
      .catch(() => null);
  }

  #show(text) {
    const fresh = text && new DOMParser().parseFromString(text, "text/html").getElementById("unread");
    for (const note of fresh?.querySelectorAll("[data-ended]") ?? []) if (this.#isCurrentOrLeft(Number(note.dataset.ended))) note.remove();
    if (fresh) document.getElementById("unread").replaceWith(fresh);
  }
}
