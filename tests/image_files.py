"""Image files for tests."""

import base64
import io
import zipfile
from pathlib import Path
from typing import Any

from PIL import Image


def make_image(
    color: Any = "red", *, size: tuple[int, int] = (8, 6), mode: str = "RGB", kind: str = "PNG", **options: Any
) -> bytes:
    content = io.BytesIO()
    Image.new(mode, size, color).save(content, kind, **options)
    return content.getvalue()


def make_data_uri(content: bytes, kind: str = "png") -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def make_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path
