"""Serve the OpenAPI schema.

Strangers may request it, and to generate it takes a second of processor time, so each process does so once.
"""

from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.request import Request

_LOCK = Lock()


class ApiSchemaView(SpectacularAPIView):
    authentication_classes = ()
    permission_classes = ()
    api_version = settings.CODE_VERSION  # a version from the query would become part of a response header

    @extend_schema(exclude=True)
    def get(self, request: Request, *_args: Any, **_kwargs: Any) -> HttpResponse:
        renderer: Any = type(request.accepted_renderer)
        name = f"Stepmark ({self.api_version}).{renderer.format}"
        headers = {"Content-Disposition": f'inline; filename="{name}"'}
        with _LOCK:
            content = render_schema(renderer)
        return HttpResponse(content, content_type=renderer.media_type, headers=headers)


@cache
def render_schema(renderer: Any) -> bytes:
    generator: Any = ApiSchemaView.generator_class(urlconf=None, api_version=ApiSchemaView.api_version)
    schema = generator.get_schema(request=None, public=True)
    return bytes(renderer().render(schema))
