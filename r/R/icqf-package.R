#' Interpretable factors from questionnaires
#'
#' `icqf_check()` looks for problems in a file, `icqf_fit()` finds its factors, `icqf_name()` names them, `icqf_score()` scores participants, and
#' `icqf_report()` opens the report. `vignette("icqf")` shows them all. The program must be installed once: `icqf_install()`.
#' @keywords internal
"_PACKAGE"
