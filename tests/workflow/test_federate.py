"""Federated fits: the same model as of the pooled participants, from sums that are about nobody."""

import csv
import json
import os
import shutil
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest

from federation import (
    ITEMS,
    SITES,
    SIZES,
    K,
    M,
    arrays_in,
    federate,
    header_of,
    here,
    plan_of,
    shared,
    table,
    unzipped,
    write_sites,
)
from icqf import ICQF, InputError
from icqf.engines.sent import SENT
from icqf.io.exchange import read_message, write_message
from icqf.workflow import FederatedPlan, answer_requests, fit_federated, read_federated_plan
from icqf.workflow.federate_site import read_for_plan


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_sites(tmp_path_factory.mktemp("hospitals"), table())


@pytest.fixture(scope="module")
def exact(tmp_path_factory, paths):
    """A fit in which everything is sent as it is, from all three kinds of start."""
    folder, plan = tmp_path_factory.mktemp("exact"), plan_of(smallest_group=1, n_init=3, tol=3e-3)
    return folder, plan, federate(plan, folder, paths)


@pytest.fixture(scope="module")
def usual(tmp_path_factory, paths):
    """A fit with the settings that a plan has unless told otherwise."""
    folder, plan = tmp_path_factory.mktemp("usual"), plan_of()
    return folder, plan, federate(plan, folder, paths)


def pooled(plan, paths, **options):
    """The fit of all participants in one table."""
    tables = [read_for_plan(plan, path) for path in paths]
    answers = pd.concat([each.keyed_answers() for each in tables])
    confounds, weights = (pd.concat([getattr(t, name) for t in tables]) for name in ("confounds", "weights"))
    model = ICQF(
        K,
        beta=plan.beta,
        n_init=plan.n_init,
        item_range=plan.ranges,
        confound_ranges={"age": (5, 19)},
        smallest_category=10,
        tol=plan.tol,
        dtype="float64",
        random_state=plan.seed,
        **options,
    )
    return model.fit(answers, confounds=confounds, sample_weight=weights)


# --- the same fit -----------------------------------------------------------------------------------------


def test_the_fit_is_that_of_the_pooled_participants_from_every_start(exact, paths):
    _, plan, fit = exact
    one, model = pooled(plan, paths), fit.model
    assert model.starts_["start"].tolist() == ["nndsvd", "rotated", "random"]
    np.testing.assert_allclose(model.starts_["objective"], one.starts_["objective"], rtol=1e-9)
    np.testing.assert_allclose(model.components_, one.components_, atol=1e-6)
    np.testing.assert_allclose(model.confound_components_, one.confound_components_, atol=1e-6)
    assert model.objective_ == pytest.approx(one.objective_, rel=1e-9)
    assert model.certificate_.loading_step == pytest.approx(one.certificate_.loading_step, rel=1e-6)
    assert model.n_participants_ == one.n_participants_ == sum(SIZES)
    assert model.confound_names_ == one.confound_names_
    for name in ("sse", "sst", "explained", "missing"):
        ours, theirs = (getattr(each.fit_statistics_, name) for each in (model, one))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_the_model_scores_the_participants_of_a_site_as_the_pooled_model_does(exact, paths, tmp_path):
    _, plan, fit = exact
    fit.model.save(tmp_path / "model.icqf")
    site = read_for_plan(plan, paths[1])
    ours, theirs = ICQF.load(tmp_path / "model.icqf").transform(site), pooled(plan, paths).transform(site)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_with_the_usual_settings_the_fit_differs_by_little(usual, paths):
    _, plan, fit = usual
    one = pooled(plan, paths)
    assert fit.model.converged_ and fit.model.certificate_.holds(plan.tol)
    correlation = np.corrcoef(fit.model.components_.ravel(), one.components_.ravel())[0, 1]
    assert correlation > 0.999
    assert (
        np.abs(fit.model.components_ - one.components_).max() < 0.15
    )  # of ranges of 4, with 191 participants


def test_a_start_with_scores_is_refused(usual):
    _, plan, fit = usual
    model = plan.model().set_params(engine=fit.model.engine)
    with pytest.raises(InputError, match="scores stay at the sites"), model.engine.participants(None) as rows:
        rows.start_at(None)


# --- what leaves ------------------------------------------------------------------------------------------


