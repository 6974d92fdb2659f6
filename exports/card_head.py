"""The head of a card in YAML: what programs of the Hugging Face hub read of it. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from exports.files import Written
from exports.formats import FORMATS, columns

LICENCES = (
    *("apache-2.0", "mit", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0", "odc-by", "gpl-3.0"),
    "bsd-3-clause",
)


def write(name: str, licence: str, rows: int, files: Sequence[Written]) -> str:
    lines = ["---", f"pretty_name: {_quoted(name)}", *_licence(licence)]
    lines += ["tags:", "- process-supervision", "- process-reward-model", f"size_categories:\n- {_size(rows)}"]
    by_format = _by_format(files)
    if by_format:
        lines += ["configs:", *(line for format, splits in by_format.items() for line in _config(format, splits))]
        lines += ["dataset_info:", *(line for format in by_format for line in _info(format))]
    return "\n".join([*lines, "---"])


def _by_format(files: Sequence[Written]) -> dict[str, dict[str, list[str]]]:
    """Data files by format and split. Weights and card are no data sets of their own."""
    found: dict[str, dict[str, list[str]]] = {}
    for file in files:
        if file.format in FORMATS:
            found.setdefault(file.format, {}).setdefault(file.split, []).append(file.name)
    return found


def _config(name: str, splits: Mapping[str, list[str]]) -> Iterator[str]:
    yield f"- config_name: {name}"
    yield "  data_files:"
    for split, files in splits.items():
        yield f"  - split: {split}"
        yield "    path:"
        yield from (f"    - {file}" for file in sorted(files))


def _info(name: str) -> Iterator[str]:
    yield f"- config_name: {name}"
    yield "  features:"
    yield from columns.yaml(FORMATS[name].columns, "  ")


def _licence(licence: str) -> list[str]:
    known = licence.strip().lower()
    if known in LICENCES:
        return [f"license: {known}"]
    return ["license: other", f"license_name: {_quoted(licence.strip())}"] if known else ["license: unknown"]


def _size(rows: int) -> str:
    bounds = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
    return next((name for limit, name in bounds if rows < limit), "n>1M")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
