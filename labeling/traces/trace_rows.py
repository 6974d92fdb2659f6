"""Find or make the rows of problems, traces, steps and options of one chunk."""

import datetime as dt
import hashlib
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET

import rawsql
from formats import normalization
from formats.records import LIVE, OptionRecord, PartRecord, ProblemRecord, ProvenanceRecord, StepRecord, TraceRecord
from labeling.models import Project, Provenance, Source, Step
from labeling.traces import identity
from labeling.traces.import_rows import OPTION, PART, PROBLEM, STEP, TRACE, ImportRows, NumberedRecord

UNDONE_REASON = "the import was undone"  # traces withdrawn for this reason come back when their file is imported again


class StepRef:
    """A step with the ids and texts of its options by position."""

    __slots__ = ("option_ids", "pk", "texts")

    def __init__(self, pk: int, texts: list[str]) -> None:
        self.pk = pk
        self.texts = texts
        self.option_ids: list[int] = []


class TraceRef:
    __slots__ = ("is_new", "is_reserve", "kind", "pk", "steps")

    def __init__(self, pk: int, kind: str, *, is_new: bool, is_reserve: bool = False) -> None:
        self.pk = pk
        self.kind = kind
        self.is_new = is_new
        self.is_reserve = is_reserve
        self.steps: dict[int, StepRef] = {}


