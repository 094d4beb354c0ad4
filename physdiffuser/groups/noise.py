"""The noise model of a table with groups, chosen together with the law.

The forms that were found are fitted to all groups with equal weights. Where the target spans more than a
small ratio, they are fitted again with the weights of each other noise model, and the descriptions are
compared under the likelihood of each (`physdiffuser.noise.models`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import NoiseModelName
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.groups import Groups
from physdiffuser.groups.joint_fit import GroupedRows, JointModel
from physdiffuser.groups.selection import GroupSelection
from physdiffuser.groups.sharing import GroupLaw
from physdiffuser.noise.models import NoiseKind, NoiseModel, fit_noise_model
from physdiffuser.search.noise_inference import POLICY, is_wide

_REWEIGHTED: tuple[NoiseKind, ...] = ("relative", "poisson", "mixed")
_ONLY_ASKED: tuple[NoiseKind, ...] = ("robust",)
# Weights that depend on residuals need more rounds; of the later ones so many laws are fitted again.
_ROBUST_ROUNDS, _FEW_LAWS = 8, 3


@dataclass(frozen=True)
class GroupNoise:
    """Laws fitted under a noise model.

    Attributes
    ----------
    selection
        The laws, fitted with the weights of the model.
    model
        The noise model.
    nats
        Length of the description by the best law, comparable between noise models.
    advantage
        Nats by which it is shorter than with constant errors.
    """

    selection: GroupSelection
    model: NoiseModel
    nats: float
    advantage: float = 0.0


def infer_noise(
    selection: GroupSelection, asked: NoiseModelName, held_out: GroupedRows | None = None
) -> GroupNoise | None:
    """The noise model with the shortest description; None where errors are constant.

    Parameters
    ----------
    selection
        Laws fitted with equal weights.
    asked
        A noise model to be used, or `auto`.
    held_out
        Rows of each group that no law was fitted to: each model describes them with its best law as well.
    """
    kinds = _kinds(selection, asked)
    best = selection.best
    constant = None if best is None else _described(best, selection, "constant")
    if constant is None or not kinds:
        return None
    found = [
        noise
        for kind in kinds
        if not (selection.stop() and asked == "auto") and (noise := _under(kind, selection)) is not None
    ]
    if held_out is not None:
        constant = _with_held_out(constant, held_out)
        found = [_with_held_out(noise, held_out) for noise in found]
    if not found:
        return None
    chosen = min(found, key=lambda noise: noise.nats)
    advantage = constant.nats - chosen.nats
    if asked == "auto" and advantage < POLICY.decisive:
        return None
    return GroupNoise(chosen.selection, chosen.model, chosen.nats, advantage)


@np.errstate(all="ignore")
def _with_held_out(noise: GroupNoise, rows: GroupedRows) -> GroupNoise:
    """With the negative logarithm of the likelihood of rows that were held out; infinite without values."""
    best = noise.selection.best
    assert best is not None  # the noise model was fitted with it
    prediction = JointModel(best.fit.skeleton, rows).predicted(best.fit.parameters)
    total = float(noise.model.row_nats(rows.target[rows.present], prediction).sum())
    return replace(noise, nats=noise.nats + (total if np.isfinite(total) else np.inf))


def with_weights(dataset: Dataset, groups: Groups, noise: GroupNoise) -> Dataset:
    """The table, all rows, with the weights that follow from the noise model and its best law."""
    best = noise.selection.best
    assert best is not None  # a noise model was chosen with a law
    rows = GroupedRows.of(dataset.inputs, dataset.target, None, groups.codes)
    values = JointModel(best.fit.skeleton, rows).predicted(best.fit.parameters)
    weights = np.empty(dataset.rows)
    order = np.argsort(groups.codes, kind="stable")
    target = dataset.target[order]
    weights[order] = noise.model.row_weights(target, np.where(np.isfinite(values), values, target))
    return replace(dataset, weights=weights)


def _kinds(selection: GroupSelection, asked: NoiseModelName) -> tuple[NoiseKind, ...]:
    """The noise models that are tried besides constant errors."""
    if asked != "auto":
        return tuple(kind for kind in (*_REWEIGHTED, *_ONLY_ASKED) if kind == asked)
    target = selection.rows.target[selection.rows.present]
    if selection.exact or not is_wide(target):
        return ()
    signed = ("relative", "poisson") if target.min() <= 0 <= target.max() else ()
    return tuple(kind for kind in _REWEIGHTED if kind not in signed)


def _under(kind: NoiseKind, selection: GroupSelection) -> GroupNoise | None:
    """All forms fitted with the weights of a noise model: of the measured values first, then of a law's.

    Weights for heavy tails depend on the residuals, so they are those of a law from the start.
    """
    best = selection.best
    start = None if best is None else _described(best, selection, kind)
    if best is None or start is None:
        return None
    target = selection.rows.target[selection.rows.present]
    robust = kind == "robust"
    values = _predicted(best, selection) if robust else target
    found = None
    for again in range(_ROBUST_ROUNDS if robust else POLICY.reweightings):
        weights = start.model.row_weights(target, values)
        if not np.isfinite(weights).all():
            return found
        laws_again = None if again < POLICY.reweightings else _FEW_LAWS
        rows = selection.rows.weighted(weights, start.model.variance_factor)
        selection = selection.reweighted(rows, forms=again == 0, laws=laws_again)
        laws = [one for law in selection.laws.values() if (one := _described(law, selection, kind))]
        if not laws:
            return found
        found = start = min(laws, key=lambda one: one.nats)
        if selection.stop():
            return found
        best = min(selection.laws.values(), key=lambda law: law.length)
        values = _predicted(best, selection)
    return found


def _described(law: GroupLaw, selection: GroupSelection, kind: NoiseKind) -> GroupNoise | None:
    """The law with a noise model fitted to its residuals; None where it has no finite values."""
    prediction = _predicted(law, selection)
    if not np.isfinite(prediction).all():
        return None
    target = selection.rows.target[selection.rows.present]
    model = fit_noise_model(kind, target, prediction, law.fit.constants)
    if not np.isfinite(model.nats):
        return None
    return GroupNoise(selection, model, selection.measure.law_nats(law.fit) + model.nats)


def _predicted(law: GroupLaw, selection: GroupSelection) -> FloatArray:
    return JointModel(law.fit.skeleton, selection.rows).predicted(law.fit.parameters)
