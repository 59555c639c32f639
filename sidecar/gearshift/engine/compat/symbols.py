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


@dataclass(frozen=True)
class Function:
    """A function of a module and the parameters that it must take; or, without parameters, any global name."""

    module: str
    name: str
    parameters: tuple[str, ...] | None = None


def broken(vllm: Path, symbols: tuple[Symbol | Function, ...]) -> list[str]:
    """What is missing in the package folder ``vllm``; empty when the contract holds."""
    return [problem for symbol in symbols for problem in _problems(vllm, symbol)]


def _problems(vllm: Path, symbol: Symbol | Function) -> list[str]:
    base = vllm.joinpath(*symbol.module.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    where = f"vllm.{symbol.module}.{symbol.name}"
    if not path.is_file():
        return [f"{where}: no module {path.name}"]
    tree = ast.parse(path.read_text())
    return _function(tree, symbol, where) if isinstance(symbol, Function) else _class(tree, symbol, where)


def _function(tree: ast.Module, symbol: Function, where: str) -> list[str]:
    if symbol.parameters is None:
        names = {target.id for node in tree.body for target in _targets(node)}
        return [] if symbol.name in names else [f"{where}: never assigned"]
    known = _parameters(tree)
    if symbol.name not in known:
        return [f"{where}: no such function"]
    return [f"{where}: no parameter {one!r}" for one in symbol.parameters if one not in known[symbol.name]]


def _targets(node: ast.stmt) -> list[ast.Name]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target for target in targets if isinstance(target, ast.Name)]


def _class(tree: ast.Module, symbol: Symbol, where: str) -> list[str]:
    found = next((node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == symbol.name), None)
    if found is None:
        return [f"{where}: no such class"]
    return [f"{where}{problem}" for problem in [*_methods(found, symbol), *_attributes(found, symbol)]]


def _methods(found: ast.ClassDef, symbol: Symbol) -> list[str]:
    present = _parameters(found)
    problems = []
    for name, parameters in symbol.methods:
        if name not in present:
            problems.append(f".{name}: no such method")
            continue
        problems += [f".{name}: no parameter {one!r}" for one in parameters if one not in present[name]]
    return problems


def _parameters(where: ast.Module | ast.ClassDef) -> dict[str, list[str]]:
    """Functions of a body and their parameters."""
    return {
        node.name: [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        for node in where.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


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
