"""Compiles the loop of `interpreter.py` and runs programs with it."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions.evaluation.interpreter import source
from physdiffuser.expressions.evaluation.kernels import BLOCK, LANES, MAX_STACK
from physdiffuser.expressions.evaluation.programs import STEP_BYTES

FloatArray = npt.NDArray[np.float64]


@functools.cache
def machine_code() -> Callable[..., None] | None:
    """The compiled loop, or None where that is not possible.

    Takes some 0.2 s the first time. `llvmlite` is missing on some platforms; a processor it does not know is
    no reason to fail either.
    """
    text = source()
    try:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(text)
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
        )
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        address = engine.get_function_address("run")
    except Exception:  # whatever goes wrong here, numpy does the work
        return None
    if not address:
        return None
    # The engine owns the code.
    _ALIVE.append(engine)
    whole, pointer = ctypes.c_int64, ctypes.c_void_p
    kinds = (ctypes.c_char_p, pointer, pointer, whole, pointer, whole, whole, pointer, pointer, pointer)
    return ctypes.CFUNCTYPE(None, *kinds)(address)


_ALIVE: list[Any] = []


class CompiledTable:
    """A table in the form the kernels want: columns apart, padded to whole vectors.

    Parameters
    ----------
    inputs
        Shape (rows, columns), copied.
    """

    def __init__(self, inputs: FloatArray) -> None:
        run = machine_code()
        if run is None:
            raise RuntimeError("no compiled kernels here")
        self._run = run
        self.rows = int(inputs.shape[0])
        self._stride = -(-self.rows // LANES) * LANES
        # Any ordinary number will do for the padding.
        self._columns = np.ones((inputs.shape[1], self._stride))
        self._columns[:, : self.rows] = inputs.T
        self._scratch = np.empty(BLOCK * MAX_STACK)

    def __call__(
        self,
        programs: Sequence[bytes],
        values: npt.NDArray[np.floating[Any]],
        targets: npt.NDArray[np.int64] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Run programs.

        Parameters
        ----------
        programs
            As `programs.compiler` makes them.
        values
            Shape (formulas, rows), float64, C-contiguous, written into.
        targets
            Shape (programs,): the row of `values` for each program; without, the first, the second and so on.

        Returns
        -------
        Shape (programs,): not 0 where an argument was too large for the sine or cosine and the values are of
        no use.
        """
        flags = np.empty(len(programs), np.int64)
        if targets is None:
            targets = np.arange(len(programs))
        ends = np.cumsum(np.fromiter(map(len, programs), np.int64, len(programs))) // STEP_BYTES
        self._run(
            b"".join(programs),
            _address(ends),
            _address(targets),
            len(programs),
            _address(self._columns),
            self._stride,
            self.rows,
            _address(self._scratch),
            _address(values),
            _address(flags),
        )
        return flags


def _address(array: npt.NDArray[Any]) -> int:
    # A microsecond less than `array.ctypes.data`.
    address: int = array.__array_interface__["data"][0]
    return address
