#' Loadings as a table
#'
#' @param fit What [icqf_fit()] returned.
#' @param long Whether to return one row per item and factor.
#' @return Items × factors in points of the answer scale, with the items' wordings where known; or, with `long`, the columns
#'   `item`, `wording`, `factor`, `loading`, and the 95 % interval `low`, `high` where there is a report.
#' @examples
#' \dontrun{
#' icqf_loadings(fit, long = TRUE)
#' }
#' @export
icqf_loadings <- function(fit, long = FALSE) {
  must_be_fitted(fit)
  items <- rownames(fit$loadings)
  wording <- wordings(fit)
  if (!long) {
    table <- cbind(item = items, wording = wording, fit$loadings)
    rownames(table) <- NULL
    return(as_given(if (any(nzchar(wording))) table else table[-2], fit$data))
  }
  factors <- names(fit$loadings)
  table <- data.frame(
    item = rep(items, times = length(factors)), wording = rep(wording, times = length(factors)),
    factor = rep(factors, each = length(items)), loading = unlist(fit$loadings, use.names = FALSE)
  )
  bounds <- if (!is.null(fit$report)) fit$report$models$factors[[1]]$loadings
  if (length(bounds) == length(factors)) {
    for (side in intersect(c("low", "high"), names(bounds[[1]]))) {
      table[[side]] <- unlist(lapply(bounds, function(each) each[[side]][match(items, each$item)]))
    }
  }
  as_given(table, fit$data)
}

wordings <- function(fit) {
  items <- rownames(fit$loadings)
  known <- fit$report$items
  wording <- if (is.null(known$wording)) rep("", length(items)) else known$wording[match(items, known$name)]
  ifelse(is.na(wording), "", wording)
}

#' Name the factors
#'
#' Nothing is refitted; the names appear in the report, all tables and the model file.
#'
#' @param fit What [icqf_fit()] returned.
#' @param ... Names, in order or as `factor2 = "Worry"`.
#' @return The fit with the names. Its folder is changed, too.
#' @examples
#' \dontrun{
#' fit <- icqf_name(fit, factor1 = "Low mood", factor2 = "Worry")
#' }
#' @export
icqf_name <- function(fit, ...) {
  must_be_fitted(fit)
  run_icqf(c("report", fit$folder, as_arguments(names = c(...)), "--quiet"), quiet = TRUE)
  named <- icqf_results(fit$folder)
  named$data <- fit$data
  named$call <- fit$call
  named
}

#' The report
#'
#' @param fit What [icqf_fit()] returned.
#' @param file Where to save it: `.html`, `.docx`, `.tex`, `.md` or `.txt` (by the ending). Without it, the HTML page of the fit is used.
#' @param open Whether to open it.
#' @return The path of the file, invisibly.
#' @examples
#' \dontrun{
#' icqf_report(fit)
#' icqf_report(fit, "report.docx")
#' }
#' @export
icqf_report <- function(fit, file = NULL, open = interactive()) {
  must_be_fitted(fit)
  if (is.null(file)) {
    file <- file.path(fit$folder, "report.html")
    if (!file.exists(file)) stop("The fit was made with report = FALSE, so there is no report.", call. = FALSE)
  } else {
    run_icqf(c("report", fit$folder, "--save-as", file, "--force", "--quiet"))
  }
  if (open) utils::browseURL(normalizePath(file))
  invisible(file)
}

#' The card of the model
#'
#' Who was studied and how, the factors, what the model must not be used for, and its licence: all from the model file.
#'
#' @param fit What [icqf_fit()] returned.
#' @param file Where to save the card in Markdown. Without it, the card is shown.
#' @param ... What only you know, to be written into the model file: `sample`, `licence`, `citation`, `contact`, `instrument`,
#'   `instrument_version`, `instrument_licence`, `language`; an empty text takes a statement back.
#' @return The card, invisibly.
#' @examples
#' \dontrun{
#' icqf_card(fit, sample = "outpatients of two clinics, 2021", licence = "CC-BY-4.0", language = "en")
#' icqf_card(fit, "MODEL_CARD.md")
#' }
#' @export
icqf_card <- function(fit, file = NULL, ...) {
  if (...length()) run_icqf(c("describe", fit$folder, as_arguments(...)))
  card <- run_icqf(c("show", fit$folder, if (!is.null(file)) "--markdown"))
  if (is.null(file)) cat(card) else writeBin(charToRaw(enc2utf8(card)), file)
  invisible(card)
}

#' @export
print.icqf <- function(x, ...) {
  cat(x$summary)
  invisible(x)
}

#' Summary of a fit
#'
#' @param object What [icqf_fit()] returned.
#' @param ... Not used.
#' @return A data frame with one row per factor: its name, share of variance explained, items, strongest items, and
#'   the probability that another study like this one finds it.
#' @export
summary.icqf <- function(object, ...) {
  factors <- object$factors
  name <- ifelse(is.na(factors$name) | !nzchar(factors$name), factors$factor, factors$name)
  keep <- intersect(c("suggested_name", "variance_explained", "n_items", "top_items", "probability"), names(factors))
  structure(cbind(factor = name, factors[keep]), headline = unlist(object$report$headline), class = c("summary.icqf", "data.frame"))
}

