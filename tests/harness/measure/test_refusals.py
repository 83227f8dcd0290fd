"""What forbids to measure on a server, source by source: its attestation, its arguments, its graphs, its log."""

from dataclasses import replace

import pytest

from harness.measure.validity import refusals
from harness.serve.responses import ServerInfo
from sglang_specbench import SGLANG_VERSION, __version__
from sglang_specbench.attestation import Attestation
from tests.harness.measure.test_validity import cell

SEEN = Attestation(
    plugin_version=__version__, sglang_version=SGLANG_VERSION, arm="dflash", proposal="argmax", device="cpu",
    dtype="bfloat16", draft_model="DFlashDraftModel", window=16, drafted=15, seed=42, target_digest="t",
    draft_digest="d",
)  # fmt: skip
GPU = replace(
    SEEN, device="cuda", head="_DflashDraftSampler", head_folded=True, head_captured=True, graph_sizes=(1,),
    draft_graph_sizes=(1,),
)  # fmt: skip
SPOILT = "Scheduler hit an exception"


def refused(seen=SEEN, log="", remote=False, arguments=None, running=None, **changes):
    info = ServerInfo(
        served_name="x", sglang_version="0.5.23", attestation=seen.to_json(), downgrades=(), verification="exact",
        arguments=arguments or {}, running=running,
    )  # fmt: skip
    return refusals(info, cell(**changes), log, remote, window=16)


@pytest.mark.parametrize("remote", [False, True])
def test_the_cells_own_server_is_let_through(remote):
    assert refused(remote=remote) == []


@pytest.mark.parametrize("remote", [False, True])
def test_an_attestation_of_something_else_is_named(remote):
    """Beside the argument that says the same; where both use the same words, once."""
    arguments = {"random_seed": 7, "speculative_algorithm": "DFLASH"}
    assert refused(replace(SEEN, seed=7), arguments=arguments, remote=remote) == [
        "seed: wanted 42, server says 7",
        "random_seed: wanted 42, server says 7",
    ]
    dtype = {"dtype": "float16", "speculative_algorithm": "DFLASH"}
    assert refused(replace(SEEN, dtype="float16"), arguments=dtype, remote=remote) == [
        "dtype: wanted 'bfloat16', server says 'float16'"
    ]


@pytest.mark.parametrize("remote", [False, True])
def test_arguments_are_judged_beside_an_attestation(remote):
    (found,) = refused(arguments={"context_length": 99, "speculative_algorithm": "DFLASH"}, remote=remote)
    assert found.startswith("context_length: wanted ")
    (found,) = refused(running=1, capacity=4, remote=remote)
    assert found.startswith("capacity: wanted 4 ")


def test_graphs_are_judged_and_the_log_of_a_remote_server_is_not():
    (found,) = refused(replace(GPU, head_captured=False), remote=True, device="cuda")
    assert found == "head_captured: wanted True, server says False"
    local = refused(GPU, device="cuda")
    assert [text for text in local if "capture ended" in text] != []
    assert refused(GPU, remote=True, device="cuda") == []


def test_a_spoilt_log_is_refused_where_it_is_ours():
    assert refused(log=SPOILT) != []
    assert refused(log=SPOILT, remote=True) == []
