// Messages from leads and notices of reclaimed traces, as a line above the trace until they are read.
// Reloaded with each trace, never while one is being rated. A failure is retried with the next trace.

export class MessagePanel {
  #url;
  #isCurrentOrLeft;

  // `isCurrentOrLeft(assignment)`: whether this page shows the trace or has just submitted it; then no notice is needed.
  constructor(url, isCurrentOrLeft) {
    this.#url = url;
    this.#isCurrentOrLeft = isCurrentOrLeft;
    document.addEventListener("submit", (event) => {
      if (event.target.closest("#unread")) this.#send(event);
    });
  }

  async refresh() {
    const html = await this.#fetchHtml(this.#url);
    const isInUse = document.querySelector("#unread :is([open], :focus-within)"); // may have been opened during the request
    if (!isInUse) this.#replace(html);
  }

  async #send(event) {
    event.preventDefault();
    const { target: form, submitter } = event;
    const body = new FormData(form);
    const answer = await this.#fetchHtml(submitter?.getAttribute("formaction") ?? form.action, { method: "POST", body });
    if (answer) await this.#replace(await this.#fetchHtml(this.#url));
    else HTMLFormElement.prototype.submit.call(form); // submit normally, so that the browser shows the error
  }

  #fetchHtml(url, options = {}) {
    return fetch(url, { credentials: "same-origin", headers: { Accept: "text/html" }, ...options })
      .then((answer) => (answer.ok ? answer.text() : null))
      .catch(() => null);
  }

  #replace(html) {
    const fresh = html && new DOMParser().parseFromString(html, "text/html").getElementById("unread");
    for (const note of fresh?.querySelectorAll("[data-notice]") ?? []) if (this.#isCurrentOrLeft(Number(note.dataset.notice))) note.remove();
    if (fresh) document.getElementById("unread").replaceWith(fresh);
  }
}