def answers_of(folder, site=""):
    return sorted(path for path in (folder / "shared").glob("round-*.zip") if site in path.name)


@pytest.mark.parametrize("which", ["exact", "usual"])
def test_nothing_that_is_exchanged_has_a_row_per_participant(which, request):
    folder, _, fit = request.getfixturevalue(which)
    files = sorted((folder / "shared").glob("*.zip"))
    assert len(files) == 4 * fit.rounds + len(SITES) + 1
    lengths = {length for path in files for array in arrays_in(path).values() for length in array.shape}
    assert not lengths & {*SIZES, sum(SIZES)}
    assert {M, K} <= lengths


@pytest.mark.parametrize("which", ["exact", "usual"])
def test_no_id_and_no_row_of_answers_is_exchanged(which, request, paths):
    folder, plan, _ = request.getfixturevalue(which)
    rows = np.concatenate([np.nan_to_num(here(plan, path).problem.answers) for path in paths])
    rows = np.concatenate([rows, rows * plan.model().item_scale_])
    for path in sorted((folder / "shared").glob("*.zip")):
        members = unzipped(path)
        assert not any(b"PERSON" in content for content in members.values())
        for array in arrays_in(path).values():
            if array.shape[-1:] == (M,):
                sent = array.reshape(-1, M)
                assert (np.abs(sent[:, None] - rows).max(axis=2) > 1e-6).all(), path.name


def test_what_one_participant_alone_left_out_tells_the_age_unless_groups_are_asked_for(tmp_path, paths):
    """The attack: from two rounds, the ratio of what changes in the sums with age and in those without."""
    frame = table()
    frame["q01"] = frame["q01"].fillna(3)
    frame.loc[5, "q01"] = np.nan
    told = {}
    for group in (1, 5):
        folder = tmp_path / str(group)
        folder.mkdir()
        plan = plan_of(smallest_group=group, weights=None, max_iter=3)
        federate(plan, folder, write_sites(folder, frame))
        steps = [arrays_in(path) for path in answers_of(folder, "hospital-a")]
        early = [each["P"][:, 1] for each in steps if "peak" in each][:2]
        change = early[1] - early[0]
        told[group] = 5 + 14 * change[K] / change[-1]
    assert told[1] == pytest.approx(frame["age"][5], abs=1e-6)
    assert told[5] != pytest.approx(frame["age"][5], abs=0.05)


