"""Damaged and forged model files: refused with one sentence, or the same model in every effect."""

from __future__ import annotations

import hashlib
import json
import random
import re
import struct
from pathlib import Path

import numpy as np
import pandas as pd

from hostile.tally import Memory, Tally, in_short, time_limit
from icqf import ICQF
from icqf.data.questionnaire import Item, Questionnaire
from icqf.errors import InputError

K, M, N = 2, 6, 40
MANIFEST = "sha256"


def study() -> Questionnaire:
    """A small study with reversed items, missing codes and two confounds."""
    rng = np.random.default_rng(1)
    scores, loadings = rng.random((N, K)), np.zeros((K, M))
    loadings[0, :3] = loadings[1, 3:] = 4
    answers = np.clip(np.rint(scores @ loadings + rng.normal(0, 0.4, (N, M))), 0, 4)
    answers[:, [1, 4]] = 4 - answers[:, [1, 4]]
    names = [f"q{j}" for j in range(M)]
    items = tuple(
        Item(
            name,
            wording=f"Wording of {name}",
            min=0,
            max=4,
            reverse=j in (1, 4),
            subscale="Mood" if j < 3 else "Temper",
            missing_codes=(9, "refused"),
            labels=((0.0, "never"), (4.0, "always")),
        )
        for j, name in enumerate(names)
    )
    ids = [f"P{i:03d}" for i in range(N)]
    confounds = pd.DataFrame({"age": 6 + 10 * rng.random(N), "sex": ["f", "m"] * (N // 2)}, index=ids)
    values = (Item("sex", labels=((1.0, "f"), (2.0, "m")), missing_codes=(-9.0,)),)
    table = pd.DataFrame(answers, columns=names, index=ids)
    return Questionnaire(table, items, confounds=confounds, confound_entries=values)


def write(path: Path) -> Questionnaire:
    questionnaire = study()
    ICQF(K, random_state=0).fit(questionnaire).save(path, id="code")
    return questionnaire


def effect(path: Path, questionnaire: Questionnaire) -> str:
    """All that a model file can do, as text: numbers, names, directions, and scores of new answers."""
    model = ICQF.load(path)
    codebook = model.codebook_
    described = {item.name: item for item in codebook.items}
    items = tuple(described.get(item.name, Item(item.name, min=0, max=4)) for item in questionnaire.items)
    new = Questionnaire(questionnaire.answers.iloc[:5], items, confounds=questionnaire.confounds.iloc[:5])
    parts = [
        *(model.components_, model.confound_components_, model.item_range_.to_numpy(), model.solving_order_),
        *vars(model.fit_statistics_).values(),
        *(model.trace_[name].to_numpy() for name in model.trace_.columns),
        model.transform(new.keyed_answers(), confounds=new.confounds),
    ]
    words = [
        *(list(model.item_range_.index), list(model.trace_.columns), list(model.confound_names_)),
        *(model.confound_encoder_.to_dict(), type(model).__name__, codebook, model.objective_),
        *(model.certificate_, model.converged_, model.n_iter_, model.n_participants_),
        {name: value for name, value in model.get_params().items() if name != "item_range"},
    ]
    return f"{[(part.shape, part.tobytes()) for part in parts]}{words}"


# --- damage to bytes --------------------------------------------------------------------------------------


def flip_bits(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def edit_bytes(content: bytes, rng: random.Random) -> bytes:
    at, length = rng.randrange(len(content)), rng.choice([1, 2, 4, 16])
    return content[:at] + rng.randbytes(length) + content[at + length :]


def zero_bytes(content: bytes, rng: random.Random) -> bytes:
    at, length = rng.randrange(len(content)), rng.choice([1, 16, 512])
    return content[:at] + bytes(min(length, len(content) - at)) + content[at + length :]


def truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def drop_bytes(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(content))
    return content[:at] + content[at + rng.choice([1, 2, 64]) :]


def add_bytes(content: bytes, rng: random.Random) -> bytes:
    at = rng.choice([0, len(content), rng.randrange(len(content))])
    return content[:at] + rng.randbytes(rng.choice([1, 8, 300])) + content[at:]


# --- the parts of a file -----------------------------------------------------------------------------------

Part = tuple[str, str, list[int], bytes]  # name, type, shape, content


def members(content: bytes) -> list[Part]:
    """The parts of a model file, in order, taken apart without the library that wrote it."""
    start = 8 + int.from_bytes(content[:8], "little")
    named = json.loads(content[8:start])
    named.pop("__metadata__")
    return [
        (
            name,
            about["dtype"],
            about["shape"],
            content[start + about["data_offsets"][0] : start + about["data_offsets"][1]],
        )
        for name, about in named.items()
    ]


def written(parts: list[Part], checksum: str | None = None, more: str = "") -> bytes:
    """A file of these parts: with its right checksum, or another; `more` is what else its header says."""
    described, at = [], 0
    for name, kind, shape, part in parts:
        place = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(part)]}
        described.append(f",{json.dumps(name)}:{json.dumps(place)}")
        at += len(part)

    def whole(digest: str) -> bytes:
        text = (f'{{"__metadata__":{{"{MANIFEST}":"{digest}"}}' + "".join(described) + more + "}").encode()
        return struct.pack("<Q", len(text)) + text + b"".join(part for *_, part in parts)

    return whole(checksum or hashlib.sha256(whole("0" * 64)).hexdigest())


def checksum_of(content: bytes) -> str:
    named = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return named["__metadata__"][MANIFEST]


def part_of(name: str, value: bytes | np.ndarray) -> Part:
    """JSON, or numbers, as a part."""
    if isinstance(value, bytes):
        return name, "U8", [len(value)], value
    kinds = {"f8": "F64", "f4": "F32"}
    return name, kinds[value.dtype.str[1:]], list(value.shape), np.ascontiguousarray(value).tobytes()


def sealed(parts: dict[str, bytes | np.ndarray]) -> bytes:
    """A file of these parts with the checksum that belongs to it: what a forger would make."""
    return written([part_of(name, value) for name, value in parts.items()])


def contents(content: bytes) -> dict[str, bytes | np.ndarray]:
    """JSON and numbers of a model file, by name."""
    return {
        name: part if kind == "U8" else np.frombuffer(part, dtype="f8").reshape(shape).copy()
        for name, kind, shape, part in members(content)
    }


# --- damage to parts: the checksum is that of the whole file ------------------------------------------------


def remove_member(content: bytes, rng: random.Random) -> bytes:
    parts = members(content)
    parts.pop(rng.randrange(len(parts)))
    return written(parts, checksum_of(content))


def duplicate_member(content: bytes, rng: random.Random) -> bytes:
    parts = members(content)
    parts.insert(rng.randrange(len(parts) + 1), (rng.choice(parts)[0], *rng.choice(parts)[1:]))
    return written(parts, rng.choice([checksum_of(content), None]))


def swap_members(content: bytes, rng: random.Random) -> bytes:
    parts = members(content)
    a, b = rng.sample(range(len(parts)), 2)
    parts[a], parts[b] = (parts[a][0], *parts[b][1:]), (parts[b][0], *parts[a][1:])
    return written(parts, checksum_of(content))


def reorder_members(content: bytes, rng: random.Random) -> bytes:
    """The same parts in another order, with the checksum of that."""
    parts = members(content)
    rng.shuffle(parts)
    return written(parts)


def rename_member(content: bytes, rng: random.Random) -> bytes:
    parts = members(content)
    at = rng.randrange(len(parts))
    name, *rest = parts[at]
    new = rng.choice([name.upper(), f"{name} ", f"./{name}", f"../{name}", name[1:], f"{name}{name}"])
    parts[at] = (new, *rest)
    return written(parts, rng.choice([checksum_of(content), None]))


def add_member(content: bytes, rng: random.Random) -> bytes:
    name = rng.choice(["more", "../evil", "/etc/evil", "trace_more", "codebook.JSON", "x" * 5000])
    part = rng.choice([part_of(name, rng.randbytes(40)), part_of(name, np.ones(3))])
    return written([*members(content), part], rng.choice([checksum_of(content), None]))


def edit_member(content: bytes, rng: random.Random) -> bytes:
    """Other bytes in one part, in a file that is in order but for its checksum."""
    parts = members(content)
    at = rng.randrange(len(parts))
    name, kind, shape, part = parts[at]
    edited = rng.choice([flip_bits, edit_bytes, zero_bytes])(part or b"0", rng)[: len(part)]
    parts[at] = (name, kind, shape, edited)
    return written(parts, checksum_of(content))


def edit_header(content: bytes, rng: random.Random) -> bytes:
    """Places, shapes and types that contradict each other, in a file with the right checksum."""
    start = 8 + int.from_bytes(content[:8], "little")
    head, rest = content[8:start].decode(), content[start:]
    number, value = (
        rng.choice([*re.finditer(r"\d+", head[110:])]),
        rng.choice([0, 1, 7, 2**31, 2**63, 10**30]),
    )
    edits = [
        lambda: f"{head[: 110 + number.start()]}{value}{head[110 + number.end() :]}",
        lambda: head.replace('"F64"', rng.choice(['"F32"', '"I64"', '"BF16"', '"X"', "3", "null"]), 1),
        lambda: head.replace('"shape":[', '"shape":[1,', 1),
        lambda: head.rstrip()[:-1] + ',"__metadata__":{"other":"1"}}',
        lambda: head + rng.choice(["}", " ", "\n", "\0"]),
        lambda: head.replace("}", ',"a":1}', 2),
    ]  # fmt: skip
    text = rng.choice(edits)().encode()

    def whole(digest: bytes) -> bytes:
        return struct.pack("<Q", len(text)) + text[:26] + digest + text[90:] + rest

    return whole(hashlib.sha256(whole(b"0" * 64)).hexdigest().encode())


DAMAGES = (
    *(flip_bits, flip_bits, flip_bits, edit_bytes, zero_bytes, truncate, drop_bytes, add_bytes),
    *(edit_header, remove_member, duplicate_member, swap_members, reorder_members, rename_member),
    *(add_member, edit_member),
)


# --- forged: well-formed, with a checksum that agrees, but no model -----------------------------------------

NAN, INF = float("nan"), float("inf")
BAD_NUMBERS = {
    "components": (NAN, INF, -INF, -1.0, 4.5, 1e300),
    "confound_components": (NAN, INF, -1.0, 4.5, 1e300),
    "item_range": (NAN, INF, -INF, 1e300, 2.0, 5.0),
    "starts": (NAN, INF, -1e9, 1e300),
    "item_scale": (NAN, INF, 0.0, -1.0, 0.5, 2.0),
    "solving_order": (NAN, 7.0, -1.0, 0.5, INF),
    "sse": (NAN, INF, -1.0),
    "sst": (NAN, INF, -1.0),
    "explained": (NAN, INF, -1e9),
    "missing": (NAN, INF, -1.0, 1e9, 0.5),
}
WRONG = (None, "text", [], {}, [None], -1, NAN, True, 1e400)
BAD_HEADERS = {
    "n_participants": (0, -1, 1.5, "40", *WRONG),
    "n_iter": (-1, 1.5, None, "3", NAN),
    "objective": (None, "low", NAN, INF, [], -1),
    "converged": (None, "yes", 2, []),
    "starts": (None, "nndsvd", [], ["nndsvd"], ["a"] * 4, [1] * 4, {}),
    "items": (
        None,
        [],
        ["q0"],
        ["q0"] * M,
        [None] * M,
        [1] * M,
        [f"q{j}" for j in range(M + 1)],
        {},
        "q" * M,
    ),
    "items_named": (None, "no", 3),
    "certificate": (None, {}, {"gain": 1}, []),
    "trace": (None, [], ["objective", "objective"], ["objective", "none"], [1], "objective"),
    "model": (None, "Other", 3, ["ICQF"]),
    "version": (None, "1", 99, 1.5, True, 0, -1),
    "format": (None, "other", 3),
    "dtype": (None, "object", "int8", 3),
    "parameters": (None, [], {}, {"n_components": K, "evil": 1}),
    "confounds": (None, [], {}, {"columns": None}),
}
BAD_PARAMETERS = {
    "beta": (-1, NAN, "0.1", None, 1e400),
    "n_components": (0, -2, 3, 1.5, "2", 10**9),
    "penalty": (None, "l3", 1),
    "solver": (None, "none"),
    "tol": (-1, NAN, None),
    "max_iter": (-1, None, 1.5),
    "intercept": (None, "no"),
    "init": (None, 3, "none"),
}
BAD_ITEMS = {
    "name": (None, 3, "q99", "q5", ""),
    "wording": (None, 3, [], {}),
    "subscale": (None, 3, []),
    "reverse": (None, "yes", 1, [], NAN),
    "min": (None, NAN, "0", 9, 1, -1e9),
    "max": (None, NAN, INF, -9, 5, 1e9),
    "missing_codes": (None, 3, "9", [None], [[1]], [{}], [2], [True]),
    "labels": (None, 3, [[None, None]], [["a", "b"]], [[1]], [[1, None]], [[NAN, "x"]], {"0": "never"}),
    "extra": (1,),
}
BAD_CONFOUNDS = {
    "low": (NAN, 1e9, None, "6"),
    "high": (NAN, -1e9, None, INF),
    "mean": (NAN, None, 1e9, "10"),
    "name": (None, 3, "sex"),
    "categories": (3, [], ["f", "f"], [None, "m"], [["f"], "m"], "fm"),
    "shares": (None, [1.0], [-1.0, 2.0], [NAN, 1.0], ["a", "b"]),
}


def forged(content: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A file that says something no model says, and what that is."""
    parts = contents(content)
    what = rng.choice(["array", "shape", "header", "parameter", "item", "confound", "codebook"])
    header, codebook = json.loads(parts["model.json"]), json.loads(parts["codebook.json"])
    if what in ("array", "shape"):
        name = rng.choice(list(BAD_NUMBERS))
        array = parts[name]
        if what == "array":
            value = rng.choice(BAD_NUMBERS[name])
            array.flat[rng.randrange(array.size)] = value
            if name == "item_range" and value in (2.0, 5.0):  # no longer the range of the codebook
                array[:] = (0.0, value)
            what = f"{name} holds {value}"
        else:
            array = rng.choice([array[:-1], array.T[:-1].T, array[None], array.astype("f4"), array[:0]])
            what = f"{name} of shape {array.shape} and {array.dtype}"
        parts[name] = array
    elif what == "codebook":
        key, value = rng.choice(
            [("id", 3), ("id", None), ("id", []), ("items", None), ("items", {}), ("items", [3])]
            + [("items", codebook["items"][1:]), ("items", codebook["items"][::-1] * 2), ("items", "q0")]
            + [("confounds", None), ("confounds", [3]), ("confounds", codebook["confounds"] * 2)]
        )
        codebook[key], what = value, f"codebook {key} is {str(value)[:40]}"
    else:
        where, choices = {
            "header": (header, BAD_HEADERS),
            "parameter": (header["parameters"], BAD_PARAMETERS),
            "item": (rng.choice(codebook["items"][:-1]), BAD_ITEMS),
            "confound": (rng.choice(header["confounds"]["columns"]), BAD_CONFOUNDS),
        }[what]
        if what == "confound":
            kind = ("categories", "shares") if where.get("categories") else ("low", "high", "mean")
            choices = {name: choices[name] for name in ("name", *kind)}
        name = rng.choice(list(choices))
        if name in where and rng.random() < 0.2:
            del where[name]
            what = f"{what} lacks {name}"
        else:
            where[name] = rng.choice(choices[name])
            what = f"{what} {name} is {str(where[name])[:40]}"
    parts["model.json"], parts["codebook.json"] = (
        json.dumps(header).encode(),
        json.dumps(codebook).encode(),
    )
    return sealed(parts), what


# --- bombs ------------------------------------------------------------------------------------------------


def with_factors(content: bytes, number: int) -> bytes:
    """A model of more factors than items, each of which would have its score."""
    parts = contents(content)
    header, starts, explained = json.loads(parts["model.json"]), parts["starts"], parts["explained"]
    header["parameters"]["n_components"] = number
    header["factor_names"] = [f"factor{r + 1}" for r in range(number)]
    more = {
        "model.json": json.dumps(header).encode(),
        "components": np.full((number, M), 0.1),
        "explained": np.concatenate([np.full((number, M), 100.0), explained[K:]]),
        "solving_order": np.arange(float(number)),
        "starts": np.hstack([starts[:, :3], np.zeros((len(starts), number))]),
    }
    return sealed(parts | more)


def bombs(content: bytes) -> dict[str, bytes]:
    """Files that are large, or grow while they are understood, to far more than a model."""
    parts = contents(content)
    header = json.loads(parts["model.json"])

    def with_header(**changes):
        return sealed(parts | {"model.json": json.dumps(header | changes).encode()})

    def with_arrays(*, items, starts):
        """As many items or starts as the parts may hold, with all arrays of the right shape."""
        more = {}
        names = {"items": header["items"], "starts": header["starts"]}
        if items:
            names["items"] = [f"{i:x}" for i in range(items)] if items < 10**6 else ["q"] * items
            for name in ("components", "confound_components", "explained"):
                more[name] = np.zeros((1, items))
            for name in ("item_scale", "sse", "sst", "missing"):
                more[name] = np.ones(items) if items < 10**6 else np.ones(1)
        else:
            names["starts"] = [header["starts"][0]] * starts
            more["starts"] = np.ones((starts, 3 + K))
        changed = json.dumps(header | names, separators=(",", ":")).encode()
        return sealed(parts | more | {"model.json": changed})

    def with_categories(number):
        columns = json.loads(json.dumps(header["confounds"]))
        column = next(each for each in columns["columns"] if each["categories"])
        column["categories"] = list(range(number))
        column["shares"] = [1 / number] * number
        return with_header(confounds=columns)

    def promising(shape):
        """More numbers than there are, or than any memory holds."""
        return written(
            [part if part[0] != "sse" else ("sse", "F64", shape, part[3]) for part in members(content)]
        )

    lists = b"[" + b"[]," * 12_000_000 + b"[]]"
    return {
        "100 MB of blanks": sealed(parts | {"model.json": b" " * (100 * 2**20)}),
        "90 MB of blanks": sealed(parts | {"model.json": b" " * (90 * 2**20)}),
        "36 MB of empty lists": sealed(parts | {"model.json": lists}),
        "8 MB of empty lists": sealed(parts | {"model.json": lists[: 7 * 2**20] + b"[]]"}),
        "lists as the codebook": sealed(parts | {"codebook.json": lists}),
        "nested without end": sealed(parts | {"model.json": b"[" * 2_000_000}),
        "one trace a million times": with_header(trace=["objective"] * 1_000_000),
        "2.6 million items": with_arrays(items=2_600_000, starts=None),
        "700 000 starts": with_arrays(items=None, starts=700_000),
        "9000 factors": with_factors(content, 9000),
        "a million categories": with_categories(1_000_000),
        "a million items": with_header(items=[f"q{i}" for i in range(1_000_000)]),
        "a long number": sealed(parts | {"model.json": b"1" * 4_000_000}),
        "300 MB of zeros": sealed(parts | {"components": np.zeros(40_000_000)}),
        "more zeros than memory": promising([10**14]),
        "more zeros than numbers count": promising([2**32, 2**32]),
        "60 000 parts": sealed(parts | {f"m{i}": b"" for i in range(60_000)}),
        "a header without end": written(members(content), more=" " * (100 * 2**20)),
        "a header as long as can be": struct.pack("<Q", 2**64 - 1) + content[8:],
    }


# --- the run ----------------------------------------------------------------------------------------------


class Tries:
    """Files tried one after another against the model that was saved."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.path, self.tally = folder / "some.icqf", Tally(kind)
        self.questionnaire = write(self.path)
        self.content = self.path.read_bytes()
        self.known = effect(self.path, self.questionnaire)

    def one(self, content: bytes, what: str, *, seconds: float = 20) -> None:
        self.path.write_bytes(content)
        memory = Memory()
        try:
            with memory, time_limit(seconds):
                found = effect(self.path, self.questionnaire)
            outcome, said = ("equal", "") if found == self.known else ("silently different", "")
        except InputError as error:
            said = str(error)
            one_sentence = said.startswith(str(self.path)) and "\n" not in said and said.endswith(".")
            outcome = "refused" if one_sentence else "no message"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            outcome, said = (
                ("hang" if type(error).__name__ == "Hang" else "foreign exception"),
                in_short(error),
            )
        said = " ".join(said.split())[:160]
        self.tally.add("over 500 MB" if memory.too_much else outcome, f"{what}: {said}".strip(": "))


def damaged(n: int, seed: int, folder: Path) -> Tally:
    tries, rng = Tries(folder, "damaged model files"), random.Random(seed)
    for _ in range(n):
        damage = rng.choice(DAMAGES)
        content = damage(tries.content, rng)
        tries.one(content, damage.__name__)
    return tries.tally


def forgeries(n: int, seed: int, folder: Path) -> Tally:
    tries, rng = Tries(folder, "forged model files"), random.Random(seed)
    for _ in range(n):
        tries.one(*forged(tries.content, rng))
    return tries.tally


def bombed(folder: Path) -> Tally:
    tries = Tries(folder, "model file bombs")
    for what, content in bombs(tries.content).items():
        tries.one(content, what, seconds=120)
    return tries.tally
