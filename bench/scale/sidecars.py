# SPDX-License-Identifier: Apache-2.0
"""One process that answers for the sidecars of all pods: it listens on every address and tells pods by theirs.

A pod has a state from the moment in which kwok calls it Running; a pod that has ended or is gone closes the connection,
as a dead one does. Every state says Serving; nothing here decides, drains or switches.

Run by `bench.scale.world`: ``python -m bench.scale.sidecars KUBECONFIG``; prints ``ready`` when it watches.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web

from bench.scale.api import Api
from gearshift.api import names
from gearshift.api.podconfig import PodConfig
from gearshift.api.vocabulary import PodPhase
from gearshift.api.wire import PodState
from gearshift.operator.resources import PODS

Json = dict[str, Any]
ENGINES = f"{names.LABEL_COMPONENT}={names.COMPONENT_ENGINE}"


class Answers:
    """Bodies of ``GET /v1/state`` by address of the pod."""

    def __init__(self) -> None:
        self._bodies: dict[str, tuple[str, bytes]] = {}  # with the uid of the pod
        self._addresses: dict[str, str] = {}  # by uid of the pod

    def keep(self, uids: set[str]) -> None:
        """Forget all pods but these."""
        for uid in self._addresses.keys() - uids:
            self._forget(uid)

    def learn(self, kind: str, pod: Json) -> None:
        """Take in an event about a pod. kwok may give it another address, and its first one to another pod."""
        uid, status = pod["metadata"]["uid"], pod.get("status", {})
        address = status.get("podIP", "")
        if kind == "DELETED" or status.get("phase") in ("Failed", "Succeeded"):
            self._forget(uid)
        elif address and self._addresses.get(uid) != address:
            self._forget(uid)
            self._addresses[uid], self._bodies[address] = address, (uid, _state(pod))

    def _forget(self, uid: str) -> None:
        address = self._addresses.pop(uid, "")
        if self._bodies.get(address, ("", b""))[0] == uid:
            del self._bodies[address]

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The state of the pod whose address was asked."""
        assert request.transport is not None
        uid, body = self._bodies.get(request.transport.get_extra_info("sockname")[0], ("", b""))
        if not uid:
            request.transport.abort()
            return web.Response(status=503)
        return web.Response(body=body, content_type="application/json")


def _state(pod: Json) -> bytes:
    sidecar = next(each for each in pod["spec"]["initContainers"] if each["name"] == names.CONTAINER_SIDECAR)
    text = next(each["value"] for each in sidecar["env"] if each["name"] == names.ENV_POD_CONFIG)
    config = PodConfig.model_validate_json(text)
    state = PodState(
        pod=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        sequence=1,
        epoch=0,
        phase=PodPhase.SERVING,
        admitting=True,
        role=config.initial_role,
        layout=config.initial_layout,
        layouts=config.layouts,
        engine_port=names.PORT_ENGINE,
        model=config.model,
        since=time.time(),
    )
    return json.dumps(state.dump()).encode()


async def serve(kubeconfig: Json) -> None:
    """Answer until killed."""
    answers = Answers()
    runner = web.ServerRunner(web.Server(answers.answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", names.PORT_CONTROL, backlog=1024).start()
    async with Api.connect(kubeconfig) as api:
        async for kind, pods in api.follow(PODS, ENGINES):
            if kind == "LISTED":
                answers.keep({pod["metadata"]["uid"] for pod in pods})
            for pod in pods:
                answers.learn(kind, pod)
            if kind == "LISTED":
                print("ready", flush=True)


if __name__ == "__main__":
    uvloop.run(serve(json.loads(Path(sys.argv[1]).read_text())))
