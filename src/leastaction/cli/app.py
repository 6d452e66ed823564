"""The group of commands, and how every error becomes one line on the error stream and an exit code.

Only click is imported here, so that ``--version`` and ``--help`` answer at once; commands import what they need when
they run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from leastaction._version import __version__
from leastaction.cli.bench import bench
from leastaction.cli.demo import demo
from leastaction.cli.info import info
from leastaction.cli.output import one_line
from leastaction.cli.reproduce import reproduce
from leastaction.cli.resume import resume
from leastaction.cli.run import run
from leastaction.cli.warmup import warmup
from leastaction.errors import ConvergenceError, LeastActionError

# exit codes
SUCCESS, STOPPED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="leastaction", message="%(prog)s %(version)s")
def app() -> None:
    """Simulate mechanisms described by a file (URDF, MJCF, JSON) or built in.

    Exit codes: 0 done, 1 the run stopped early, 2 bad input (one line on the error stream says what), 130 interrupted.
    """


for _command in (demo, run, resume, info, reproduce, bench, warmup):
    app.add_command(_command)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    sys.exit(run_app(args))


def run_app(args: Sequence[str] | None = None) -> int:
    """Run the command line with the given words (by default those of the process) and return the exit code."""
    try:
        code = app.main(args=None if args is None else list(args), prog_name="leastaction", standalone_mode=False)
    # nothing was asked for: show what there is
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_INPUT
    # an option or a word that click could not read
    except click.ClickException as error:
        _say(error.format_message() + _where_to_look(error))
        return BAD_INPUT
    except ConvergenceError as error:
        _say(str(error))
        return STOPPED
    except LeastActionError as error:
        _say(str(error))
        return BAD_INPUT
    # what the system refused: a name that is too long, a folder that may not be read, a full disk
    except OSError as error:
        _say(f"{error.filename or 'input or output'}: {error.strerror or error}.")
        return BAD_INPUT
    except MemoryError:
        _say("there is not enough memory for this.")
        return BAD_INPUT
    # Ctrl-C reaches us as click's Abort, or as itself from inside a block that click does not see
    except (click.Abort, KeyboardInterrupt) as error:
        words = str(error) or str(error.__cause__ or "")
        _say(words or "interrupted.")
        return INTERRUPTED
    return code if isinstance(code, int) else SUCCESS


def _say(message: str) -> None:
    """One line on the error stream."""
    click.echo(f"leastaction: {one_line(message)}", err=True)


def _where_to_look(error: click.ClickException) -> str:
    """The help of the command that was meant."""
    context = getattr(error, "ctx", None)
    return f" See '{context.command_path} --help'." if context is not None else ""
