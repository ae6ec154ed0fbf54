"""Make the embedded demo, byte for byte: `python benchmarks/_demo.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from icqf.data.questionnaire import Item
from icqf.datasets import demo_paths
from icqf.io.codebook import format_codebook

NOT_ANSWERED = 9
LABELS = ((0.0, "not true"), (1.0, "somewhat true"), (2.0, "very true"))
REVERSED = ("Makes friends easily", "Stays with a task until it is done")
WORDINGS = {
    "Worry": """
        Asks again and again whether things will be all right|Lies awake thinking about tomorrow
        Is scared of being alone in a room|Needs a light on to fall asleep
        Expects that something bad will happen|Is tense before tests|Checks that the doors are locked
        Is afraid of making mistakes|Panics when plans change|Fears for the safety of the family
        Avoids speaking in front of the class|Bites lips or nails when nervous|Startles at small noises
        Clings when it is time to part|Asks for help before trying""",
    "Low mood": """
        Looks unhappy|Has lost interest in games once loved|Says that nothing is fun|Tears come easily
        Feels useless|Has little energy|Stays in bed on free days|Speaks very little
        Blames himself or herself for small things|Keeps to his or her room
        Does not look forward to anything|Smiles rarely|Gives up quickly|Says that nobody cares
        Moves slowly""",
    "Body complaints": """
        Has stomach aches on school days|Has headaches|Feels sick without a cause
        Says the legs or arms hurt|Feels dizzy|Is tired in the morning|Has trouble falling asleep
        Wakes up at night|Has itching skin|Eats very little|Complains of a sore throat
        Says the heart beats fast|Asks to see the school nurse|Feels too hot or too cold|Has cramps""",
    "Peer difficulties": """
        Makes friends easily|Is left out of games|Is laughed at by classmates|Prefers adults to children
        Plays with much younger children|Does not know how to join a group|Is not invited to birthdays
        Takes jokes the wrong way|Stands too close to others|Has nobody to sit with
        Is easily led by others|Talks past the other child|Is bullied|Loses friends quickly
        Waits to be asked to play""",
    "Unusual thoughts": """
        Hears things that nobody else hears|Sees shapes in the dark
        Has one thought that will not go away|Must do things in a fixed order|Collects useless objects
        Repeats the same movement|Talks about odd ideas|Stares into space
        Believes others read his or her mind|Counts things over and over|Washes hands far too often
        Mixes up dream and day|Speaks to someone who is not there|Cannot let go of a topic""",
    "Inattention": """
        Stays with a task until it is done|Leaves work half finished|Forgets what was just said
        Loses things|Looks up at every sound|Cannot sit through a meal|Blurts out answers
        Jumps from one game to the next|Makes careless mistakes|Fidgets with hands or feet
        Forgets homework|Acts before thinking|Needs to be told many times|Drifts off in class
        Finds waiting hard""",
    "Rule breaking": """
        Tells lies to avoid trouble|Takes things that belong to others|Skips lessons|Breaks house rules
        Hides what he or she did|Stays out late without asking|Smokes or vapes|Drinks alcohol
        Cheats at games|Spends time with children in trouble|Damages things on purpose
        Leaves home without telling|Uses rude words|Shows no regret|Copies from others""",
    "Temper": """
        Shouts when told no|Slams doors|Hits other children|Answers back|Is easily annoyed
        Wants everything at once|Kicks or throws things|Refuses to do what is asked
        Teases younger children|Starts quarrels|Is jealous of brothers or sisters|Threatens others
        Sulks for hours|Boasts|Cannot stand losing""",
}


def items() -> tuple[Item, ...]:
    """The demo's items, the syndromes in turn."""
    scales = {
        name: [w.strip() for w in text.replace("\n", "|").split("|") if w.strip()]
        for name, text in WORDINGS.items()
    }
    turns = [
        (i, j, name, words[i]) for j, (name, words) in enumerate(scales.items()) for i in range(len(words))
    ]
    return tuple(
        Item(
            name=f"q{position:03d}",
            wording=wording,
            min=0,
            max=2,
            reverse=wording in REVERSED,
            subscale=scale,
            missing_codes=(NOT_ANSWERED,),
            labels=LABELS,
        )
        for position, (_, _, scale, wording) in enumerate(sorted(turns), start=1)
    )


