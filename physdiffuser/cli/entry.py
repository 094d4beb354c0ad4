"""The program: runs a command and turns whatever happens into a message and an exit code.

0 result, 1 bug, 2 usage or configuration, 3 data, 4 file or I/O, 5 nothing found, 6 plugin, 128 + n
ended by signal n.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Sequence

import click

from physdiffuser.cli.app import cli
from physdiffuser.cli.process import messages, stdout
from physdiffuser.errors import PhysdiffuserError

DEBUG_VARIABLE = "PHYSDIFFUSER_DEBUG"
BUG, USAGE, IO = 1, 2, 4


def main(arguments: Sequence[str] | None = None, started: float | None = None) -> int:
    """Run the program.

    Parameters
    ----------
    arguments
        Words of the command line. None stands for those of the process, which then ends with the program.
    started
        Reading of `time.monotonic` at which the program was started, if it is known.

    Returns
    -------
    The exit code.
    """
    if arguments is not None:
        return _run(arguments, started)
    stdout.own_process()
    return end_process(_run(None, started))


def _run(arguments: Sequence[str] | None, started: float | None) -> int:
    _prepare()
    try:
        result = cli.main(args=arguments, prog_name="physdiffuser", standalone_mode=False, obj=started)
        # Inside the try: a full disk or a closed pipe may show only now.
        stdout.stream().flush()
    except PhysdiffuserError as error:
        messages.error(str(error))
        _show_traceback()
        return error.exit_code
    except click.UsageError as error:
        return _usage(error)
    except click.ClickException as error:
        messages.error(error.format_message())
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("", err=True)
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader has left (`| head`); there is nobody to write to.
        stdout.drop()
        return IO
    except OSError as error:
        stdout.drop()
        where = f" '{error.filename}'" if error.filename else ""
        messages.error(f"{error.strerror or error}{where}")
        _show_traceback()
        return IO
    except MemoryError:
        messages.error("not enough memory. Give fewer rows or columns (--inputs), or close other programs.")
        return IO
    except Exception as error:
        _bug(error)
        return BUG
    return result if isinstance(result, int) else 0


def _prepare() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name the terminal's encoding cannot show is no reason to lose a result.
        sys.stdout.reconfigure(errors="backslashreplace")
    if not sys.warnoptions and not os.environ.get(DEBUG_VARIABLE):
        # Libraries warn developers; what concerns the user comes as a message of ours.
        warnings.simplefilter("ignore")


def _usage(error: click.UsageError) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a group of commands, such as `plugins`
        click.echo(error.format_message(), err=True)  # a list of what there is, not an error
        return USAGE
    messages.error(error.format_message())
    if error.ctx is not None:
        click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
    return USAGE


def _show_traceback() -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()


def _bug(error: Exception) -> None:
    text = "".join(traceback.format_exception(error))
    what = f"internal error: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if os.environ.get(DEBUG_VARIABLE):
        click.echo(text, err=True)
        messages.error(f"{what}. This is a bug in physdiffuser.")
        return
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="physdiffuser-error-", suffix=".txt", delete=False
        ) as stream:
            stream.write(text)
    except OSError:
        click.echo(text, err=True)
        messages.error(f"{what}. This is a bug in physdiffuser.")
    else:
        messages.error(f"{what}. This is a bug in physdiffuser; the details are in {stream.name}")


JOINING = 1.0
"""Seconds for threads that are no daemons to finish: Python itself would wait for them without a limit."""


def end_process(code: int) -> int:
    """The exit code, for `sys.exit`; ends the process at once where foreign threads still run.

    An interpreter that shuts down can crash in them (an import of torch) or wait for them for ever. Files are
    written in one step, and worker processes end with this one, so nothing else is left to clean up.
    """
    until = time.monotonic() + JOINING
    for thread in _foreign_threads():
        if not thread.daemon:
            thread.join(max(0.0, until - time.monotonic()))
    if not _foreign_threads():
        return code
    for file in (stdout.stream(), sys.stderr):
        # Output that could not be written has been an error before.
        with contextlib.suppress(Exception):
            file.flush()
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        for child in multiprocessing.active_children():
            child.kill()
    os._exit(code)


def _foreign_threads() -> list[threading.Thread]:
    """Threads that are not the program's own, and calls of plugins that were given up."""
    calls = sys.modules.get("physdiffuser.plugin_system.calls")
    running = [] if calls is None else calls.calls_running()
    others = [
        thread
        for thread in threading.enumerate()
        if thread is not threading.current_thread()
        and not thread.name.startswith("physdiffuser-")
        and not type(thread).__module__.startswith("tqdm.")
    ]
    return [*running, *others]
