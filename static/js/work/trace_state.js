// One open trace: its ratings, what can be rated, and what is still missing. Pure: no DOM, no network.
// Every change is a write, undo included; the outbox sends writes to the server.

const cellKey = (step, option) => `${step}.${option}`;
const EMPTY = Object.freeze({ rating: null, flagged: false, category: "", reason: "" });

export class TraceState {
  constructor(trace) {
    this.trace = trace;
    this.rule = trace.rule; // of the protocol, as labeling/projects/protocols.py defines it
    this.cells = new Map();
    this.comments = new Map();
    this.written = new Map(); // steps as they should read, in the rater's words
    this.undone = [];
    for (const turn of trace.turns ?? []) {
      if (turn.comment) this.comments.set(turn.step, turn.comment);
      if (turn.written) this.written.set(turn.step, turn.written);
      for (const judgment of turn.judgments) {
        this.cells.set(cellKey(turn.step, judgment.option), { ...EMPTY, ...judgment, flagged: Boolean(judgment.flagged) });
      }
    }
  }

  cell(step, option = 0) {
    return this.cells.get(cellKey(step, option)) ?? EMPTY;
  }

  rateable() {
    return this.trace.steps.filter((step) => step.is_rateable);
  }

  // The step of the first negative if nothing after it is rated, otherwise null.
  end() {
    if (!this.rule.ends_at_first_negative) return null;
    return this.rateable().find((step) => this.cell(step.position).rating === -1) ?? null;
  }

  alternatives(step) {
    return step ? step.options.slice(1) : [];
  }

  // Negative steps of which more is asked, or whose alternatives are.
  stepsToExplain() {
    const asks = this.trace.asks_error_category || this.trace.asks_reason || this.trace.asks_corrected_step;
    if (!this.rule.ends_at_first_negative) return asks ? this.rateable().filter((step) => this.cell(step.position).rating === -1) : [];
    const end = this.end();
    return end && (asks || this.alternatives(end).length) ? [end] : [];
  }

  // Where the light can go: every rateable step up to the first negative, then that step's alternatives.
  stops() {
    const end = this.end();
    const stops = [];
    for (const step of this.rateable()) {
      stops.push({ step: step.position, option: 0 });
      if (end && step.position === end.position) {
        for (const option of this.alternatives(step)) stops.push({ step: step.position, option: option.position });
        break;
      }
    }
    return stops;
  }

  unrated() {
    return this.stops().filter((stop) => this.cell(stop.step, stop.option).rating === null);
  }

  // Whether the trace can be submitted: the code of a text of the server, how many ratings are missing, and the number of
  // the step with the first error. The server decides by the same rules, in protocols.py.
  submitState() {
    const end = this.end();
    const missing = this.rule.needs_ratings ? this.unrated() : [];
    if (!end) {
      if (missing.length) return { code: this.rule.ends_at_first_negative ? "find_negative" : "rate_steps", missing: missing.length, number: null };
      return { code: this.rule.ends_at_first_negative ? "no_error" : "all_rated", missing: 0, number: null };
    }
    const number = this.rateable().indexOf(end) + 1;
    const before = missing.filter((stop) => stop.step < end.position).length;
    if (before) return { code: "rate_before", missing: before, number };
    return { code: missing.length ? "rate_alternatives" : "first_error", missing: missing.length, number };
  }

  rate(stop, rating) {
    return this.#change(stop, { rating }, "rate");
  }

  toggleUnsure(stop) {
    return this.#change(stop, { flagged: !this.cell(stop.step, stop.option).flagged }, "rate");
  }

  explain(stop, category, reason) {
    return this.#change(stop, { category, reason }, "rate");
  }

  write(step, text) {
    this.undone.push({ step, written: this.written.get(step) ?? "" });
    this.written.set(step, text);
    return { kind: "write_step", step, text };
  }

  comment(step, text) {
    this.undone.push({ step, comment: this.comments.get(step) ?? "" });
    this.comments.set(step, text);
    return { kind: "comment", step, text };
  }

  // Brings the former value back. Undo is a write like every other, so that the history tells what happened.
  undo() {
    const last = this.undone.pop();
    if (!last) return null;
    if ("comment" in last) {
      this.comments.set(last.step, last.comment);
      return { stop: { step: last.step, option: 0 }, write: { kind: "comment", step: last.step, text: last.comment } };
    }
    if ("written" in last) {
      this.written.set(last.step, last.written);
      return { stop: { step: last.step, option: 0 }, write: { kind: "write_step", step: last.step, text: last.written } };
    }
    this.cells.set(cellKey(last.stop.step, last.stop.option), last.cell);
    return { stop: last.stop, write: this.#write(last.stop, last.cell, "undo") };
  }

  // The server says what stands where another client's write won.
  applyServerCell(step, option, cell) {
    this.cells.set(cellKey(step, option), { ...EMPTY, ...cell, flagged: Boolean(cell.flagged) });
    this.undone = this.undone.filter((former) => !former.stop || cellKey(former.stop.step, former.stop.option) !== cellKey(step, option));
  }

  #change(stop, change, kind) {
    const former = this.cell(stop.step, stop.option);
    const cell = { ...former, ...change };
    this.undone.push({ stop, cell: former });
    this.cells.set(cellKey(stop.step, stop.option), cell);
    return this.#write(stop, cell, kind);
  }

  #write(stop, cell, kind) {
    return { kind, step: stop.step, option: stop.option, rating: cell.rating, flagged: cell.flagged, category: cell.category, text: cell.reason };
  }
}
