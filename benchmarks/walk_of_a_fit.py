"""Draw the modules that a default fit passes through, from the user's table to the gradient.

``python -m benchmarks.walk_of_a_fit`` traces a fit, as the budgets do, and writes ``docs/images/walk_of_a_fit.svg``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.budgets import trace_of_fit

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "walk_of_a_fit.svg"
WIDTH, LEFT, BOX, LAYER = 1120, 150, 40, 104
LAYERS = ("estimators", "search", "table", "training", "the method", "small modules")
METHOD = ("castle", "layout", "losses", "monotone", "network", "regularizers", "target_losses", "acyclicity")
ROAD = {  # what the user's rows pass through
    ("estimators/cross_validation.py", "estimators/base.py"),
    ("estimators/base.py", "table/reading.py"),
    ("estimators/base.py", "search/fit.py"),
    ("search/fit.py", "table/encoding.py"),
    ("search/fit.py", "search/candidates.py"),
    ("search/candidates.py", "training/loop.py"),
    ("training/loop.py", "training/engines/native.py"),
    ("training/loop.py", "training/engines/jax_engine.py"),
}
_STYLE = """
.card{fill:#fbfcfd;stroke:#d5dbe1}.box{fill:#eef2f6;stroke:#52616f}
.down{stroke:#52616f;fill:none;opacity:.4}.up{stroke:#d9480f;fill:none;opacity:.7}
.road{stroke:#1971c2;fill:none;stroke-width:2.2}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:#1b2733;font-size:14px}
.small{font-size:12px}.dim{fill:#52616f}.b{font-weight:600}.m{text-anchor:middle}.headd{fill:#52616f}.headu{fill:#d9480f}
.headr{fill:#1971c2}
@media (prefers-color-scheme:dark){.card{fill:#1f242b;stroke:#3a424c}.box{fill:#2f3741;stroke:#93a1af}
.down{stroke:#93a1af}.up{stroke:#ff9a5c}.road,.headr{stroke:#74b3f5}text{fill:#e8ecf0}.dim{fill:#aeb9c4}
.headd{fill:#93a1af}.headu{fill:#ff9a5c}}
"""


def layer_of(module: str) -> str:
    """Return the layer of a module, relative to the package."""
    first = module.split("/")[0].removesuffix(".py")
    return "the method" if first in METHOD else first if first in LAYERS else "small modules"


def ordered(layers: list[list[str]], calls: list[tuple[str, str]]) -> list[list[str]]:
    """Move modules of a layer towards those that they call or that call them, to cross fewer arrows."""
    place = {module: (i + 0.5) / len(layer) for layer in layers for i, module in enumerate(layer)}
    for _ in range(10):
        for i, layer in enumerate(layers):
            others = {m: [place[a if b == m else b] for a, b in calls if m in (a, b)] for m in layer}
            layers[i] = sorted(layer, key=lambda m: (sum(others[m]) / len(others[m]) if others[m] else 1.0, m))
            place |= {module: (k + 0.5) / len(layer) for k, module in enumerate(layers[i])}
    return layers


def picture(functions: list[tuple[str, str]], calls: list[tuple[str, str]]) -> str:
    """Return the SVG."""
    counts = Counter(module for module, _ in functions)
    layers = ordered([[m for m in sorted(counts) if layer_of(m) == layer] for layer in LAYERS], calls)
    boxes: dict[str, tuple[float, float, float]] = {}  # middle, top, width
    for row, layer in enumerate(layers):
        room = (WIDTH - LEFT - 20) / max(len(layer), 1)
        boxes |= {
            module: (LEFT + room * (k + 0.5), 92 + row * LAYER, min(room - 12, 150)) for k, module in enumerate(layer)
        }
    height = 72 + len(LAYERS) * LAYER
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="t d">',
        '<title id="t">The walk of a fit</title>',
        f'<desc id="d">The {len(counts)} modules and {len(functions)} functions of a default fit, by package, and the '
        f"{len(calls)} calls between modules.</desc>",
        f"<style>{_STYLE}</style><defs>",
        *(
            f'<marker id="head{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path class="head{kind}" d="M0 0L8 4L0 8z"/></marker>'
            for kind in "dur"
        ),
        f'</defs><rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="12"/>',
        '<text class="b" x="24" y="34">The walk of a fit: tables enter at the top, engines compute gradients</text>'
        '<text class="dim" x="24" y="56">'
        f"{len(counts)} modules, {len(functions)} functions, {len(calls)} calls between modules; the number in a box "
        "counts its functions, blue is the road of the rows, orange are calls back</text>",
    ]
    for caller, called in sorted(calls, key=ROAD.__contains__):  # the road on top
        (x, y, _), (to_x, to_y, _) = boxes[caller], boxes[called]
        kind = "road" if (caller, called) in ROAD else "down"
        if y == to_y:  # an arc below the layer
            bend = 14 + abs(to_x - x) / 20
            parts.append(_arrow(x, y + BOX, to_x, to_y + BOX, y + BOX + bend, y + BOX + bend, kind))
        elif y < to_y:
            parts.append(_arrow(x, y + BOX, to_x, to_y, y + BOX + 46, to_y - 46, kind))
        else:
            parts.append(_arrow(x, y, to_x, to_y + BOX, y - 46, to_y + BOX + 46, "up"))
    for row, (name, layer) in enumerate(zip(LAYERS, layers, strict=True)):
        y = 92 + row * LAYER
        parts.append(f'<text class="b" x="24" y="{y + 18}">{name}</text>')
        parts.append(f'<text class="small dim" x="24" y="{y + 35}">{sum(counts[m] for m in layer)} functions</text>')
    for module, (x, y, width) in boxes.items():
        folder, _, name = module.removesuffix(".py").removesuffix("/__init__").rpartition("/")
        folder = folder.removeprefix(layer_of(module)).strip("/")
        parts.append(
            f'<rect class="box" x="{x - width / 2:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="6"/>'
            f'<text class="m small b" x="{x:.0f}" y="{y + 17}">{name}</text>'
            f'<text class="m small dim" x="{x:.0f}" y="{y + 33}">{f"{folder}, " * bool(folder)}{counts[module]}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def _arrow(x: float, y: float, to_x: float, to_y: float, bend: float, to_bend: float, kind: str) -> str:
    curve = f"M{x:.0f} {y}C{x:.0f} {bend:.0f} {to_x:.0f} {to_bend:.0f} {to_x:.0f} {to_y}"
    return f'<path class="{kind}" marker-end="url(#head{kind[0]})" d="{curve}"/>'


if __name__ == "__main__":
    PICTURE.write_text(picture(*trace_of_fit(ROOT / "src")), encoding="utf-8")
    print(PICTURE)
