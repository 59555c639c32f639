# SPDX-License-Identifier: Apache-2.0
"""Checks the source of a vLLM for the names that a compat module relies on, without importing any of it."""

import ast
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Symbol:
    """A class of vLLM and what must be found in its body.

    ``module`` is dotted and below ``vllm``. ``methods`` maps a method to the parameters it must take. ``assigned``
    are attributes that some method sets on self.
    """

    module: str
    name: str
    methods: tuple[tuple[str, tuple[str, ...]], ...] = ()
    assigned: tuple[str, ...] = ()


def broken(vllm: Path, symbols: tuple[Symbol, ...]) -> list[str]:
    """What is missing in the package folder ``vllm``; empty when the contract holds."""
    return [problem for symbol in symbols for problem in _problems(vllm, symbol)]


def _problems(vllm: Path, symbol: Symbol) -> list[str]:
    path = vllm.joinpath(*symbol.module.split(".")).with_suffix(".py")
    where = f"vllm.{symbol.module}.{symbol.name}"
    if not path.is_file():
        return [f"{where}: no module {path.name}"]
    tree = ast.parse(path.read_text())
    found = next((node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == symbol.name), None)
    if found is None:
        return [f"{where}: no such class"]
    return [f"{where}{problem}" for problem in [*_methods(found, symbol), *_attributes(found, symbol)]]


def _methods(found: ast.ClassDef, symbol: Symbol) -> list[str]:
    present = {
        node.name: [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        for node in found.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    problems = []
    for name, parameters in symbol.methods:
        if name not in present:
            problems.append(f".{name}: no such method")
            continue
        problems += [f".{name}: no parameter {one!r}" for one in parameters if one not in present[name]]
    return problems


def _attributes(found: ast.ClassDef, symbol: Symbol) -> list[str]:
    set_on_self = {
        node.attr
        for node in ast.walk(found)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value)
    }
    declared = {
        node.target.id for node in found.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return [f".{name}: never assigned" for name in symbol.assigned if name not in set_on_self | declared]


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
