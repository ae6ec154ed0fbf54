# Writes psych_bfi.json: reference numbers for the factor-analysis tests.
# Run: Rscript make_psych_bfi.R     (needs the R packages psych, psychTools, GPArotation and jsonlite)
suppressPackageStartupMessages({library(psych); library(jsonlite)})
items <- psychTools::bfi[, 1:25]

solution <- function(fm, rotate, ...) {
  f <- fa(items, nfactors = 5, fm = fm, rotate = rotate, scores = "regression", ...)
  list(loadings = unclass(f$loadings)[, ], uniquenesses = unname(f$uniquenesses),
       factor_correlations = if (is.null(f$Phi)) diag(5) else unname(f$Phi),
       score_weights = unname(f$weights), explained = unname(f$Vaccounted["Proportion Var", ]),
       chi2 = f$STATISTIC, dof = f$dof, bic = f$BIC)
}
rotations <- c("promax", "varimax", "oblimin", "none")
minres <- setNames(lapply(rotations, function(r) solution("minres", r)), rotations)
# The rotations again from the same unrotated loadings, iterated far beyond psych's default tolerance.
unrotated <- unclass(fa(items, nfactors = 5, fm = "minres", rotate = "none")$loadings)[, ]
tight <- list(varimax = unclass(varimax(unrotated, eps = 1e-15)$loadings)[, ],
              oblimin = unclass(GPArotation::oblimin(unrotated, eps = 1e-8, maxit = 10000)$loadings)[, ])

ks <- 1:10
bic <- function(fm) sapply(ks, function(k) fa(items, nfactors = k, fm = fm, rotate = "none")$BIC)
set.seed(20240501)
pa <- fa.parallel(items, fm = "minres", fa = "both", n.iter = 100, plot = FALSE)
pa_smc <- fa.parallel(items, fm = "minres", fa = "both", n.iter = 100, plot = FALSE, SMC = TRUE)
velicer <- vss(items, n = 20, fm = "minres", plot = FALSE)
complete <- which(rowSums(is.na(items)) == 0)[1:5]
promax_scores <- fa(items, nfactors = 5, fm = "minres", rotate = "promax", scores = "regression")$scores
kmo <- KMO(items)
small <- c("A1", "A2", "C1", "N1")

out <- list(
  provenance = list(
    R = R.version.string,
    packages = as.list(sapply(c("psych", "psychTools", "GPArotation"), function(p) as.character(packageVersion(p)))),
    date = format(Sys.Date()), script = "make_psych_bfi.R",
    data = "psychTools::bfi[, 1:25], 2800 people by 25 items, with missing answers"),
  items = colnames(items), minres = minres, tight = tight,
  ml = list(varimax = solution("ml", "varimax")),
  one_factor_values = fa(items, nfactors = 1, fm = "minres", rotate = "none")$values,
  parallel = list(n_factors = pa$nfact, n_components = pa$ncomp, fa_values = pa$fa.values,
                  pc_values = pa$pc.values, fa_random_mean = pa$fa.sim, pc_random_mean = pa$pc.sim,
                  smc_n_factors = pa_smc$nfact, smc_values = pa_smc$fa.values),
  velicer = list(map = velicer$map, n_components = which.min(velicer$map)),
  bic = list(n_components = ks, minres = bic("minres"), ml = bic("ml")),
  kmo = list(overall = kmo$MSA, per_item = unname(kmo$MSAi)),
  bartlett = suppressMessages(cortest.bartlett(items)),
  scores = list(rows = complete - 1, promax = unname(promax_scores[complete, ])),
  fiml = list(items = small, correlation = unname(corFiml(items[, small]))))
write_json(out, "psych_bfi.json", digits = 10, auto_unbox = TRUE, matrix = "rowmajor", pretty = FALSE)
