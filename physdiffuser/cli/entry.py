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
import traceback
import warnings
from collections.abc import Sequence

import click

from physdiffuser.cli import messages
from physdiffuser.cli.app import cli
from physdiffuser.errors import PhysdiffuserError

DEBUG_VARIABLE = "PHYSDIFFUSER_DEBUG"
BUG, USAGE, IO = 1, 2, 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Parameters
    ----------
    arguments
        Words of the command line; those of the process when None.

    Returns
    -------
    The exit code.
    """
    _prepare()
    try:
        result = cli.main(args=arguments, prog_name="physdiffuser", standalone_mode=False)
        # Inside the try: a full disk or a closed pipe may show only now.
        sys.stdout.flush()
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
        # The reader has left (`| head`); nobody is there to be told.
        _drop_stdout()
        return IO
    except OSError as error:
        _drop_stdout()
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
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)  # no mistake to be told of, only what there is
        return USAGE
    messages.error(error.format_message())
    if error.ctx is not None:
        click.echo(f"Try '{error.ctx.command_path} --help'.", err=True)
    return USAGE


def _show_traceback() -> None:
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()


def _drop_stdout() -> None:
    """Keep the interpreter from failing once more when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
