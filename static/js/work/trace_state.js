// One open trace: its ratings, what can be rated, and what is still missing. Pure: no DOM, no network.
// Every change is a write, undo included; the outbox sends writes to the server.

const cellKey = (step, option) => `${step}.${option}`;
const EMPTY = Object.freeze({ rating: null, flagged: false, category: "", reason: "", severity: null, evidence: null, error_link: "", citations: null });
const toCell = ({ rating, flagged, category, reason, severity, evidence, error_link: link, citations }) => ({ rating, flagged: Boolean(flagged), category: category ?? "", reason: reason ?? "", severity: severity ?? null, evidence: evidence?.map(({ text, start, end }) => ({ text, start, end })) ?? null, error_link: link ?? "", citations: citations?.map(({ clause, digest, version }) => ({ clause, digest, version })) ?? null });
const LINKS = ["", "recovers", "independent"]; // one key cycles through them
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// `place`: a step, or the question of an answer.
const textWrite = (kind, place, text) => (kind === "answer" ? { kind, step: 0, question: place, text } : { kind, step: place, text });

export class TraceState {
  #explanations = new Map(); // of steps that were negative

  constructor(trace) {
    this.trace = trace;
    this.rule = trace.rule; // of the protocol, as labeling/projects/protocols.py defines it
    this.cells = new Map();
    this.comments = new Map();
    this.written = new Map(); // steps as they should read, in the rater's words
    this.missing = new Map(); // what the trace leaves out after a step
    this.questions = trace.questions ?? [];
    this.answers = new Map(Object.entries(trace.answers ?? {}));
    this.undone = [];
    for (const turn of trace.turns ?? []) {
      if (turn.comment) this.comments.set(turn.step, turn.comment);
      if (turn.written) this.written.set(turn.step, turn.written);
      if (turn.missing) this.missing.set(turn.step, turn.missing);
      for (const judgment of turn.judgments) {
        this.cells.set(cellKey(turn.step, judgment.option), toCell(judgment));
      }
    }
  }

  cell(step, option = 0) {
    return this.cells.get(cellKey(step, option)) ?? EMPTY;
  }

  rateable() {
    return (this.rateableSteps ??= this.trace.steps.filter((step) => step.is_rateable));
  }

  // All texts of the trace.
  texts() {
    const { problem, steps } = this.trace;
    const options = steps.flatMap((step) => step.options);
    return [problem.text, problem.reference_answer ?? "", ...options.flatMap(({ text, parts }) => [text, ...(parts ?? []).map((part) => part.text)])];
  }

  // Whether this is a correction that still says what was submitted. It cannot be submitted.
  isUnchanged() {
    if (!this.trace.submitted_turns) return false;
    this.submitted ??= new TraceState({ ...this.trace, turns: this.trace.submitted_turns, answers: this.trace.submitted_answers }).snapshot();
    return this.snapshot() === this.submitted;
  }

  // The step of the first negative if nothing after it is rated, otherwise null.
  end() {
    if (!this.rule.ends_at_first_negative) return null;
    return this.rateable().find((step) => this.cell(step.position).rating === -1) ?? null;
  }

  alternatives(step) {
    return step ? step.options.slice(1) : [];
  }

  // The negative steps for which the project asks for more, or whose alternatives must be rated.
  stepsToExplain() {
    const asks = ["error_category", "severity", "reason", "corrected_step", "evidence"].some((each) => this.trace[`asks_${each}`]);
    if (!this.rule.ends_at_first_negative) return asks ? this.rateable().filter((step) => this.cell(step.position).rating === -1) : [];
    const end = this.end();
    return end && (asks || this.alternatives(end).length) ? [end] : [];
  }

  // Where the highlight can go: every rateable step up to the first negative one, then that step's alternatives.
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

  // The negative steps whose kind of error is required and missing.
  unexplained() {
    return this.trace.needs_error_category ? this.stepsToExplain().filter(({ position }) => !this.cell(position).category) : [];
  }

  // The steps whose rating must cite a clause of the guideline, and cites none.
  uncited() {
    const { asks_clauses: asked, clauses } = this.trace;
    if (!clauses?.length || !["negatives", "all"].includes(asked)) return [];
    const end = this.end();
    return this.rateable().filter(({ position }) => {
      const { rating, citations } = this.cell(position);
      return !citations && (asked === "all" ? rating !== null : rating === -1) && (!end || position <= end.position);
    });
  }

