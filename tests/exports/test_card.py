"""The dataset card: every known fact is in it, and missing ones are reported as such."""

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from django.utils import timezone

from exports import card, finish_job, orders, snapshots
from exports.files import WrittenFile
from exports.models import Snapshot
from formats import examples
from formats.catalog import OUTPUT_FORMATS
from formats.examples import LabelRule
from labeling import assignments
from labeling.datasets.selection import ManifestFilters, Unit
from labeling.models import Problem, Project, Rater
from prm import promotion, registry
from prm.registry import PRMIdentity
from tests import factories
from tests.exports.snapshot_builder import build_snapshot, make_labeled_project, read_file
from tests.formats import prm800k_lines as prm
from tests.labeling.assignments.clients import WorkPageClient
from tests.labeling.traces.test_load import load_lines

pytestmark = pytest.mark.django_db
LATER = factories.NOW + dt.timedelta(days=400)
LABEL_FORMATS = [name for name, format in OUTPUT_FORMATS.items() if format.wants_raters]


def read_card(snapshot: Snapshot) -> str:
    return read_file(snapshot, "README.md").decode()


def test_card_prints_every_missing_disclosure_as_not_stated() -> None:
    text = read_card(build_snapshot(make_labeled_project(2), "trl"))
    missing = re.findall(rf"^\| (.+) \| {card.NOT_STATED} \|$", text, re.M)
    assert missing == list(card.DISCLOSURE_LABELS.values())
    assert len(missing) == 11


def test_card_keeps_the_disclosure_of_its_order(tmp_path: Path) -> None:
    project = make_labeled_project(2)
    texts = {"policy": "llama | <b>7B</b>", "licence": "MIT", "pay": "20 € an hour"}
    card.save_disclosure(project=project, texts=texts, by=None, now=timezone.now())
    snapshot = build_snapshot(project, "trl")
    card.save_disclosure(project=project, texts={"policy": "other"}, by=None, now=timezone.now())
    text = read_card(snapshot)
    assert "llama \\| &lt;b>7B&lt;/b>" in text
    assert "20 € an hour" in text
    assert "license: mit" in text
    finish_job.write_card_files(snapshot, tmp_path)
    assert text == (tmp_path / "README.md").read_text()


def test_card_states_the_overridden_gates_until_its_order(tmp_path: Path) -> None:
    project = make_labeled_project(2)
    for reason in ("Needed | for\n# a <b>trial</b>.", ""):
        prm = registry.register_prm(project=project, identity=PRMIdentity("pushed", "ours"), by=None, now=factories.NOW)
        if reason:
            promotion.promote_prm(prm=prm, by=None, now=factories.NOW, is_confirmed=True, reason=reason)
    snapshot = build_snapshot(project, "trl", name="after")
    promotion.promote_prm(prm=prm, by=None, now=LATER, is_confirmed=True, reason="Later.")
    (line,) = (line for line in read_card(snapshot).splitlines() if "1 ours" in line and "Reason" in line)
    assert "unevaluated and unreachable" in line
    assert "Needed \\| for # a &lt;b>trial&lt;/b>." in line
    assert "2 ours" not in read_card(snapshot)
    finish_job.write_card_files(snapshot, tmp_path)
    assert read_card(snapshot) == (tmp_path / "README.md").read_text()


def test_front_matter_has_a_config_and_features_for_each_format() -> None:
    snapshot = build_snapshot(make_labeled_project(12), *LABEL_FORMATS, validation=0.5)
    head = yaml.safe_load(read_card(snapshot).split("---\n")[1])
    written = {file.format for file in snapshot.files.all()} & set(LABEL_FORMATS)
    assert [each["config_name"] for each in head["configs"]] == sorted(written)
    for config in head["configs"]:
        for split in config["data_files"]:
            assert all((snapshots.snapshot_folder(snapshot) / path).exists() for path in split["path"])
    features = {each["config_name"]: each["features"] for each in head["dataset_info"]}
    assert features["trl"] == [
        {"name": "prompt", "dtype": "string"},
        {"name": "completions", "list": "string"},
        {"name": "labels", "list": "bool"},
        *({"name": name, "dtype": "string"} for name in ("rater", "rater_kind", "rater_name", "label_source")),
        {"name": "is_blind", "dtype": "bool"},
        {"name": "exposure", "dtype": "string"},
        {"name": "machine", "struct": _list_machine_fields()},
    ]
    assert head["license"] == "unknown"
    assert head["size_categories"] == ["n<1K"]


