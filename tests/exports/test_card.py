"""What a card says, and what it admits."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from django.utils import timezone

from exports import card, card_figures, disclosures, finish_job, snapshots
from formats import columns
from formats.catalog import OUTPUT_FORMATS
from labeling import assignments
from labeling.datasets.selection import ManifestFilters
from labeling.models import Problem, Project, Rater
from tests import factories
from tests.exports.test_snapshots import content, labelled, make
from tests.labeling.assignments.clients import WorkPageClient as Browser

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


def test_card_names_all_eleven_statements_that_are_missing() -> None:
    text = content(make(labelled(2), "trl"), "README.md").decode()
    missing = re.findall(r"^\| (.+) \| not stated \|$", text, re.M)
    assert missing == list(card.DISCLOSURE_LABELS.values())
    assert len(missing) == 11


def test_card_carries_what_was_stated_when_it_was_made() -> None:
    project = labelled(2)
    said = {"policy": "llama | <b>7B</b>", "licence": "MIT", "pay": "20 € an hour"}
    disclosures.save_disclosure(project=project, said=said, by=None, now=timezone.now())
    made = make(project, "trl")
    disclosures.save_disclosure(project=project, said={"policy": "other"}, by=None, now=timezone.now())
    text = content(made, "README.md").decode()
    assert "llama \\| &lt;b>7B&lt;/b>" in text
    assert "- Pay: 20 € an hour" in text
    assert "license: mit" in text
    assert (snapshots.snapshot_folder(made) / "README.md").read_text() == card.write_card(
        finish_job.load_card_context(made)
    )


def test_head_is_yaml_with_a_config_and_features_for_each_format() -> None:
    formats = [name for name in OUTPUT_FORMATS if OUTPUT_FORMATS[name].wants_raters]
    made = make(labelled(12), *formats, validation=0.5)
    head = yaml.safe_load(content(made, "README.md").decode().split("---\n")[1])
    assert [each["config_name"] for each in head["configs"]] == sorted(
        {file.format for file in made.files.all()} & set(formats)
    )
    for config in head["configs"]:
        for split in config["data_files"]:
            assert all((snapshots.snapshot_folder(made) / path).exists() for path in split["path"])
    features = {each["config_name"]: each["features"] for each in head["dataset_info"]}
    assert features["trl"] == [
        {"name": "prompt", "dtype": "string"},
        {"name": "completions", "list": "string"},
        {"name": "labels", "list": "bool"},
    ]
    assert head["license"] == "unknown"


@pytest.mark.parametrize("formats", [sorted(set(OUTPUT_FORMATS) - {"outcomes"}), ["outcomes"]])
def test_card_counts_the_rows_of_every_format(formats: list[str]) -> None:
    """As many as its files have, also where weights stand beside them."""
    unit = "traces" if formats == ["outcomes"] else "submissions"
    made = make(labelled(3), *formats, test=0.5, filters=ManifestFilters(unit=unit))  # type: ignore[arg-type]  # one of the two
    tallies = json.loads(content(made, "manifest.json"))["tallies"]
    for name in formats:
        rows = sum(file.rows or 0 for file in made.files.filter(format=name))
        assert tallies[name]["rows"] == rows, name
        assert f"- `{name}`: {rows:,} rows" in content(made, "README.md").decode()
    assert tallies.keys() == set(formats)


def test_card_says_how_traces_were_chosen_and_what_was_left_out() -> None:
    made = make(labelled(2), "trl", purpose="training")
    text = content(made, "README.md").decode()
    for key, words in card.EXCLUSION_LABELS.items():
        assert f"| {words} | 0 |" in text, key
    assert "Nothing was drawn with a recorded probability" in text
    assert "Agreement was not measured" in text
    assert "| neutral | counts as right |" in text


def submitted(project: Project, domain: str, *ratings: list[int]) -> None:
    """A trace of this domain with a reading for each."""
    trace = factories.make_trace(project, ["Take one.", "Add two.", "That is four."])
    Problem.objects.filter(pk=trace.problem_id).update(domain=domain)
    for each in ratings:
        rater = factories.make_rater(project)
        client = Browser(factories.make_assignment(rater, trace))
        client.send(*(client.write(step, rating) for step, rating in enumerate(each)))
        assignments.submit(**client.place, now=factories.NOW, by=rater.user)


def test_agreement_is_that_of_the_rows_and_not_of_the_project() -> None:
    """Of four traces read twice one is filtered away by its domain; of none both readings are one rater's."""
    project = factories.make_project(overlap=2, reserve_problem_share=0.0)
    for domain in ("sums", "sums", "roots"):
        submitted(project, domain, [1, -1], [1, -1])
    submitted(project, "other", [1, 1, 1], [-1])
    made = make(project, "trl", filters=ManifestFilters(domains=["sums", "roots"]))
    found = made.figures["facts"]["agreement"]
    assert (found["n_traces"], found["first_error"]["exact"]["value"]) == (3, 1.0)
    assert [(row["key"], row["n_traces"]) for row in found["domains"]] == [("sums", 2), ("roots", 1)]
    assert "Of the 3 traces among the rows" in content(made, "README.md").decode()
    one = Rater.objects.filter(project=project).earliest("pk")
    assert make(project, "trl", filters=ManifestFilters(labelers=[one.labeler])).figures["facts"]["agreement"] is None
    whole = make(project, "trl").figures["facts"]
    assert whole["agreement"]["first_error"]["exact"]["value"] == 0.75
    assert whole["labels"] == {"-1": 7, "0": 0, "1": 9}
    assert whole["first_errors"] == {"0": 1, "1": 6, "none": 1}


