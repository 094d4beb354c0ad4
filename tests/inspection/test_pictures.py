"""What stands in the pictures beside the data: names, origins, axes."""

from __future__ import annotations

from typing import Any

import pytest
from inspected_networks import SLICES, networks

from physdiffuser.inspection.drawing import slices as draw_slices
from physdiffuser.inspection.drawing.encoder import about
from physdiffuser.inspection.drawing.figures import Origin, new_figure
from physdiffuser.inspection.drawing.formula import thinned
from physdiffuser.inspection.session import show
from physdiffuser.inspection.slices import layers_of
from physdiffuser.inspection.subjects import find_law, from_law


@pytest.mark.parametrize("width", [4.0, 9.0, 20.0])
def test_a_picture_says_all_of_where_it_comes_from(width: float) -> None:
    encoder = "encoder: physics-slice (shipped, slices-16), 54,272 tables seen, taught by standard"
    weights = f"weights standard, 7,610,368 tables seen, diffusion ecc80745; {encoder}, encoder afa5e224"
    figure = new_figure(width, 4.0, "title", Origin(weights, "a $table", True))
    figure.draw_without_rendering()
    said = figure.texts[-1]
    assert " ".join(said.get_text().split()) in (f"a \\$table {weights}", f"a \\$table · {weights}")
    assert said.get_window_extent().x0 >= 0


def test_names_of_pooled_vectors_are_no_columns_and_have_room() -> None:
    kept, names = show(networks(), from_law(find_law("I.9.18"), rows=60, noise=0.0, seed=0)).keys
    assert names[:4] == ["#1", "#2", "#3", "#4"] and len(set(names)) == len(kept)
    keys = [*(f"#{index + 1}" for index in range(12)), "omega_0", "table"]
    assert [name for name in thinned(keys, 12) if name] == ["#1", "#5", "#10", "ω₀", "table"]
    assert len(thinned(keys, 12)) == len(keys)


def test_a_single_row_is_not_rows() -> None:
    assert about(1.3) == "about 1 row" and about(1.6) == "about 2 rows"


@pytest.fixture(name="drawn")
def _drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    figures: list[Any] = []

    def keep(figure: Any, dpi: int) -> bytes:
        figures.append(figure)
        return b""

    monkeypatch.setattr(draw_slices, "png_of", keep)
    monkeypatch.setattr(draw_slices, "_MAX_SHOWN", 4)  # with all slices in one, five panels in two lines
    return figures


def test_the_lowest_panel_of_each_column_has_an_axis(drawn: list[Any]) -> None:
    showing = show(networks(**SLICES), from_law(find_law("I.24.6"), rows=60, noise=0.0, seed=0))
    slices = layers_of(showing)
    origin = Origin("weights", "table", True, 60)
    draw_slices.assignment(showing, slices[0], 0, len(slices), origin, (0, 1), "slices")
    panels = [axes for axes in drawn[0].axes if axes.get_visible() and axes.get_label() != "<colorbar>"]
    assert len(panels) == 5
    for place, panel in enumerate(panels):
        lowest = place + 3 >= len(panels)
        assert bool(panel.get_xlabel()) == lowest
        assert any(label.get_visible() for label in panel.get_xticklabels()) == lowest
