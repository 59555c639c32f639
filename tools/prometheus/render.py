# SPDX-License-Identifier: Apache-2.0
"""Writes Prometheus' configuration for a server outside the cluster, or with another scrape interval.

    python3 -m tools.prometheus.render --api-server https://HOST:6443 --token-file FILE --ca-file FILE > prometheus.yaml

A Prometheus that was built without Kubernetes discovery (Debian's is) takes ``--targets FILE`` instead; the file is
written by ``python3 -m tools.prometheus.discover``.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any, Final

import yaml

TEMPLATE: Final = Path(__file__).parents[2] / "config/prometheus/prometheus.yaml"
_SECONDS: Final = re.compile(r"^([1-9][0-9]*)s$")


def from_cluster(
    config: dict[str, Any], api_server: str, token_file: Path | None = None, ca_file: Path | None = None
) -> dict[str, Any]:
    """``config`` with Kubernetes discovery through ``api_server``; Prometheus reads the token anew when it changes."""
    access: dict[str, Any] = {"api_server": api_server}
    if token_file is not None:
        access["authorization"] = {"type": "Bearer", "credentials_file": str(token_file.resolve())}
    if ca_file is not None:
        access["tls_config"] = {"ca_file": str(ca_file.resolve())}
    jobs = [
        {**job, "kubernetes_sd_configs": [{**access, **pods} for pods in job["kubernetes_sd_configs"]]}
        for job in config["scrape_configs"]
    ]
    return {**config, "scrape_configs": jobs}


def from_file(config: dict[str, Any], targets: Path) -> dict[str, Any]:
    """``config`` with the targets of a file, which carry the labels of Kubernetes discovery."""
    jobs = [
        {("file_sd_configs" if key == "kubernetes_sd_configs" else key): value for key, value in job.items()}
        for job in config["scrape_configs"]
    ]
    for job in jobs:
        job["file_sd_configs"] = [{"files": [str(targets.resolve())]}]
    return {**config, "scrape_configs": jobs}


def with_interval(config: dict[str, Any], seconds: int) -> dict[str, Any]:
    """``config`` with another scrape interval."""
    times = {"scrape_interval": f"{seconds}s", "scrape_timeout": f"{min(seconds, 10)}s"}
    return {**config, "global": {**config["global"], **times}}


def template() -> dict[str, Any]:
    """The configuration for a Prometheus inside the cluster."""
    config: dict[str, Any] = yaml.safe_load(TEMPLATE.read_text())
    return config


def dump(config: dict[str, Any]) -> str:
    """YAML without aliases."""
    return yaml.dump(config, Dumper=_PlainDumper, sort_keys=False)


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _seconds(value: str) -> int:
    match = _SECONDS.match(value)
    if match is None:
        raise argparse.ArgumentTypeError(f"{value!r} is not a number of seconds such as 2s")
    return int(match[1])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Write Prometheus' configuration for Gearshift to standard output.")
    parser.add_argument("--api-server", metavar="URL", help="API server, for a Prometheus outside the cluster")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="bearer token of gearshift-prometheus")
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="certificate authority of the API server")
    parser.add_argument("--targets", type=Path, metavar="FILE", help="read targets from a file instead")
    parser.add_argument("--scrape-interval", type=_seconds, metavar="SECONDS", help="5s when left out")
    return parser


def main() -> int:
    """Entry point; returns the exit status."""
    parser = _parser()
    args = parser.parse_args()
    if args.api_server is None and (args.token_file or args.ca_file):
        parser.error("--token-file and --ca-file need --api-server")
    if args.api_server is not None and args.targets is not None:
        parser.error("--targets and --api-server exclude each other")
    config = template()
    if args.api_server is not None:
        config = from_cluster(config, args.api_server, args.token_file, args.ca_file)
    if args.targets is not None:
        config = from_file(config, args.targets)
    if args.scrape_interval is not None:
        config = with_interval(config, args.scrape_interval)
    sys.stdout.write(dump(config))
    return 0


if __name__ == "__main__":
    sys.exit(main())
