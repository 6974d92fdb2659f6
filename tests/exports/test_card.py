"""What a card says, and what it admits."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.utils import timezone

from exports import card, drawings, finishing, snapshots, statements
from exports.formats import FORMATS
from tests.exports.test_snapshots import content, labelled, make

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path


def test_card_names_all_eleven_statements_that_are_missing() -> None:
    text = content(make(labelled(2), "trl"), "README.md").decode()
    missing = re.findall(r"^\| (.+) \| not stated \|$", text, re.M)
    assert missing == list(card.ASKED.values())
    assert len(missing) == 11


def test_card_carries_what_was_stated_when_it_was_made() -> None:
    project = labelled(2)
    said = {"policy": "llama | <b>7B</b>", "licence": "MIT", "pay": "20 € an hour"}
    statements.state(project=project, said=said, by=None, now=timezone.now())
    made = make(project, "trl")
    statements.state(project=project, said={"policy": "other"}, by=None, now=timezone.now())
    text = content(made, "README.md").decode()
    assert "llama \\| &lt;b>7B&lt;/b>" in text
    assert "- Pay: 20 € an hour" in text
    assert "license: mit" in text
    assert (snapshots.folder(made) / "README.md").read_text() == card.write(finishing.told(made))


def test_head_is_yaml_with_a_config_and_features_for_each_format() -> None:
    formats = [name for name in FORMATS if FORMATS[name].wants_raters]
    made = make(labelled(12), *formats, validation=0.5)
    head = yaml.safe_load(content(made, "README.md").decode().split("---\n")[1])
    assert [each["config_name"] for each in head["configs"]] == sorted(
        {file.format for file in made.files.all()} & set(formats)
    )
    for config in head["configs"]:
        for split in config["data_files"]:
            assert all((snapshots.folder(made) / path).exists() for path in split["path"])
    features = {each["config_name"]: each["features"] for each in head["dataset_info"]}
    assert features["trl"] == [
        {"name": "prompt", "dtype": "string"},
        {"name": "completions", "list": "string"},
        {"name": "labels", "list": "bool"},
    ]
    assert head["license"] == "unknown"


def test_card_says_how_traces_were_chosen_and_what_was_left_out() -> None:
    made = make(labelled(2), "trl", purpose="training")
    text = content(made, "README.md").decode()
    for key, words in card.REASONS.items():
        assert f"| {words} | 0 |" in text, key
    assert "Nothing was drawn with a recorded probability" in text
    assert "Agreement was not measured" in text
    assert "| neutral | counts as right |" in text


def test_agreement_is_drawn_with_its_interval_or_the_reason() -> None:
    headline = {
        "steps": {"alpha_nominal": {"value": 0.5, "low": 0.4, "high": 0.6}},
        "first_error": {"exact": {"value": None, "reason": "no unit has two ratings", "interval_reason": "none"}},
    }
    drawn = drawings.agreement(headline)
    assert "[0.400, 0.600]" in drawn
    assert "no unit has two ratings" in drawn
    assert drawn.count("<circle") == 1
