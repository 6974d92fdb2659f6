"""A person gets all of their own data, nothing about others, and no secrets."""

import datetime as dt
import json

import pytest
from django.apps import apps

from accounts import security_log, tokens
from people import member_messages
from privacy import inventory, own_data
from tests import factories
from tests.people.personas import Personas, make_personas

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Personas:
    return make_personas()


def test_the_document_has_all_texts_of_the_person(cast: Personas, now: dt.datetime) -> None:
    person = cast.annotator
    for user, text in ((person, "mine"), (cast.reviewer, "theirs")):
        rater = person.raters.get() if user == person else factories.make_rater(cast.project, user)
        done = factories.make_submitted(rater, factories.make_trace(cast.project))
        factories.make_judgment(done, rating=-1, reason=f"reason {text}", comment=f"comment {text}")
        tokens.create_api_token(user=user, name=f"token {text}", scopes=["read"], lasts=None, now=now)
        security_log.log_account_event(what="logged_in", user=user, by=user, now=now)
    member_messages.send_message(membership=cast.membership(person), text="message mine", by=cast.lead, now=now)
    text = "".join(own_data.stream_own_data(person))
    document = json.loads(text)
    for expected in ("comment mine", "reason mine", "token mine", "message mine"):
        assert expected in text
    assert "theirs" not in text
    assert document["account"][0]["username"] == person.username
    assert document["judgments"][0]["rating"] == -1
    assert [each["what"] for each in document["account_events"]] == ["account.token_made", "account.logged_in"][::-1]


def test_every_personal_text_is_in_the_document() -> None:
    """A person can download every text that they wrote, except those that only leads may read."""
    taken = {(section.model, field) for section in own_data.SECTIONS.values() for field in section.fields.values()}
    personal = {(label, field) for label, texts in inventory.REPLACED_TEXTS.items() for field in texts.fields}
    assert personal - taken == {
        ("labeling.Rater", "paused_note"),
        ("labeling.Assignment", "ended_reason"),
        ("labeling.SetAside", "reason"),
        ("labeling.Consensus", "note"),
    }


def test_no_section_tells_hidden_gold_or_a_secret() -> None:
    secret = {"purpose", "lane", "draw", "population", "use", "password", "token_digest", "proven_at", "set_aside"}
    fields = {
        part for section in own_data.SECTIONS.values() for name in section.fields.values() for part in name.split("__")
    }
    assert fields & secret == set()
    assert not any("gold" in section.model.lower() for section in own_data.SECTIONS.values())
    assert all(apps.get_model(section.model) for section in own_data.SECTIONS.values())
