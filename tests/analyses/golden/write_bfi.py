"""Writes bfi.csv, which make_lavaan_bfi.R reads: the items of bfi as icqf reads them, and sex."""

from icqf.datasets import load_bfi

if __name__ == "__main__":  # not where pytest imports it to look for examples
    study = load_bfi()
    study.keyed_answers().assign(sex=study.confounds["sex"]).to_csv("bfi.csv", index=False)
