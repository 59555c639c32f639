# SPDX-License-Identifier: Apache-2.0
"""Act one: real vLLM, one prefill and one decode pod, KV over NIXL; a role flip; the same text."""

from gscluster.paths import cache_folder
from gsstack import manifests
from gsstack.client import Answer, chat, complete
from gsstack.demo import screen
from gsstack.demo.stage import NAMESPACE, Stage, tiny_model
from gsstack.services import Service

NAME = "chat"
ROLES = [{"name": "Prefill", "replicas": 1}, {"name": "Decode", "replicas": 1}]
PROMPT = "Tell me how prefill and decode share the work of one answer. " * 3
READY_SECONDS = 300
FOREVER = "2099-01-01T00:00:00Z"


class DemoError(Exception):
    """Something did not happen as the demo promises."""


def play(stage: Stage) -> None:
    """Apply, stream, flip, compare."""
    screen.title("Act one: vLLM (CPU build), prefill and decode on two nodes, KV cache over NIXL")
    service = _apply(stage)
    answer = _stream(service)
    text = _complete(service, "1 prefill + 1 decode").text
    before = service.roles()
    _to_one_role(service)
    _compare(text, _complete(service, "2 decode"))
    _back(service)
    _compare(text, _complete(service, "the other pod prefills"))
    _report(stage, before, service.roles())
    if not answer.text:
        raise DemoError("the stream brought no text")


def _apply(stage: Stage) -> Service:
    engine = (cache_folder() / "envs/engine").resolve()
    stage.kubectl.apply(
        *manifests.folder_volume("engine", NAMESPACE, engine),
        *manifests.folder_volume("model", NAMESPACE, tiny_model()),
    )
    screen.say("apply an InferenceService: a tiny Llama with random weights, one prefill and one decode pod")
    stage.kubectl.apply(manifests.vllm_cpu(NAME, NAMESPACE, roles=ROLES))
    service = Service(stage.kubectl, NAMESPACE, NAME)
    screen.command(f"kubectl wait gsvc/{NAME} -n {NAMESPACE} --for=condition=Ready --timeout={READY_SECONDS}s")
    service.wait_ready(READY_SECONDS)
    screen.say("Ready: each pod has answered a token")
    screen.block(stage.kubectl("get", "gsvc,pods", "-n", NAMESPACE))
    return service


def _stream(service: Service) -> Answer:
    screen.say(f"stream a chat completion through the router at {service.url()}")
    screen.piece("          > ")
    answer = chat(service.url(), PROMPT, model="tiny", on_text=screen.piece)
    screen.piece("\n")
    if answer.status != 200:
        raise DemoError(f"chat completion: status {answer.status}: {answer.text}")
    screen.say(f"first token after {1e3 * (answer.seconds_to_first_token or 0):.0f} ms")
    return answer


def _complete(service: Service, split: str) -> Answer:
    answer = complete(service.url(), PROMPT, model="tiny")
    if answer.status != 200:
        raise DemoError(f"completion with {split}: status {answer.status}: {answer.text}")
    screen.say(f"completion, {split}: {answer.text!r}")
    return answer


def _to_one_role(service: Service) -> None:
    screen.say("order all pods to role Decode (spec.override), live")
    roles = [{"name": "Prefill", "replicas": 1, "min": 0}, {"name": "Decode", "replicas": 1}]
    service.patch({"roles": roles, "override": {"role": "Decode", "until": FOREVER}})
    service.wait_for(lambda status: _split(status) == ["Decode", "Decode"], "role Decode on both pods", 60)


def _back(service: Service) -> None:
    screen.say("lift the order: the spec wants one of each again, and the pod that rested longest flips")
    service.patch({"roles": ROLES, "override": None})
    service.wait_for(lambda status: _split(status) == ["Decode", "Prefill"], "one pod of each role", 60)


def _split(status: dict[str, object]) -> list[str]:
    pods = status.get("pods")
    serving = [pod for pod in pods if pod["phase"] == "Serving"] if isinstance(pods, list) else []
    return sorted(str(pod["role"]) for pod in serving)


def _compare(expected: str, answer: Answer) -> None:
    if answer.text != expected:
        raise DemoError(f"the text changed with the roles: {expected!r} became {answer.text!r}")
    screen.say("the same text as before")


def _report(stage: Stage, before: dict[str, str], after: dict[str, str]) -> None:
    for pod, role in before.items():
        screen.say(f"{pod}: {role} -> {after.get(pod)}")
    if before == after:
        raise DemoError(f"the split is as before: {after}")
    words = ["get", "gsvc", NAME, "-n", NAMESPACE, "-o", "jsonpath={range .status.transitionHistory[*]}{.pod} {.kind}"]
    words[-1] += ' {.from}->{.to} {.result} in {.durationMilliseconds} ms, proof: {.proof}{"\\n"}{end}'
    screen.block(stage.kubectl(*words))
