"""URLs with a view of the API that fails."""

from typing import NoReturn

from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, path

from config.urls import urlpatterns as _of_the_platform


def fail(request: HttpRequest) -> NoReturn:
    raise RuntimeError("the password is hunter2")


urlpatterns: list[URLPattern | URLResolver] = [path("api/broken", fail), *_of_the_platform]