def test_a_rare_answer_tells_a_row_of_answers_unless_groups_are_asked_for(tmp_path):
    """The attack: sums of products with an item that one participant alone answered otherwise."""
    frame = table().drop(columns="weight").fillna(1.0)
    frame["q04"] = 1.0
    frame.loc[9, "q04"] = 2.0
    frame.loc[SIZES[0] :, "q04"] = [1.0, 3.0, 5.0] * ((len(frame) - SIZES[0]) // 3)
    own = plan_of(weights=None, item_weight="none")
    row = np.nan_to_num(here(own, write_sites(tmp_path, frame)[0]).problem.answers[9])
    told = {}
    for group in (1, 5):
        folder = tmp_path / str(group)
        folder.mkdir()
        plan = plan_of(smallest_group=group, weights=None, item_weight="none", max_iter=1)
        federate(plan, folder, write_sites(folder, frame))
        told[group] = arrays_in(folder / "shared" / "round-0002-hospital-a.zip")["products"][4]
    np.testing.assert_allclose(told[1], row)
    participants = here(own, tmp_path / "answers-0.csv")
    assert any("not asked here" in note and "'q04'" in note for note in participants.notes)
    assert np.abs(told[5] - row).max() > 10  # products with everybody's mean


def test_no_sum_leaves_about_those_who_press_and_no_score_of_a_single_participant(usual):
    folder, plan, _ = usual
    steps = [arrays_in(path) for path in answers_of(folder, "hospital-a")]
    steps = [each for each in steps if "peak" in each]
    assert any("pressing" in each for each in steps) and not any("active" in each for each in steps)
    for each in steps:
        assert (each.get("pressing", np.zeros(1)) % plan.smallest_group == 0).all()
        np.testing.assert_allclose(each["peak"] * 20, np.rint(each["peak"] * 20))
        powers = np.log2(each["step"][each["step"] > 0] / (8 * plan.tol))
        np.testing.assert_allclose(powers, np.rint(powers), atol=1e-6)


def test_the_log_of_a_site_holds_every_number_that_left_it(usual):
    folder, _, fit = usual
    for site, n in zip(SITES, SIZES, strict=True):
        log = folder / f"log {site}"
        index = pd.read_csv(log / "sent.csv")
        assert index["round"].nunique() == fit.rounds + 1 and (index["participants"] == n).all()
        for number, lines in index.groupby("round"):
            path = folder / "shared" / lines["file"].iloc[0]
            sent = arrays_in(path)
            assert int(lines["numbers"].sum()) == sum(array.size for array in sent.values())
            if not sent:
                continue
            with (log / f"round-{number:04d}.csv").open(encoding="utf-8") as stream:
                rows = list(csv.reader(stream))
            logged = [float(cell) for row in rows if row[0] == "" for cell in row[2:]]
            np.testing.assert_array_equal(logged, np.concatenate([each.ravel() for each in sent.values()]))
            assert {row[0]: row[1] for row in rows if row[0]} == dict(
                zip(lines["quantity"], lines["meaning"], strict=True)
            )


def test_every_quantity_is_explained():
    for quantities in SENT.values():
        assert all(len(each.words) > 10 and each.words[0].islower() for each in quantities.values())


# --- settings ---------------------------------------------------------------------------------------------


def test_sums_are_rounded_to_the_digits_of_the_plan(tmp_path, paths):
    plan = plan_of(digits=4)
    fit = federate(plan, tmp_path, paths)
    assert fit.model.converged_
    for path in answers_of(tmp_path, "hospital-b"):
        for name, array in arrays_in(path).items():
            if name in ("S", "P", "products", "total", "pull", "misfit"):
                numbers = array[array != 0]
                np.testing.assert_allclose(
                    numbers, [float(f"{each:.4g}") for each in numbers.ravel()], rtol=1e-9
                )


def test_noise_is_made_up_participants_of_the_site_itself(tmp_path, paths):
    plan = plan_of(n_components=1, noise=30)
    before, after = here(plan_of(n_components=1), paths[0]), here(plan, paths[0])
    n, more = SIZES[0], after.problem
    assert more.n == n + 30 and any("30 made-up participants were added" in note for note in after.notes)
    again, elsewhere = here(plan, paths[0]).problem, here(plan, paths[1]).problem
    np.testing.assert_array_equal(again.answers, more.answers)
    assert not np.array_equal(elsewhere.answers[-30:], more.answers[-30:])
    values = [{*column[~np.isnan(column)]} for column in more.answers[:n].T]
    for column, known in zip(more.answers[n:].T, values, strict=True):
        assert {*column[~np.isnan(column)]} <= known
    assert (more.design[:2, n:].sum(axis=0) == 1).all() and (more.design[2:4, n:].sum(axis=0) == 1).all()
    assert before.problem.n == n
    fit = federate(plan, tmp_path, paths)
    assert fit.model.converged_ and fit.model.n_participants_ == sum(SIZES) + 90


# --- breaks -----------------------------------------------------------------------------------------------


def test_a_coordinator_that_was_stopped_goes_on(tmp_path, paths, usual):
    _, plan, fit = usual

    def stop(done):
        if done.round == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        federate(plan, tmp_path, paths, callback=stop)
    (tmp_path / "shared" / "finished.zip").unlink()
    before = {path.name: path.read_bytes() for path in answers_of(tmp_path)}
    assert len(before) == 4 * 12
    again = federate(plan, tmp_path, paths)
    np.testing.assert_array_equal(again.model.components_, fit.model.components_)
    assert all((tmp_path / "shared" / name).read_bytes() == content for name, content in before.items())


def test_sites_that_are_called_by_hand_find_their_way_back(tmp_path, paths):
    """Each call answers what is there, having worked through all that was asked before."""
    plan = plan_of(n_components=1, max_iter=2, weights=None)
    exchange, found = shared(tmp_path), []
    coordinator = threading.Thread(target=lambda: found.append(fit_federated(plan, exchange)))
    sites = [(name, here(plan, path)) for name, path in zip(SITES, paths, strict=True)]
    coordinator.start()
    while coordinator.is_alive():
        for name, participants in sites:
            done = answer_requests(plan, participants, exchange, name=name, log=tmp_path / name, once=True)
    coordinator.join()
    whole = tmp_path / "whole"
    whole.mkdir()
    np.testing.assert_array_equal(found[0].model.components_, federate(plan, whole, paths).model.components_)
    assert not done.finished or done.rounds == found[0].rounds


def test_anybody_can_work_a_finished_fit_through_again(usual, paths):
    folder, plan, fit = usual
    again = fit_federated(plan, shared(folder, patience=0.1))
    np.testing.assert_array_equal(again.model.components_, fit.model.components_)


# --- what goes wrong --------------------------------------------------------------------------------------


@pytest.fixture
def copied(usual, tmp_path):
    folder, plan, _ = usual
    shutil.copytree(folder / "shared", tmp_path / "shared")
    return tmp_path, plan, tmp_path / "shared" / "round-0003-hospital-b.zip"


def rewritten(path, header=None, **arrays):
    message = read_message(path)
    write_message(path, {**message.header, **(header or {})}, {**message.arrays, **arrays})


NAME = "round-0002-hospital-b.zip"


def spoilt(kind):
    """What a site may send by mistake or on purpose."""

    def spoil(path):
        sums = read_message(path).arrays["products"]
        if kind == "nan":
            rewritten(path, products=np.where(sums == sums.max(), np.nan, sums))
        elif kind == "shape":
            rewritten(path, products=sums[:5])
        elif kind == "huge":
            rewritten(path, products=sums * 1e13)
        elif kind == "round":
            rewritten(path, {"round": 7})
        elif kind == "plan":
            rewritten(path, {"plan": "0" * 64})
        elif kind == "request":
            rewritten(path, {"request": "0" * 64})
        elif kind == "site":
            rewritten(path, {"token": "another"})
        elif kind == "more":
            rewritten(path, rows=np.ones((61, M)))
        elif kind == "truncated":
            path.write_bytes(path.read_bytes()[:-200])
        elif kind == "text":
            path.write_text("hello")
        elif kind == "pickle":
            members = unzipped(path)
            members["products.npy"] = (
                b"\x80\x04\x95\x1d\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system"
            )
            with zipfile.ZipFile(path, "w") as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
        elif kind == "bomb":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("members.json", b" " * 20 * 2**20)
        elif kind == "late":
            path.unlink()

    return spoil


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("nan", "'Hospital B' sent cannot be used ('products' holds numbers that are not finite)"),
        ("shape", "cannot be used ('products' has the shape (5, 11) instead of (11, 11))"),
        ("huge", "more than all its participants could add"),
        ("more", "'rows' was not asked for"),
        ("round", "this answers another round than the one of this fit (site 'Hospital B', round 2)"),
        ("plan", "this answers another plan than"),
        ("request", "this answers another request than"),
        ("site", "two sites answer under the name 'Hospital B'"),
        ("truncated", "or it is damaged"),
        ("text", "or it is damaged"),
        ("pickle", "'products.npy' does not have its checksum"),
        ("bomb", "would unpack to more than any model needs"),
        ("late", "'Hospital B' has not answered round 2 within"),
    ],
)
def test_a_site_that_sends_nonsense_is_named(copied, kind, said):
    folder, plan, _ = copied
    spoilt(kind)(folder / "shared" / NAME)
    with pytest.raises(InputError) as caught:
        fit_federated(plan, shared(folder, patience=0.2))
    assert said in str(caught.value) and "\n" not in str(caught.value)
    if kind != "late":
        assert str(caught.value).startswith(NAME)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"participants": 12}, "it has 12 participants, and a site must have 40"),
        ({"participants": "many"}, "it has 'many' participants"),
        ({"size": -1.0}, "its numbers cannot be"),
        ({"site": "Hospital A"}, "it is that of 'Hospital A'"),
        ({"plan": "other"}, "'Hospital B' has another plan than this one"),
    ],
)
def test_an_announcement_that_cannot_be_is_refused(copied, header, said):
    folder, plan, _ = copied
    rewritten(folder / "shared" / "site-hospital-b.zip", header)
    with pytest.raises(InputError, match=said):
        fit_federated(plan, shared(folder, patience=0.2))


