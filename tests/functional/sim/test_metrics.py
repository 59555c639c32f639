# SPDX-License-Identifier: Apache-2.0
"""vLLM's metrics, whole and monotone over layout switches."""

from tests.functional.sim.sim_process import Engine

NAMES = (
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:time_to_first_token_seconds_count",
    "vllm:inter_token_latency_seconds_sum",
    "vllm:e2e_request_latency_seconds_count",
    "vllm:request_queue_time_seconds_count",
    "vllm:request_success_total",
    "vllm:cache_config_info",
)


async def test_names_labels_and_values(engine: Engine) -> None:
    before = await engine.samples()
    assert {series.split("{")[0] for series in before} >= set(NAMES)
    assert all('engine="0"' in series and 'model_name="m"' in series for series in before)
    answer = await engine.complete("Hello world", max_tokens=10)
    after = await engine.samples()
    labels = '{engine="0",model_name="m"}'
    assert after["vllm:prompt_tokens_total" + labels] == answer["usage"]["prompt_tokens"]
    assert after["vllm:generation_tokens_total" + labels] == 10
    assert after["vllm:time_to_first_token_seconds_count" + labels] == 1
    assert after["vllm:inter_token_latency_seconds_count" + labels] == 9
    assert after["vllm:e2e_request_latency_seconds_count" + labels] == 1
    assert 0.001 < after["vllm:time_to_first_token_seconds_sum" + labels] < 60
    assert after['vllm:request_success_total{engine="0",finished_reason="length",model_name="m"}'] == 1


async def test_no_series_vanishes_or_falls_when_the_layout_switches(engine: Engine) -> None:
    seen: dict[str, float] = {}
    for epoch, layout in enumerate(["TP", "DP", "Shift", "DP", "SP", "TP"], start=1):
        assert (await engine.post("/gearshift/v1/layout", {"layout": layout, "epoch": epoch}))[0] == 200
        for _ in range(4):
            await engine.complete("Hello world", max_tokens=3)
        samples = await engine.samples()
        assert not seen.keys() - samples.keys()
        counters = {each for each in seen if each.split("{")[0].endswith(("_total", "_count", "_sum", "_bucket"))}
        assert all(samples[each] >= seen[each] for each in counters)
        seen = samples
    assert any('engine="3"' in series for series in seen)
    tokens = sum(value for series, value in seen.items() if series.startswith("vllm:generation_tokens_total"))
    assert tokens == 6 * 4 * 3
