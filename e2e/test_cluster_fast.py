# SPDX-License-Identifier: Apache-2.0
"""The API server without nodes: it answers, logs writes, runs controllers on demand and never outlives its user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gscluster import fast, faults
from gscluster.audit import AuditLog
from gscluster.errors import ClusterError
from gscluster.fast import FastCluster, fast_cluster
from gscluster.processes import started_ticks
from gscluster.waiting import wait_for

pytestmark = pytest.mark.functional


def test_it_takes_objects_and_logs_who_wrote_them() -> None:
    with fast_cluster() as running:
        log = AuditLog(running.audit_log)
        log.mark()
        running.kubectl("create", "configmap", "one", "--from-literal=key=value")
        wait_for(lambda: bool(log.writes("admin")), "the write in the audit log", timeout_seconds=180)
        write = log.writes("admin")[0]
        assert (write.verb, write.resource, write.name, write.status) == ("create", "configmaps", "one", 201)
        folder, process_ids = running.folder, _process_ids(running)
    assert not folder.exists()
    assert [one for one in process_ids if started_ticks(one) is not None] == []


def test_with_controllers_an_owner_takes_what_it_owns_along(fast_api_server: FastCluster, api_server: Path) -> None:
    assert api_server == fast_api_server.kubeconfig
    kubectl = fast_api_server.kubectl
    kubectl("create", "configmap", "owner")
    owner = kubectl.json("get", "configmap", "owner")["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    metadata = {"name": "owned", "namespace": "default", "ownerReferences": [reference]}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    kubectl("delete", "configmap", "owner")
    kubectl("wait", "--for=delete", "configmap/owned", "--timeout=170s")


def test_its_api_server_can_be_taken_away_and_brought_back() -> None:
    with fast_cluster() as running:
        running.kubectl("create", "configmap", "one")
        with faults.api_server_down(running), pytest.raises(ClusterError, match="refused"):
            running.kubectl("get", "configmap", "one")
        with faults.api_server_paused(running), pytest.raises(ClusterError, match=r"(?i)timeout|deadline"):
            running.kubectl("get", "configmap", "one", "--request-timeout=1s")
        running.kubectl("get", "configmap", "one")


def test_it_ends_when_its_user_is_killed() -> None:
    program = (
        "from gscluster.fast import fast_cluster\n"
        "with fast_cluster() as running:\n"
        "    ids = [running.processes.process_id(name) for name in running.processes.names()]\n"
        "    print(running.folder, *ids, flush=True)\n"
        "    input()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(fast.__file__).parents[1])}
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    with subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe) as user:
        assert user.stdout is not None
        folder, *words = user.stdout.readline().split()
        process_ids = [int(word) for word in words]
        assert len(process_ids) == 2
        user.kill()
    wait_for(lambda: not any(map(started_ticks, process_ids)), "etcd and API server to end", timeout_seconds=180)
    subprocess.run(["rm", "-r", folder], check=True)


def _process_ids(running: FastCluster) -> list[int]:
    return [running.processes.process_id(name) for name in running.processes.names()]
