"""Writers: records in, bytes out. Pure: no Django, no models, no clock."""

from collections.abc import Callable, Iterable, Iterator

from exports.formats import booleans, prm800k, processbench
from labeling.importing.records import TraceRecord

Write = Callable[[Iterable[TraceRecord]], Iterator[bytes]]

FORMATS: dict[str, Write] = {
    "prm800k": prm800k.write,
    "trl": booleans.write_trl,
    "math_shepherd": booleans.write_math_shepherd,
    "rlhflow": booleans.write_rlhflow,
    "processbench": processbench.write,
}
