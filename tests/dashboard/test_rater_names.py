"""Names and pseudonyms of raters."""

import csv
import io
from itertools import combinations

import pytest
from django.test import Client
from django.urls import reverse

from dashboard import rater_names
from labeling import raters
from labeling.models import Rater
from tests import factories
from tests.labeling.quality import submitted_work
from tests.people.personas import LoggedInPersonas

pytestmark = pytest.mark.django_db


def test_equal_names_are_distinguished_by_pseudonym(client: Client, personas: LoggedInPersonas) -> None:
    cast = personas.cast
    client.force_login(cast.lead)
    for number, name in enumerate(("Anna Schmidt", "Anna Schmidt", "Bo")):
        user = factories.make_user(f"user{number}", name=name)
        Rater.objects.create(project=cast.project, user=user, labeler=f"{number}bbbbbbb-cc", added_at=factories.NOW)
    for pair in combinations(Rater.objects.filter(project=cast.project).exclude(user=cast.annotator), 2):
        trace = factories.make_trace(cast.project, ["One.", "Two."])
        for rater in pair:
            submitted_work.submit_trace(rater, trace, [1, -1])
    submitted_work.refresh_quality(now=factories.NOW)
    address = reverse("dashboard:agreement", args=[cast.project.slug])
    _head, *rows = csv.reader(io.StringIO(client.get(address + "?csv=pairs").content.decode()))
    annas = {"Anna Schmidt 0bbbbbbb", "Anna Schmidt 1bbbbbbb"}
    assert {frozenset(row[:2]) for row in rows} == {frozenset(annas), *(frozenset((anna, "Bo")) for anna in annas)}
    assert len(client.get(address).context["agreement"]["pairs"].rows) == 2


def test_pseudonym_of_an_imported_labeler_is_not_shortened(personas: LoggedInPersonas) -> None:
    cast = personas.cast
    raters.ensure_labeler(project=cast.project, labeler="annotator-12", now=factories.NOW)
    assert rater_names.get_pseudonym(Rater.objects.get(labeler="annotator-12")) == "annotator-12"
    assert rater_names.get_pseudonym(factories.make_rater(cast.project)) == "00000000"