  // Whether a value answers a question on the whole trace, as labeling/projects/trace_questions.py defines it.
  isAnswered({ code, kind, choices }, value = this.answers.get(code) ?? "") {
    return kind === "text" ? Boolean(value.trim()) : choices.some(([each]) => each === value);
  }

  // The codes of the required questions on the whole trace that have no answer.
  unanswered() {
    return this.questions.filter((each) => each.is_required && !this.isAnswered(each)).map(({ code }) => code);
  }

  // Whether the trace can be submitted: the code of a text of the server, how many ratings are missing, and the number of
  // the step with the first error. The server decides by the same rules, in protocols.py.
  submitState() {
    const state = this.#ratingState();
    for (const [code, open] of state.missing ? [] : [["explain_error", this.unexplained()], ["cite_clause", this.uncited()]]) {
      if (open.length) return { code, missing: open.length, number: this.rateable().indexOf(open[0]) + 1 };
    }
    const { length } = state.missing ? [] : this.unanswered();
    return length ? { code: "answer_questions", missing: length, number: null } : state;
  }

  #ratingState() {
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

  // What the submit button says and the ratings that are shown. The server compares both with what it would store.
  promise() {
    const { code, number } = this.submitState();
    const ratings = this.stops().map(({ step, option }) => [step, option, this.cell(step, option).rating]);
    return { code, number, ratings: ratings.filter(([, , rating]) => rating !== null) };
  }

  // All that is stored of the trace, to compare.
  snapshot() {
    const texts = [this.comments, this.written, this.missing, this.answers].map((each) => [...each].filter(([, text]) => text).sort());
    return JSON.stringify([[...this.cells].filter(([, cell]) => !isSame(toCell(cell), EMPTY)).sort(), texts]);
  }

  // Kind of error, severity, reason and evidence belong to a negative rating, and come back with it.
  rate(stop, rating) {
    const key = cellKey(stop.step, stop.option);
    const { category, reason, severity, evidence } = this.cell(stop.step, stop.option);
    if (category || reason || severity || evidence) this.#explanations.set(key, { category, reason, severity, evidence });
    const explanation = rating === -1 ? this.#explanations.get(key) : { category: "", reason: "", severity: null, evidence: null };
    return this.#change(stop, { ...explanation, rating }, "rate");
  }

  // Map the steps that come after an error, up to where the trace recovers, to the rater's mark. formats/label_sets.py
  // derives labels by the same rule.
  stepsAfterError() {
    const after = new Map();
    if (!this.rule.marks_recovery) return after;
    let followsError = false;
    for (const { position } of this.rateable()) {
      const { rating, error_link: link } = this.cell(position);
      if (followsError) after.set(position, link);
      followsError = (followsError && link !== "recovers") || rating === -1;
    }
    return after;
  }

  // The next mark of a step after an error; null if it has no error before it.
  linkToError(stop) {
    const link = this.stepsAfterError().get(stop.step);
    if (link === undefined || stop.option) return null;
    return this.#change(stop, { error_link: LINKS[(LINKS.indexOf(link) + 1) % LINKS.length] }, "rate");
  }

  toggleUnsure(stop) {
    return this.#change(stop, { flagged: !this.cell(stop.step, stop.option).flagged }, "rate");
  }

  // `change` has a kind of error, a severity, a reason, evidence, or citations.
  explain(stop, change) {
    return this.#change(stop, change, "rate");
  }

  write(step, text) {
    return this.#changeText(this.written, "write_step", step, text);
  }

  comment(step, text) {
    return this.#changeText(this.comments, "comment", step, text);
  }

  omit(step, text) {
    return this.#changeText(this.missing, "missing", step, text);
  }

  answer(question, text) {
    return this.#changeText(this.answers, "answer", question, text);
  }

