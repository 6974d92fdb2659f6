"""Pages that one test after another uses, each time as a new browser would show them.

A new page means a new process of the browser, which loads every file, compiles every script and draws every glyph for
the first time: that takes as much processor time as a short test. A kept page loses its cookies and its stored data
between two tests, and keeps its cache of files. A test that changes a page for good is the last one to use it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import pytest
from django.templatetags.static import static
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page
from playwright.sync_api._generated import Clock

RESTING_PLACE = "css/tokens.css"  # a page that runs nothing, and keeps the browser's process for this origin
# What no call takes back, or what is not worth taking back.
_LASTING: dict[type, Sequence[str]] = {
    Page: ("add_init_script", "expose_binding", "expose_function", "on", "once", "route", "set_extra_http_headers"),
    BrowserContext: (
        "add_init_script",
        "expose_binding",
        "expose_function",
        "grant_permissions",
        "new_cdp_session",
        "on",
        "once",
        "route",
        "set_extra_http_headers",
        "set_geolocation",
        "set_offline",
    ),
    Clock: ("install", "pause_at", "set_fixed_time", "set_system_time"),
}


@dataclass(frozen=True)
class PageForm:
    """What is chosen when a page is opened, and stays."""

    width: int
    height: int
    dark: bool
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def theme(self) -> Any:
        return "dark" if self.dark else "light"

    @property
    def size(self) -> Any:
        return {"width": self.width, "height": self.height}


@dataclass
class KeptPage:
    page: Page
    form: PageForm
    devtools: CDPSession
    complaints: list[str] = field(default_factory=list)  # errors and warnings in the browser's console

    def note_complaints(self) -> None:
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type in _BAD else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def forget(self, origin: str) -> None:
        """Leave the page, and forget everything that it has stored."""
        self.page.goto(f"{origin}{static(RESTING_PLACE)}")
        self.page.evaluate("sessionStorage.clear(); window.name = ''")
        self.page.mouse.move(0, 0)
        self.devtools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self.page.context.clear_cookies()
        self.page.emulate_media(color_scheme=self.form.theme, forced_colors="none", reduced_motion="no-preference")
        if self.page.viewport_size != self.form.size:
            self.page.set_viewport_size(self.form.size)
        self.complaints.clear()


_BAD = {"error", "warning"}


class KeptPages:
    """The pages of a test, and those that wait for the next one."""

    def __init__(self, browser: Browser, origin: str, prepare: Callable[[Page], None]) -> None:
        self.browser, self.origin, self.prepare = browser, origin, prepare
        self.used: list[KeptPage] = []
        self.waiting: list[KeptPage] = []
        self.is_changed = False  # has this test changed a page for good?

    def open_page(self, form: PageForm) -> Page:
        kept = next((each for each in self.waiting if each.form == form), None)
        if kept is None:
            kept = self._open_new_page(form)
        else:
            self.waiting.remove(kept)
        self.used.append(kept)
        return kept.page

    def _open_new_page(self, form: PageForm) -> KeptPage:
        was_changed = self.is_changed
        context = self.browser.new_context(
            base_url=self.origin,
            viewport=form.size,
            color_scheme=form.theme,
            has_touch=form.width <= 700,
            **form.options,
        )
        context.on("page", self.prepare)
        page = context.new_page()
        kept = KeptPage(page, form, context.new_cdp_session(page))
        kept.note_complaints()
        self.is_changed = was_changed
        return kept

    def end_test(self) -> list[str]:
        """Keep the pages of this test for the next one, or close them. Return what they have complained of."""
        complaints = [each for kept in self.used for each in kept.complaints]
        for kept in self.used:
            context = kept.page.context
            is_kept = not self.is_changed and not kept.form.options and context.pages == [kept.page]
            if is_kept and all(each.form != kept.form for each in self.waiting):
                kept.forget(self.origin)
                self.waiting.append(kept)
            else:
                context.close()
        self.used, self.is_changed = [], False
        return complaints

    def close(self) -> None:
        for kept in self.waiting:
            kept.page.context.close()

    @contextmanager
    def noticing_changes(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for kind, names in _LASTING.items():
                for name in names:
                    patch.setattr(kind, name, self._notice(getattr(kind, name)))
            yield

    def _notice(self, change: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(change)
        def noticed(*arguments: Any, **options: Any) -> Any:
            self.is_changed = True
            return change(*arguments, **options)

        return noticed