def test_a_site_that_does_not_announce_itself_is_named(copied):
    folder, plan, _ = copied
    (folder / "shared" / "site-hopital-c.zip").unlink()
    with pytest.raises(InputError, match="'Hôpital C' has not announced itself"):
        fit_federated(plan, shared(folder, patience=0.05))


def test_a_file_on_its_way_is_waited_for(copied):
    folder, plan, _ = copied
    path = folder / "shared" / NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    threading.Timer(0.2, lambda: path.write_bytes(whole)).start()
    exchange = type(shared(folder))(folder / "shared", patience=5, settled=2)
    assert fit_federated(plan, exchange).model.converged_


def test_another_fit_in_the_same_folder_is_refused(copied):
    folder, plan, _ = copied
    message = read_message(folder / "shared" / "round-0002-request.zip")
    means = message.arrays["filling.means"]
    rewritten(folder / "shared" / "round-0002-request.zip", **{"filling.means": means + 0.1})
    with pytest.raises(InputError, match=r"request\.zip: the folder holds a request of another fit"):
        fit_federated(plan, shared(folder, patience=0.2))


def strange(kind, header):
    """Requests that no fit makes."""
    step = header["pass"]
    return {
        "kind": {"pass": {**step, "kind": "Rows"}},
        "field": {"pass": {**step, "rows": True}},
        "array": {"pass": {**step, "filling": {**step["filling"], "means": {"array": "more"}}}},
        "round": {"round": 9},
        "nobody": {"first": {}},
        "place": {"first": {"Hospital B": "first"}},
        "deep": {"pass": {"kind": "InTurn", "steps": [step]}},
        "none": {"pass": None},
    }[kind]


