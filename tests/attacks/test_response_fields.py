"""Responses of the API have only fields that somebody chose."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework import serializers

SECRET = re.compile(r"password|secret|digest_of|session|cookie|salt|email|ip_address|browser")


def subclasses(base: type) -> Iterator[type]:
    each: type
    for each in base.__subclasses__():
        yield each
        yield from subclasses(each)


def property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(properties := schema.get("properties"), dict):
            yield from properties
        for value in schema.values():
            yield from property_names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from property_names(value)


def referenced_schemas(part: Any) -> set[str]:
    return set(re.findall(r"#/components/schemas/(\w+)", str(part)))


@pytest.fixture(scope="module")
def api_schema() -> dict[str, Any]:
    generator: Any = SchemaGenerator  # untyped
    return dict(generator().get_schema(request=None, public=True))


def test_serializers_of_models_name_their_fields(api_schema: dict[str, Any]) -> None:
    ours = [each for each in subclasses(serializers.ModelSerializer) if each.__module__.startswith("api.")]
    assert api_schema["paths"]
    assert ours
    for each in ours:
        chosen = vars(vars(each)["Meta"])
        assert isinstance(chosen["fields"], tuple)
        assert "exclude" not in chosen


def test_no_response_has_a_field_for_a_secret_or_personal_data(api_schema: dict[str, Any]) -> None:
    operations = [each for path in api_schema["paths"].values() for each in path.values() if isinstance(each, dict)]
    responses = [each["responses"] for each in operations]
    schemas, used = api_schema["components"]["schemas"], referenced_schemas(responses)
    while more := referenced_schemas([schemas[name] for name in used]) - used:
        used |= more
    names = set(property_names([schemas[name] for name in used])) | set(property_names(responses))
    assert len(names) > 50
    assert {name for name in names if SECRET.search(name)} == {"sessions_per_problem"}  # of live labeling
