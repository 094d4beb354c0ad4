"""Which rows and which columns a reader of rows looks at.

A reader is an inducing point, a pooling vector or a slice: anything with a distribution over rows.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.inspection.capture import captured
from physdiffuser.inspection.networks import quiet_networks
from physdiffuser.inspection.session import Showing, encode
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

_SHUFFLES = 8


def over_rows(showing: Showing, weights: FloatArray) -> FloatArray:
    """Distributions over rows, (layers, heads, readers, rows).

    Parameters
    ----------
    showing
        Says which attention the encoder has.
    weights
        (layers, heads, readers, rows) of inducing points, or (layers, heads, rows, slices) of slices,
        which are normalised over the rows here.
    """
    if showing.has("gather"):
        return weights
    turned = weights.transpose(0, 1, 3, 2)
    result: FloatArray = turned / np.maximum(turned.sum(axis=-1, keepdims=True), 1e-12)
    return result


def focus(distributions: FloatArray, values: FloatArray) -> FloatArray:
    """Where along each column the rows lie that a reader looks at, in standard deviations from the mean.

    Parameters
    ----------
    distributions
        (..., readers, rows), each summing to 1 over rows.
    values
        (rows, columns).

    Returns
    -------
    (..., readers, columns): 0 for a reader that looks at all rows alike.
    """
    spread = values.std(axis=0)
    standard = (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    result: FloatArray = distributions @ standard
    return result


def effective_rows(distributions: FloatArray) -> FloatArray:
    """Rows that a reader looks at: the exponential of the entropy of its distribution over rows."""
    logs = np.log(np.maximum(distributions, 1e-30))
    result: FloatArray = np.exp(-(distributions * logs).sum(axis=-1))
    return result


def reliance(showing: Showing, kind: str, shuffles: int = _SHUFFLES) -> FloatArray:
    """How much a reader's choice of rows hangs on each column.

    One column is shuffled over the rows, so that its values stay and their relation to the others goes; the
    table is encoded again, and the total-variation distance between the distributions over rows before and
    after is taken, averaged over heads and shuffles. 0: the column has no part in the choice.

    Parameters
    ----------
    kind
        "gather" or "rows" (slices).

    Returns
    -------
    (layers, readers, columns + 1), target last.
    """
    model = showing.networks.model
    rng = showing.problem.generator(37)
    rows = np.array(showing.reading.rows[: model.config.encoder.rows])
    before = over_rows(showing, showing.encoder_weights(kind))
    found = np.zeros((before.shape[0], before.shape[2], len(showing.labels)))
    for column, place in enumerate([*showing.places, MAX_VARIABLES]):
        for _ in range(shuffles):
            changed = rows.copy()
            changed[:, place] = rows[rng.permutation(len(rows)), place]
            with quiet_networks(), captured(model) as heard:
                encode(model, showing.reading, changed)
            weights = heard.weights("encoder", kind)[:, 0].double().numpy()
            after = weights[..., showing.order] if kind == "gather" else weights[:, :, showing.order]
            distance = 0.5 * np.abs(over_rows(showing, after) - before).sum(axis=-1)
            found[:, :, column] += distance.mean(axis=1) / shuffles
    return found


def most_relevant_pair(showing: Showing) -> tuple[int, int]:
    """The two columns of `Showing.values` that tell most of the target; with one input, it and the target."""
    from physdiffuser.models.features.reading import relevant_columns

    count = len(showing.subject.names)
    if count == 1:
        return 0, 1
    first, second = relevant_columns(showing.subject.inputs, showing.subject.target, 2)
    return first, second
