"""Parts and sweeps stay LLVM code until an entry takes them in.

Numba finishes every function it compiles: it links in what the function calls, optimises the whole, and writes machine
code, also where nothing but other compiled code will ever call it. A rollout has some four hundred parts inside each
other, so most of its compile time went into programs that nobody runs. Here a part is typed and lowered as always, and
then only kept: an entry links all its parts, optimises them once and writes machine code once.

What an entry links belongs to it alone, and LLVM is told so. A sweep is then handed only the numbers that it reads,
not every pointer, length and stride of the forty arrays of its arguments, and one with a single caller is taken into
it: a step of ``Maximal`` for a chain of ten links takes 2.7 us instead of 4.0.
"""

from __future__ import annotations

from types import MethodType
from typing import Any

from llvmlite.binding import Linkage
from numba._dynfunc import make_function
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


def _not_optimised(library: Any) -> None:
    """In place of the optimisation of a part together with all that it calls."""


def _not_written(library: Any) -> None:
    """In place of machine code: the part's LLVM code is complete and can be linked."""
    library._finalize_dynamic_globals()
    library._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    """Numba's lowering, without the optimiser and without machine code."""

    _name = "leastaction_lowering"

    def run_pass(self, state: Any) -> bool:
        library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library._optimize_final_module = MethodType(_not_optimised, library)
        library._finalize_final_module = MethodType(_not_written, library)
        state.library = library

        # lower only
        state.flags.no_compile = True
        NativeLowering.run_pass(self, state)
        state.flags.no_compile = False

        # known to callers by a Python function without an address, as every function without a Python wrapper is
        lowered = state["cr"]
        described = lowered.fndesc
        name = described.qualname.split(".")[-1]
        function = make_function(described.lookup_module(), name, name, 0, lowered.env, (library,))
        state.targetctx.insert_user_function(function, described, [library])
        state["cr"] = _LowerResult(described, lowered.call_helper, cfunc=function, env=lowered.env)
        return True


def _optimised_alone(library: Any) -> None:
    """Numba's optimisation of an entry, with what it has linked hidden from all others."""
    for function in library._final_module.functions:
        if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
            function.linkage = "internal"
    CPUCodeLibrary._optimize_final_module(library)


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(NativeLowering):  # type: ignore[misc]
    """Numba's lowering into a library whose parts are its own."""

    _name = "leastaction_entry_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.library._optimize_final_module = MethodType(_optimised_alone, state.library)
        return bool(NativeLowering.run_pass(self, state))


class _Compiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with another lowering."""

    lowering: type[NativeLowering] = NativeLowering

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(self.lowering if step is NativeLowering else step, text) for step, text in manager.passes]
        manager._finalized = False
        manager.finalize()
        return [manager]


class PartCompiler(_Compiler):
    """Of parts and sweeps: neither optimised nor written as machine code."""

    lowering = _Lowering


class EntryCompiler(_Compiler):
    """Of entries: everything they have linked is optimised as one program."""

    lowering = _EntryLowering
