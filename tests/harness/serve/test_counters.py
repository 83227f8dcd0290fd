"""SGLang's counters, from the text of its /metrics."""

from harness.serve.counters import Counters

TEXT = """# HELP sglang:generation_tokens_total Number of generation tokens processed.
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_histogram_sum{engine_type="unified",model_name="m"} 150.0
sglang:generation_tokens_total{engine_type="unified",is_streaming="false",model_name="m"} 150.0
sglang:generation_tokens_total{engine_type="unified",is_streaming="true",model_name="m"} 7.0
sglang:spec_verify_calls_total{engine_type="unified",model_name="m"} 1.000053e+06
sglang:num_requests_total{engine_type="unified",is_streaming="false",model_name="m"} 3.0
"""  # as a server of 0.5.23 prints them, but for the second line of tokens and the size of the third counter


def test_counters_are_summed_over_labels_and_histograms_left_alone():
    assert Counters.parse(TEXT) == Counters(requests=3, tokens=157, verify_calls=1_000_053)


def test_one_that_has_not_moved_is_zero_and_a_foreign_page_is_none():
    assert Counters.parse("# HELP sglang:x\n") == Counters(requests=0, tokens=0, verify_calls=0)
    assert Counters.parse("process_cpu_seconds_total 1.0\n") is None


def test_what_was_counted_meanwhile():
    before = Counters(requests=1, tokens=10, verify_calls=4)
    assert Counters(requests=3, tokens=30, verify_calls=4).since(before) == {
        "requests": 2, "tokens": 20, "verify_calls": 0
    }  # fmt: skip
