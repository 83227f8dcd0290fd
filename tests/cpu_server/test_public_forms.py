"""What SpecForge and speculators write, imported and served: the server accepts what the reference loop accepts.

The fixtures were written by those projects' own classes (``tests/drafters/checkpoints/public/write.py``).
"""

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sglang_specbench.launch import Launch
from tests.cpu_server.servers import Nursery, serve

pytestmark = [pytest.mark.sglang, pytest.mark.torch, pytest.mark.slow]
FORMS = sorted((Path(__file__).parents[1] / "drafters/checkpoints/public").glob("*-*"))
PROMPTS = [list(range(40, 46)), [100, 200, 300, 400, 51, 52, 53]]
TOKENS = 48


@pytest.mark.parametrize("form", FORMS, ids=lambda folder: folder.name)
def test_a_public_form_serves_as_the_reference_loop_decodes(
    form: Path, launch_of: Callable[..., Launch], nursery: Nursery, tmp_path: Path
) -> None:
    from drafters.checkpoints.check import check
    from drafters.checkpoints.export import save
    from drafters.checkpoints.import_public import import_checkpoint
    from drafters.model.drafter import load
    from drafters.reference.decode import Rule, decode
    from drafters.reference.target import Target

    arm = form.name.partition("-")[2]
    launch = launch_of("dflash2-argmax" if arm == "dflash2" else arm, "argmax")
    target, folder = Path(launch.target), tmp_path / "ours"
    done = import_checkpoint(form, target)
    save(folder, done.config, done.tensors)
    assert check(folder, target) == []

    reference = [decode(Target.load(target), load(done.config, done.tensors), ids, TOKENS, Rule()) for ids in PROMPTS]
    with serve(dataclasses.replace(launch, draft=str(folder)), tmp_path / "log", nursery) as server:
        answers = [server.generate([ids], 0, TOKENS)[0] for ids in PROMPTS]
    for answer, decoded in zip(answers, reference, strict=True):
        counts = Counter(decoded.accepted)
        assert answer["output_ids"] == decoded.output_ids
        assert {n: c for n, c in enumerate(answer["meta_info"]["spec_correct_drafts_histogram"]) if c} == dict(counts)
    assert sum(sum(d.accepted) for d in reference) > 0, "the accept path never ran"
