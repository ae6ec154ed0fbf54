#' Install or find the program that this package calls
#'
#' The computing is done by the command `icqf`, which needs Python 3.11 or newer. `icqf_install()` creates a
#' virtual environment of its own for it; nothing else on the computer changes, and deleting the folder that
#' it prints removes it. `icqf_program()` says which program is used: the one that the option `icqf.program` or the environment
#' variable `ICQF_PROGRAM` names, else that of `icqf_install()`, or else `icqf` on the search path.
#'
#' @param source What to install: the folder of a copy of the icqf repository, or a wheel, or, once icqf is released,
#'   its name.
#' @param python The Python to use.
#' @param error Whether a missing program is an error.
#' @return The path of the program, invisibly for `icqf_install()`; `NULL` if there is none and `error` is `FALSE`.
#' @examples
#' icqf_program(error = FALSE)
#' \dontrun{
#' icqf_install("~/icqf")
#' }
#' @export
icqf_install <- function(source, python = Sys.which(c("python3", "python"))) {
  if (missing(source)) {
    refuse("Say what to install: the folder of a copy of the icqf repository, or a wheel, as in icqf_install(\"path/to/icqf\").")
  }
  python <- python[nzchar(python)]
  if (!length(python)) {
    refuse("No Python was found. Install Python 3.11 or newer, or name it: icqf_install(source, python = ...).")
  }
  asked <- started(python[[1]], c("-c", "import sys; print('%d.%d' % sys.version_info[:2])"), env = outside_r())
  version <- trimws(asked$stdout)
  if (!grepl("^[0-9.]+$", version)) refuse(python[[1]], " is not a Python. Name another one: icqf_install(source, python = ...).")
  if (numeric_version(version) < "3.11") {
    refuse(python[[1]], " is Python ", version, ", and icqf needs 3.11 or newer. Name another one: icqf_install(source, python = ...).")
  }
  if (file.exists(source)) source <- normalizePath(source)
  folder <- environment_folder()
  dir.create(dirname(folder), recursive = TRUE, showWarnings = FALSE)
  quietly <- function(...) {
    done <- started(..., stderr_to_stdout = TRUE, env = outside_r())
    if (done$status != 0) refuse("The installation failed:\n", done$stdout)
  }
  quietly(python[[1]], c("-m", "venv", folder))
  quietly(program_in(folder, "python"), c("-m", "pip", "install", paste0(source, "[io]")))
  message("icqf is installed in ", folder)
  invisible(program_in(folder))
}

#' @rdname icqf_install
#' @export
icqf_program <- function(error = TRUE) {
  named <- getOption("icqf.program", Sys.getenv("ICQF_PROGRAM"))
  if (nzchar(named) && !file.exists(named)) {
    refuse("The option icqf.program or the variable ICQF_PROGRAM names ", named, ", which does not exist.")
  }
  found <- c(named, program_in(environment_folder()), Sys.which("icqf"))
  found <- found[nzchar(found) & file.exists(found)]
  if (length(found)) return(unname(found[[1]]))
  if (error) refuse("The program icqf was not found. icqf_install() installs it.")
  NULL
}

environment_folder <- function() file.path(tools::R_user_dir("icqf", "data"), "python")

program_in <- function(folder, name = "icqf") {
  if (.Platform$OS.type == "windows") file.path(folder, "Scripts", paste0(name, ".exe")) else file.path(folder, "bin", name)
}

# The environment outside R: R puts its own and the system's libraries first, and a Python from elsewhere would load those of the
# system's Python instead of its own.
outside_r <- function() {
  places <- strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":", fixed = TRUE)[[1]]
  own <- startsWith(places, R.home()) | grepl("^(/usr)?/lib(32|64)?(/|$)", places)
  c("current", LD_LIBRARY_PATH = paste(places[!own], collapse = ":"))
}

refuse <- function(...) stop(structure(class = c("icqf_error", "error", "condition"), list(message = paste0(...), call = NULL)))

# Run a program to its end, whatever its exit status.
started <- function(program, ...) {
  force(program)
  tryCatch(processx::run(program, ..., error_on_status = FALSE), error = function(e) {
    refuse(program, " cannot be started. Is it a program that you may run?")
  })
}

# What the program says, with tables that were handed over as files called by the names of their arguments.
by_argument <- function(text, arguments) {
  paths <- sub("^--codebook=", "", arguments)
  for (file in basename(paths[startsWith(paths, tempdir())])) {
    if (grepl("^(data|codebook)[.](csv|sav)$", file)) text <- gsub(file, tools::file_path_sans_ext(file), text, fixed = TRUE)
  }
  text
}

# Run icqf. An error arrives as a condition of the class icqf_error with the program's own sentence, notes as messages.
run_icqf <- function(arguments, quiet = FALSE, allowed = 0L) {
  notes <- character()
  hear <- function(line, process) {
    line <- by_argument(sub("\r+$", "", line), arguments)
    notes <<- c(notes, line)
    if (!quiet && nzchar(line) && !grepl("^(Error|Warning): ", line)) message(line)
  }
  done <- started(
    icqf_program(), arguments,
    stderr_line_callback = hear, encoding = "UTF-8", cleanup_tree = TRUE,
    env = c(outside_r(), ICQF_CALLER = "R", PYTHONIOENCODING = "utf-8", COLUMNS = as.character(getOption("width")))
  )
  if (!done$status %in% allowed) {
    at <- which(startsWith(notes, "Error: "))
    said <- if (length(at)) sub("^Error: ", "", notes[seq(at[[1]], length(notes))]) else notes
    refuse(paste(said, collapse = "\n"))
  }
  for (line in grep("^Warning: ", notes, value = TRUE)) warning(sub("^Warning: ", "", line), call. = FALSE)
  done$stdout
}
