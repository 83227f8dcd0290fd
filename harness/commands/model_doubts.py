"""What stands under every answer of `specbench model` that reads a run: the doubts that the run's own tables print.

Knows where `Results` keeps them; says nothing of its own but for a device that the roofline is not of.
"""

from collections.abc import Sequence

from harness.speedup_model.answers import Lines, Tables
from harness.speedup_model.predict import Prediction, device_name, gpus_of, is_device
from harness.stats.results import Results
from harness.stats.setting import Setting
from harness.tables.build import UNAUDITED, doubts

TITLE = "doubts"
_SAID_APART = "speed in doubt: "  # `harness.stats.estimates` writes these into cautions, too


def doubts_of(results: Results) -> list[str]:
    """Absent cells, settings that lack some, speeds in doubt, arms without a certificate, then what cells caution."""
    lacking = {text for texts in results.gaps.values() for text in texts}
    carriers: dict[str, list[str]] = {}
    for setting, texts in results.cautions.items():
        for text in texts:
            if text not in lacking and not text.startswith(_SAID_APART) and not setting.category:
                carriers.setdefault(text, []).append(str(setting))
    cautions = [f"Caution: {names[0]}{_more(names)}: {text}" for text, names in carriers.items()]
    return [*doubts(results), *cautions]


def other_device(results: Results, hardware: str, gpus: int) -> list[str]:
    """A doubt where ``gpus`` of the preset ``hardware`` (empty: the run's own) are not what the run was measured on."""
    name, own = device_name(results), gpus_of(results)
    other = hardware and not is_device(hardware, name)
    devices = [f"measured on {name!r}, set against the roofline of {hardware}"] if other else []
    shared = [f"measured with GPUs: {own}, set against a roofline with GPUs: {gpus}"] if own != gpus else []
    return devices + shared


def beyond_peak(found: Sequence[Prediction]) -> list[str]:
    """A doubt where AR took less than its roofline, which peak rates forbid: its overhead is taken as none."""
    beyond = [str(p.setting.of("ar")) for p in found if p.overhead_ms == 0]
    places = list(dict.fromkeys(beyond))
    text = "AR is faster than its own roofline, so the model or hardware preset is not the run's"
    return [f"{places[0]}{_more(places)}: {text}"] if places else []


def mark(results: Results, setting: Setting) -> str:
    """``setting`` as printed: with a dagger if its arm is unaudited, and a word if its speed is in doubt."""
    dagger = f" {UNAUDITED}" if setting.arm in results.unaudited else ""
    unsteady = " (speed in doubt)" if results.unsteady.get(setting) else ""
    lacks = " (lacks cells)" if results.gaps.get(setting) else ""
    return f"{setting}{dagger}{unsteady}{lacks}"


def with_doubts(found: Tables, texts: list[str]) -> Tables:
    """The tables with these doubts behind them, each once, in front of the assumptions."""
    earlier = [line["doubt"] for line in found.get(TITLE, ())]
    lines: Lines = [{"doubt": text} for text in dict.fromkeys((*earlier, *texts))]
    rest = {name: table for name, table in found.items() if name not in (TITLE, "assumptions")}
    return {**rest, **({TITLE: lines} if lines else {}), "assumptions": found["assumptions"]}


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
