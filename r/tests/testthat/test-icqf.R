test_that("a fit gives loadings, scores and the items' wordings, the same each time", {
  needs_program()
  data <- study()
  fit <- quick(transform(data, pid = factor(pid, rev(pid))), confounds = "sex")
  expect_s3_class(fit, "icqf")
  expect_equal(dim(fit$loadings), c(8, 2))
  expect_equal(rownames(fit$confounds), paste0("q", 1:8))
  expect_true(all(c("female", "male") %in% names(fit$confounds)))
  expect_identical(fit$scores$pid, data$pid)
  expect_true(all(fit$scores$factor1 >= 0 & fit$scores$factor1 <= 1))
  expect_true(all(fit$loadings >= 0 & fit$loadings <= 3))
  expect_equal(max.col(as.matrix(fit$loadings)) == max.col(as.matrix(fit$loadings))[1], rep(c(TRUE, FALSE), each = 4))
  expect_equal(icqf_loadings(fit)$wording[1], "Question 1")
  again <- quick(data, confounds = "sex", report = FALSE)
  expect_identical(again$loadings, fit$loadings)
  expect_identical(again$scores, fit$scores)

  long <- icqf_loadings(fit, long = TRUE)
  expect_equal(nrow(long), 16)
  expect_true(all(long$low <= long$loading + 1e-6 & long$loading <= long$high + 1e-6))
  expect_equal(long$loading[long$factor == "factor2"], fit$loadings$factor2)
  expect_output(print(fit), "2 factors behind 8 items")
  expect_equal(summary(fit)$factor, c("factor1", "factor2"))

  named <- icqf_name(fit, factor2 = "Sleep, so to say")
  expect_output(print(named), "2 factors behind 8 items.*\nSleep, so to say: ")
  expect_equal(names(named$loadings), c("factor1", "Sleep, so to say"))
  expect_equal(unname(named$loadings), unname(fit$loadings))
  expect_equal(summary(icqf_results(fit$folder))$factor, c("factor1", "Sleep, so to say"))
})

test_that("factors and labelled answers arrive with their order; plain tables and files do as well", {
  needs_program()
  data <- study()
  numbers <- cbind(data[c("pid", "sex")], lapply(data[-(1:2)], as.numeric))
  ordered_ <- cbind(data[c("pid", "sex")], lapply(data[-(1:2)], haven::as_factor))
  path <- tempfile(fileext = ".csv")
  write.csv(numbers, path, row.names = FALSE)
  labelled <- the_fit()
  expect_equal(quick(path, report = FALSE)$loadings, labelled$loadings)
  expect_equal(quick(numbers, report = FALSE)$loadings, labelled$loadings)
  expect_equal(quick(ordered_, report = FALSE)$loadings, labelled$loadings)
  book <- data.frame(name = paste0("q", 1:8), min = 0, max = 3, wording = "Asked")
  expect_equal(quick(numbers, codebook = book)$report$items$wording, rep("Asked", 8))
  expect_equal(rownames(quick(numbers, codebook = book[1:7, "name", drop = FALSE], report = FALSE)$loadings), paste0("q", 1:7))
  rows <- numbers[-1]
  rownames(rows) <- numbers$pid
  expect_identical(icqf_fit(rows, n_components = 2, beta = 0.1, report = FALSE, figures = FALSE, quiet = TRUE)$scores$participant, numbers$pid)
})

test_that("scores of new participants are those of the fit", {
  needs_program()
  data <- study()
  fit <- the_fit()
  scores <- icqf_score(fit, transform(data[11:20, ], pid = factor(pid)))
  expect_identical(scores$pid, data$pid[11:20])
  expect_equal(scores$factor1, fit$scores$factor1[11:20], tolerance = 0.01)
  expect_true(all(scores$factor1_low <= scores$factor1 & scores$factor1 <= scores$factor1_high))
  expect_equal(names(icqf_score(fit, data[1:3, ], intervals = FALSE))[1:3], c("pid", "factor1", "factor2"))
  skip_if_not_installed("tibble")
  expect_s3_class(icqf_score(file.path(fit$folder, "model.icqf"), tibble::as_tibble(data[1:3, ])), "tbl_df")
})

