#' Find the factors behind the answers to a questionnaire
#'
#' The number of factors and the penalty are chosen by cross-validation unless both are given. Every reconstructed answer lies
#' within its item's range, missing answers have no influence, and the same call gives the same result.
#'
#' @param data A data frame or matrix with one row per participant, or the path of a file (CSV, SPSS, Stata, Excel, …). Labelled
#'   columns (haven) and factors keep their order and labels; levels of ids, and of a factor with more than 20, are texts. Row names that are texts become the column `participant`, which serves as ids.
#' @param codebook A data frame with one row per item (`name`, `wording`, `min`, `max`, `direction`, `subscale`, `missing`,
#'   `labels`; only `name` is required), or the path of one. Without it, items are recognised and listed.
#' @param confounds Names of columns to model alongside the factors, such as `c("age", "sex")`.
#' @param n_components Number of factors, or several to compare.
#' @param beta Penalty, or several to compare.
#' @param items Names or patterns of the items.
#' @param reverse Names of items to reverse, or `"auto"` for those that run against the others.
#' @param id Column of participant ids.
#' @param out Folder for the results, to read them in a later session with [icqf_results()]; without it, they are temporary.
#' @param quiet Whether to suppress notes on the data and progress.
#' @param ... Further options of `icqf fit` with underscores, such as `missing_codes = 999`, `weights = "w"`, `rule = "one_se"`,
#'   `seed = 1`, `visit = c(wave = 1)`, `report = FALSE`, or `resume = TRUE` after an interrupted fit. All of them are listed by
#'   `system2(icqf_program(), "fit --help")`.
#' @return An object of class `icqf`: a list of `loadings` (items × factors, in points of the answer scale), `confounds` (items ×
#'   confounds), `scores` (participants × factors), `factors` (one row per factor), `report` (all numbers of the
#'   report), `summary` (text) and `folder` (files: report, model, tables, figures).
#' @examplesIf !is.null(icqf_program(error = FALSE))
#' set.seed(1)
#' mood <- rbinom(200, 1, 0.4) * runif(200)
#' sleep <- rbinom(200, 1, 0.4) * runif(200)
#' answers <- data.frame(sapply(1:8, function(j) rbinom(200, 4, if (j < 5) 0.1 + 0.8 * mood else 0.1 + 0.8 * sleep)))
#' fit <- icqf_fit(answers, n_components = 2, beta = 0.1, report = FALSE, figures = FALSE, quiet = TRUE)
#' fit
#' icqf_loadings(fit)
#' @export
icqf_fit <- function(data, codebook = NULL, confounds = NULL, n_components = NULL, beta = NULL, items = NULL,
                     reverse = NULL, id = NULL, out = NULL, quiet = FALSE, ...) {
  folder <- tempfile("icqf-")
  dir.create(folder)
  results <- if (is.null(out)) file.path(folder, "results") else path.expand(out)
  arguments <- c(
    "fit",
    as_arguments(
      codebook = if (!is.null(codebook)) as_file(codebook, folder, "codebook"), id = id, confounds = confounds, items = items, reverse = reverse,
      n_components = n_components, beta = beta, ..., out = results
    ),
    "--", as_file(data, folder, id = id)
  )
  text <- run_icqf(arguments, quiet = quiet)
  fitted <- read_results(results, text)
  fitted$data <- data
  fitted$call <- match.call()
  fitted
}

#' Results of an earlier analysis
#'
#' @param folder A folder that `icqf_fit()`, the command `icqf fit` or the app wrote.
#' @return An object of class `icqf`; see [icqf_fit()].
#' @examples
#' \dontrun{
#' icqf_results("results")
#' }
#' @export
icqf_results <- function(folder) {
  if (!file.exists(file.path(folder, "model.icqf"))) {
    refuse(folder, " holds no results of icqf: model.icqf is missing.")
  }
  read_results(folder, run_icqf(c("show", normalizePath(folder))))
}

