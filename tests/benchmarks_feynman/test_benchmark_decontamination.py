"""The tables that networks are trained on hold no law of the benchmark suites."""

from __future__ import annotations

from law_identity import same_up_to_renaming

from physdiffuser.config import DataConfig
from physdiffuser.expressions import Expression, Variable, from_prefix, to_prefix
from physdiffuser.expressions.tree import substitute, variables
from physdiffuser.models.tokens.skeleton import without_linear_coefficients
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.training.decontamination import SHORT, Excluded, without_factors
from physdiffuser.training.stream import LawStream, benchmark_laws


def test_the_stream_holds_no_long_benchmark_law() -> None:
    # Independent of the keys that the stream itself uses: values on fresh real points, over all renamings.
    laws = benchmark_laws()
    vocabulary = Vocabulary()
    stream = LawStream(DataConfig(rows=(16, 16)), vocabulary, 32, 11, Excluded(laws))
    by_count: dict[int, list[Expression]] = {}
    for law in laws:
        stripped = without_linear_coefficients(without_factors(law))
        count = len(variables(stripped))
        if len(to_prefix(without_linear_coefficients(law))) > SHORT and 1 <= count <= 4:
            by_count.setdefault(count, []).append(_numbered(stripped))
    checked = 0
    for number in range(4):
        batch = stream.batch(number, 64)
        for row in range(64):
            skeleton = from_prefix(vocabulary.decode(batch.tokens[row].tolist()))
            form = _numbered(without_linear_coefficients(without_factors(skeleton)))
            count = len(variables(form))
            for benchmark in by_count.get(count, []):
                checked += 1
                assert not same_up_to_renaming(form, benchmark, count), skeleton
    assert checked > 1000


def _numbered(expression: Expression) -> Expression:
    """Return the expression with its columns numbered from 0."""
    places = {place: index for index, place in enumerate(sorted(variables(expression)))}
    return substitute(
        expression, lambda node: Variable(places[node.index]) if isinstance(node, Variable) else None
    )
