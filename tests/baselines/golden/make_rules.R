# Writes rules.json: reference numbers for the empirical Kaiser criterion, the Hull method and NEST.
# Run: Rscript make_rules.R     (needs the R packages psych, psychTools, nFactors, MASS and jsonlite)
# psych and nFactors have no function for these three rules. What they are made of (eigenvalues, minres
# loadings, KMO, Horn's random eigenvalues) is computed here by R; only the last line of each rule is ours.
suppressPackageStartupMessages({library(psych); library(jsonlite)})

reference_ekc <- function(values, n) {        # Braeken & van Assen (2017), their equation for the reference values
  m <- length(values)
  before <- c(0, cumsum(values)[-m])
  pmax((m - before) / (m - seq_len(m) + 1) * (1 + sqrt(m / n))^2, 1)
}
caf <- function(R, n, k) {                    # Lorenzo-Seva, Timmerman & Kiers (2011): 1 - KMO of what is left
  left <- R
  if (k > 0) left <- R - tcrossprod(unclass(fa(R, nfactors = k, n.obs = n, fm = "minres", rotate = "none")$loadings))
  diag(left) <- 1
  1 - KMO(left)$MSA
}
nest <- function(R, n, k, draws, fm = "minres") {  # Achim (2017): the next eigenvalue of samples from the k-factor model
  model <- diag(nrow(R))
  if (k > 0) {
    L <- unclass(fa(R, nfactors = k, n.obs = n, fm = fm, rotate = "none")$loadings)
    model <- tcrossprod(L); diag(model) <- 1
  }
  replicate(draws, eigen(cor(MASS::mvrnorm(n, rep(0, nrow(R)), model)), only.values = TRUE)$values[k + 1])
}
study <- function(R, n, most, draws) {
  values <- eigen(R, only.values = TRUE)$values
  list(n = n, eigenvalues = values, ekc = reference_ekc(values, n),
       caf = sapply(0:most, function(k) caf(R, n, k)),
       nest = unname(sapply(0:most, function(k) quantile(nest(R, n, k, draws), 0.95))))
}
set.seed(20261115)
bfi <- na.omit(psychTools::bfi[, 1:25])
out <- list(bfi = study(cor(bfi), nrow(bfi), 8, 300),
            harman74 = c(study(Harman74.cor$cov, 145, 5, 5000), list(correlation = unname(Harman74.cor$cov))))
horn <- nFactors::parallel(subject = nrow(bfi), var = ncol(bfi), rep = 300, quantile = 0.95)$eigen
out$bfi$horn_quantile <- horn$qevpea

# The worked example of Rnest's README (Caron 2025): the same seed, the same draw, so the same correlations.
block <- local({ l <- c(.9, .9, .3); B <- rbind(cbind(l %o% l, .7 * l %o% l), cbind(.7 * l %o% l, l %o% l)); diag(B) <- 1; B })
ex_4factors_corr <- rbind(cbind(block, 0 * block), cbind(0 * block, block))
set.seed(1)
drawn <- MASS::mvrnorm(n = 2500, mu = rep(0, 12), Sigma = ex_4factors_corr)
values <- eigen(cor(drawn), only.values = TRUE)$values
p_values <- function(fm) sapply(0:4, function(k) mean(nest(cor(drawn), 2500, k, 1000, fm) >= values[k + 1]))
out$rnest <- list(p_minres = p_values("minres"), p_ml = p_values("ml"), population = ex_4factors_corr, correlation = cor(drawn), n = 2500,
                  published = list(eigenvalues = c(3.228, 3.167, 1.007, 0.972, 0.860), p = c(0, 0, .010, .009, .727),
                                   n_factors = 4, n_factors_240 = 2, source = "README of Rnest 1.0, quantmeth/Rnest"))
out$provenance <- list(R = R.version.string, date = format(Sys.Date()), script = "make_rules.R",
  packages = as.list(sapply(c("psych", "psychTools", "nFactors", "MASS"), function(p) as.character(packageVersion(p)))))
write_json(out, "rules.json", digits = 10, auto_unbox = TRUE, matrix = "rowmajor", pretty = FALSE)
