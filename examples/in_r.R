# icqf from R, with reticulate. Run by hand: RETICULATE_PYTHON=.venv/bin/python Rscript examples/in_r.R
library(reticulate)
icqf <- import("icqf")
pandas <- import("pandas", convert = FALSE)

# Tables go over as columns, and come back as text, which works with every version of NumPy and pandas.
to_python <- function(table) pandas$DataFrame(as.list(table), index = rownames(table))
to_r <- function(table) read.csv(text = table$to_csv(), row.names = 1)

# 2800 volunteers, 25 items answered from 1 to 6; NA is a missing answer.
bfi <- to_r(icqf$datasets$load_bfi()$answers)
reversed <- c("A1", "C4", "C5", "E1", "E2", "O2", "O5")
bfi[reversed] <- 7 - bfi[reversed]

# How many factors? Whole numbers are written with an L.
search <- icqf$ICQFCV(
  icqf$ICQF(item_range = tuple(1, 6)),
  n_components = 3:7, betas = c(0, 0.01, 0.1), n_splits = 5L, random_state = 0L
)
invisible(search$fit(to_python(bfi)))
print(search$choice_)

# What are they? Loadings are points on the answer scale.
model <- search$best_estimator_
print(round(head(to_r(model$loadings_)), 2))

# Who has them? Scores lie between 0 and 1, and nobody is left out for a missing answer.
invisible(model$set_output(transform = "pandas"))
scores <- to_r(model$transform(to_python(bfi)))
print(round(summary(scores$factor1), 2))
cat(sum(is.na(bfi)), "answers were missing,", sum(is.na(scores)), "scores are\n")
