# Writes psychometrics.json: reference numbers for reliability, item statistics and polychoric correlations.
# Run: Rscript make_psychometrics.R     (needs the R packages psych, psychTools, polycor and jsonlite)
suppressPackageStartupMessages({library(psych); library(jsonlite)})
bfi <- psychTools::bfi[, 1:25]
complete <- na.omit(bfi)
scales <- list(Agreeableness = c("-A1", "A2", "A3", "A4", "A5"), Conscientiousness = c("C1", "C2", "C3", "-C4", "-C5"),
               Extraversion = c("-E1", "-E2", "E3", "E4", "E5"), Neuroticism = paste0("N", 1:5),
               Openness = c("O1", "-O2", "O3", "O4", "-O5"))
scale_of <- function(keys, data) {
  names <- sub("-", "", keys)
  x <- data[, names]
  for (name in names[startsWith(keys, "-")]) x[, name] <- 7 - x[, name]
  a <- suppressWarnings(alpha(x, warnings = FALSE))
  o <- suppressWarnings(omega(x, nfactors = 1, fm = "minres", plot = FALSE))
  list(alpha = a$total$raw_alpha, feldt = unname(unlist(a$feldt[1:3])), item_rest = unname(a$item.stats$r.drop),
       omega = unname(o$omega.tot))
}
few <- c("A1", "A2", "C1", "C4", "E1", "N1", "N4", "O2")
two <- as.data.frame(lapply(complete[, c("A1", "N1", "O2")], function(v) as.integer(v > 3)))
poly <- function(x, correct) unname(suppressWarnings(polychoric(x, correct = correct))$rho)
kmo <- KMO(complete)
out <- list(
  provenance = list(R = R.version.string, date = format(Sys.Date()), script = "make_psychometrics.R",
    packages = as.list(sapply(c("psych", "psychTools", "polycor"), function(p) as.character(packageVersion(p)))),
    data = "psychTools::bfi[, 1:25], complete answers (2436 of 2800), and all answers where said"),
  n_complete = nrow(complete),
  scales = lapply(scales, scale_of, data = complete),
  keys = scales,
  missing = scale_of(scales$Neuroticism, bfi),
  describe = list(skew = unname(describe(complete)$skew), kurtosis = unname(describe(complete)$kurtosis)),
  kmo = kmo$MSA, bartlett = suppressMessages(cortest.bartlett(complete))[c("chisq", "p.value", "df")],
  polychoric = list(items = few, psych = poly(complete[, few], .5), uncorrected = poly(complete[, few], 0),
                    polycor = sapply(few, function(a) sapply(few, function(b)
                      if (a == b) 1 else polycor::polychor(complete[[a]], complete[[b]]))) |> unname()),
  tetrachoric = list(items = names(two), cut = 3, psych = unname(suppressWarnings(tetrachoric(two))$rho)),
  fa_polychoric = local({f <- fa(polychoric(complete[, c(paste0("N", 1:5), paste0("E", 1:5))])$rho, nfactors = 2, n.obs = nrow(complete), fm = "minres", rotate = "varimax")
    list(loadings = unclass(f$loadings)[, ], uniquenesses = unname(f$uniquenesses))}))
write_json(out, "psychometrics.json", digits = 10, auto_unbox = TRUE, matrix = "rowmajor", pretty = FALSE)
