"""Pages of PDF documents as pictures, with the place of a span marked."""

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse, Response

from clew.errors import InputError
from clew.ingest.readers.source import ReadBudget, SourceFile
from clew.serve.core.access import Reader
from clew.serve.core.originals import check_unchanged, find_original
from clew.serve.core.problems import Problem, not_found
from clew.serve.routes.documents import find_document
from clew.types import Document

router = APIRouter(prefix="/workspaces/{workspace}/documents/{document}/pages", tags=["documents"])
_MAX_PAGE = 1_000_000
_MAX_PLACE = 2**53
Place = Annotated[int, Query(ge=0, le=_MAX_PLACE)]


@router.get("/{number}", summary="A page of a PDF as a picture, a span of its text marked")
async def show_page(
    access: Reader,
    document: str,
    number: Annotated[int, Path(ge=1, le=_MAX_PAGE, description="The first page is 1.")],
    start: Place = 0,
    end: Place = 0,
) -> Response:
    """Return the picture as a data address, and boxes as shares of its width and height.

    A key may see the pictures if it may see the file, which was uploaded, or added on the command
    line and is unchanged. Boxes are empty where the words are not found on the page.
    """
    found = await find_document(access, document)
    if found.metadata.get("format") != "pdf" or number > len(found.page_starts):
        raise not_found("this document has no such page")
    original = await find_original(access, found)
    await check_unchanged(access, original, found)
    source = SourceFile(original.path, original.name)
    words, share = select_words(found, number, start, end)
    from clew.ingest.readers.pdf_image import draw_page  # takes a while, and a start shall not

    server = access.server
    budget = ReadBudget(**server.settings.read.model_dump())
    try:
        async with server.drawing:
            picture = await asyncio.to_thread(
                server.drawer.call, draw_page, source, budget, number, words, share
            )
    except InputError as error:
        raise Problem(422, f"the page cannot be drawn: the file {error}") from error
    return JSONResponse(
        {
            "page": number,
            "pages": len(found.page_starts),
            "width": picture.width,
            "height": picture.height,
            "image": f"data:image/png;base64,{b64encode(picture.png).decode()}",
            "boxes": [[round(part, 5) for part in box] for box in picture.boxes],
        }
    )


def select_words(document: Document, number: int, start: int, end: int) -> tuple[str, float]:
    """Return the part of a span that is on a page, and where in the page's text it begins."""
    first, last = _page_span(document.page_starts, number, len(document.text))
    inside = document.text[max(first, start) : min(last, end)]
    return inside, (max(first, start) - first) / max(1, last - first)


def _page_span(starts: Sequence[int], number: int, size: int) -> tuple[int, int]:
    return starts[number - 1], starts[number] if number < len(starts) else size
