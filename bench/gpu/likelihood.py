# SPDX-License-Identifier: Apache-2.0
"""Negative log-likelihood of a text under both trees of a shift engine, with a real checkpoint: they must agree.

    python -m bench.gpu.likelihood --model FOLDER --ranks 2

Both trees compute the same function with sums in another order. Exit status 1 when the mean differs by ``--limit`` of
itself or more, or when a step ran in the wrong tree.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from bench.gpu.child import Child, ChildFailed
from bench.gpu.devices import variables
from bench.gpu.options import add_engine_options, count
from bench.gpu.scoring import TREES, Scoring

TEXT = Path(__file__).parents[2] / "LICENSE"
LEAST_TOKENS = 32

Scores = dict[str, dict[str, Any]]
"""By tree: ``logprobs`` of the same tokens, ``steps`` by tree."""


def lines(model: str, scores: Scores) -> list[dict[str, Any]]:
    """Mean of each tree against TP's, and how far the trees are apart for single tokens."""
    means = {tree: -statistics.fmean(scores[tree]["logprobs"]) for tree in TREES}
    pairs = zip(scores["TP"]["logprobs"], scores["SP"]["logprobs"], strict=True)
    apart = [abs(one - other) for one, other in pairs]
    return [
        *(_line(f"{model}.{tree}.nll", mean, means["TP"]) for tree, mean in means.items()),
        _line(f"{model}.token_difference.mean", statistics.fmean(apart), None),
        _line(f"{model}.token_difference.max", max(apart), None),
    ]


def _line(name: str, value: float, reference: float | None) -> dict[str, Any]:
    ratio = None if reference is None else value / reference
    return {"name": name, "value": value, "unit": "nats/token", "reference": reference, "ratio": ratio}


def faults(scores: Scores, limit: float) -> list[str]:
    """Why the trees do not agree, or why the comparison says nothing; empty when all is well."""
    tokens = len(scores["TP"]["logprobs"])
    if tokens < LEAST_TOKENS:
        return [f"only {tokens} tokens were scored, at least {LEAST_TOKENS} are needed"]
    found = [
        f"{scores[tree]['steps']} steps while only {tree} should run"
        for tree in TREES
        if any((count > 0) != (name == tree) for name, count in scores[tree]["steps"].items())
    ]
    tensor, sequence = (-statistics.fmean(scores[tree]["logprobs"]) for tree in ("TP", "SP"))
    apart = abs(sequence / tensor - 1)
    if not apart < limit:  # so that a NaN is a fault
        found.append(f"mean NLL {sequence:.6f} of SP is {apart:.4%} from {tensor:.6f} of TP, {limit:.2%} is the limit")
    return found


def main() -> int:
    """Entry point; returns the exit status."""
    options = parse()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    name, scores_path = Path(options.model).name, out / "likelihood.json"
    scoring = Scoring(
        model=options.model,
        text=Path(options.text).read_text(),
        ranks=options.ranks,
        window_tokens=options.tokens,
        windows=options.windows,
        device=options.device,
        shift=options.shift,
        engine=options.engine,
    )
    scores_path.unlink(missing_ok=True)
    child = Child(
        name=f"{name} x{options.ranks}",
        module="bench.gpu.scoring",
        words=(scoring.model_dump_json(), str(scores_path)),
        log=out / "likelihood.log",
        variables=variables(options.device, options.ranks),
    )
    try:
        child.run(options.limit_seconds)
    except ChildFailed as failure:
        raise SystemExit(str(failure)) from None
    scores: Scores = json.loads(scores_path.read_text())
    sys.stdout.write("".join(json.dumps(line) + "\n" for line in lines(name, scores)))
    wrong = faults(scores, options.limit)
    sys.stderr.write("".join(f"likelihood: {each}\n" for each in wrong))
    return 1 if wrong else 0


def parse() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_engine_options(parser)
    add = parser.add_argument
    add("--model", required=True, help="folder of a checkpoint with its tokenizer")
    add("--text", default=str(TEXT), help="file to score (default %(default)s)")
    add("--tokens", type=count, default=1024, help="of one prompt")
    add("--windows", type=count, default=64, help="prompts at most")
    add("--limit", type=float, default=0.001, help="relative difference of the means that is too much")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
