"""Whoever finds SQLite's write lock taken sleeps, longer each time, and whoever asks next may get it first. Here the
threads of a process take turns at a lock of ours before they ask for SQLite's, and are woken at once. It decides
nothing: after its patience a thread asks SQLite all the same.

The one whose turn it is asks every millisecond. SQLite's own pauses (1, 2, 5, 10 ms and so on) add up to twice the time
that another process, a bulk import, holds the lock.
"""

import sqlite3
import threading
import time
from functools import cached_property
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

_turn = threading.Lock()
_PATIENCE_SECONDS = 5.0
_ASK_EVERY = 0.001


class DatabaseWrapper(base.DatabaseWrapper):
    _has_turn = False

    @cached_property
    def _patience(self) -> str:
        return f"PRAGMA busy_timeout = {int(self.settings_dict['OPTIONS'].get('timeout', 5) * 1000)}"

    def _start_transaction_under_autocommit(self) -> None:
        self._has_turn = _turn.acquire(timeout=_PATIENCE_SECONDS)
        try:
            self._ask_often()
        except BaseException:
            self._pass_on()
            raise

    def _ask_often(self) -> None:
        """Without SQLite's pauses as long as a person may have to wait; then with them, up to the connection's end of
        patience."""
        ask = super()._start_transaction_under_autocommit  # type: ignore[misc]  # Django's, without a stub
        until = time.monotonic() + _PATIENCE_SECONDS
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            while time.monotonic() < until:
                try:
                    ask()
                    return
                except OperationalError as error:
                    if getattr(error.__cause__, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY:
                        raise  # nothing that passes: this connection reads what has been changed since, for one
                    time.sleep(_ASK_EVERY)
        finally:
            self.connection.execute(self._patience)
        ask()

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