read_results <- function(folder, text) {
  here <- function(name) file.path(folder, name)
  table <- function(name) {
    read <- read_keyed(here(name))
    rownames(read) <- read[[1]]
    read[-1]
  }
  report <- if (file.exists(here("report.json"))) jsonlite::fromJSON(here("report.json"), simplifyDataFrame = TRUE)
  structure(
    list(
      loadings = table("loadings.csv"), confounds = if (file.exists(here("confound_loadings.csv"))) table("confound_loadings.csv"),
      scores = read_keyed(here("scores.csv")), factors = if (file.exists(here("factors.csv"))) read_keyed(here("factors.csv")),
      report = report, summary = text, folder = normalizePath(folder)
    ),
    class = "icqf"
  )
}

#' Look for problems before a fit
#'
#' Suspicious codes, items that look reversed, duplicates, missing confounds and more, each with what to do about it.
#'
#' @inheritParams icqf_fit
#' @return A data frame with one row per finding: `severity`, `finding` (what was found and what to do about it), the first `item` and `row`
#'   concerned, and all of it as attribute `json`. Settings that a finding names are arguments of `icqf_fit()`.
#' @examplesIf !is.null(icqf_program(error = FALSE))
#' icqf_check(data.frame(q1 = c(0:3, 99, 1), q2 = c(1:3, 0:2), q3 = c(3:1, 2:0)))
#' @export
icqf_check <- function(data, codebook = NULL, confounds = NULL, items = NULL, reverse = NULL, id = NULL, ...) {
  folder <- tempfile("icqf-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  arguments <- c(
    "check", "--json",
    as_arguments(
      codebook = if (!is.null(codebook)) as_file(codebook, folder, "codebook"), id = id, confounds = confounds, items = items,
      reverse = reverse, ...
    ),
    "--", as_file(data, folder, id = id)
  )
  found <- jsonlite::fromJSON(by_argument(run_icqf(arguments, quiet = TRUE, allowed = 0:1), arguments), simplifyVector = FALSE)
  text <- function(finding, name) if (is.null(finding[[name]])) "" else paste(unlist(finding[[name]]), collapse = " ")
  columns <- lapply(c(severity = "severity", finding = "sentence", item = "item", row = "row"), function(name) {
    vapply(found$findings, text, "", name = name)
  })
  structure(as.data.frame(columns), json = found, class = c("icqf_check", "data.frame"))
}

#' @export
print.icqf_check <- function(x, ...) {
  titles <- c(error = "Must be fixed", warning = "Worth a look", note = "For your information")
  for (severity in intersect(names(titles), x$severity)) {
    cat(titles[[severity]], ":\n", sep = "")
    for (finding in x$finding[x$severity == severity]) cat(strwrap(finding, initial = "  - ", prefix = "    "), sep = "\n")
    cat("\n")
  }
  if (!nrow(x)) cat("Nothing was found.\n")
  invisible(x)
}

#' Score participants
#'
#' Each participant is scored separately, with the loadings fixed; ranges, directions and missing codes are those of the fit.
#'
#' @param fit What `icqf_fit()` returned, or the path of a model file.
#' @param data New answers, as for [icqf_fit()]. Without it, those of the fit are scored.
#' @param id Column of participant ids.
#' @param intervals Whether to add intervals and information.
#' @param ... Further options of `icqf score` with underscores, such as `norms = "norms.json"` or `visit_column = "time"`.
#' @return A table with one row per participant. Each factor has its score, and with `intervals` `_low`, `_high` and `_information`.
#' @examples
#' \dontrun{
#' icqf_score(fit, new_answers)
#' }
#' @export
icqf_score <- function(fit, data = NULL, id = NULL, intervals = TRUE, ...) {
  model <- if (is.character(fit) && length(fit) == 1) normalizePath(fit, mustWork = FALSE) else folder_of(fit)
  if (is.null(data)) data <- if (inherits(fit, "icqf")) fit$data
  if (is.null(data)) refuse("Give the answers to score as data: a fit that was read from files does not hold them.")
  ids <- if (is.null(id) && inherits(fit, "icqf")) setdiff(names(fit$scores), names(fit$loadings)) else id
  folder <- tempfile("icqf-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  arguments <- c("score", as_arguments(id = id, intervals = intervals, ...), "--", model, as_file(data, folder, id = ids))
  as_given(read_keyed(text = run_icqf(arguments)), data)
}
