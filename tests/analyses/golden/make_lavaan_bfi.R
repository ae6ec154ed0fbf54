# Writes lavaan_bfi.csv: configural, metric and scalar invariance of the 25 bfi items between women and men.
# Run: python write_bfi.py && Rscript make_lavaan_bfi.R     (needs the R package lavaan; made with 0.6-14)
# The items are those of psychTools::bfi with A1, C4, C5, E1, E2, O2 and O5 reversed, as icqf reads them.
suppressMessages(library(lavaan))
d <- read.csv("bfi.csv")
scales <- c("A", "C", "E", "N", "O")
model <- paste(sapply(scales, function(f) paste0(f, " =~ ", paste0(f, 1:5, collapse = " + "))), collapse = "\n")
steps <- list(configural = "", metric = "loadings", scalar = c("loadings", "intercepts"))
fits <- lapply(steps, function(s) cfa(model, d, group = "sex", group.equal = s, missing = "fiml"))
measures <- function(f) round(unclass(fitMeasures(f, c("chisq", "df", "cfi", "rmsea", "srmr"))), 4)
tests <- lavTestLRT(fits[[1]], fits[[2]], fits[[3]])
out <- data.frame(step = names(fits), t(sapply(fits, measures)), chisq_change = round(tests[["Chisq diff"]], 4),
                  df_change = tests[["Df diff"]], p = signif(tests[["Pr(>Chisq)"]], 4))
write.csv(out, "lavaan_bfi.csv", row.names = FALSE, quote = FALSE)
# Which single loading (in the metric model) or intercept (in the scalar one) would gain most by being freed.
freed <- function(step, op) {
  tests <- lavTestScore(fits[[step]])$uni
  table <- parTable(fits[[step]])
  table <- table[table$op == op & table$group == 1, ]
  found <- match(tests$lhs, table$plabel)
  out <- data.frame(step = step, item = (if (op == "=~") table$rhs else table$lhs)[found], x2 = round(tests$X2, 4),
                    p = signif(tests$p.value, 4))[!is.na(found), ]
  out[order(-out$x2), ]
}
items <- rbind(freed("metric", "=~"), freed("scalar", "~1"))
write.csv(items, "lavaan_bfi_items.csv", row.names = FALSE, quote = FALSE)
print(out); print(items)
