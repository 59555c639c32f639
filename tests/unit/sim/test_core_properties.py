# SPDX-License-Identifier: Apache-2.0
"""Whatever is done to the scheduler, in whatever order: no block is lost or shared, and every request ends."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gearshift.api.vocabulary import Layout
from gearshift.sim.engine.replica import Knobs
from gearshift.sim.engine.requests import Request, RequestState
from tests.unit.sim.sim_core import LONGEST_TOKENS, check_integrity, request, run_to_the_end, small_core


class Scheduler(RuleBasedStateMachine):
    """Drives a core with little KV by random orders at random times."""

    @initialize(layout=st.sampled_from(list(Layout)))
    def start(self, layout: Layout) -> None:
        self.core, self.record = small_core(layout)
        self.now = 0.0
        self.requests: list[Request] = []

    @rule(prompt=st.integers(1, 1200), output=st.integers(1, 399), keep_kv=st.booleans(), remote=st.booleans())
    def submit(self, prompt: int, output: int, keep_kv: bool, remote: bool) -> None:
        assert prompt + output < LONGEST_TOKENS
        new = request(str(len(self.requests)), prompt, output, self.now, keep_kv=keep_kv)
        new.remote_tokens = prompt if remote else 0
        self.requests.append(new)
        self.core.submit(new, self.now)

    @rule(seconds=st.floats(0.0, 0.5))
    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.core.advance(self.now)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        self.core.abort(data.draw(st.sampled_from(self.requests)).id, self.now)

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def read_kept_kv(self, data: st.DataObject) -> None:
        self.core.release_pin(data.draw(st.sampled_from(self.requests)).id, self.now)

    @rule(budget=st.integers(1, 512), sequences=st.integers(1, 16), threshold=st.sampled_from([0, 1, 64]))
    def set_knobs(self, budget: int, sequences: int, threshold: int) -> None:
        self.core.pause()
        self.now += 100.0
        self.core.advance(self.now)
        self.core.set_knobs(Knobs(budget, sequences, threshold), self.now)
        self.core.resume(self.now)

    @rule(layout=st.sampled_from(list(Layout)))
    def switch(self, layout: Layout) -> None:
        self.core.pause()
        self.now += 100.0
        self.core.advance(self.now)
        self.core.switch(replace(self.core.arrangement, layout=layout), self.now)
        self.core.resume(self.now)

    @invariant()
    def nothing_is_lost_or_shared(self) -> None:
        if hasattr(self, "core"):
            check_integrity(self.core)

    def teardown(self) -> None:
        if not hasattr(self, "core"):
            return
        run_to_the_end(self.core, self.now)
        assert self.core.kv_usage == 0.0
        for each in self.requests:
            assert each.done
            if each.state is RequestState.FINISHED:
                assert self.record.tokens[each.id] == each.generated_tokens == each.output_tokens
        assert sorted(each.id for each in self.record.finished) == sorted(each.id for each in self.requests)


Scheduler.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestScheduler = Scheduler.TestCase