test_that("the card of a model has what was stated", {
  needs_program()
  fit <- quick(study(), report = FALSE)
  shown <- capture.output(icqf_card(fit, licence = "cc by 4.0", sample = "pupils of two schools"))
  expect_match(paste(shown, collapse = "\n"), "Sample: pupils of two schools.*Licence of this model: CC-BY-4.0")
  file <- tempfile(fileext = ".md")
  icqf_card(fit, file, contact = "")
  expect_match(paste(readLines(file, encoding = "UTF-8"), collapse = "\n"), "^# 2 factors behind.*\\[CC-BY-4.0\\]\\(https")
  expect_error(icqf_card(fit, language = "English"), "language tag")
})

test_that("what went wrong arrives as a condition with the program's sentence, warnings as warnings", {
  needs_program()
  refused <- tryCatch(icqf_fit("not-there.csv", quiet = TRUE), icqf_error = identity)
  expect_s3_class(refused, "icqf_error")
  expect_match(conditionMessage(refused), "not-there.csv: there is no such file", fixed = TRUE)
  expect_no_match(conditionMessage(refused), "Error:")
  turned <- study()
  turned$q1[] <- 3 - as.numeric(turned$q1)
  expect_warning(quick(turned, report = FALSE), "reversed but")
})

test_that("what cannot be handed over is refused in R's terms", {
  refused <- function(call, sentence) expect_error(call, sentence, class = "icqf_error", fixed = TRUE)
  data <- study(5)
  refused(icqf_fit(list(1)), "data is list(1). Give a data frame with one row per participant")
  refused(icqf_fit(""), 'data is "". Give')
  refused(icqf_fit(data, codebook = 3), "codebook is 3. Give a data frame with one row per item")
  refused(icqf_fit(data[0, ]), "data has 0 rows and 10 columns")
  refused(icqf_check(data["q1"]), "data has 5 rows and 1 column")
  refused(icqf_fit(cbind(data, nested = I(as.list(1:5)))), 'Column "nested" of data has several values in a row')
  refused(icqf_fit(stats::setNames(data, c("pid", "sex", "q1", "Q1", names(data)[5:10]))), "`q1` and `Q1`")
  refused(icqf_score(3), "fit is of class numeric")
  refused(icqf_results("nowhere"), "nowhere holds no results of icqf")
  lost <- structure(list(loadings = data.frame(), folder = "no/such/folder"), class = "icqf")
  for (f in list(icqf_name, icqf_report, icqf_card, icqf_score)) refused(f(lost), "no longer in no/such/folder")
})

test_that("what the program refuses is said in R's terms", {
  needs_program()
  refused <- function(sentence, ...) expect_error(icqf_fit(study(20), ..., quiet = TRUE), sentence, class = "icqf_error", fixed = TRUE)
  refused("There is no argument n_split.", n_split = 2)
  refused("data: there is no column 'sexx' to use as a confound. Did you mean 'sex'?", confounds = "sexx")
  refused("There is no argument foo.", foo = FALSE)
})

test_that("names that look like options, patterns or formulas stay what they are, whatever the folder is called", {
  needs_program()
  data <- as.data.frame(lapply(study()[-(1:2)], as.numeric))
  names(data) <- c("--help", "-x", "a,b", "=q\"", "it's", "Gr\u00f6\u00dfe", "x=y", "c*d")
  folder <- file.path(tempfile("My Data "), "-out")
  dir.create(dirname(folder))
  named <- function(...) rownames(icqf_fit(data, n_components = 2, beta = 0.1, report = FALSE, figures = FALSE, quiet = TRUE, ...)$loadings)
  expect_identical(named(out = folder), names(data))
  expect_error(named(out = folder), "add force = TRUE", class = "icqf_error", fixed = TRUE)
  expect_identical(named(items = names(data)[1:4], reverse = "-x"), names(data)[1:4])
})

