"""Read files of users in processes with limited memory and time, so that a hostile file harms no one.

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
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn

import msgspec
from django.conf import settings

from formats import catalog, input_files
from formats.records import BadLine
from labeling.traces import import_preview, scan
from labeling.traces.import_preview import ImportPreview
from labeling.traces.record_spool import RecordSpool
from labeling.traces.scan import ImportOptions, ImportReport

MAX_SECONDS = 10  # of processor time; twice as many on the clock
MAX_MEMORY = 1024**3
MAX_ANSWER = 8 * 1024**2
MAX_AT_A_TIME = 3
# Limits of a scan: processor time is per record, and a process on a busy machine may be silent for this long.
SCAN_SECONDS = 60
SCAN_MEMORY = 2 * 1024**3
SCAN_SILENCE_SECONDS = 900.0
MAX_BAD_LINES_PER_MESSAGE = 1000
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
    is_scan: bool = False
    memory: int = MAX_MEMORY


class ScanProgress(msgspec.Struct, omit_defaults=True):
    """What a scan has read so far, with the bad lines since the last message. The last message has the report."""

    number: int = 0  # records
    read: int = 0  # bytes
    bad_lines: list[BadLine] = []
    report: ImportReport | None = None
    unreadable: str = ""
    unknown_format: str = ""


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
    return _ask(FileQuestion(str(path.absolute()), options, has_preview=False, seconds=MAX_SECONDS)).format


def preview_file(path: Path, options: ImportOptions, *, is_cut: bool = False) -> ImportPreview:
    """Return the beginning of a file as an import would read it. Raises UnreadableFile and UnknownFormat."""
    question = FileQuestion(str(path.absolute()), options, has_preview=True, seconds=MAX_SECONDS, is_cut=is_cut)
    preview = _ask(question).preview
    if preview is None:
        raise RuntimeError(f"the preview of {path} is missing")
    return preview


def scan_file(path: Path, options: ImportOptions, spool: RecordSpool) -> Iterator[ScanProgress]:
    """Read a whole file into the spool in a process with limits. Raises UnreadableFile and UnknownFormat.

    The last message has the report. The time limit is for one record, because files can have any length.
    """
    question = FileQuestion(
        str(path.absolute()), options, has_preview=False, seconds=SCAN_SECONDS, is_scan=True, memory=SCAN_MEMORY
    )
    with _helper.open_line(spool.fileno()) as line:
        line.settimeout(SCAN_SILENCE_SECONDS)
        _send_message(line, msgspec.msgpack.encode(question))
        line.shutdown(socket.SHUT_WR)
        with line.makefile("rb") as answers:
            progress = ScanProgress()
            while progress.report is None:
                progress = _read_progress(answers, question)
                if progress.unreadable:
                    raise input_files.UnreadableFile(progress.unreadable)
                if progress.unknown_format:
                    raise catalog.UnknownFormat(progress.unknown_format)
                yield progress


def _read_progress(answers: BinaryIO, question: FileQuestion) -> ScanProgress:
    """Return the next message. If there is none, a limit has ended the process."""
    try:
        head = answers.read(4)
        content = answers.read(int.from_bytes(head))
    except OSError:
        head = content = b""
    if not head or len(content) < int.from_bytes(head):
        raise input_files.UnreadableFile(_describe_scan_limits(question))
    return msgspec.msgpack.decode(content, type=ScanProgress)


def _send_message(line: socket.socket, content: bytes) -> None:
    line.sendall(len(content).to_bytes(4) + content)


def _describe_scan_limits(question: FileQuestion) -> str:
    return (
        f"{Path(question.path).name}: reading a record takes more than {question.seconds} seconds of processor time,"
        f" or more than {question.memory // 1024**2:,} MB of memory. Split long records, or write smaller row groups"
    )


def _ask(question: FileQuestion) -> FileAnswer:
    name = Path(question.path).name
    if not _places.acquire(timeout=_BUSY_AFTER):
        raise input_files.UnreadableFile(
            f"{name} cannot be read now, because other files are being read. Try again in a minute"
        )
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
        with self.open_line() as ours:
            ours.settimeout(_START_SECONDS + 3 * MAX_SECONDS)
            try:
                _send_message(ours, question)
                ours.shutdown(socket.SHUT_WR)
                return b"".join(iter(lambda: ours.recv(1 << 16), b""))
            except OSError:
                return b""

    def open_line(self, *files: int) -> socket.socket:
        """Return a socket to a new process, which inherits some files."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._pass_on(theirs.fileno(), *files)
        return ours

    def _pass_on(self, *fds: int) -> None:
        with self._lock:
            with contextlib.suppress(OSError):
                if self._control is not None:
                    socket.send_fds(self._control, [b"?"], fds)
                    return
            self.stop()
            socket.send_fds(self._start(), [b"?"], fds)

    def _start(self) -> socket.socket:
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (our own module)
                [sys.executable, "-c", _SERVE.format(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                # Use the system's allocator: Arrow's own allocators reserve more address space than the limit.
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
                message, fds, _, _ = socket.recv_fds(control, 1, 2)
                if not message:
                    return
                if os.fork() == 0:
                    control.close()
                    _answer_and_exit(*fds)
                for fd in fds:
                    os.close(fd)


class _TimeIsUp(Exception):
    """The processor time or the wall-clock time is used up."""


def _answer_and_exit(fd: int, *files: int) -> NoReturn:
    code = 1
    try:
        with socket.socket(fileno=fd) as line:
            received = b"".join(iter(lambda: line.recv(1 << 16), b""))
            question = msgspec.msgpack.decode(received[4:], type=FileQuestion)
            if question.is_scan:
                _scan(question, line, files[0])
            else:
                line.sendall(msgspec.msgpack.encode(_answer(question)))
        code = 0
    except BaseException:  # noqa: BLE001  nothing handles it later
        traceback.print_exc()  # the process ends without Python's own report
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
    answer = FileAnswer(format, import_preview.preview_file(path, options, is_cut=question.is_cut))
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


def _scan(question: FileQuestion, line: socket.socket, file: int) -> None:
    def send(progress: ScanProgress) -> None:
        _send_message(line, msgspec.msgpack.encode(progress))

    path = Path(question.path)
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + question.memory,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with os.fdopen(file, "wb", buffering=1 << 20) as spooled:
            send(_spool_records(path, question, RecordSpool(spooled), send))
    except input_files.UnreadableFile as error:
        send(ScanProgress(unreadable=str(error)))
    except catalog.UnknownFormat as error:
        send(ScanProgress(unknown_format=str(error)))
    except MemoryError:
        send(ScanProgress(unreadable=_describe_scan_limits(question)))


def _spool_records(
    path: Path, question: FileQuestion, spool: RecordSpool, send: Callable[[ScanProgress], None]
) -> ScanProgress:
    """Read the file, and report the progress about once a second. Return the last message."""
    file_scan, reported, bad_lines, number = scan.ImportScan(), time.monotonic(), list[BadLine](), 0
    _renew_processor_time(question.seconds)
    for record in scan.read_records(path, question.options, scan=file_scan):
        spool.add(record)
        number += 1
        if isinstance(record, BadLine):
            bad_lines.append(record)
        if time.monotonic() - reported >= 1 or len(bad_lines) >= MAX_BAD_LINES_PER_MESSAGE:
            send(ScanProgress(number, file_scan.bytes_read(), bad_lines))
            reported, bad_lines = time.monotonic(), []
            _renew_processor_time(question.seconds)
    spool.flush()
    return ScanProgress(number, path.stat().st_size, bad_lines, file_scan.report)


def _renew_processor_time(seconds: int) -> None:
    """Let the kernel end this process after some more seconds of processor time. No handler runs: it would wait for a
    library to return."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds, resource.RLIM_INFINITY))
