from __future__ import annotations

import sys
from pathlib import Path

# `skeletons` is shared by the tests of this folder.
sys.path.insert(0, str(Path(__file__).parent))
