# Tables go to the program as files, and come back as tables of the kind that was given.

# The path of a table. One with labelled columns or factors is written as SPSS file, which keeps values,
# labels and the order of levels; any other as CSV. Levels of ids, and of a factor with more of them than a scale of answers
# has, are texts.
as_file <- function(data, folder, name = "data", id = NULL) {
  if (is.character(data) && length(data) == 1 && !is.na(data) && nzchar(data)) return(normalizePath(data, mustWork = FALSE))
  if (is.matrix(data)) data <- as.data.frame(data)
  if (!is.data.frame(data)) {
    row <- if (name == "codebook") "item" else "participant"
    refuse(name, " is ", if (length(data) == 1) deparse(data) else paste("of class", class(data)[[1]]),
           ". Give a data frame with one row per ", row, ", or the path of a file.")
  }
  if (!nrow(data) || ncol(data) < if (name == "codebook") 1 else 2) {
    refuse(name, " has ", nrow(data), if (nrow(data) == 1) " row" else " rows", " and ", ncol(data), if (ncol(data) == 1) " column" else " columns",
           if (name == "codebook") ". Give one row per item." else ". Give one row per participant and one column per item.")
  }
  nested <- names(data)[vapply(data, function(x) is.list(x) || length(dim(x)) > 1, NA)]
  if (length(nested)) refuse("Column ", dQuote(nested[[1]], FALSE), " of ", name, " has several values in a row. Leave it out, or split it into columns.")
  if (is.character(attr(data, "row.names")) && !"participant" %in% names(data)) data <- cbind(participant = rownames(data), data)
  data <- as.data.frame(data)
  text <- vapply(data, function(x) is.factor(x) && nlevels(x) > 20, NA) | names(data) %in% id & vapply(data, is.factor, NA)
  data[text] <- lapply(data[text], as.character)
  labelled <- vapply(data, function(x) is.factor(x) || inherits(x, "haven_labelled"), NA)
  path <- file.path(folder, paste0(name, if (any(labelled)) ".sav" else ".csv"))
  if (any(labelled)) {
    tryCatch(haven::write_sav(data, path), error = function(e) {
      refuse("Labels and the order of levels are kept as in SPSS, and ", name, " cannot be written that way. ", conditionMessage(e),
             "\nRename these columns, or turn answers into numbers with as.numeric().")
    })
  } else {
    utils::write.csv(data, path, row.names = FALSE, na = "", fileEncoding = "UTF-8")
  }
  path
}

# The options of a call: NULL is left out, TRUE is a flag, each of several values follows its option.
as_arguments <- function(...) {
  given <- list(...)
  given <- given[!vapply(given, is.null, NA)]
  words <- lapply(names(given), function(name) {
    value <- given[[name]]
    option <- paste0("--", gsub("_", "-", name))
    if (isTRUE(value)) return(option)
    if (isFALSE(value)) return(paste0("--no-", substring(option, 3)))
    if (!is.null(names(value))) value <- ifelse(nzchar(names(value)), paste0(names(value), "=", value), value)
    if (name %in% c("items", "reverse")) value <- gsub(",", "?", value) # a comma would separate names; these are patterns
    paste0(option, "=", path.expand(format_each(value)))
  })
  unlist(words)
}

format_each <- function(value) if (is.numeric(value)) vapply(value, format, "", digits = 15, scientific = FALSE) else as.character(value)

as_given <- function(table, data) {
  if (inherits(data, "tbl_df") && requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(table) else table
}

# A table of items or participants. Their names are texts, also where they look like numbers or "NA"; the apostrophe by
# which a table keeps spreadsheets from reading a text as a formula is none of the text.
read_keyed <- function(...) {
  read <- function(...) utils::read.csv(..., check.names = FALSE, encoding = "UTF-8", na.strings = character())
  table <- read(..., colClasses = c("character", rep(NA, ncol(read(..., nrows = 1)) - 1)))
  as_written <- function(text) sub("^'(?='*[-=+@\t\r])", "", text, perl = TRUE)
  names(table) <- as_written(names(table))
  table[] <- lapply(table, function(x) {
    if (!is.character(x)) x else if (length(x) && all(x %in% c("True", "False"))) x == "True" else as_written(x)
  })
  table
}
