// The dock below the trace: where one is, the track of marks, what submitting would say, and whether all is saved.

const TRACK = { "-1": "n", 0: "o", 1: "p" };
const QUIET_AFTER = 2600;
const SPINNER_AFTER = 400; // a state that lasts less is not worth a flicker

export class Dock {
  #fading = null;
  #pending = null;

  constructor(root, { say }) {
    this.root = root;
    this.say = say;
    this.where = root.querySelector("#where");
    this.track = root.querySelector(".track");
    this.submit = root.querySelector("#submit");
    this.save = root.querySelector("#save");
    this.toast = document.getElementById("toast");
  }

  paint(work, now) {
    const stops = work.rateable();
    const rated = stops.filter((step) => work.cell(step.position).rating !== null).length;
    this.#paintTrack(work, stops, now);
    this.track.setAttribute("aria-label", this.say("rated_of", { count: rated, total: stops.length }));
    this.where.textContent = now ? this.#place(work, stops, now) : "";
    this.#paintSubmit(work);
  }

  #place(work, stops, now) {
    const number = stops.findIndex((step) => step.position === now.step) + 1;
    if (now.option === 0) return this.say("step_of", { number, total: stops.length });
    return this.say("step_alternative", { number, letter: String.fromCharCode(64 + now.option) });
  }

  #paintTrack(work, stops, now) {
    while (this.track.childElementCount < stops.length) this.track.append(document.createElement("i"));
    while (this.track.childElementCount > stops.length) this.track.lastElementChild.remove();
    stops.forEach((step, n) => {
      const mark = TRACK[work.cell(step.position).rating] ?? "";
      this.track.children[n].className = step.position === now?.step ? `${mark} now` : mark;
    });
  }

  #paintSubmit(work) {
    const { code, missing, number } = work.submitState();
    this.submit.dataset.state = code;
    this.submit.setAttribute("aria-disabled", String(missing > 0));
    this.submit.classList.toggle("btn--go", missing === 0);
    this.submit.textContent = this.say(`submit_${code}`, { count: missing, number });
  }

  hit(rating) {
    const button = this.root.querySelector(`[data-rate="${rating}"]`);
    button.classList.add("hit");
    setTimeout(() => button.classList.remove("hit"), 140);
  }

  // Quiet while all goes well; amber and with a clock only when a person may want to know.
  showState({ state, waiting, detail }) {
    clearTimeout(this.#pending);
    const calm = state === "saving" || state === "saved";
    this.save.dataset.state = state; // what is so, at once; the words follow when it lasts
    const paint = () => {
      this.save.classList.toggle("save--wait", !calm);
      this.save.querySelector("[data-slot=text]").textContent = this.say(`save_${state.replace("-", "_")}`, { count: waiting, detail });
      this.save.querySelector("[data-slot=login]").hidden = state !== "logged-out";
    };
    if (state === "saving") this.#pending = setTimeout(paint, SPINNER_AFTER);
    else paint();
  }

  tell(text, { undo = false } = {}) {
    this.toast.firstElementChild.textContent = text;
    this.toast.lastElementChild.hidden = !undo;
    this.toast.hidden = false;
    clearTimeout(this.#fading);
    this.#fading = setTimeout(() => (this.toast.hidden = true), QUIET_AFTER);
  }
}
