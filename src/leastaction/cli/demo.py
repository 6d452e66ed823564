"""``leastaction demo``: a closed loop under a variational method and under RK4."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from leastaction.cli.output import check_matplotlib, console, make_folder, say_when_compiling


@click.command(short_help="Watch a linkage under two methods, in the browser or in a report.")
@click.option(
    "--browser/--no-browser",
    default=None,
    help="Serve a page and open it in the browser, or print a report, write a picture and an animation, and end. By "
    "default a page where there is a terminal and a display.",
)
@click.option("--port", default=7007, show_default=True, type=int, help="Port of the page; the next free one is taken.")
@click.option(
    "--host", metavar="NAME", default="127.0.0.1", show_default=True, help="Address that the page listens at."
)
@click.option(
    "--out-dir",
    metavar="DIR",
    default="out",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Without a browser: folder for the picture, the animation and the result file; made if missing.",
)
def demo(browser: bool | None, port: int, host: str, out_dir: Path) -> None:
    """Simulate a four-bar linkage with galerkin:4 beside rk4: what becomes of the energy, and does the loop close?"""
    shown = has_display()
    if browser is None:
        browser = sys.stdout.isatty() and shown
    if browser:
        with say_when_compiling():
            from leastaction.demo import run_page

            run_page(console(), host=host, port=port, open_browser=shown)
        return
    check_matplotlib("demo")
    make_folder(out_dir, "--out-dir")
    with say_when_compiling():
        from leastaction.demo import run_report

        run_report(out_dir, console())


def has_display() -> bool:
    """Whether a browser could show something to somebody here."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