def _list_machine_fields() -> list[dict[str, str]]:
    texts = ("kind", "name", "model", "prompt_digest", "endpoint_family")
    types = {"version": "int64", "votes": "int64", "cost": "float64"} | dict.fromkeys(texts, "string")
    order = ("kind", "name", "version", "model", "prompt_digest", "endpoint_family", "votes", "cost")
    return [{"name": name, "dtype": types[name]} for name in order]


@pytest.mark.fault
def test_front_matter_is_read_by_the_libraries_of_the_hub() -> None:
    from datasets import Features
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    snapshot = build_snapshot(make_labeled_project(12), *LABEL_FORMATS, validation=0.5)
    head = DatasetCard(read_card(snapshot)).data
    infos = DatasetInfosDict.from_dataset_card_data(head)
    configs = MetadataConfigs.from_dataset_card_data(head)
    written = {file.format for file in snapshot.files.all()} & set(LABEL_FORMATS)
    assert set(configs) == written
    assert set(infos) == {name for name in written if OUTPUT_FORMATS[name].columns}
    for name, info in infos.items():
        assert info.features == Features.from_dict(examples.describe_features(OUTPUT_FORMATS[name].columns)), name


@pytest.mark.parametrize(
    ("formats", "unit"), [(sorted(set(OUTPUT_FORMATS) - {"outcomes"}), "submissions"), (["outcomes"], "traces")]
)
def test_card_counts_the_rows_of_every_format(formats: list[str], unit: Unit) -> None:
    """The rows of the data files; files with weights are not counted."""
    snapshot = build_snapshot(make_labeled_project(3), *formats, test=0.5, filters=ManifestFilters(unit=unit))
    tallies = json.loads(read_file(snapshot, "manifest.json"))["tallies"]
    for name in formats:
        rows = sum(file.rows or 0 for file in snapshot.files.filter(format=name))
        assert tallies[name]["rows"] == rows, name
        assert f"- `{name}`: {rows:,} rows" in read_card(snapshot)
    assert tallies.keys() == set(formats)


def test_training_card_lists_every_exclusion() -> None:
    snapshot = build_snapshot(make_labeled_project(2), "trl", purpose="training")
    for reason, label in orders.EXCLUSION_LABELS.items():
        assert f"| {label} | 0 |" in read_card(snapshot), reason
    assert not snapshot.plan["n_weighted"]
    assert snapshot.figures["facts"]["agreement"] is None
    assert "agreement.svg" not in read_card(snapshot)


def test_card_states_the_conversion_of_its_order() -> None:
    project = make_labeled_project(2)

    def read_conversion(**rule: Any) -> dict[str, str]:
        text = read_card(build_snapshot(project, "trl", rule=LabelRule(**rule)))
        table = text.partition("\n## From ratings to labels\n")[2].partition("\n## ")[0]
        rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
        return {rating: label for rating, label, *_ in rows}

    default, other = read_conversion(), read_conversion(neutral="drop")
    assert len(default) > 4
    assert [rating for rating in default if other[rating] != default[rating]] == ["neutral"]


def submit(project: Project, domain: str, *submissions: list[int]) -> None:
    """Make a trace of this domain with these submissions, each by another rater."""
    trace = factories.make_trace(project, ["Take one.", "Add two.", "That is four."])
    Problem.objects.filter(pk=trace.problem_id).update(domain=domain)
    for ratings in submissions:
        rater = factories.make_rater(project)
        client = WorkPageClient(factories.make_assignment(rater, trace))
        client.send(*(client.write(step, rating) for step, rating in enumerate(ratings)))
        assignments.submit(**client.place, now=factories.NOW, by=rater.user)


def test_agreement_is_measured_on_the_rows_of_the_snapshot() -> None:
    """One of four traces is filtered out by its domain. Filtering by rater leaves no pair of submissions."""
    project = factories.make_project(overlap=2, reserve_problem_share=0.0)
    for domain in ("sums", "sums", "roots"):
        submit(project, domain, [1, -1], [1, -1])
    submit(project, "other", [1, 1, 1], [-1])
    some = build_snapshot(project, "trl", filters=ManifestFilters(domains=["sums", "roots"]))
    agreement = some.figures["facts"]["agreement"]
    assert agreement["n_traces"] == 3
    assert agreement["first_error"]["exact"]["value"] == 1.0
    assert [(row["key"], row["n_traces"]) for row in agreement["domains"]] == [("sums", 2), ("roots", 1)]
    rater = Rater.objects.filter(project=project).earliest("pk")
    single = build_snapshot(project, "trl", filters=ManifestFilters(labelers=[rater.labeler]))
    assert single.figures["facts"]["agreement"] is None
    facts = build_snapshot(project, "trl").figures["facts"]
    assert facts["agreement"]["first_error"]["exact"]["value"] == 0.75
    assert facts["labels"] == {"-1": 7, "0": 0, "1": 9}
    assert facts["first_errors"] == {"0": 1, "1": 6, "none": 1}