def test_figures_stand_in_the_card_and_beside_it() -> None:
    project = factories.make_project(overlap=2, reserve_problem_share=0.0)
    for domain in ("sums", "roots & <powers>"):
        submitted(project, domain, [1, -1], [1, -1])
    made = make(project, "trl")
    shown = {name: shows for shows, name in re.findall(r"!\[(.+)\]\((.+\.svg)\)", content(made, "README.md").decode())}
    assert list(shown) == ["labels.svg", "first_errors.svg", "agreement.svg", "domains.svg", "selection.svg"]
    for name, shows in shown.items():
        assert ElementTree.fromstring(content(made, name)).get("aria-label") == shows
        assert len(content(made, name)) < 6000


def test_figures_write_every_number_that_they_draw() -> None:
    facts: dict[str, Any] = {
        "labels": {"-1": 1, "0": 0, "1": 3},
        "first_errors": {"1": 3, "20": 1, "none": 4, "cut_off": 2},
        "arms": [{"arm": "policy", "n": 4, "low": 0.1, "high": 0.2}],
        "agreement": {
            "steps": {"alpha_nominal": {"value": 0.5, "low": 0.4, "high": 0.6}},
            "first_error": {"exact": {"value": None, "reason": "no unit has two ratings", "interval_reason": ""}},
            "domains": [],
        },
    }
    drawn = {
        name: text
        for name, _, text in card_figures.draw_card_figures(facts, {"n_weighted": 8, "effective_sample_size": 5.0})
    }
    assert "75.0% (3)" in drawn["labels.svg"]
    places = re.findall(r">(step \d+|after step \d+|no error|ended early)<", drawn["first_errors.svg"])
    assert (places[0], places[-3:]) == ("step 1", ["after step 15", "no error", "ended early"])
    assert "5 of 8 draws" in drawn["selection.svg"]
    assert "[0.400, 0.600]" in drawn["agreement.svg"]
    assert "no unit has two ratings" in drawn["agreement.svg"]
    assert drawn["agreement.svg"].count("<circle") == 1
    assert "domains.svg" not in drawn


def test_head_is_what_datasets_makes_of_it() -> None:
    """The hub's own readers of the head: features, and the files of each config."""
    from datasets import Features
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    formats = [name for name in OUTPUT_FORMATS if OUTPUT_FORMATS[name].wants_raters]
    made = make(labelled(12), *formats, validation=0.5)
    head = DatasetCard(content(made, "README.md").decode()).data
    found = DatasetInfosDict.from_dataset_card_data(head)
    configs = MetadataConfigs.from_dataset_card_data(head)
    assert set(found) == set(configs) == {file.format for file in made.files.all()} & set(formats)
    for name, info in found.items():
        assert info.features == Features.from_dict(columns.describe_features(OUTPUT_FORMATS[name].columns)), name
