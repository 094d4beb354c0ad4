"""What the page can ask of the server. Tables and runs are looked up by name; no path comes from outside."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import unquote

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from physdiffuser.app import downloads, fragments, laws
from physdiffuser.app.comparison import Compared, compare
from physdiffuser.app.jobs import ACTIVE, Jobs, Run
from physdiffuser.app.overview import overview
from physdiffuser.app.records import Marks, Record
from physdiffuser.app.settings import MOST_SECONDS, Settings, checked, constraint_list, reason_of
from physdiffuser.app.tables import Tables, TooLargeError, dataset_of, slug
from physdiffuser.constraints.reading import read_constraints
from physdiffuser.core.solution import Solution
from physdiffuser.errors import PhysdiffuserError, UsageError
from physdiffuser.options import SolveOptions
from physdiffuser.pipeline import check_constraints
from physdiffuser.search.refinement.guesses import read_guess
from physdiffuser.templates.function_guesses import read_function_guesses
from physdiffuser.templates.solving import template_of

MOST_REQUEST = 1_000_000
"""Bytes of a request that is no table."""
# The report's own policy names the one script that may run.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; font-src data:; frame-ancestors 'self'"
)
_TICK = 0.25
_HEARTBEAT = 1.0

Handler = Callable[..., Awaitable[Response]]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StartRequest(_Asked):
    """Begin a search."""

    table: str
    settings: Settings


class ContinueRequest(_Asked):
    """Go on with what a run has found, and with a formula of the user."""

    time: float = Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False)
    guess: str | None = None


class MarkRequest(_Asked):
    """Change or undo marks of a run."""

    pin: str | None = Field(default=None, max_length=2_000)
    unpin: str | None = Field(default=None, max_length=2_000)
    select: int | None = Field(default=None, ge=0)
    undo: bool = False


def _answered(handler: Handler) -> Handler:
    """Turn errors that are meant for the user into answers."""

    @functools.wraps(handler)
    async def answer(self: Routes, request: Request) -> Response:
        try:
            return await handler(self, request)
        except TooLargeError as error:
            return JSONResponse({"error": str(error)}, 413)
        except ValidationError as error:
            return JSONResponse({"error": reason_of(error)}, 400)
        except PhysdiffuserError as error:
            return JSONResponse({"error": str(error)}, 400)
        except ClientDisconnect:
            return Response(status_code=400)

    return answer


class Routes:
    """The answers of the server.

    Parameters
    ----------
    token
        For the addresses in the page.
    opened
        Name of the table that the program was started with; empty if none.
    """

    def __init__(
        self,
        token: str,
        tables: Tables,
        jobs: Jobs,
        opened: str = "",
        closing: Callable[[], bool] = lambda: False,
    ) -> None:
        self._token = token
        self._tables = tables
        self._jobs = jobs
        self._opened = opened
        self._closing = closing

    def routes(self) -> list[Route]:
        """All addresses."""
        run = "/api/runs/{run}"
        return [
            Route("/", self.index),
            Route("/static/{name}", self.static),
            Route("/api/tables", self.receive, methods=["POST"]),
            Route("/api/tables/{table}/setup", self.setup, methods=["POST"]),
            Route("/api/runs", self.start, methods=["POST"]),
            Route("/api/runs", self.runs),
            Route(run, self.run),
            Route(f"{run}/panel", self.panel),
            Route(f"{run}/compare", self.compare),
            Route(f"{run}/events", self.events),
            Route(f"{run}/stop", self.stop, methods=["POST"]),
            Route(f"{run}/continue", self.resume, methods=["POST"]),
            Route(f"{run}/marks", self.mark, methods=["POST"]),
            Route(f"{run}/report", self.report),
            Route(f"{run}/download/{{kind}}", self.download),
        ]

    @_answered
    async def index(self, request: Request) -> Response:
        """The page."""
        return HTMLResponse(fragments.index_page(self._token, self._opened, self._tables.limit))

    @_answered
    async def static(self, request: Request) -> Response:
        """Its style and its script."""
        name = request.path_params["name"]
        if name == "app.css":
            return Response(fragments.style(), media_type="text/css")
        if name == "app.js":
            return Response(fragments.script(), media_type="text/javascript")
        return JSONResponse({"error": "there is no such file"}, 404)

    @_answered
    async def receive(self, request: Request) -> Response:
        """Keep a table that was dropped or pasted."""
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._tables.limit:
            raise TooLargeError(f"the table has more than {self._tables.limit:,} bytes")
        name = unquote(request.headers.get("x-table-name", ""))[:200] or "table.csv"
        identifier = await self._tables.receive(request.stream(), name)
        return JSONResponse({"table": identifier, "name": self._tables.get(identifier).name})

    @_answered
    async def setup(self, request: Request) -> Response:
        """How a table is read with these settings."""
        table = self._tables.get(request.path_params["table"])
        settings = checked(Settings.model_validate_json(await _body(request)))
        content = await run_in_threadpool(overview, table.path, settings)
        page = await run_in_threadpool(fragments.setup, content)
        return JSONResponse({"html": page, "name": table.name, "error": content["error"]})

    @_answered
    async def start(self, request: Request) -> Response:
        """Begin a search."""
        asked = StartRequest.model_validate_json(await _body(request))
        table = self._tables.get(asked.table)
        settings = checked(asked.settings)
        await run_in_threadpool(_check, table.path, settings)
        run = self._jobs.start(Record(table=str(table.path), table_name=table.name, settings=settings))
        return JSONResponse(run.snapshot(), 201)

    @_answered
    async def runs(self, request: Request) -> Response:
        """All runs, the latest last."""
        runs = sorted(self._jobs.runs.values(), key=lambda run: run.order)
        return JSONResponse([run.snapshot() for run in runs])

    @_answered
    async def run(self, request: Request) -> Response:
        """One run with its settings."""
        run = self._run(request)
        table = self._tables.add(Path(run.record.table), run.record.table_name)
        return JSONResponse(
            run.snapshot()
            | {
                "table": table,
                "settings": json.loads(run.record.settings.model_dump_json()),
                "command": downloads.command_line(run),
            }
        )

    @_answered
    async def panel(self, request: Request) -> Response:
        """The law, its fit and the Pareto table as HTML."""
        run = self._run(request)
        number = _whole(request, "row")
        return HTMLResponse(await run_in_threadpool(_panel, run, number))

    @_answered
    async def compare(self, request: Request) -> Response:
        """Two laws side by side as HTML: rows of the Pareto table, `3`, or pinned formulas, `pin-1`."""
        run = self._run(request)
        names = tuple(request.query_params.get(name, "") for name in ("a", "b"))
        return HTMLResponse(await run_in_threadpool(_comparison, run, names))

    @_answered
    async def events(self, request: Request) -> Response:
        """A stream that says how a run comes on, until it has ended."""
        return StreamingResponse(self._stream(self._run(request)), media_type="text/event-stream")

    @_answered
    async def stop(self, request: Request) -> Response:
        """End a search with the best so far."""
        run = self._run(request)
        self._jobs.stop(run)
        return JSONResponse(run.snapshot())

    @_answered
    async def resume(self, request: Request) -> Response:
        """Begin a search with what a run has found; one that still goes on is ended first."""
        run = self._run(request)
        asked = ContinueRequest.model_validate_json(await _body(request))
        record, pins = run.record, run.record.marks[-1].pins
        own = () if asked.guess is None else (asked.guess.strip(),)
        # With a template a starting formula is for one of its functions, and a pinned one is complete.
        kept, pinned = ((), ()) if record.settings.template else (pins, own)
        guesses = tuple(dict.fromkeys((*record.settings.guesses, *kept, *own)))
        settings = checked(record.settings.model_copy(update={"time": asked.time, "guesses": guesses}))
        settings = Settings.model_validate_json(settings.model_dump_json())
        await run_in_threadpool(_check, Path(record.table), settings)
        if run.state in ACTIVE:
            self._jobs.stop(run)
            await self._jobs.ended(run)
        marks = (Marks(pins=tuple(dict.fromkeys((*pins, *pinned)))[-20:]),)
        record = record.model_copy(update={"settings": settings, "earlier": run.id, "marks": marks})
        return JSONResponse(self._jobs.start(record).snapshot(), 201)

    @_answered
    async def mark(self, request: Request) -> Response:
        """Pin, select, or undo the last of these."""
        run = self._run(request)
        asked = MarkRequest.model_validate_json(await _body(request))
        record, marks = run.record, run.record.marks[-1]
        pins = [pin for pin in marks.pins if pin not in (asked.pin, asked.unpin)]
        if asked.undo:
            record = record.undone()
        elif asked.pin is not None:
            await run_in_threadpool(_check_formula, run, asked.pin)
            record = record.marked(marks.model_copy(update={"pins": (*pins, asked.pin)[-20:]}))
        elif asked.unpin is not None:
            record = record.marked(marks.model_copy(update={"pins": tuple(pins)}))
        elif asked.select is not None:
            record = record.marked(marks.model_copy(update={"selected": asked.select or None}))
        record.save(run.folder)
        run.record = record
        return JSONResponse(run.snapshot())

    @_answered
    async def report(self, request: Request) -> Response:
        """The report of a run; its own policy forbids it to load anything."""
        run = self._run(request)
        solution = await run_in_threadpool(_finished, run)
        page = await run_in_threadpool(downloads.report, run, solution)
        return HTMLResponse(page, headers={"content-security-policy": REPORT_POLICY})

    @_answered
    async def download(self, request: Request) -> Response:
        """The folder, the law in another language, or the notebook."""
        run, kind = self._run(request), request.path_params["kind"]
        name = slug(Path(run.record.table_name).stem)
        if kind == "notebook":
            return _file(downloads.notebook(run), f"{name}.ipynb", "application/x-ipynb+json")
        solution = await run_in_threadpool(_finished, run)
        if kind == "folder":
            content = await run_in_threadpool(downloads.folder_zip, run, solution)
            return _file(content, f"{slug(run.id)}.zip", "application/zip")
        if kind not in downloads.CODE:
            return JSONResponse({"error": "there is no such download"}, 404)
        selected = run.record.marks[-1].selected
        row = selected if selected is not None and selected <= len(solution.pareto) else None
        text = await run_in_threadpool(downloads.code, solution, row, kind)
        return _file(text, f"{name}.{downloads.CODE[kind]}", "text/plain; charset=utf-8")

    def _run(self, request: Request) -> Run:
        return self._jobs.get(request.path_params["run"])

    async def _stream(self, run: Run) -> AsyncIterator[bytes]:
        said, waited = "", _HEARTBEAT
        while not self._closing():
            ended = run.state not in ACTIVE
            snapshot = run.snapshot()
            key = f"{snapshot['state']} {snapshot['version']}"
            if key != said or waited >= _HEARTBEAT or ended:
                said, waited = key, 0.0
                yield f"data: {json.dumps(snapshot)}\n\n".encode()
            if ended:
                return
            await asyncio.sleep(_TICK)
            waited += _TICK


async def _body(request: Request) -> bytes:
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > MOST_REQUEST:
            raise TooLargeError("the request is too large")
    return content


def _whole(request: Request, name: str) -> int | None:
    text = request.query_params.get(name, "")
    return int(text) if text.isdigit() and len(text) < 7 and int(text) > 0 else None


def _file(content: str | bytes, name: str, kind: str) -> Response:
    return Response(
        content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


def _check(path: Path, settings: Settings) -> None:
    """Refuse at once what the search would refuse at its start."""
    dataset = dataset_of(path, settings)
    options = SolveOptions(
        constants=settings.constants or None,
        template=settings.template or None,
        constraints=constraint_list(settings.constraints),
    )
    check_constraints(options, dataset)
    read_constraints(options.constraints, dataset)
    template = template_of(options, dataset)
    known = laws.known_constants(settings, dataset)
    if template is not None:
        read_function_guesses(settings.guesses, template, known)
        return
    for formula in settings.guesses:
        read_guess(formula, dataset.names, known, dataset.target_column.alias)


def _check_formula(run: Run, formula: str) -> None:
    settings = run.record.settings.model_copy(update={"guesses": (formula,), "template": ""})
    _check(Path(run.record.table), settings)


def _panel(run: Run, number: int | None) -> str:
    solution = laws.solution_of(run)

    def pinned(text: str) -> Compared | None:
        found = None if solution is None else laws.pinned(run, solution, text)
        if found is None or solution is None:
            return None
        return Compared(text, found.equation, found.drawn_on(solution))

    return fragments.panel(run, solution, number, pinned)


def _comparison(run: Run, names: tuple[str, ...]) -> str:
    solution = laws.solution_of(run)
    if solution is None:
        raise UsageError("this run has found no formula yet")
    first, second = (_compared(run, solution, name) for name in names)
    dataset = dataset_of(Path(run.record.table), run.record.settings)
    return fragments.comparison((first, second), compare((first, second), dataset))


def _compared(run: Run, solution: Solution, name: str) -> Compared:
    """A row of the Pareto table, `3`, or a pinned formula, `pin-1`."""
    kind, number = ("pin", name[4:]) if name.startswith("pin-") else ("row", name)
    place = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
    if kind == "row":
        if not 0 < place <= len(solution.pareto):
            raise UsageError("there is no such row any more: the search has found better formulas")
        return Compared(f"row {place}", solution.pareto[place - 1], solution)
    pins = run.record.marks[-1].pins
    found = laws.pinned(run, solution, pins[place - 1]) if 0 < place <= len(pins) else None
    if found is None:
        raise UsageError("there is no such pinned formula, or it could not be fitted to the table")
    return Compared(f"pin {place}", found.equation, found.drawn_on(solution))


def _finished(run: Run) -> Solution:
    solution = laws.solution_of(run)
    if run.state in ACTIVE or solution is None or solution.best is None:
        raise UsageError("this run has no result yet")
    return solution
