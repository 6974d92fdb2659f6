"""The browser of journeys and fault tests: Debian's Chromium, without a window system if that package is installed."""

import os
import shutil

import pytest

# The headless shell is the same engine, and takes a third less processor time.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Chromium needs these flags in containers (small shared memory) and as root (no user namespaces).
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]


def find_chromium() -> str | None:
    """Return the path of the browser, or None if there is none."""
    named = os.environ.get("STEPMARK_CHROMIUM")
    return named or next((path for path in map(shutil.which, _PROGRAMS) if path), None)


def require_chromium() -> str:
    """Return the path of the browser, or skip the test."""
    return find_chromium() or pytest.skip("no chromium: install Debian's package, or name one in STEPMARK_CHROMIUM")
