# Tables go to the program as files, and come back as tables of the kind that was given.

# The path of a table. One with labelled columns or factors is written as SPSS file, which keeps values,
# labels and the order of levels; any other as CSV.
as_file <- function(data, folder, name = "answers") {
  if (is.character(data) && length(data) == 1) return(normalizePath(data, mustWork = FALSE))
  if (is.matrix(data)) data <- as.data.frame(data)
  if (!is.data.frame(data)) {
    stop("data is of class ", class(data)[[1]], ". Give a data frame with one row per participant, or the path of a file.", call. = FALSE)
  }
  if (.row_names_info(data) > 0L) data <- cbind(participant = rownames(data), data)
  labelled <- vapply(data, function(x) is.factor(x) || inherits(x, "haven_labelled"), NA)
  path <- file.path(folder, paste0(name, if (any(labelled)) ".sav" else ".csv"))
  if (any(labelled)) {
    haven::write_sav(as.data.frame(data), path)
  } else {
    utils::write.csv(data, path, row.names = FALSE, na = "", fileEncoding = "UTF-8")
  }
  path
}

# The arguments of a call: NULL is left out, TRUE is a flag, several values follow their option one by one.
as_arguments <- function(...) {
  given <- list(...)
  given <- given[!vapply(given, is.null, NA)]
  words <- lapply(names(given), function(name) {
    value <- given[[name]]
    option <- paste0("--", gsub("_", "-", name))
    if (isTRUE(value)) return(option)
    if (isFALSE(value)) return(paste0("--no-", substring(option, 3)))
    if (!is.null(names(value))) value <- paste0(names(value), "=", value)
    c(option, format_each(value))
  })
  unlist(words)
}

format_each <- function(value) if (is.numeric(value)) vapply(value, format, "", digits = 15, scientific = FALSE) else as.character(value)

as_given <- function(table, data) {
  if (inherits(data, "tbl_df") && requireNamespace("tibble", quietly = TRUE)) tibble::as_tibble(table) else table
}

# A table of items or participants: their names are texts, also where they look like numbers.
read_keyed <- function(path) {
  heading <- names(utils::read.csv(path, check.names = FALSE, nrows = 1, encoding = "UTF-8"))
  utils::read.csv(path, check.names = FALSE, encoding = "UTF-8", colClasses = c("character", rep(NA, length(heading) - 1)))
}
