"""Predicted against measured speedup.

Where the device and the target have presets the prediction is the roofline with the measured tau
(``harness.speedup_model.predict``): a point on the diagonal is explained by sizes and peak rates alone. Elsewhere it is
tau * t_AR / t_block from the run's own decode times (``harness.stats.closure``): what prefill and queueing then leave.
"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from harness.speedup_model import presets
from harness.speedup_model.predict import hardware_of, predictions
from harness.stats.estimate import Estimate
from harness.stats.results import Results
from plots import style

CONTEXT = 512  # cached tokens: their number matters little below the critical context
Point = tuple[str, float, float]  # arm, predicted, measured


def draw(results: Results) -> Figure | None:
    """One point a setting; grey is the diagonal."""
    found, label = roofline_points(results), "roofline"
    if not found:
        found, label = closure_points(results), "tau x AR token time / block time"
    if not found:
        return None
    figure: Figure
    figure, axis = plt.subplots(figsize=(style.WIDTH / 2, style.WIDTH / 2))
    for arm in dict.fromkeys(p[0] for p in found):
        own = [p for p in found if p[0] == arm]
        look = {**style.line(arm), "linewidth": 0, "markersize": 3}
        axis.plot([p[1] for p in own], [p[2] for p in own], **look)
    ends = [min(p[2] for p in found), max(p[2] for p in found)]
    axis.plot(ends, ends, color="#bbbbbb", linewidth=0.8, zorder=0)
    axis.set_xlabel(f"predicted speedup ({label})")
    axis.set_ylabel("measured speedup")
    axis.legend(fontsize=6)
    figure.tight_layout()
    return figure


def roofline_points(results: Results) -> list[Point]:
    """For the targets that have a preset; none where the device has none."""
    device = hardware_of(results)
    if device is None:
        return []
    known = [t for t in results.targets() if t.lower() in presets.tables("models.toml")]
    found = [p for name in known for p in predictions(results, presets.shape(name), device, CONTEXT)
             if p.setting.target == name]  # fmt: skip
    return [(p.setting.arm, p.predicted, p.measured) for p in found]


def closure_points(results: Results) -> list[Point]:
    """From the run's own decode times."""
    found = []
    for setting in results.settings():
        predicted, measured = results.get(setting, "predicted"), results.get(setting, "speedup")
        if isinstance(predicted, Estimate) and isinstance(measured, Estimate):
            found.append((setting.arm, predicted.value, measured.value))
    return found
