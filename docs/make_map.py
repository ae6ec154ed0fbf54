"""Who imports whom: `python docs/make_map.py` checks the order of the packages and draws docs/images/map.svg.

Imports inside functions count like those at the top of a file. Imports that only type checkers follow (under
`if TYPE_CHECKING:`) are left out. A name that a package offers lazily counts as an import of the module that
defines it. The command line looks its commands up by name when they are called; those imports are
strings and are not seen here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "map.svg"

# From the bottom up: a package imports from the rows below its own, or from its own row where that makes no
# cycle.
ORDER = (
    ("errors", "registry"),
    ("core", "screening"),
    ("data",),
    ("engines", "io"),
    ("resampling", "baselines"),
    ("models",),
    ("analyses",),
    ("plotting",),
    ("report", "datasets"),
    ("workflow",),
    ("cli", "app"),
)
ROW = {name: row for row, names in enumerate(ORDER) for name in names}

# Measures of the picture, in pixels. What reads and writes stands aside, at the right.
ASIDE = ("io", "datasets")
LEFT, MAIN, LANE, SIDE, MARGIN, GAP, BETWEEN, LINE, STEP = 70, 720, 70, 300, 16, 24, 44, 15, 7

STYLE = (
    ".name{font-size:15px;font-weight:bold;fill:#12324a}"
    ".about{font-size:12px;fill:#333}"
    ".files{font-size:11px;font-family:Consolas,Menlo,monospace;fill:#5b7083}"
    ".box{fill:#f3f7fa;stroke:#7f9bb0}"
    ".arrow{fill:none;stroke:#5b7083;stroke-width:1.3;marker-end:url(#tip)}"
)

Graph = dict[str, set[str]]


def modules(source: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name; a package is its `__init__`."""
    found = {}
    for path in sorted((source / "icqf").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Each import that runs, wherever it stands: the module, and the names taken from it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imported(other)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, [alias.name for alias in node.names]
        else:
            yield from imported(node)


def lazy_homes(known: dict[str, Path]) -> dict[tuple[str, str], str]:
    """Where the names that packages offer by their stubs are defined."""
    homes = {}
    for package, path in known.items():
        stub = path.with_suffix(".pyi")
        for node in ast.walk(ast.parse(stub.read_text(encoding="utf-8"))) if stub.exists() else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                homes |= {(package, alias.name): f"{package}.{node.module}" for alias in node.names}
    return homes


def import_graph(source: Path = ROOT / "src") -> Graph:
    """Module by module: the modules of this package that it imports."""
    known = modules(source)
    homes = lazy_homes(known)

    def home(module: str, name: str) -> str:
        if (module, name) in homes:
            return home(homes[module, name], name)
        return f"{module}.{name}" if f"{module}.{name}" in known else module

    graph: Graph = {}
    for module, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        targets = {home(name, one) for name, names in imported(tree) for one in names or [""]}
        graph[module] = {target for target in targets if target in known and target != module}
    return graph


def cycles(graph: Graph) -> list[list[str]]:
    """Sets of nodes that reach each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == index[node]:
            cut = stack.index(node)
            component = stack[cut:]
            del stack[cut:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def part(module: str) -> str:
    """The package, or the single file, directly below `icqf` that a module belongs to."""
    return (module.split(".") + [""])[1]


def package_graph(graph: Graph) -> Graph:
    """Part by part: the other parts that it imports. The package itself and `__main__` are left out."""
    parts: Graph = {part(module): set() for module in graph if part(module) not in ("", "__main__")}
    for module, targets in graph.items():
        if part(module) in parts:
            parts[part(module)] |= {part(target) for target in targets} - {part(module), ""}
    return parts


def against_the_order(graph: Graph) -> list[str]:
    """Imports that point from a part to one above it, one line each."""
    return [
        f"{module} imports {target}"
        for module, targets in sorted(graph.items())
        for target in sorted(targets)
        if part(module) in ROW and part(target) in ROW and ROW[part(module)] < ROW[part(target)]
    ]


def reduced(graph: Graph) -> Graph:
    """Without imports that a longer way implies; needs a graph without cycles."""
    below: Graph = {}

    def reach(node: str) -> set[str]:
        if node not in below:
            below[node] = graph[node].union(*(reach(target) for target in graph[node]))
        return below[node]

    return {node: graph[node] - set().union(*map(reach, graph[node])) for node in graph}


def about(path: Path) -> str:
    """First sentence of a file's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(".")


@dataclass(frozen=True)
class Box:
    """One part of the package, placed."""

    name: str
    x: float
    y: float
    width: float
    height: float
    lines: tuple[tuple[str, str], ...]


def boxes(source: Path = ROOT / "src") -> dict[str, Box]:
    """Rows from the top of the order to its bottom; the boxes of a row are equally high."""
    known = modules(source)
    present = {part(module) for module in known}
    placed = {}
    y = MARGIN + 24.0
    for row in reversed(ORDER):
        main = [name for name in row if name in present and name not in ASIDE]
        width = (MAIN - GAP * (len(main) - 1)) / len(main)
        texts = {name: text_of(name, known, width) for name in main}
        height = 34.0 + LINE * max(map(len, texts.values()))
        for number, name in enumerate(main):
            placed[name] = Box(name, LEFT + number * (width + GAP), y, width, height, texts[name])
        for name in present.intersection(ASIDE).intersection(row):
            text = text_of(name, known, SIDE)
            placed[name] = Box(name, LEFT + MAIN + LANE, y, SIDE, 34.0 + LINE * len(text), text)
        y += height + BETWEEN
    return placed


def text_of(name: str, known: dict[str, Path], width: float) -> tuple[tuple[str, str], ...]:
    """The lines of a box: what the part is about, then its files."""
    paths = [
        module.removeprefix("icqf.").removeprefix(f"{name}.") for module in known if part(module) == name
    ]
    files = [path.replace(".", "/") for path in paths if path != name]
    return (
        *(("about", line) for line in wrap(about(known[f"icqf.{name}"]), int(width / 6.7))),
        *(("files", line) for line in wrap("  ".join(files), int(width / 7.2))),
    )


class Router:
    """Finds a way for each arrow: down, along the gap between two rows, and down; or round rows by a lane."""

    def __init__(self, placed: dict[str, Box], arrows: list[tuple[str, str]]) -> None:
        self.placed = placed
        self.arrows = arrows
        self.gaps: dict[float, int] = {}
        self.lanes = {"left": 0, "right": 0}

    def port(self, name: str, arrow: tuple[str, str]) -> float:
        """Where on the edge of a box an arrow begins or ends: ordered like what is at its other end."""
        end = arrow.index(name)
        mine = [other for other in self.arrows if other[end] == name and name not in ASIDE]
        mine.sort(key=lambda other: self.placed[other[1 - end]].x + self.placed[other[1 - end]].width / 2)
        box = self.placed[name]
        return box.x + box.width * (mine.index(arrow) + 1) / (len(mine) + 1)

    def along(self, gap: float) -> float:
        """The height of a horizontal stretch in the gap that ends at a row's upper edge."""
        self.gaps[gap] = self.gaps.get(gap, -1) + 1
        return gap - 12 - STEP * self.gaps[gap] % (BETWEEN - 16)

    def lane(self, side: str) -> float:
        self.lanes[side] += 1
        return (
            LEFT - 6 - STEP * self.lanes[side]
            if side == "left"
            else LEFT + MAIN + 4 + STEP * self.lanes[side]
        )

    def below(self, box: Box) -> float:
        """The upper edge of the next row."""
        return min(other.y for other in self.placed.values() if other.y > box.y)

    def way(self, arrow: tuple[str, str]) -> str:
        start, end = (self.placed[name] for name in arrow)
        aside = start.name in ASIDE, end.name in ASIDE
        if aside == (True, True):
            x = start.x + SIDE / 2
            return f"M{x:g} {start.y + start.height:g}V{end.y:g}"
        if start.y == end.y:
            x1, x2 = (start.x + start.width, end.x) if start.x < end.x else (start.x, end.x + end.width)
            return f"M{x1:g} {start.y + start.height / 2:g}H{x2:g}"
        if aside == (True, False):
            lane, x2 = self.lane("right"), self.port(end.name, arrow)
            return f"M{start.x:g} {start.y + 24:g}H{lane:g}V{self.along(end.y):g}H{x2:g}V{end.y:g}"
        x1 = self.port(start.name, arrow)
        first = f"M{x1:g} {start.y + start.height:g}"
        if aside == (False, True):
            return (
                f"{first}V{self.along(self.below(start)):g}H{self.lane('right'):g}V{end.y + 14:g}H{end.x:g}"
            )
        x2 = self.port(end.name, arrow)
        if self.below(start) == end.y:
            return first + (f"V{end.y:g}" if x1 == x2 else f"V{self.along(end.y):g}H{x2:g}V{end.y:g}")
        lane = self.lane("left" if (x1 + x2) / 2 < LEFT + MAIN / 2 else "right")
        return f"{first}V{self.along(self.below(start)):g}H{lane:g}V{self.along(end.y):g}H{x2:g}V{end.y:g}"


def picture(parts: Graph, placed: dict[str, Box]) -> str:
    """The map as SVG."""
    width = LEFT + MAIN + LANE + SIDE + MARGIN
    height = max(box.y + box.height for box in placed.values()) + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        'font-family="Helvetica, Arial, sans-serif" role="img" '
        'aria-label="The packages of icqf and which imports which">',
        f"<style>{STYLE}</style>",
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#5b7083"/></marker>',
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
        f'<text x="{LEFT}" y="{MARGIN + 4}" class="about">An arrow leads from a package to what it imports. '
        "Imports that follow from others are not drawn.</text>",
    ]
    router = Router(placed, [(name, target) for name in placed for target in sorted(parts[name])])
    out += [f'<path d="{router.way(arrow)}" class="arrow"/>' for arrow in router.arrows]
    for box in placed.values():
        size = f'width="{box.width:g}" height="{box.height:g}"'
        out.append(f'<rect x="{box.x:g}" y="{box.y:g}" {size} rx="5" class="box"/>')
        texts = [("name", box.y + 21, box.name)]
        texts += [(kind, box.y + 38 + LINE * row, line) for row, (kind, line) in enumerate(box.lines)]
        out += [
            f'<text x="{box.x + 12:g}" y="{y:g}" class="{kind}" xml:space="preserve">{escape(text)}</text>'
            for kind, y, text in texts
        ]
    return "\n".join([*out, "</svg>"]) + "\n"


def main() -> int:
    graph = import_graph()
    parts = package_graph(graph)
    problems = [f"cycle: {', '.join(names)}" for names in cycles(graph)]
    problems += [f"cycle between packages: {', '.join(names)}" for names in cycles(parts)]
    problems += [f"no row for {name}" for name in sorted(set(parts) - set(ROW))]
    problems += against_the_order(graph)
    print(
        f"{len(graph)} modules, {sum(map(len, graph.values()))} imports, {len(problems)} problems",
        *problems,
        sep="\n",
    )
    if problems:
        return 1
    PICTURE.write_text(picture(reduced(parts), boxes()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
