"""Refuse files before they are read, except where a page expects them from this person.

Django parses a form before it checks the login, because the CSRF token is in it. A form with a file would fill the disk
without a login."""

import shutil
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler, TemporaryFileUploadHandler
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from accounts import rate_limits
from config.bad_requests import render_bad_request, render_disk_full

# Left free for the database, which stops without it.
RESERVED_BYTES = 1024**3


class RefuseFiles(FileUploadHandler):
    """Refuse any file: the handler of all pages that expect none."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        raise RequestDataTooBig("this page accepts no files")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None


class UploadMiddleware:
    """Let a form with files pass to a view that has `check_upload` (see dashboard.access), if that raises nothing."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: Any, arguments: dict[str, Any]
    ) -> HttpResponseBase | None:
        if request.method != "POST":
            return None
        check_upload = getattr(view, "check_upload", None)
        if check_upload and request.content_type == "multipart/form-data":
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            membership = check_upload(request, **arguments)
            keys = {"account": request.user.pk, "project": membership.project_id}
            if limited := rate_limits.limit_request(request, "upload", **keys):
                return limited
            return self._admit(request)
        reads_its_own_body = getattr(view, "csrf_exempt", False)
        if not reads_its_own_body and _announced_size(request) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return render_bad_request(request, RequestDataTooBig())
        return None

    @staticmethod
    def _admit(request: HttpRequest) -> HttpResponse | None:
        """Accept the file if it fits on the disk twice: it is copied once."""
        settings.FILE_UPLOAD_TEMP_DIR.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(settings.FILE_UPLOAD_TEMP_DIR).free
        if 2 * _announced_size(request) > free - RESERVED_BYTES:
            return render_disk_full()
        request.upload_handlers = [TemporaryFileUploadHandler(request)]
        return None


def _announced_size(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH", "")
    return int(length) if length.isdecimal() and length.isascii() else 0
