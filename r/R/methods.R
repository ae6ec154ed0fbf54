#' Loadings as a table
#'
#' @param fit What [icqf_fit()] returned.
#' @param long Whether to return one row per item and factor.
#' @return Items × factors in points of the answer scale, each with its `wording` and whether it was `reversed`, where there is a report; or,
#'   with `long`, the columns `item`, `wording`, `reversed`, `factor`, `loading`, and the 95 % interval `low`, `high`.
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
    table <- cbind(item = items, wording = wording, reversed = reversed(fit), fit$loadings)
    rownames(table) <- NULL
    return(as_given(table, fit$data))
  }
  factors <- names(fit$loadings)
  table <- data.frame(
    item = rep(items, times = length(factors)), wording = rep(wording, times = length(factors)), reversed = rep(reversed(fit), times = length(factors)),
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

reversed <- function(fit) {
  known <- fit$report$items
  fit_items <- rownames(fit$loadings)
  if (is.null(known)) rep(NA, length(fit_items)) else known$reverse[match(fit_items, known$name)]
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
  folder <- folder_of(fit)
  text <- run_icqf(c("report", as_arguments(names = c(...)), "--", folder))
  named <- read_results(folder, text)
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
  folder <- folder_of(fit)
  if (is.null(file)) {
    file <- file.path(folder, "report.html")
    if (!file.exists(file)) refuse("The fit was made with report = FALSE, so there is no report.")
  } else {
    run_icqf(c("report", as_arguments(save_as = file, force = TRUE), "--", folder))
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
  folder <- folder_of(fit)
  if (!is.null(file) && !dir.exists(dirname(file))) refuse("The folder ", dirname(file), " does not exist, so the card cannot be saved there.")
  if (...length()) run_icqf(c("describe", as_arguments(...), "--", folder))
  card <- run_icqf(c("show", if (!is.null(file)) "--markdown", "--", folder))
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
#' @param type `"loadings"`: the strongest items of every factor; `"heatmap"`: all loadings, as shares of the items' ranges;
#'   `"scores"`: how the scores are distributed.
#' @param top Number of items shown for each factor.
#' @param ... Further arguments of [graphics::barplot()], [graphics::image()] or [graphics::hist()].
#' @return `x`, invisibly.
#' @export
plot.icqf <- function(x, type = c("loadings", "heatmap", "scores"), top = 8, ...) {
  type <- match.arg(type)
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::par(old))
  if (type == "heatmap") {
    plot_heatmap(x, ...)
  } else {
    k <- ncol(x$loadings)
    columns <- min(ceiling(sqrt(k)), max(1, floor(graphics::par("din")[1] / if (type == "scores") 2 else 3)))
    graphics::par(mfrow = c(ceiling(k / columns), columns))
    for (name in names(x$loadings)) if (type == "scores") plot_scores(x, name, ...) else plot_strongest(x, name, top, ...)
  }
  invisible(x)
}

blue <- "#1f6ab0"

plot_scores <- function(x, name, ...) {
  graphics::par(mar = c(4, 4, 2, 1))
  drawn(
    graphics::hist, list(x$scores[[name]], breaks = seq(0, 1, 0.05), col = blue, border = "white", main = name, xlab = "Score", ylab = "Participants"),
    ...
  )
}

plot_strongest <- function(x, name, top, ...) {
  graphics::par(mar = rep(0, 4))
  graphics::plot.new() # with all of the panel, to measure labels
  panel <- graphics::par("fin")
  strongest <- rev(utils::head(order(-x$loadings[[name]]), top))
  above <- min(0.3, panel[2] / 4)
  height <- (panel[2] - 2.5 * above) / length(strongest) # of a bar, in inches
  cex <- min(0.8, height / (1.2 * graphics::par("cin")[2]))
  item <- rownames(x$loadings)[strongest]
  labels <- trimws(paste0(item, ifelse(reversed(x)[strongest] %in% TRUE, " (reversed) ", " "), wordings(x)[strongest]))
  labels <- fitting(labels, 0.6 * panel[1] - 0.2, cex)
  graphics::par(mai = c(1.5 * above, widest(labels, cex), above, 0.15), mgp = c(1.6, 0.5, 0), new = TRUE)
  drawn(
    graphics::barplot,
    list(x$loadings[[name]][strongest], names.arg = labels, horiz = TRUE, las = 1, col = blue, border = NA, xlim = c(0, max(ranges(x))),
         cex.names = cex / graphics::par("cex"), xlab = "Points"),
    ...
  )
  graphics::mtext(fitting(name, 0.9 * panel[1], 1), side = 3, line = 0.3, adj = 0, at = graphics::grconvertX(0.02, "nfc", "user"), cex = 1, font = 2)
}

plot_heatmap <- function(x, ...) {
  graphics::par(mar = rep(0, 4))
  graphics::plot.new() # with all of the panel, to measure labels
  shares <- as.matrix(x$loadings) / ranges(x)
  order_ <- order(max.col(shares, "first"), -apply(shares, 1, max))
  shares <- t(shares[rev(order_), , drop = FALSE])
  size <- graphics::par("fin")
  cex <- min(1, max(0.2, size[2] - 2) / ncol(shares) / graphics::par("cin")[2])
  items <- fitting(colnames(shares), size[1] / 3, cex)
  factors <- fitting(rownames(shares), size[2] / 4, 1)
  graphics::par(mai = c(0.5, widest(items, cex), widest(factors, 1), 0.15), mgp = c(1, 0.3, 0), new = TRUE)
  drawn(
    graphics::image,
    list(seq_len(nrow(shares)), seq_len(ncol(shares)), shares, zlim = c(0, 1), col = grDevices::colorRampPalette(c("#eef1f5", blue))(64),
         axes = FALSE, xlab = "Pale: no loading. Blue: the item's whole range.", ylab = ""),
    ...
  )
  graphics::axis(3, seq_along(factors), factors, las = 2, tick = FALSE)
  graphics::axis(2, seq_along(items), items, las = 1, tick = FALSE, cex.axis = cex, gap.axis = 0)
}

# A plot of base graphics, where the arguments of the user precede ours.
drawn <- function(plot, ours, ...) do.call(plot, utils::modifyList(ours, list(...)))

# The widths of labels in inches, labels shortened to a width, and the margin that labels need.
width_of <- function(labels, cex) graphics::strwidth(labels, "inches", cex = cex / graphics::par("cex"))

fitting <- function(labels, room, cex) {
  share <- room / width_of(labels, cex)
  ifelse(share < 1, paste0(trimws(substr(labels, 1, floor(nchar(labels) * share) - 3)), "..."), labels)
}

widest <- function(labels, cex) max(width_of(labels, cex)) + 0.2

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
  if (is.null(known)) refuse("This needs a fit with a report: icqf_fit(..., report = TRUE).")
  requireNamespace("psych", quietly = TRUE) # which knows how to print it
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
    refuse("fit is of class ", class(fit)[[1]], ". Give what icqf_fit() or icqf_results() returned.")
  }
}

# The folder of a fit, which is temporary unless it was named.
folder_of <- function(fit) {
  must_be_fitted(fit)
  if (!dir.exists(fit$folder)) {
    refuse("The files of this fit are no longer in ", fit$folder, ". Repeat the fit with a folder of yours as out, and later read it with icqf_results().")
  }
  fit$folder
}
