"""The tokens a network reads and writes, and the grammar that makes a sequence a formula.

A formula is written as its prefix tokens (`physdiffuser.expressions.prefix`). The vocabulary adds the
specials of sequence models and STEP/END_STEP, which enclose a named sub-expression of a derivation
(`physdiffuser.models.tokens.derivation`); a vocabulary with the names `s1`, `s2`, `s3` can write derivations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

PAD, BOS, EOS, MASK, STEP, END_STEP = "<pad>", "<bos>", "<eos>", "<mask>", "<step>", "<end_step>"
SPECIALS = (PAD, BOS, EOS, MASK, STEP, END_STEP)
MAX_VARIABLES = 9
VARIABLES = tuple(f"x{index + 1}" for index in range(MAX_VARIABLES))
NUMBERS = ("1", "2", "3", "4", "5", "6", "1/2", "3/2")
CONSTANT = "C"
UNARY = (
    "neg", "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "abs",
)  # fmt: skip
NAMES = ("s1", "s2", "s3")
BINARY = ("add", "sub", "mul", "div", "pow")


@dataclass(frozen=True)
class Vocabulary:
    """An ordered list of tokens; the position of a token is its id.

    Attributes
    ----------
    tokens
        All tokens, specials first.
    """

    tokens: tuple[str, ...] = (*SPECIALS, *VARIABLES, *NUMBERS, "pi", CONSTANT, *UNARY, *BINARY)
    ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(set(self.tokens)) != len(self.tokens):
            raise ValueError("a token occurs twice in the vocabulary")
        missing = [token for token in SPECIALS if token not in self.tokens]
        if missing:
            raise ValueError(f"the vocabulary lacks the special tokens {missing}")
        object.__setattr__(self, "ids", {token: index for index, token in enumerate(self.tokens)})

    @classmethod
    def with_names(cls) -> Vocabulary:
        """The usual tokens and the names of steps."""
        return cls((*cls().tokens, *NAMES))

    @property
    def chains(self) -> bool:
        """Whether derivations can be written, not only formulas."""
        return NAMES[0] in self.ids

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Ids of tokens.

        Raises
        ------
        ValueError
            Naming the first token that the vocabulary lacks.
        """
        try:
            return [self.ids[token] for token in tokens]
        except KeyError as error:
            raise ValueError(f"token {error.args[0]!r} is not in the vocabulary") from None

    def decode(self, ids: Sequence[int]) -> list[str]:
        """Tokens of ids, up to and without the first end-of-sequence token; padding is left out."""
        tokens: list[str] = []
        for index in ids:
            token = self.tokens[index]
            if token == EOS:
                break
            if token not in (PAD, BOS):
                tokens.append(token)
        return tokens

    def growth(self) -> list[int]:
        """For each id, by how much the token changes the number of arguments still to be written.

        A leaf fills one (-1), a unary operator fills one and opens one (0), a binary one opens two
        (+1). A step has two arguments, the formula that is named and what END_STEP begins. Other specials
        have 0 and are handled by the grammar.
        """
        return [opened(token) for token in self.tokens]

    def symbols(self) -> list[bool]:
        """For each id, whether the token is part of a formula or, with names, of a derivation."""
        steps = (STEP, END_STEP) if self.chains else ()
        return [token not in SPECIALS or token in steps for token in self.tokens]


_OPENED = dict.fromkeys((*SPECIALS, *UNARY), 0) | dict.fromkeys((*BINARY, STEP), 1)


def opened(token: str) -> int:
    """By how much a token changes the number of arguments still to be written; see `Vocabulary.growth`."""
    return _OPENED.get(token, -1)


def complete(tokens: Sequence[str]) -> bool:
    """Whether prefix tokens spell exactly one expression, or one derivation as far as arities tell."""
    if not tokens:
        return False
    open_arguments = 1
    for token in tokens:
        if open_arguments == 0 or (token in SPECIALS and token not in (STEP, END_STEP)):
            return False
        open_arguments += opened(token)
    return open_arguments == 0