  #changeText(texts, kind, step, text) {
    this.undone.push({ kind, stop: { step, option: 0 }, former: texts.get(step) ?? "", now: text });
    texts.set(step, text);
    return textWrite(kind, step, text);
  }

  // Restore the previous value. Undo is a write like every other, so that the history shows what happened.
  undo() {
    const last = this.undone.pop();
    if (!last) return null;
    const { kind, stop, former, now } = last;
    if (kind !== "rate") {
      this.#textsOf(kind).set(stop.step, former);
      return { stop, what: kind, write: textWrite(kind, stop.step, former) };
    }
    this.cells.set(cellKey(stop.step, stop.option), former);
    const what = ["rating", "flagged", "category", "reason", "severity", "evidence", "error_link", "citations"].find((part) => !isSame(former[part], now[part])) ?? "rating";
    return { stop, what, write: this.#write(stop, former, "undo") };
  }

  // Take over the changes that could be undone before a reload, as far back as they lead to what the page shows.
  restoreUndo(changes) {
    const values = new Map();
    this.undone = [];
    for (const change of changes.toReversed()) {
      const target = `${change.kind}.${cellKey(change.stop.step, change.stop.option)}`;
      if (!isSame(values.get(target) ?? this.#valueOf(change), change.now)) break;
      values.set(target, change.former);
      this.undone.unshift(change);
    }
  }

  #valueOf({ kind, stop }) {
    return kind === "rate" ? toCell(this.cell(stop.step, stop.option)) : (this.#textsOf(kind).get(stop.step) ?? "");
  }

  #textsOf(kind) {
    return { comment: this.comments, answer: this.answers, missing: this.missing }[kind] ?? this.written;
  }

  // Take over an edit of this browser that the server does not have yet.
  applyEdit({ kind, step, option, question, text, ...cell }) {
    if (option == null) this.#textsOf(kind).set(question ?? step, text);
    else this.applyServerCell(step, option, { ...cell, reason: text });
  }

  // Take over the value that another client has written.
  applyServerCell(step, option, cell) {
    this.cells.set(cellKey(step, option), toCell(cell));
    this.undone = this.undone.filter(({ kind, stop }) => kind !== "rate" || cellKey(stop.step, stop.option) !== cellKey(step, option));
  }

  // Take over the trace as the server has it, except for `unsent` edits. Return the ratings and texts of this page that
  // were replaced.
  adopt(trace, unsent) {
    const server = new TraceState(trace);
    const kept = new Set(unsent.map(({ kind, step, option, question }) => (option == null ? `${kind}.${question ?? step}` : cellKey(step, option))));
    const differences = { ratings: [], texts: [] };
    const noteText = (field, step, yours, current) => yours && yours !== current && differences.texts.push({ field, step, yours });
    for (const key of new Set([...this.cells.keys(), ...server.cells.keys()])) {
      const [step, option] = key.split(".").map(Number);
      const [yours, current] = [this.cell(step, option), server.cell(step, option)];
      if (kept.has(key) || isSame(toCell(yours), toCell(current))) continue;
      this.applyServerCell(step, option, current);
      if (yours.rating !== null && yours.rating !== current.rating) differences.ratings.push({ step, option, current, yours });
      noteText("reason", step, yours.reason, current.reason);
    }
    for (const [kind, mine, theirs] of [["comment", this.comments, server.comments], ["write_step", this.written, server.written], ["missing", this.missing, server.missing], ["answer", this.answers, server.answers]]) {
      for (const step of new Set([...mine.keys(), ...theirs.keys()])) {
        const [yours, current] = [mine.get(step) ?? "", theirs.get(step) ?? ""];
        if (kept.has(`${kind}.${step}`) || yours === current) continue;
        mine.set(step, current);
        noteText(kind, step, yours, current);
      }
    }
    return differences;
  }

  #change(stop, change, kind) {
    const former = toCell(this.cell(stop.step, stop.option));
    const cell = { ...former, ...change };
    this.undone.push({ kind: "rate", stop, former, now: cell });
    this.cells.set(cellKey(stop.step, stop.option), cell);
    return this.#write(stop, cell, kind);
  }

  #write(stop, cell, kind) {
    return { kind, step: stop.step, option: stop.option, rating: cell.rating, flagged: cell.flagged, category: cell.category, severity: cell.severity, evidence: cell.evidence, error_link: cell.error_link, citations: cell.citations, text: cell.reason };
  }
}