test_that("check lists findings with severities", {
  needs_program()
  data <- study()
  data$q3[5] <- 99
  found <- icqf_check(data, id = "pid")
  expect_true("error" %in% found$severity)
  expect_match(found$finding[found$severity == "error"][1], "99")
  expect_output(print(found), "Must be fixed")
  expect_match(found$finding[found$severity == "error"][1], "missing_codes = 99", fixed = TRUE)
  expect_true("note" %in% found$severity)
})

test_that("a fit converts to an object of psych", {
  needs_program()
  skip_if_not_installed("psych")
  fit <- the_fit()
  converted <- as_fa(fit)
  expect_equal(diag(psych::fa.congruence(converted, converted)), c(1, 1), ignore_attr = TRUE)
  expect_equal(dim(unclass(converted$loadings)), c(8, 2))
  expect_true(all(converted$communality > 0 & converted$communality < 1))
  pdf(NULL)
  on.exit(dev.off())
  expect_no_error(psych::fa.diagram(converted))
})

test_that("plots have room for bars beside long labels, on small pages as well, and take arguments of graphics", {
  items <- paste0("q", 1:24)
  loadings <- stats::setNames(as.data.frame(diag(6)[rep(1:6, each = 4), ] * 3), c(paste0("factor", 1:5), strrep("Low mood ", 9)))
  rownames(loadings) <- items
  wording <- strrep("How often did you feel so? ", 3)
  report <- list(items = data.frame(name = items, wording, reverse = TRUE, low = 0, high = 3))
  fit <- structure(list(loadings = loadings, report = report, scores = loadings / 3), class = "icqf")
  expect_true(all(icqf_loadings(fit)$reversed))
  for (size in c(4, 7, 12)) {
    pdf(NULL, size, size)
    graphics::par(mfrow = c(2, 3))
    for (type in c("loadings", "heatmap", "scores")) expect_no_warning(plot(fit, type, col = "red", main = ""))
    expect_equal(graphics::par("mfrow"), c(2, 3))
    plot_strongest(fit, "factor1", 8)
    expect_gt(graphics::par("pin")[1], 0.25 * graphics::par("fin")[1])
    expect_gt(diff(graphics::par("usr")[1:2]), 2.9)
    dev.off()
  }
})

test_that("a missing program says how to install it", {
  before <- options(icqf.program = "/no/such/program")
  on.exit(options(before))
  expect_error(icqf_program(), "/no/such/program, which does not exist", class = "icqf_error")
  options(icqf.program = tempdir())
  expect_error(icqf_fit(study(5)), "cannot be started", class = "icqf_error")
})

test_that("the program runs without the libraries that R puts first, and with those that the user named", {
  before <- Sys.getenv("LD_LIBRARY_PATH")
  on.exit(Sys.setenv(LD_LIBRARY_PATH = before))
  Sys.setenv(LD_LIBRARY_PATH = paste(file.path(R.home(), "lib"), "/usr/lib/x86_64-linux-gnu", "/opt/python/lib", sep = ":"))
  expect_equal(outside_r()[["LD_LIBRARY_PATH"]], "/opt/python/lib")
})

test_that("what is not a fit is refused", {
  for (f in list(icqf_loadings, icqf_name, icqf_report, as_fa)) expect_error(f(3), "Give what icqf_fit() or icqf_results() returned", fixed = TRUE)
})

test_that("an installation without a source says what to give", {
  expect_error(icqf_install(), "the folder of a copy of the icqf repository", class = "icqf_error")
  expect_error(icqf_install("x", python = "/no/python"), "/no/python cannot be started", class = "icqf_error")
})
