"""What training reads again and what it is given, changed or torn: one line naming the file, or read.

States, metrics, contract, recipes, corpus, the target's config, checkpoints that are checked, exported or imported.
"""

import io
import json
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from drafters.corpus.conversation import Conversation  # noqa: E402
from drafters.corpus.generate import regenerate  # noqa: E402
from drafters.corpus.samples import read_samples  # noqa: E402
from drafters.reference.target import Target  # noqa: E402
from drafters.training import progress  # noqa: E402
from drafters.training.contract import Contract  # noqa: E402
from drafters.training.loop import Run, Training  # noqa: E402
from sglang_specbench.digest import weights_digest  # noqa: E402
from sglang_specbench.errors import UserError  # noqa: E402
from sglang_specbench.growing_file import cut_torn_line  # noqa: E402
from tests.drafters import made_checkpoints, tiny  # noqa: E402
from tests.faults.changes import EXAMPLES, ODD, changed, fuzz, torn, written  # noqa: E402
from tests.faults.hostile_server import BODIES, answers_with  # noqa: E402
from tests.faults.test_server import ANSWER, hostile  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]
ARM = "domino"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Target, corpus, recipes, contract, and a training run of one arm that has ended."""
    folder = tmp_path_factory.mktemp("world")
    tiny.write_target(folder / "target")
    tiny.write_corpus(folder / "corpus.jsonl", count=8)
    tiny.write_recipes(folder / "recipes")
    tiny.write_contract(folder / "contract.toml", arms=[ARM], epochs=1, evaluate_every=1)
    Training(job(folder, folder / "run", Target.load(folder / "target"))).run()
    return folder


def job(world, folder, target):
    samples = read_samples(world / "corpus.jsonl", None, 64)
    return Run(
        folder=folder, contract=Contract.load(world / "contract.toml"), target=target,
        target_digest=weights_digest(world / "target"), samples=samples, held_out=samples[:2],
        mask_token_id=tiny.MASK, recipes=world / "recipes",
    )  # fmt: skip


@pytest.fixture
def copy(world, tmp_path):
    """A copy of all of it that a test may change."""
    shutil.copytree(world, tmp_path / "w")
    return tmp_path / "w"


def dry_run(world):
    named = [f"--{n}={world / p}" for n, p in (("target", "target"), ("corpus", "corpus.jsonl"), ("recipes", "recipes"),
                                               ("contract", "contract.toml"))]  # fmt: skip
    return ("train", world / "new", *named, f"--mask-token-id={tiny.MASK}", "--dry-run")


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr("drafters.training.forecast._rate", lambda _: 1e12)  # else a second of products


def answered(specbench, path, *call, ones=()):
    """A check that writes the example to ``path`` and calls the command; ``ones``: it may say 1, as documented."""

    def check(example):
        path.write_bytes(example if isinstance(example, bytes) else json.dumps(example).encode(errors="surrogatepass"))
        done = specbench(*call)
        assert done.code in (0, 2, *ones), done
        assert "Traceback" not in done.out + done.err, done
        if done.code == 2:
            assert done.err.splitlines()[-1].startswith("specbench: "), done

    return check


def test_contracts_recipes_and_targets_configs(specbench, copy, quick):
    assert specbench(*dry_run(copy)).code == 0
    for name in ("contract.toml", f"recipes/{ARM}.toml"):
        good = (copy / name).read_bytes()
        fuzz(torn(good), answered(specbench, copy / name, *dry_run(copy)), EXAMPLES // 2)
        (copy / name).write_bytes(good)
    path = copy / "target" / "config.json"
    fuzz(changed(json.loads(path.read_text())), answered(specbench, path, *dry_run(copy)), EXAMPLES // 2)


VALUES = st.sampled_from(["0", "-1", "1e400", "nan", "true", '""', "[]", "{}", "[1]", "99999999999999999999", "1.5"])


@pytest.mark.parametrize("name", ["contract.toml", f"recipes/{ARM}.toml"])
def test_each_key_with_each_odd_value(specbench, copy, quick, name):
    lines = (copy / name).read_text().splitlines()

    def put(example):
        at, value = example
        key, equals, _ = lines[at].partition(" = ")
        return "\n".join([*lines[:at], f"{key} = {value}" if equals else value, *lines[at + 1 :]]).encode()

    strategy = st.tuples(st.integers(0, len(lines) - 1), VALUES).map(put)
    fuzz(strategy, answered(specbench, copy / name, *dry_run(copy)))


def test_rows_of_a_corpus(specbench, copy, quick):
    good = json.loads((copy / "corpus.jsonl").read_text().splitlines()[0])
    rows = (copy / "corpus.jsonl").read_text()

    def check(example):
        line = json.dumps({**example, "id": "new"} if isinstance(example, dict) else example)
        (copy / "corpus.jsonl").write_bytes(f"{line}\n{rows}".encode(errors="surrogatepass"))
        done = specbench(*dry_run(copy))
        assert done.code in (0, 2), done

    fuzz(changed(good), check, EXAMPLES // 2)


def test_a_token_beyond_the_targets_vocabulary_is_named(copy):
    rows = (copy / "corpus.jsonl").read_text().splitlines()
    rows[0] = json.dumps({**json.loads(rows[0]), "output_ids": [5, 6, 7, tiny.VOCABULARY]})
    (copy / "corpus.jsonl").write_text("\n".join(rows))
    with pytest.raises(UserError, match=r"corpus: c0: token 64, and the target's vocabulary has 64"):
        Training(job(copy, copy / "new", Target.load(copy / "target")))


@st.composite
def states(draw, good):
    """A training state with something in it replaced, left out, of another shape or of another type."""
    state = {key: dict(value) if isinstance(value, dict) else value for key, value in good.items()}
    for _ in range(draw(st.integers(1, 2))):
        inner = [value for value in state.values() if isinstance(value, dict)]
        holder = draw(st.sampled_from([state, *inner]))
        if not holder:
            return deepcopy(draw(ODD))
        key = draw(st.sampled_from(sorted(holder, key=str)))
        how = draw(st.sampled_from(["drop", "odd", "shape", "type"]))
        if how == "drop":
            del holder[key]
        elif how == "odd":
            holder[key] = deepcopy(draw(ODD))
        else:
            holder[key] = torch.zeros(3) if how == "shape" else torch.zeros(2, 2, dtype=torch.int64)
    return state


class Saved(bytes):
    """So that a failure is told in a line: its seed makes it again."""

    def __repr__(self):
        return f"{len(self)} bytes of a state"


def saved(state):
    held = io.BytesIO()
    torch.save(state, held)
    return Saved(held.getvalue())


@pytest.mark.parametrize("reader", ["resume", "export", "best"])
def test_states(specbench, copy, reader):
    run, target = copy / "run", Target.load(copy / "target")
    (state,) = run.glob("step-*")
    path = (run / "best" if reader == "best" else state) / f"{ARM}.pt"
    good = path.read_bytes()
    call = ("export", run, copy / "out", "--arm", ARM, *(["--best"] if reader == "best" else []))
    forged = states(torch.load(io.BytesIO(good), weights_only=True)).map(saved)
    check = answered(specbench, path, *call)
    if reader == "resume":
        check = written(path, lambda: Training(job(copy, run, target)))
    assert specbench(*call).code == 0
    fuzz(st.one_of(forged, torn(good).map(Saved)), check)


def test_what_a_state_says_of_itself(specbench, copy):
    run, target = copy / "run", Target.load(copy / "target")
    (state,) = run.glob("step-*")
    path = state / "state.json"
    good = path.read_bytes()
    said = changed(json.loads(good))
    fuzz(said, written(path, lambda: Training(job(copy, run, target))), EXAMPLES // 2)
    fuzz(st.one_of(said, torn(good)), answered(specbench, path, "export", run, copy / "out", "--arm", ARM))


def test_folders_that_only_look_like_states_are_none(copy):
    for name in ("step-x", "step-", "step-1", "step-99999999999999999999", "step-0000009.part"):
        (copy / "run" / name).mkdir()
    assert Training(job(copy, copy / "run", Target.load(copy / "target"))).step == 2


def test_metrics(specbench, copy):
    path = copy / "run" / progress.METRICS
    good = path.read_bytes()
    row = next(json.loads(line) for line in good.splitlines() if b"held_out" in line)
    step = lambda: progress._drop_after(path, 1)
    fuzz(st.one_of(changed(row), torn(good)), written(path, step))
    call = ("plot", copy / "run", "--out", copy / "figures")
    assert specbench(*call).code == 2 or path.stat().st_size
    fuzz(st.one_of(changed(row), torn(good)), answered(specbench, path, *call), EXAMPLES // 5)


def test_metrics_are_cut_at_the_step_and_a_number_that_is_none_is_null(tmp_path):
    with progress.Reporter(tmp_path, 0, 9, silent=False) as reporter:
        for number in range(1, 4):
            reporter.report(number, ARM, "train", {"loss": float("nan") if number == 1 else 1.0})
    path = tmp_path / progress.METRICS
    path.write_bytes(path.read_bytes() + b'{"step": 1, "ar')
    progress._drop_after(path, 2)
    assert [(r["step"], r["loss"]) for r in map(json.loads, path.read_text().splitlines())] == [(1, None), (2, 1.0)]


@pytest.mark.parametrize("size", [0, 1, 70_000, 200_000])
@pytest.mark.parametrize("torn_size", [0, 1, 70_000, 200_000])
def test_a_torn_line_is_cut_and_no_whole_one(tmp_path, size, torn_size):
    whole = b"x" * size + b"\n" if size else b""
    (tmp_path / "f").write_bytes(whole + b"y" * torn_size)
    cut_torn_line(tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == whole


@pytest.mark.parametrize("arm", list(made_checkpoints.configs()))
def test_checkpoints(specbench, tmp_path, arm):
    config = made_checkpoints.configs()[arm]
    folder = tmp_path / "c"
    made_checkpoints.write(folder, config, made_checkpoints.tensors(config))
    path, weights = folder / "config.json", folder / "model.safetensors"
    good = path.read_bytes(), weights.read_bytes()
    fuzz(changed(config), answered(specbench, path, "check", folder, ones=(1,)), EXAMPLES // 6)
    fuzz(changed(config), answered(specbench, path, "export", folder, tmp_path / "out"), EXAMPLES // 6)
    path.write_bytes(good[0])
    fuzz(torn(good[1]), answered(specbench, weights, "check", folder, ones=(1,)), EXAMPLES // 6)
    fuzz(torn(good[1]), answered(specbench, weights, "export", folder, tmp_path / "out"), EXAMPLES // 6)


def test_a_public_config_of_speculators(specbench, tmp_path):
    config = made_checkpoints.configs()["dflash"]
    made_checkpoints.write(tmp_path / "c", config, made_checkpoints.tensors(config))
    public = {
        "speculators_model_type": "dflash", "transformer_layer_config": {**config, "dflash_config": None},
        "aux_hidden_state_layer_ids": [2, 3, 4], "mask_token_id": 3, "block_size": 16, "draft_vocab_size": 64,
    }  # fmt: skip
    fuzz(changed(public), answered(specbench, tmp_path / "c" / "config.json", "export", tmp_path / "c", tmp_path / "o"))


class Template:
    def apply_chat_template(self, messages, **_):
        return list("|".join(m["content"] for m in messages).encode())


BAD = [k for k in hostile.ANSWERS if k in ("a list", "null", "no meta", "meta a list", "unfinished", "finish text")]
BAD += [k for k in hostile.ANSWERS if k.startswith(("ids", "text"))]


@pytest.mark.parametrize("kind", [*BAD, *BODIES])
def test_a_servers_bad_answer_is_a_row_with_its_error(tmp_path, kind):
    """A conversation that failed is a line with ``error``; the others have their answers."""
    good = json.dumps(ANSWER).encode()
    bad = BODIES[kind] if kind in BODIES else json.dumps(hostile.ANSWERS[kind](ANSWER)).encode()
    asked = [Conversation(name, "c", ({"role": "user", "content": name},)) for name in "abc"]
    with answers_with({"/server_info": [b'{"max_req_input_len": 100}'], "/generate": [good, bad, good]}) as url:
        regenerate(asked, tmp_path / "o", Template(), server=url, concurrency=1, on_done=lambda _: None)
    rows = {row["id"]: row for row in map(json.loads, Path(tmp_path / "o").read_text().splitlines())}
    assert ["error" in rows[name] for name in "abc"] == [False, True, False]


@pytest.mark.parametrize("body", [*BODIES.values(), b"{}", b"[]", b'{"max_req_input_len": "9"}', b"null"])
def test_what_is_no_server_is_one_line(tmp_path, body):
    with answers_with({"/server_info": [body]}) as url, pytest.raises(UserError, match=r"--server .*: no SGLang there"):
        regenerate([], tmp_path / "o", Template(), server=url, concurrency=1, on_done=lambda _: None)
