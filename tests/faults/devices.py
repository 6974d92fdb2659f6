"""The devices of one rater: what each showed when the rater confirmed an ending, its notices since, and the texts typed
on it."""

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Error, Page

SHOWN = Path(__file__).with_name("shown.js")
AGAIN_MS = 750
READY = "() => document.documentElement.dataset.ready && globalThis.device"
Shown = dict[str, Any]


@dataclass
class Confirmed:
    """An ending that a person confirmed, with everything that the page showed."""

    device: int
    verb: str
    shown: Shown
    told_before: int  # notices of this trace so far
    was_left: bool = False  # the page showed that it accepted the ending
    appeared_before_undo: int | None = None  # how often the trace had appeared when undo was pressed
    # The page showed the trace again, as it was. If it was a correction, this may be the next one: the ending was sent.
    was_undone: bool = False

    @property
    def is_correction(self) -> bool:
        return bool(self.shown["isCorrection"])


@dataclass
class Device:
    number: int
    context: BrowserContext
    slug: str
    chance: random.Random
    end_faults: Callable[[], None]
    confirmed: list[Confirmed] = field(default_factory=list)
    lost_drafts: list[Any] = field(default_factory=list)
    ratings: int = 0
    page: Page = field(init=False)

    def __post_init__(self) -> None:
        self.context.add_init_script(path=SHOWN)
        self._open_tab()

    # --- the page

    def _open_tab(self) -> None:
        self.page = self.context.new_page()
        self.page.add_init_script(f"globalThis.deviceNumber = {self.number}")
        self.open()

    def open(self) -> None:
        for _ in range(60):
            with contextlib.suppress(Error):  # no server is running
                self.page.goto(f"/work/{self.slug}/", timeout=5_000)
                self.page.wait_for_function(READY, timeout=10_000)
                return
            self.end_faults()
            self.page.wait_for_timeout(250)
        raise AssertionError("the work page does not open")

    def close(self) -> None:
        """End the page without a warning, as a crash does."""
        self.page.close(run_before_unload=False)
        self._open_tab()

    def shown(self) -> Shown:
        return dict(self._evaluate("device.shown()"))

    def press(self, key: str, *, shift: bool = False) -> Shown:
        return dict(self._evaluate("([key, shift]) => device.press(key, shift)", [key, shift]))

    def _evaluate(self, script: str, argument: Any = None) -> Any:
        for _ in range(60):
            with contextlib.suppress(Error):  # the page is being loaded
                return self.page.evaluate(script, argument)
            self.page.wait_for_timeout(100)
        return self.page.evaluate(script, argument)

    def answer(self, key: str, text: str | None = None) -> Shown | None:
        """Press a key in the field below the trace, or return None if it is closed."""
        shown = self._evaluate("([key, text]) => device.answer(key, text)", [key, text])
        return dict(shown) if shown else None

    def log_of(self, assignment: int) -> list[tuple[str, int]]:
        """Return what the tabs of this browser have told of a trace so far and how it appeared, with the device."""
        return [(kind, device) for kind, about, device in self._evaluate("device.log()") if about == assignment]

    def told(self, assignment: int) -> list[str]:
        """Return the notices so far which say that something is not as confirmed."""
        return [kind for kind, _ in self.log_of(assignment) if kind in ("refused", "submitted")]

    def count_appearances(self, each: Confirmed) -> int:
        """Return how often the trace of an ending has appeared here as it was, as a correction or not. If it appears in
        another tab, such as one that had fetched it before, it was not undone."""
        kind = "corrected" if each.is_correction else "opened"
        return self.log_of(each.shown["assignment"]).count((kind, self.number))

    def wait_for(self, is_so: Callable[[Shown], bool], *, within: int) -> bool:
        for _ in range(within // 50):
            if is_so(self.shown()):
                return True
            self.page.wait_for_timeout(50)
        return False

    # --- what the person does

    def rate(self) -> None:
        self.ratings += 1
        self.press(self.chance.choices("123", [2, 2, 6])[0])

    def click(self, selector: str, nth: int = 0) -> None:
        self.page.locator(selector).nth(nth).evaluate("(node) => node.click()")

    def comment(self) -> None:
        """Write a comment, or what is missing after the step."""
        self.press(self.chance.choice("ci"))
        if self.shown()["prompt"]:
            with contextlib.suppress(Error):  # the page closes the field if another trace is shown
                self.page.locator("#ask textarea").press_sequentially(self._text(), timeout=1_000)
            self.answer(self.chance.choice(["Enter", "Enter", "Escape"]))

    def choose(self, box: int) -> None:
        """Choose or take back an answer below a negative step: one of five kinds, or one of three severities."""
        chips = self.page.locator(f".errorbox[data-step='{box}'] .chip input")
        with contextlib.suppress(Error):  # the page is being loaded
            chips.nth(self.chance.randrange(8)).evaluate("(node) => node.click()", timeout=1_000)

    def answer_question(self) -> None:
        """Answer a question on the whole trace: choose, take the choice back, or type."""
        fields = self.page.locator(".questions :is(input, textarea)")
        with contextlib.suppress(Error):
            if self.chance.random() < 0.6:
                fields.nth(self.chance.randrange(2)).evaluate("(node) => node.click()", timeout=1_000)
            else:
                fields.last.press_sequentially(self._text(), timeout=1_000)

    def cite(self) -> None:
        """Cite one of three clauses, in the search below the step."""
        self.press("l")
        search = self.page.locator(".clausepick input")
        if self._evaluate("document.querySelector('.clausepick') !== null"):
            with contextlib.suppress(Error):
                search.press_sequentially(self.chance.choice("123"), timeout=1_000)

    def explain(self, box: int, *, closes: bool) -> None:
        """Type below a negative step, and close the page in the middle of it."""
        name = self.chance.choice(["reason", "corrected"])
        page_field = self.page.locator(f".errorbox[data-step='{box}'] [name={name}]")
        before = self.shown()
        with contextlib.suppress(Error):
            page_field.fill("", timeout=1_000)
            page_field.press_sequentially(self._text(), timeout=1_000)
        typed = self.shown()
        if closes:
            self.close()
            self._check_draft(before["assignment"], f"{box}.0", "reason" if name == "reason" else "written", typed)

    def _check_draft(self, assignment: int | None, stop: str, part: str, typed: Shown) -> None:
        """Check that a typed text is shown again when the same trace is shown again."""
        now = self.shown()
        is_same = now["assignment"] == typed["assignment"] == assignment and not now["isDead"]
        if not is_same or typed["isDead"] or stop not in typed["cells"] or int(stop.split(".")[0]) not in now["boxes"]:
            return
        if now["cells"][stop][part] != typed["cells"][stop][part]:
            self.lost_drafts.append((assignment, stop, part, typed["cells"][stop][part], now["cells"][stop][part]))

    def _text(self) -> str:
        return "".join(self.chance.choices("abcdefgh", k=self.chance.randint(1, 6)))

    # --- endings

    def confirm(self, verb: str = "submit", *, closes: bool = False) -> None:
        """Submit, skip or give up the trace. `closes`: the page is closed at once."""
        told = len(self.told(self.shown()["assignment"] or 0))
        if verb == "submit":
            shown = self.press("Enter")
            if shown["isDead"] or not shown["canSubmit"]:
                return
        else:
            self.press({"skip": "s", "give_up": "g"}[verb])
            if not (answered := self.answer("Enter", self._text())):
                return
            shown = answered
        made = Confirmed(self.number, verb, shown, told)
        self.confirmed.append(made)
        if closes:
            self.close()
            return
        self._wait_until_left(made)

    def _wait_until_left(self, made: Confirmed) -> None:
        """Wait, and press Enter again: the page ignores it as long as it may have been meant for the previous trace."""
        assignment, left = made.shown["assignment"], made.shown["ready"]
        for _ in range(10):
            made.was_left = self.wait_for(lambda shown: shown["ready"] != left, within=AGAIN_MS)
            if made.was_left or len(self.told(assignment)) > made.told_before:
                # Not because an undo brought back an earlier trace instead of this one.
                made.was_left = made.was_left and not self.note_return()
                return
            self.end_faults()
            again = self.press("Enter") if made.verb == "submit" else None
            if again and again["assignment"] == assignment:
                made.shown = again

    def undo(self) -> None:
        """Undo the last change, or the last submit if nothing was changed since."""
        last = self.confirmed[-1] if self.confirmed else None
        appeared = self.count_appearances(last) if last else 0
        before = self.press("z")
        if last is None or not last.was_left or before["assignment"] == last.shown["assignment"]:
            return
        last.appeared_before_undo = appeared
        self.wait_for(lambda shown: shown["assignment"] == last.shown["assignment"], within=1_500)
        self.note_return()

    def edit(self) -> None:
        """Edit the trace that was submitted last: a submission, or one that is not sent yet."""
        if self.confirmed and self.confirmed[-1].was_left:
            last = self.confirmed[-1]
            last.appeared_before_undo = self.count_appearances(last)
        self.press("e")

    def note_return(self) -> bool:
        """Record which endings were undone, because their traces appeared again to be rated. Return whether any was."""
        undone = [each for each in self.confirmed if self._has_returned(each)]
        for each in undone:
            each.was_undone, each.appeared_before_undo = True, None
        return bool(undone)

    def _has_returned(self, each: Confirmed) -> bool:
        return each.appeared_before_undo is not None and self.count_appearances(each) > each.appeared_before_undo

    def settle(self) -> Shown:
        """Wait until everything is sent, and the page has compared its trace with the server's."""
        if "/work/" not in self.page.url:  # a correction that was begun here was submitted on the other device
            self.open()
        for _ in range(3):
            self.page.evaluate("dispatchEvent(new Event('online'))")
            assert self.wait_for(lambda shown: shown["save"] in ("saved", "draft"), within=45_000), self.shown()["save"]
            self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            self.page.wait_for_timeout(700)
        return self.shown()
