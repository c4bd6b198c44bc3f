"""Reads scanned pages by tesseract, a program of its own, where it is installed."""

import shutil
import subprocess
from functools import cache
from typing import Any

_DOTS_PER_INCH = 200
_POINTS_PER_INCH = 72
_MAX_PIXELS = 40_000_000  # of a page: a larger one is rendered smaller
_MAX_SECONDS = 120.0  # for one page, whatever the budget
_DEFAULT_LANGUAGE = "eng"


@cache
def find_tesseract() -> str:
    """Return the program, or "" where it is not installed."""
    return shutil.which("tesseract") or ""


def read_scan(page: Any, languages: str, seconds: float) -> str:
    """Return the text of a pdfium page that is a picture; "" without tesseract or text."""
    program = find_tesseract()
    if not program:
        return ""
    width, height = page.get_size()
    scale = _DOTS_PER_INCH / _POINTS_PER_INCH
    pixels = max(width * height * scale * scale, 1.0)
    scale *= min(1.0, (_MAX_PIXELS / pixels) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    picture = bytes(bitmap.buffer)
    if len(set(picture[:: max(1, len(picture) // 20_000)])) < 2:
        return ""  # a blank page
    rows = [
        picture[row * bitmap.stride : row * bitmap.stride + bitmap.width]
        for row in range(bitmap.height)
    ]
    graymap = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(rows)
    language = _DEFAULT_LANGUAGE if languages == "auto" else languages
    try:
        done = subprocess.run(
            [program, "stdin", "stdout", "-l", language],
            input=graymap,
            capture_output=True,
            timeout=min(seconds, _MAX_SECONDS),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.decode("utf-8", "replace").replace("\f", "")
