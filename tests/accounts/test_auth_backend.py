"""The backend loads the same user as Django's, or none."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.auth_backend import PreloadedUserBackend
from accounts.models import User
from tests import factories

pytestmark = pytest.mark.django_db


def test_get_user_equals_the_row() -> None:
    made = factories.make_user("ada")
    User.objects.filter(pk=made.pk).update(email="ada@example.org", is_staff=True)
    with CaptureQueriesContext(connection) as queries:
        found = PreloadedUserBackend().get_user(str(made.pk))
    stored = User.objects.get(pk=made.pk)
    assert found is not None
    assert (found.is_staff, found.is_superuser, found.is_active) == (True, False, True)
    assert all(getattr(found, field.attname) == getattr(stored, field.attname) for field in User._meta.concrete_fields)
    assert len(queries) == 1


def test_get_user_ignores_inactive_and_missing_users() -> None:
    made = factories.make_user()
    User.objects.filter(pk=made.pk).update(is_active=False)
    assert PreloadedUserBackend().get_user(made.pk) is None
    assert PreloadedUserBackend().get_user(made.pk + 1) is None
