"""Whoever finds SQLite's write lock taken sleeps, longer each time, and whoever asks next may get it first. Here the
threads of a process take turns at a lock of ours before they ask for SQLite's, and are woken at once. What sixteen
raters beside a bulk import gain by it differs from run to run (bench/README.md). It decides nothing: after its patience
a thread asks SQLite all the same.
"""

import threading
from typing import Any

from django.db.backends.sqlite3 import base

_turn = threading.Lock()
_PATIENCE_SECONDS = 5.0


class DatabaseWrapper(base.DatabaseWrapper):
    _has_turn = False

    def _start_transaction_under_autocommit(self) -> None:
        self._has_turn = _turn.acquire(timeout=_PATIENCE_SECONDS)
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # Django's, without a stub
        except BaseException:
            self._pass_on()
            raise

    def _commit(self) -> Any:
        try:
            return super()._commit()  # type: ignore[misc]  # Django's, without a stub
        finally:
            self._pass_on()

    def _rollback(self) -> Any:
        try:
            return super()._rollback()  # type: ignore[misc]  # Django's, without a stub
        finally:
            self._pass_on()

    def _close(self) -> Any:
        self._pass_on()
        return super()._close()  # type: ignore[misc]  # Django's, without a stub

    def _pass_on(self) -> None:
        if self._has_turn:
            self._has_turn = False
            _turn.release()