@pytest.mark.parametrize("kind", ["kind", "field", "array", "round", "nobody", "place", "deep", "none"])
def test_a_site_answers_no_request_that_a_fit_does_not_make(copied, paths, kind):
    folder, plan, _ = copied
    request, answer = folder / "shared" / "round-0002-request.zip", folder / "shared" / NAME
    answer.unlink()
    rewritten(request, strange(kind, header_of(request)))
    with pytest.raises(InputError, match=r"round-0002-request\.zip: this request is none that a fit makes"):
        answer_requests(
            plan, here(plan, paths[1]), shared(folder), name="Hospital B", log=folder / "log", once=True
        )
    assert not answer.exists()


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_a_site_answers_no_request_with_loadings_that_cannot_be(copied, paths, value):
    folder, plan, _ = copied
    requests = sorted((folder / "shared").glob("*-request.zip"))
    request = next(path for path in requests if header_of(path)["pass"]["kind"] == "InTurn")
    loadings = read_message(request).arrays["steps.1.loadings.Q"]
    rewritten(request, **{"steps.1.loadings.Q": np.where(loadings == loadings.max(), value, loadings)})
    with pytest.raises(InputError, match="an array holds numbers that cannot be"):
        answer_requests(
            plan, here(plan, paths[1]), shared(folder), name="Hospital B", log=folder / "log", once=True
        )


def test_a_plan_that_was_changed_midway_is_noticed_by_both_sides(copied, paths):
    folder, plan, _ = copied
    other = FederatedPlan.of({**plan.to_dict(), "beta": 0.3})
    with pytest.raises(InputError, match="'Hospital A' has another plan"):
        fit_federated(other, shared(folder, patience=0.1))
    with pytest.raises(InputError, match="'Hospital B' has announced itself with another plan"):
        answer_requests(
            other, here(other, paths[1]), shared(folder), name="Hospital B", log=folder, once=True
        )
    (folder / "shared" / "site-hospital-b.zip").unlink()
    with pytest.raises(InputError, match="the coordinator asks by another plan"):
        answer_requests(
            other, here(other, paths[1]), shared(folder), name="Hospital B", log=folder, once=True
        )


def test_two_sites_with_one_name_are_told_apart(copied, paths):
    folder, plan, _ = copied
    with pytest.raises(InputError, match="a site with other data has announced itself as 'Hospital A'"):
        answer_requests(plan, here(plan, paths[1]), shared(folder), name="Hospital A", log=folder, once=True)
    with pytest.raises(InputError, match=r"knows no site 'Hospital X'\. Did you mean 'Hospital"):
        answer_requests(plan, here(plan, paths[1]), shared(folder), name="Hospital X", log=folder, once=True)


