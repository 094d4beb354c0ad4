"""What the report may use of the terminal: colour, rules, signs beyond ASCII."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from physdiffuser.cli.process import stdout
from physdiffuser.cli.shared.run import terminal_style
from physdiffuser.report.text.style import Style

StyleOf = Callable[..., Style]


class Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def style_of(monkeypatch: pytest.MonkeyPatch) -> StyleOf:
    def style(stream: io.StringIO, *, ascii_only: bool = False, **environment: str) -> Style:
        for name in ("NO_COLOR", "TERM", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(stdout, "stream", lambda: stream)
        return terminal_style(ascii_only=ascii_only)

    return style


def test_a_terminal_has_rules_and_colour(style_of: StyleOf) -> None:
    style = style_of(Screen(), COLUMNS="72")
    assert (style.width, style.framed, style.colour, style.unicode) == (72, True, True, True)
    assert style.label("Verdict") == "\x1b[36mVerdict\x1b[0m"


def test_no_color_leaves_the_rules(style_of: StyleOf) -> None:
    style = style_of(Screen(), NO_COLOR="1")
    assert style.framed and not style.colour and style.emphasise("law") == "law"


def test_a_dumb_terminal_and_a_file_get_plain_text(style_of: StyleOf) -> None:
    assert style_of(Screen(), TERM="dumb") == Style(width=80)
    assert style_of(io.StringIO()) == Style(unicode=False)


def test_signs_beyond_ascii_can_be_turned_off(style_of: StyleOf) -> None:
    assert not style_of(Screen(), ascii_only=True).unicode
