"""Fetch pages of live sessions as the script of the page does."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from live.models import LiveSession


def send(client: Client, session: LiveSession, verb: str, **message: Any) -> Any:
    """Send a message, and return the response."""
    url = reverse(f"annotate:{verb}", args=[session.pk])
    return client.post(url, json.dumps({"position": 0, **message}), content_type="application/json")


def read(response: HttpResponse) -> Any:
    return json.loads(response.content)