def few(frame, kind):
    """A site whose sums would be about a few."""
    if kind == "category":
        frame["sex"] = np.where(frame.index < 3, "female", "male")
    elif kind == "cell":
        frame["hand"] = np.where(frame.index % 2 == 0, "left", "right")
        frame.loc[(frame["sex"] == "female") & (frame.index > 4), "hand"] = "right"
    elif kind == "age":
        frame["age"] = 8.0
        frame.loc[0, "age"] = 18.0
    elif kind == "answers":
        frame.loc[9:, "q05"] = np.nan
    elif kind == "empty":
        frame.loc[:, "q04":"q10"] = np.nan
    return frame


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("category", "'sex' has 3 participants in the category 'female', fewer than 10"),
        ("cell", "Fewer than 5 participants have sex 'female' and hand 'left'"),
        ("age", "far from all others"),
        ("answers", "Item 'q05' was answered by"),
        ("empty", "More than half of the answers are missing"),
    ],
)
def test_a_site_whose_sums_would_be_about_a_few_does_not_take_part(tmp_path, kind, said):
    hand = {"hand": ["left", "right"]} if kind == "cell" else {}
    plan = plan_of(weights=None, categories={"sex": ["female", "male"], **hand})
    few(table().iloc[: SIZES[0]].copy(), kind).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError) as caught:
        here(plan, tmp_path / "a.csv")
    assert said in str(caught.value) and "Nothing was sent." in str(caught.value)


def test_a_site_that_is_too_small_sends_nothing(tmp_path, paths):
    plan = plan_of(smallest_site=62)
    with pytest.raises(InputError, match="61 participants answered, fewer than the 62"):
        here(plan, paths[1])


# --- the plan ---------------------------------------------------------------------------------------------


def test_a_plan_is_the_same_after_writing_and_reading(tmp_path):
    plan = plan_of(noise=5, digits=6)
    (tmp_path / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    again = read_federated_plan(tmp_path / "plan.toml")
    assert again == plan and again.digest == plan.digest != plan_of().digest
    assert [item.reverse for item in again.items] == [item.reverse for item in ITEMS]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sites": ["A"]}, "at least two sites"),
        ({"sites": ["Clinic A", "clinic-a"]}, "too alike"),
        ({"sites": ["request", "B"]}, "give each site a name"),
        ({"n_components": 40}, "more than the 11 items can carry"),
        ({"noise": -1}, "noise must be a whole number of at least 0"),
        ({"item_weight": "variance"}, "is not known"),
        ({"betta": 1}, "a plan has no 'betta'. Did you mean 'beta'?"),
        ({"confounds": {"age": {"range": [9]}}}, "must be two numbers"),
        ({"confounds": {"age": {}}}, "needs its known range or its categories"),
        ({"confounds": {"age": {"mean": 3}}}, "unknown entry 'mean'"),
        ({"confounds": {"sex": {"categories": ["b", "a"]}}}, "alphabetical"),
        ({"item": [{"name": "q1"}, {"name": "q2", "min": 0, "max": 1}]}, "does not say the range of 'q1'"),
        ({"item": 3}, "'item' must be a list"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change, said):
    with pytest.raises(InputError) as caught:
        FederatedPlan.of({**plan_of().to_dict(), **change}, where="plan.toml")
    assert said in str(caught.value) and str(caught.value).startswith("plan.toml: ")


def test_the_digest_is_that_of_the_content(tmp_path):
    plan = plan_of()
    text = "# Signed by all.\n" + plan.to_toml()
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    assert read_federated_plan(tmp_path / "plan.toml").digest == plan.digest
    assert json.dumps(plan.to_dict())


def test_a_file_that_is_no_message_is_not_read_whole_and_not_waited_on(tmp_path):
    pipe, large = tmp_path / "pipe.zip", tmp_path / "large.zip"
    os.mkfifo(pipe)
    with large.open("wb") as stream:
        stream.truncate(2**34)  # without its blocks
    for path, said in ((pipe, "a pipe or a device"), (large, "more than the 100 MB"), (tmp_path, "a folder")):
        with pytest.raises(InputError, match=said):
            read_message(path)