class TraceRows:
    """The traces of one chunk: `by_record` has one for each record, `added` the new ones."""

    def __init__(self, project: Project, source: Source, now: dt.datetime, rows: ImportRows) -> None:
        self._project = project
        self._source = source
        self._added_at = now
        self._rows = rows
        # There are very many steps and options, so these attributes are looked up once.
        self._steps, self._new_step_id = rows.by_table[STEP], rows.new_id[STEP]
        self._options, self._new_option_id = rows.by_table[OPTION], rows.new_id[OPTION]
        self._provenances: dict[str, int] = {}
        self.by_record: list[TraceRef] = []
        self.added: list[TraceRef] = []
        self.undone: list[int] = []  # existing traces whose import was undone
        self.withdrawn_met = 0  # existing traces that were withdrawn for another reason

    def find_or_add(self, numbered: Sequence[NumberedRecord]) -> None:
        """Find or make the trace of each record."""
        problem_digests = [identity.digest_problem(record.problem) for record, _ in numbered]
        problems = self._find_or_add_problems(problem_digests, [record.problem for record, _ in numbered])
        digests = [
            identity.digest_trace(record, problem=problem, occurrence=occurrence)
            for (record, occurrence), problem in zip(numbered, problem_digests, strict=True)
        ]
        known = self._find(digests)
        for (record, _), digest, problem in zip(numbered, digests, problem_digests, strict=True):
            if digest not in known:
                known[digest] = self._add(record, digest, *problems[problem])
        self.by_record = [known[digest] for digest in digests]

    def fetch_steps(self, traces: Iterable[TraceRef]) -> None:
        """Load the steps and options of traces that existed before this chunk."""
        known = {trace.pk: trace for trace in traces if not trace.is_new and not trace.steps}
        # Selects from steps, not from options: a step of which nothing was shown has no options.
        rows = (
            Step.objects.filter(trace_id__in=known)
            .order_by("trace_id", "position", "options__position")
            .values_list("trace_id", "position", "pk", "options__pk", "options__text")
        )
        for trace_id, position, step_id, option_id, text in rows.iterator(chunk_size=2000) if known else ():
            steps = known[trace_id].steps
            step = steps.get(position) or steps.setdefault(position, StepRef(step_id, []))
            if option_id is not None:
                step.option_ids.append(option_id)
                step.texts.append(text)

    def step_at(self, trace: TraceRef, position: int) -> StepRef:
        """Return the step, or add one if the file has ratings past the end of the trace."""
        return trace.steps.get(position) or self._add_step(
            trace, position, StepRecord([], is_rateable=trace.kind == LIVE)
        )

    def match_options(self, step: StepRef, texts: list[str]) -> list[int]:
        """Return the positions of these options in the step. Unknown options are added."""
        n_known = len(step.texts)
        places = identity.match_options(texts, step.texts)
        for place in range(n_known, len(step.texts)):
            self._add_option(step, place, OptionRecord(step.texts[place]))
        return places

    def _find_or_add_problems(self, digests: list[str], problems: list[ProblemRecord]) -> dict[str, tuple[int, bool]]:
        """Map each digest to the id of the problem, and whether it is in the held-out set."""
        rows = rawsql.fetch_rows(_FIND_PROBLEMS, {"project": self._project.pk, "digests": sorted(set(digests))})
        known = {digest: (pk, is_reserve) for digest, pk, is_reserve in rows}
        for digest, problem in zip(digests, problems, strict=True):
            if digest not in known:
                known[digest] = self._add_problem(digest, problem)
        return known

    def _add_problem(self, digest: str, problem: ProblemRecord) -> tuple[int, bool]:
        pk = self._rows.new_id[PROBLEM]()
        normal = normalization.digest_normalized(problem.text)
        is_reserve = identity.is_reserve(normal, self._project.reserve_problem_share)
        self._rows.by_table[PROBLEM].append(
            (
                *(pk, self._project.pk, digest, normal, problem.ref, problem.domain, problem.text),
                None if problem.answer is UNSET else problem.answer,
                None if problem.solution is UNSET else problem.solution,
                *(problem.answer is not UNSET, problem.solution is not UNSET),
                *(is_reserve, self._source.pk),
            )
        )
        return pk, is_reserve

    def _find(self, digests: list[str]) -> dict[str, TraceRef]:
        rows = rawsql.fetch_rows(_FIND_TRACES, {"project": self._project.pk, "digests": sorted(set(digests))})
        withdrawn = [(pk, reason) for _, pk, _, is_withdrawn, reason in rows if is_withdrawn]
        self.undone = [pk for pk, reason in withdrawn if reason == UNDONE_REASON]
        self.withdrawn_met += len(withdrawn) - len(self.undone)
        return {digest: TraceRef(pk, kind, is_new=False) for digest, pk, kind, *_ in rows}

    def _add(self, record: TraceRecord, digest: str, problem_id: int, is_reserve: bool) -> TraceRef:
        trace = TraceRef(self._rows.new_id[TRACE](), record.kind, is_new=True, is_reserve=is_reserve)
        steps = _live_steps(record) if record.kind == LIVE else record.steps
        self._rows.by_table[TRACE].append(
            (
                *(trace.pk, self._project.pk, problem_id, digest, record.kind, len(steps), record.ref, record.answer),
                *(record.verifier_score, record.is_right, record.outcome_by, record.outcome_grader),
                *(self._provenance(record.provenance), self._source.pk, record.line, self._added_at),
            )
        )
        for position, step in enumerate(steps):
            self._add_step(trace, position, step)
        self.added.append(trace)
        return trace

    def _add_step(self, trace: TraceRef, position: int, record: StepRecord) -> StepRef:
        pk = self._new_step_id()
        step = trace.steps[position] = StepRef(pk, [option.text for option in record.options])
        self._steps.append(
            (pk, trace.pk, position, record.kind, record.is_rateable, record.separator, record.source_position)
        )
        for place, option in enumerate(record.options):
            self._add_option(step, place, option)
        return step

    def _add_option(self, step: StepRef, place: int, option: OptionRecord) -> None:
        pk = self._new_option_id()
        step.option_ids.append(pk)
        self._options.append((pk, step.pk, place, option.origin, option.text))
        if option.parts:
            self._add_parts(pk, option.parts)

    def _add_parts(self, option_id: int, parts: tuple[PartRecord, ...]) -> None:
        for position, part in enumerate(parts):
            self._rows.by_table[PART].append(
                (
                    *(self._rows.new_id[PART](), option_id, position, part.kind, part.text, part.name, part.call_ref),
                    *(part.media_type, part.data),
                )
            )

    def _provenance(self, record: ProvenanceRecord | None) -> int | None:
        if record is None:
            return None
        digest = hashlib.sha256(msgspec.json.encode(record, order="sorted")).hexdigest()
        if digest not in self._provenances:
            rows = rawsql.fetch_rows(_FIND_PROVENANCE, {"project": self._project.pk, "digest": digest})
            self._provenances[digest] = rows[0][0] if rows else self._new_provenance(record, digest)
        return self._provenances[digest]

    def _new_provenance(self, record: ProvenanceRecord, digest: str) -> int:
        return Provenance.objects.create(project=self._project, digest=digest, **msgspec.structs.asdict(record)).pk


_FIND_PROBLEMS = """
SELECT digest, id, is_reserve FROM labeling_problem WHERE project_id = %(project)s AND digest = ANY (%(digests)s)"""
_FIND_TRACES = """
SELECT digest, id, kind, withdrawn_at IS NOT NULL, withdrawn_reason FROM labeling_trace
WHERE project_id = %(project)s AND digest = ANY (%(digests)s)"""
_FIND_PROVENANCE = "SELECT id FROM labeling_provenance WHERE project_id = %(project)s AND digest = %(digest)s"


def _live_steps(record: TraceRecord) -> list[StepRecord]:
    """Return the steps that the rater of a live trace saw, with the options that were shown."""
    return [
        StepRecord([OptionRecord(judgment.text) for judgment in turn.shown or ()])
        for submission in record.submissions[:1]
        for turn in submission.turns
    ]
