"""What `specbench model` says beside the numbers of a run: its doubts, its device, and costs from measured widths."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from harness.speedup_model.predict import predictions
from harness.speedup_model.presets import hardware, shape
from sglang_specbench.cli import app
from sglang_specbench.errors import UserError
from tests import synthetic_run as synthetic

ARMS = ("ar", "dflash")
SETS = ("gsm8k", "alpaca")


def command(*args):
    done = CliRunner().invoke(app, ["model", *map(str, args), "--json"], catch_exceptions=True)
    if isinstance(done.exception, UserError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def doubts(found):
    return [line["doubt"] for line in found.get("doubts", ())]


def cells(arms=ARMS, sets=SETS, prompts=8, **changes):
    return [synthetic.cell("Qwen3-8B", arm, name, prompts=prompts, **changes) for arm in arms for name in sets]


def write(folder, change=lambda header: header, arms=ARMS, planned=None, **changes):
    made = [(change(header), rows) for header, rows in synthetic.run(cells(arms, **changes))]
    return synthetic.write(folder, made, planned)


def busy(header):
    return replace(header, machine={"other_cpu": 0.4, "load": [9.0]}) if header.cell.arm == "dflash" else header


def cautioned(header):
    return replace(header, cautions=("tau fell within the cell",)) if header.cell.prompt_set == "alpaca" else header


@pytest.mark.parametrize("option", ["--run", "--survival"])
def test_a_runs_doubts_stand_under_every_answer(tmp_path, option):
    """A busy machine, a caution, planned cells that are not there, arms without a certificate: each is named."""
    lacking = [*cells(), synthetic.cell("Qwen3-8B", "domino", "gsm8k", prompts=8)]
    folder = write(tmp_path / "run", lambda header: cautioned(busy(header)), planned=lacking)
    said = "\n".join(doubts(command(option, folder if option == "--run" else f"{folder}:dflash")))
    assert "other processes used 40 % of the machine's cores" in said
    assert "tau fell within the cell" in said
    assert "1 of 5 planned cells have no number: Qwen3-8B/domino 1 missing (gsm8k)" in said
    assert "unaudited (does it sample from the target's distribution? specbench audit): " in said
    assert said.count("tau fell within the cell") == 1
    assert said.count("40 %") == 1


def test_settings_in_doubt_are_marked_where_their_residual_stands(tmp_path):
    folder = write(tmp_path / "run", busy)
    found = command("--run", folder, "--hardware", "h100")
    for title in ("predicted against measured", "parts of the residual against the run's own decode times, %"):
        assert all("(speed in doubt)" in line["setting"] for line in found[title])
    quiet = command("--run", write(tmp_path / "quiet"), "--hardware", "h100")
    assert not any("in doubt" in line["setting"] for line in quiet["predicted against measured"])
    assert not any("peed in doubt" in text for text in doubts(quiet))


def test_doubts_of_a_run_that_only_gave_t0(tmp_path):
    folder = write(tmp_path / "run", busy)
    said = "\n".join(doubts(command("--target", "qwen3-8b", "--t0", folder)))
    assert f"t0, from {folder}: " in said
    assert "other processes used 40 %" in said


def test_no_roofline_of_another_device_in_silence(tmp_path):
    """An unknown device is compared with nothing; a known one with its own preset; another one is said."""
    unknown = command("--run", write(tmp_path / "unknown"))
    assert unknown["no roofline"] == [{"why": "no preset for the device 'synthetic': --hardware names one"}]

    def on_h200(header):
        return replace(header, environment={**header.environment, "device_name": "NVIDIA H200"})

    folder = write(tmp_path / "h200", on_h200)
    own, named, other = (
        command("--run", folder, *more) for more in ((), ("--hardware", "h200"), ("--hardware", "h100"))
    )
    assert own["predicted against measured"] == named["predicted against measured"]
    assert own["predicted against measured"] != other["predicted against measured"]
    assert "1 x NVIDIA H200 SXM datasheet" in str(own["assumptions"])
    text = "measured on 'NVIDIA H200', set against the roofline of h100"
    assert text in doubts(other)
    assert text not in doubts(named)


def test_no_roofline_of_other_gpus_in_silence(tmp_path):
    """A run of two GPUs, as its servers resolved their arguments, and the paper, which is of one."""
    folder = write(tmp_path / "run", lambda header: replace(header, server_args={**header.server_args, "tp_size": 2}))
    one, two = (command("--run", folder, "--hardware", "h100", "--gpus", gpus) for gpus in (1, 2))
    text = "measured with GPUs: 2, set against a roofline with GPUs: 1"
    assert text in doubts(one)
    assert text not in doubts(two)
    paper = command("--run", "paper", "--gpus", 8)
    assert "measured with GPUs: 1, set against a roofline with GPUs: 8" in doubts(paper)


def test_costs_are_of_the_runs_own_device(tmp_path):
    def on_h200(header):
        return replace(header, environment={**header.environment, "device_name": "NVIDIA H200"})

    folder = write(tmp_path / "h200", on_h200)
    own, named = (
        command("--survival", f"{folder}:dflash", "--target", "qwen3-8b", *more)
        for more in ((), ("--hardware", "h200"))
    )
    assert own == named
    assert not any("measured on" in text for text in doubts(own))


def test_the_roofline_of_a_run_is_that_of_the_width_it_verified(tmp_path):
    """64 streams, where verification is arithmetic: eight positions less save their rooflines, overheads aside."""
    from harness.load_results import load_results
    from harness.speedup_model.batch_speedup import block, drafter

    many = {"prompts": 64, "concurrency": 64}
    runs = (synthetic.write(tmp_path / "narrow", narrowed(cells(**many), 8)), write(tmp_path / "wide", **many))
    target, device = shape("qwen3-8b"), hardware("h100")
    narrow, wide = (predictions(load_results(str(run)), target, device, 512)[0] for run in runs)
    made = [block(target, drafter("block", target), device, 64, drafted, 512) for drafted in (7, 15)]
    saved = 1000 * (made[1].draft_s + made[1].verify.seconds - made[0].draft_s - made[0].verify.seconds)
    assert saved > 1
    assert wide.block_ms - narrow.block_ms - 2 * (wide.overhead_ms - narrow.overhead_ms) == pytest.approx(saved)


def test_a_concurrency_that_was_never_reached_has_no_prediction(tmp_path):
    """Eight prompts in 32 streams: the label is not what ran, so the batch of a pass is not known."""
    folder = write(tmp_path / "run", concurrency=32)
    found = command("--run", folder, "--hardware", "h100")
    assert not found["predicted against measured"]
    assert "8 prompts never reach concurrency 32" in str(found["assumptions"])


def test_an_ar_beyond_the_peak_rates_is_said(tmp_path):
    """A token of 6.7 ms is less than an A100 takes to read the weights."""
    folder = write(tmp_path / "run")
    said = "\n".join(doubts(command("--run", folder, "--hardware", "a100")))
    assert "Qwen3-8B/ar gsm8k T=0 c=1 and 1 more: AR is faster than its own roofline" in said
    assert "faster than its own" not in str(doubts(command("--run", folder, "--hardware", "h100")))


@pytest.mark.parametrize(
    ("device", "preset"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h200"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA A100-SXM4-40GB", None),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA GH200 480GB", None),
        ("synthetic", None),
    ],
)
def test_a_device_is_its_preset_and_no_other(device, preset):
    from harness.speedup_model.predict import is_device
    from harness.speedup_model.presets import tables

    assert [name for name in tables("hardware.toml") if is_device(name, device)] == ([preset] if preset else [])


def test_an_arm_without_a_block_drafter_is_left_out_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(synthetic.CHANCE, "eagle3", 0.6)
    folder = write(tmp_path / "run", arms=(*ARMS, "eagle3"))
    found = command("--run", folder, "--hardware", "h100")
    assert {line["setting"].split("/")[1].split()[0] for line in found["predicted against measured"]} == {"dflash"}
    assert "left out of the roofline: eagle3: no block drafters" in str(found["assumptions"])


def narrowed(wanted, width, factor=1.0):
    """A run of the cells whose drafting servers verify ``width`` positions, in ``factor`` of the time a block."""
    for header, rows in synthetic.run(wanted):
        if header.cell.arm != "ar":
            header = replace(header, attestation={"window": width})
            rows = faster([cut(row, width) for row in rows], factor)
        yield replace(header, wall_s=max(row.done_s for row in rows)), rows


def cut(row, width):
    counts = np.array(row.histogram)
    kept = np.append(counts[: width - 1], counts[width - 1 :].sum())
    correct = int(kept @ np.arange(width))
    return replace(
        row,
        histogram=tuple(map(int, kept)),
        correct_drafts=correct,
        completion_tokens=1 + correct + row.verify_ct,
    )


def test_costs_from_two_measured_widths(tmp_path):
    """The narrow run's blocks take 0.75 of the wide one's: the line goes through both, setting by setting."""

    wide = write(tmp_path / "wide", prompts=20)
    folder = synthetic.write(tmp_path / "narrow", narrowed(cells(prompts=20), 8, 0.75))
    found = command("--survival", f"{wide}:dflash", "--widths", folder)
    title = next(name for name in found if name.startswith("every width"))
    passes = {line["width"]: line["block in AR passes"] for line in found[title]}
    assert passes[8] / passes[16] == pytest.approx(0.75, rel=1e-3)
    assert passes[12] == pytest.approx((passes[8] + passes[16]) / 2)
    truth = synthetic.BLOCK_MS["dflash"] / synthetic.BLOCK_MS["ar"]
    assert passes[16] == pytest.approx(truth, rel=0.02)  # launch noise is 0.2 %, decode of a cut last block the rest
    assert "costs: a line through measured widths 8, 16" in str(found["assumptions"])
    assert {line["batch"] for line in found["how much to verify"]} == {1}
    with pytest.raises(UserError, match="width 16 is there already"):
        command("--survival", f"{wide}:dflash", "--widths", wide)


def faster(rows, factor):
    return [replace(r, done_s=r.first_token_s + factor * (r.done_s - r.first_token_s)) for r in rows]


def test_costs_from_stated_widths_and_what_is_refused(tmp_path):
    where = f"{write(tmp_path / 'run')}:dflash"
    found = command("--survival", where, "--widths", "8:1.4,16:1.8")
    title = next(name for name in found if name.startswith("every width"))
    assert {line["width"]: line["block in AR passes"] for line in found[title]}[4] == pytest.approx(1.2)
    for text, said in (
        ("8:1.4", "a line needs blocks of two widths"),
        ("8:1.4,8:1.5", "a width twice"),
        ("8:1.4,16:nan", "a width twice, or no time"),
        ("8:1.4,16:x", "no numbers"),
        ("8:0.1,16:9", "a block of one position takes"),
        ("nosuch", "no such run folder"),
        ("paper", "'paper' printed no decode times"),
    ):
        with pytest.raises(UserError, match=said):
            command("--survival", where, "--widths", text)
    for option, value in (("--cost", "0.1"), ("--target", "qwen3-8b")):
        with pytest.raises(UserError, match=f"{option} says nothing beside --widths"):
            command("--survival", where, "--widths", "8:1.4,16:1.8", option, value)
