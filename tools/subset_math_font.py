"""Make the font of formulas in reports: the signs that formulas can have, of STIX Two Math.

    pip install fonttools brotli
    python tools/subset_math_font.py stix-two-math.woff2

The original comes from the npm package @fontsource/stix-two-math (SIL Open Font License 1.1). The table MATH,
by which browsers place exponents and draw roots and fractions, is kept for the signs that are kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "physdiffuser" / "report" / "html" / "fonts" / "formulas.woff2"
# Latin, Greek, their italic forms for single letters in MathML, digits, and the signs that printers write.
RANGES = (
    (0x20, 0x7E),
    (0x391, 0x3A1),
    (0x3A3, 0x3A9),
    (0x3B1, 0x3C9),
    (0x1D434, 0x1D467),
    (0x1D6E2, 0x1D71B),
)
SIGNS = "\u210e\u2212\u2061\u2062\u22c5·×÷±√∞∂′∣‖⌈⌉⌊⌋≈≤≥≠→ϕϵϑ"


def main() -> None:
    """Read the original, write the subset."""
    from fontTools import subset

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("original", type=Path)
    options = subset.Options(
        flavor="woff2",
        layout_features=["ssty", "kern"],
        name_IDs=[0, 1, 2, 13, 14],
        hinting=False,
        notdef_outline=True,
    )
    font = subset.load_font(str(parser.parse_args().original), options)
    subsetter = subset.Subsetter(options)
    letters = {code for first, last in RANGES for code in range(first, last + 1)} | {
        ord(sign) for sign in SIGNS
    }
    subsetter.populate(unicodes=letters)
    subsetter.subset(font)
    subset.save_font(font, str(TARGET), options)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
