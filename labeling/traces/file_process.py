"""Look at a file in a process with little memory and little time, so that it can hurt nobody.

A few kilobytes may unpack to gigabytes, or take minutes to parse. The first question starts a helper process, which has
loaded the formats; it forks a process with limits for each file, and ends with this process or after some idle time.
"""

import atexit
import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec
from django.conf import settings

from formats import catalog, input_files
from labeling.traces import scan
from labeling.traces.scan import ImportOptions, ImportPreview

MAX_SECONDS = 10  # of processor time; twice as many on the clock
MAX_MEMORY = 1024**3
MAX_ANSWER = 8 * 1024**2
MAX_AT_A_TIME = 3
IDLE_SECONDS = 300.0
_BUSY_AFTER = 2.0
_START_SECONDS = 60.0
_SERVE = "import django; django.setup(); from labeling.traces import file_process; file_process.serve({})"


class FileQuestion(msgspec.Struct):
    path: str
    options: ImportOptions
    has_preview: bool
    seconds: int
    is_cut: bool = False


class FileAnswer(msgspec.Struct):
    """The format of a file and its preview, or an error."""

    format: str = ""
    preview: ImportPreview | None = None
    unreadable: str = ""
    unknown_format: str = ""


def detect_format(path: Path, options: ImportOptions) -> str:
    """Return the named format, or detect it. Raises UnreadableFile and UnknownFormat."""
    if options.format != "auto":
        return catalog.get_input_format(options.format).name
    return _ask(FileQuestion(str(path), options, has_preview=False, seconds=MAX_SECONDS)).format


def preview_file(path: Path, options: ImportOptions, *, is_cut: bool = False) -> ImportPreview:
    """Return the beginning of a file as an import would read it. Raises UnreadableFile and UnknownFormat."""
    question = FileQuestion(str(path), options, has_preview=True, seconds=MAX_SECONDS, is_cut=is_cut)
    preview = _ask(question).preview
    if preview is None:
        raise RuntimeError(f"the preview of {path} is missing")
    return preview


def _ask(question: FileQuestion) -> FileAnswer:
    name = Path(question.path).name
    if not _places.acquire(timeout=_BUSY_AFTER):
        raise input_files.UnreadableFile(f"{name}: other files are being read. Try again in a minute")
    try:
        received = _helper.ask(msgspec.msgpack.encode(question))
    finally:
        _places.release()
    if not received:
        raise input_files.UnreadableFile(f"{name}: {_describe_limits(question.seconds)}")
    answer = msgspec.msgpack.decode(received, type=FileAnswer)
    if answer.unreadable:
        raise input_files.UnreadableFile(answer.unreadable)
    if answer.unknown_format:
        raise catalog.UnknownFormat(answer.unknown_format)
    return answer


def _describe_limits(seconds: int) -> str:
    return (
        f"reading its beginning takes more than {seconds} seconds or {MAX_MEMORY // 1024**2:,} MB of memory."
        " Split long records, or write smaller row groups"
    )


class _Helper:
    """The helper process, as this process sees it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def ask(self, question: bytes) -> bytes:
        """Return the answer, or nothing if the process that looked at the file was ended."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                self._pass_on(theirs)
            ours.settimeout(_START_SECONDS + 3 * MAX_SECONDS)
            try:
                ours.sendall(question)
                ours.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: ours.recv(1 << 16), b""))
            except OSError:
                return b""

    def _pass_on(self, line: socket.socket) -> None:
        with self._lock:
            with contextlib.suppress(OSError):
                if self._control is not None:
                    socket.send_fds(self._control, [b"?"], [line.fileno()])
                    return
            self.stop()
            socket.send_fds(self._start(), [b"?"], [line.fileno()])

    def _start(self) -> socket.socket:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (our own module)
                [sys.executable, "-c", _SERVE.format(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                # Arrow's own allocators reserve more address space than the limit.
                env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
            )
        return self._control

    def stop(self) -> None:
        """End the helper process, which notices that its socket is closed."""
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._control = self._process = None


_helper = _Helper()
_places = threading.BoundedSemaphore(MAX_AT_A_TIME)
atexit.register(_helper.stop)


# --- in the helper process -------------------------------------------------------------------------------------------


def serve(control_fd: int) -> None:
    """Fork a process for each question, until the socket is closed or nothing is asked for a while."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets ended children
    with socket.socket(fileno=control_fd) as control:
        control.settimeout(IDLE_SECONDS)
        with contextlib.suppress(TimeoutError):
            while True:
                message, fds, _, _ = socket.recv_fds(control, 1, 1)
                if not message:
                    return
                if os.fork() == 0:
                    control.close()
                    _answer_and_exit(fds[0])
                os.close(fds[0])


class _TimeIsUp(Exception):
    """The processor time or the time is used up."""


def _answer_and_exit(fd: int) -> NoReturn:
    code = 1
    try:
        with socket.socket(fileno=fd) as line:
            question = msgspec.msgpack.decode(b"".join(iter(lambda: line.recv(1 << 16), b"")), type=FileQuestion)
            line.sendall(msgspec.msgpack.encode(_answer(question)))
        code = 0
    finally:
        os._exit(code)


def _answer(question: FileQuestion) -> FileAnswer:
    path = Path(question.path)
    try:
        _limit_process(question.seconds)
        return _look(path, question)
    except input_files.UnreadableFile as error:
        return FileAnswer(unreadable=str(error))
    except catalog.UnknownFormat as error:
        return FileAnswer(unknown_format=str(error))
    except (_TimeIsUp, MemoryError):
        return FileAnswer(unreadable=f"{path.name}: {_describe_limits(question.seconds)}")


def _look(path: Path, question: FileQuestion) -> FileAnswer:
    format = scan.resolve_format(path, question.options)
    if not question.has_preview:
        return FileAnswer(format)
    options = msgspec.structs.replace(question.options, format=format)
    answer = FileAnswer(format, scan.preview_file(path, options, is_cut=question.is_cut))
    while answer.preview and answer.preview.first and len(msgspec.msgpack.encode(answer)) > MAX_ANSWER:
        answer.preview.first.pop()
    return answer


def _limit_process(seconds: int) -> None:
    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        raise _TimeIsUp

    for number in (signal.SIGXCPU, signal.SIGALRM):
        signal.signal(number, end)
    # The second limit kills: a handler does not run inside a library.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    signal.alarm(2 * seconds)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MAX_MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def _address_space() -> int:
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 0
