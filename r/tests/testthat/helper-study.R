# Tests run the real program. Without it they fail, rather than pass by being skipped; where it is not to be expected (a package
# repository's own checks), NOT_CRAN is unset and they are skipped.
needs_program <- function() {
  testthat::skip_on_cran()
  icqf_program()
}

# Two factors of four items each, with ids, sex as factor and labelled answers.
study <- function(n = 150) {
  set.seed(7)
  mood <- rbinom(n, 1, 0.6) * runif(n)
  sleep <- rbinom(n, 1, 0.6) * runif(n)
  labels <- c(never = 0, sometimes = 1, often = 2, always = 3)
  items <- lapply(1:8, function(j) {
    answer <- rbinom(n, 3, 0.05 + 0.9 * (if (j <= 4) mood else sleep))
    haven::labelled(as.numeric(answer), labels, label = paste("Question", j))
  })
  names(items) <- paste0("q", 1:8)
  data.frame(pid = sprintf("P%03d", 1:n), sex = factor(rep(c("female", "male"), length.out = n)), items)
}

quick <- function(...) icqf_fit(..., id = "pid", n_components = 2, beta = 0.1, figures = FALSE, bootstrap = 10, quiet = TRUE)

# The fit that most tests look at, made once.
the_fit <- local({
  kept <- NULL
  function() {
    if (is.null(kept)) kept <<- quick(study())
    kept
  }
})