def simulate(random_state: int = 0, *, n_participants: int = 600) -> pd.DataFrame:
    """Simulate the demo's answers.

    Each child has eight bounded scores, which share a general tendency; each item follows its own syndrome,
    a few follow a second one; age and sex shift some syndromes; 3 % of the answers are missing, some of them
    coded 9.
    """
    rng = np.random.Generator(np.random.PCG64(random_state))
    questions, scales = items(), list(WORDINGS)
    n, m, k = n_participants, len(questions), len(scales)
    age = np.round(6 + 12 * rng.random(n), 1)
    girl = rng.random(n) < 0.5
    family = np.sort(rng.integers(1, max(2, round(0.75 * n)), n))

    shared = rng.random(n)
    own = rng.random((n, k))
    scores = np.clip(2 * (0.45 * shared[:, None] + 0.55 * own) - 0.8, 0, 1)
    older, younger = (age - 6) / 12, (18 - age) / 12
    shift = np.zeros((n, k))
    shift[:, scales.index("Low mood")] = 0.25 * older + 0.12 * girl
    shift[:, scales.index("Worry")] = 0.15 * girl
    shift[:, scales.index("Rule breaking")] = 0.25 * older + 0.1 * ~girl
    shift[:, scales.index("Inattention")] = 0.25 * younger + 0.12 * ~girl
    shift[:, scales.index("Temper")] = 0.2 * younger

    home = np.array([scales.index(item.subscale) for item in questions])
    strength = 1.2 + 0.8 * rng.random(m)
    second = rng.integers(0, k, m)
    second_strength = np.where(rng.random(m) < 0.15, 0.5, 0.0) * (second != home)
    easy = 0.25 * rng.random(m)
    level = strength * (scores[:, home] + shift[:, home]) + second_strength * scores[:, second] + easy
    # The sum of twelve uniform numbers is close to normal and, unlike a normal draw, gives the same bits on
    # every machine.
    noise = 0.6 * (rng.random((12, n, m)).sum(axis=0) - 6)
    tendency = np.round(level + noise, 9)
    answers = (tendency > 0.7).astype(int) + (tendency > 1.45)
    reverse = np.array([item.reverse for item in questions])
    answers[:, reverse] = 2 - answers[:, reverse]

    cells = np.array(["0", "1", "2"], dtype=object)[answers]
    careless = 0.004 + 0.11 * rng.random(n) ** 4
    left_out = rng.random((n, m)) < careless[:, None]
    cells[left_out] = ""
    cells[left_out & (rng.random((n, m)) < 0.15)] = str(NOT_ANSWERED)
    columns = {
        "child_id": [f"C{i:04d}" for i in range(1, n + 1)],
        "age": [f"{years:.1f}" for years in age],
        "sex": np.where(girl, "female", "male"),
        "site": np.array(["North", "South", "East", "West"])[family % 4],
        "family": [f"F{number:03d}" for number in family],
    }
    return pd.DataFrame({**columns, **{item.name: cells[:, j] for j, item in enumerate(questions)}})


def write(folder: Path) -> tuple[Path, Path]:
    """Write the demo's two files into a folder, and return their paths."""
    answers, codebook = (folder / path.name for path in demo_paths())
    simulate().to_csv(answers, index=False, lineterminator="\n")
    codebook.write_text(format_codebook(items()), encoding="utf-8", newline="")
    return answers, codebook


if __name__ == "__main__":
    write(demo_paths().answers.parent)
