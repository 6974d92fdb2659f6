"""The devices of one rater: what each showed when its person confirmed an ending, what it told since, and what is
typed on it."""

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
    """An ending that a person confirmed, with all that the page showed."""

    device: int
    verb: str
    shown: Shown
    told_before: int  # notices of this trace so far
    was_left: bool = False  # the page showed that it took the ending
    undo_was_pressed: bool = False
    was_undone: bool = False  # the page showed that it took the ending back, before it was sent


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
        self.page = self.context.new_page()
        self.open()

    # --- the page

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
        self.page = self.context.new_page()
        self.open()

    def shown(self) -> Shown:
        for _ in range(60):
            with contextlib.suppress(Error):  # the page is being loaded
                return dict(self.page.evaluate("globalThis.device.shown()"))
            self.page.wait_for_timeout(100)
        return dict(self.page.evaluate("globalThis.device.shown()"))

    def press(self, key: str, *, shift: bool = False) -> Shown:
        return dict(self.page.evaluate("([key, shift]) => device.press(key, shift)", [key, shift]))

    def told(self, assignment: int) -> list[str]:
        """Return the notices so far that something is not as confirmed."""
        log = self.page.evaluate("device.log()")
        return [kind for kind, about in log if about == assignment and kind in ("refused", "submitted")]

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
        self.press("c")
        if self.shown()["prompt"]:
            self.page.locator("#ask textarea").press_sequentially(self._text())
            self.page.keyboard.press(self.chance.choice(["Enter", "Enter", "Escape"]))

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
        """A text that was typed is there again when the same trace is shown again."""
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
            if not (shown := self.shown())["prompt"] or shown["isDead"]:
                return
            self.page.locator("#ask textarea").fill(self._text())
            self.page.locator("#ask textarea").press("Enter")
        made = Confirmed(self.number, verb, shown, told)
        self.confirmed.append(made)
        if closes:
            self.close()
            return
        self._wait_until_left(made)

    def _wait_until_left(self, made: Confirmed) -> None:
        """Wait, and press Enter again: the page ignores it while it may have been meant for the trace before."""
        assignment, left = made.shown["assignment"], made.shown["ready"]
        for _ in range(10):
            made.was_left = self.wait_for(lambda shown: shown["ready"] != left, within=AGAIN_MS)
            if made.was_left or len(self.told(assignment)) > made.told_before:
                return
            self.end_faults()
            again = self.press("Enter") if made.verb == "submit" else None
            if again and again["assignment"] == assignment:
                made.shown = again

    def undo(self) -> None:
        """Undo the last change, or the last submit if nothing was changed since."""
        before = self.press("z")
        last = self.confirmed[-1] if self.confirmed else None
        if last is None or not last.was_left or before["assignment"] == last.shown["assignment"]:
            return
        now = self.shown()
        if now["assignment"] != before["assignment"] or now["cells"] == before["cells"]:  # else a rating was undone
            last.undo_was_pressed = True
            self.wait_for(lambda shown: shown["assignment"] == last.shown["assignment"], within=1_500)
            self.note_return()

    def edit(self) -> None:
        """Edit the trace that was submitted last: a submission, or one that is not sent yet."""
        if self.confirmed and self.confirmed[-1].was_left:
            self.confirmed[-1].undo_was_pressed = True
        self.press("e")

    def note_return(self) -> None:
        """Note which endings were taken back: their traces are shown as if they had never been submitted."""
        shown = self.shown()
        for each in self.confirmed:
            if each.undo_was_pressed and each.shown["assignment"] == shown["assignment"]:
                each.was_undone |= not shown["isCorrection"] and not shown["isDead"]
                each.undo_was_pressed = False

    def settle(self) -> Shown:
        """Wait until everything is sent, and the page has compared itself with the server."""
        if "/work/" not in self.page.url:  # a correction that was begun here was submitted on the other device
            self.open()
        for _ in range(3):
            self.page.evaluate("dispatchEvent(new Event('online'))")
            assert self.wait_for(lambda shown: shown["save"] in ("saved", "draft"), within=45_000), self.shown()["save"]
            self.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
            self.page.wait_for_timeout(700)
        return self.shown()