#' @export
print.summary.icqf <- function(x, ...) {
  headline <- attr(x, "headline")
  if (length(headline)) cat(strwrap(headline), "", sep = "\n")
  print(as.data.frame(unclass(x), check.names = FALSE), digits = 2, row.names = FALSE)
  invisible(x)
}

#' Plot a fit
#'
#' @param x What [icqf_fit()] returned.
#' @param type `"loadings"`: the strongest items of every factor; `"heatmap"`: all loadings; `"scores"`: how the scores are distributed.
#' @param top Number of items shown for each factor.
#' @param ... Further arguments of [graphics::barplot()], [graphics::image()] or [graphics::hist()].
#' @return `x`, invisibly.
#' @export
plot.icqf <- function(x, type = c("loadings", "heatmap", "scores"), top = 8, ...) {
  type <- match.arg(type)
  k <- ncol(x$loadings)
  columns <- ceiling(sqrt(k))
  colour <- "#1f6ab0"
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  if (type == "heatmap") {
    shares <- as.matrix(x$loadings) / ranges(x)
    order_ <- order(max.col(shares, "first"), -apply(shares, 1, max))
    graphics::par(mar = c(1, widest(rownames(shares)) , widest(colnames(shares)), 1))
    graphics::image(
      seq_len(k), seq_along(order_), t(shares[rev(order_), , drop = FALSE]), zlim = c(0, 1),
      col = grey_to(colour), axes = FALSE, xlab = "", ylab = "", ...
    )
    graphics::axis(3, seq_len(k), colnames(shares), las = 2, tick = FALSE)
    graphics::axis(2, seq_along(order_), rownames(shares)[rev(order_)], las = 1, tick = FALSE, cex.axis = min(1, 30 / nrow(shares)))
    return(invisible(x))
  }
  graphics::par(mfrow = c(ceiling(k / columns), columns))
  if (type == "scores") {
    graphics::par(mar = c(4, 4, 2, 1))
    for (name in names(x$loadings)) {
      graphics::hist(x$scores[[name]], breaks = seq(0, 1, 0.05), col = colour, border = "white", main = name, xlab = "Score", ylab = "Participants", ...)
    }
    return(invisible(x))
  }
  labels <- ifelse(nzchar(wordings(x)), paste(rownames(x$loadings), wordings(x)), rownames(x$loadings))
  labels <- ifelse(nchar(labels) > 38, paste0(substr(labels, 1, 36), "\u2026"), labels)
  graphics::par(mar = c(4, widest(labels), 2, 1), mgp = c(2, 0.6, 0))
  for (r in seq_len(k)) {
    strongest <- rev(utils::head(order(-x$loadings[[r]]), top))
    graphics::barplot(
      x$loadings[[r]][strongest], names.arg = labels[strongest], horiz = TRUE, las = 1, col = colour, border = NA,
      xlim = c(0, max(ranges(x))), main = names(x$loadings)[r], cex.names = 0.8, xlab = "Points", ...
    )
  }
  invisible(x)
}

# Margin for labels, in lines.
widest <- function(labels, least = 4) min(18, max(least, 0.5 * max(nchar(labels)) + 1))

grey_to <- function(colour) grDevices::colorRampPalette(c("#eef1f5", colour))(64)

# How wide the answer scale of every item is; without a report, the largest loading stands in.
ranges <- function(fit) {
  items <- rownames(fit$loadings)
  known <- fit$report$items
  if (is.null(known)) return(rep(max(fit$loadings), length(items)))
  at <- match(items, known$name)
  known$high[at] - known$low[at]
}

#' A fit as an object of the package psych
#'
#' For `psych::fa.diagram()`, `psych::fa.congruence()`, `psych::fa.sort()` and others. Loadings are standardised: what a
#' score one standard deviation higher adds, in standard deviations of the item. `Phi` holds the correlations of the scores, which are
#' not the factor correlations of a factor analysis.
#'
#' @param fit What [icqf_fit()] returned, with a report.
#' @return A list of the classes `psych` and `fa`.
#' @examples
#' \dontrun{
#' psych::fa.diagram(as_fa(fit))
#' }
#' @export
as_fa <- function(fit) {
  must_be_fitted(fit)
  known <- fit$report$items
  if (is.null(known)) stop("This needs a fit with a report: icqf_fit(..., report = TRUE).", call. = FALSE)
  factors <- names(fit$loadings)
  scores <- fit$scores[factors]
  sd_items <- known$sd[match(rownames(fit$loadings), known$name)]
  standardised <- sweep(as.matrix(fit$loadings), 2, apply(scores, 2, stats::sd, na.rm = TRUE), `*`) / sd_items
  phi <- stats::cor(scores, use = "pairwise.complete.obs")
  communality <- rowSums((standardised %*% phi) * standardised)
  structure(
    list(
      loadings = structure(standardised, class = "loadings"), Phi = phi, Structure = structure(standardised %*% phi, class = "loadings"),
      communality = communality, communalities = communality, uniquenesses = 1 - communality, factors = length(factors),
      n.obs = nrow(scores), scores = as.matrix(scores), rotation = "none", fm = "icqf", fn = "icqf", Call = fit$call
    ),
    class = c("psych", "fa")
  )
}

must_be_fitted <- function(fit) {
  if (!inherits(fit, "icqf")) {
    stop("fit is of class ", class(fit)[[1]], ". Give what icqf_fit() or icqf_results() returned.", call. = FALSE)
  }
}