def test_agreement_of_imported_labels_is_apart_and_on_the_rows_of_the_snapshot() -> None:
    project = factories.make_project(overlap=2, reserve_problem_share=0.0)
    lines = [prm.make_line(problem="Twice?", labeler=labeler) for labeler in ("ann", "ben")]
    load_lines(project, *lines, prm.make_line(problem="Once?", labeler="ann"))
    snapshot = build_snapshot(project, "trl")
    facts = snapshot.figures["facts"]
    assert facts["agreement"] is None
    assert (facts["imported_agreement"]["n_traces"], facts["imported_agreement"]["n_raters"]) == (1, 2)
    assert "### Imported labels" in read_card(snapshot)
    single = build_snapshot(project, "trl", filters=ManifestFilters(labelers=["ann"]))
    assert single.figures["facts"]["imported_agreement"] is None


def test_card_states_that_raters_were_chosen() -> None:
    project = factories.make_project(overlap=2, reserve_problem_share=0.0)
    load_lines(project, *[prm.make_line(problem="Twice?", labeler=labeler) for labeler in ("ann", "ben", "cay")])
    choices = (
        ManifestFilters(),
        ManifestFilters(labelers=["ann", "ben"]),
        ManifestFilters(without_labelers=["ann"]),
    )
    cards = [read_card(build_snapshot(project, "trl", filters=filters)) for filters in choices]
    assert [card.count(" chosen raters ") for card in cards] == [0, 1, 1]


def test_charts_are_in_the_card_and_next_to_it() -> None:
    project = factories.make_project(overlap=2, reserve_problem_share=0.0)
    for domain in ("sums", "roots & <powers>"):
        submit(project, domain, [1, -1], [1, -1])
    snapshot = build_snapshot(project, "trl")
    captions = {name: caption for caption, name in re.findall(r"!\[(.+)\]\((.+\.svg)\)", read_card(snapshot))}
    assert list(captions) == ["labels.svg", "first_errors.svg", "agreement.svg", "domains.svg", "selection.svg"]
    for name, caption in captions.items():
        assert ElementTree.fromstring(read_file(snapshot, name)).get("aria-label") == caption
        assert len(read_file(snapshot, name)) < 6000


def test_charts_write_every_number_that_they_draw() -> None:
    facts: dict[str, Any] = {
        "labels": {"-1": 1, "0": 0, "1": 3},
        "first_errors": {"1": 3, "20": 1, "none": 4, "cut_off": 2},
        "arms": [{"arm": "policy", "n": 4, "low": 0.1, "high": 0.2}],
        "agreement": {
            "steps": {"alpha_nominal": {"value": 0.5, "low": 0.4, "high": 0.6}},
            "first_error": {"exact": {"value": None, "reason": "only one rating", "interval_reason": ""}},
            "domains": [],
        },
    }
    plan = {"n_weighted": 8, "effective_sample_size": 5.0}
    drawn = {figure.file_name: figure.svg for figure in card.draw_card_figures(facts, plan)}
    assert "75.0% (3)" in drawn["labels.svg"]
    numbers = re.findall(r">([\d,]+) \([\d.]+%\)<", drawn["first_errors.svg"])
    assert numbers[-3:] == ["1", "4", "2"], "later steps, no error, ended early"
    assert "5 of 8 draws" in drawn["selection.svg"]
    assert "[0.400, 0.600]" in drawn["agreement.svg"]
    assert "only one rating" in drawn["agreement.svg"]
    assert drawn["agreement.svg"].count("<circle") == 1
    assert "domains.svg" not in drawn


def test_size_is_the_number_of_rows_and_not_of_submissions() -> None:
    files = [WrittenFile("data/trl/train.jsonl", 6_266, 1, "", "trl"), WrittenFile("data/w.jsonl", 9_000, 1, "", "")]
    snapshot = build_snapshot(make_labeled_project(2), "trl")
    head = yaml.safe_load(card.write_card(snapshot, files, []).split("---\n")[1])
    assert head["size_categories"] == ["1K<n<10K"]
