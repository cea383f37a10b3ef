# Score people with a printed BALDUR model; needs R and no package.
#   source("score.R"); model <- dget("card.R"); predict_baldur(model, list(view = list(feature = 1.5)))
# What is NULL, NA or left out is missing: a feature is replaced by its training mean, and a missing
# view adds to the variance. Where sites are harmonised or covariates regressed out, the list
# samples = list(site = "text", age = 61) holds them beside the views.
# As a program:  Rscript score.R card.R people.R
standardised <- function(f, value) { # the standardised value of one feature, 0 where it is missing
  if (unknown(value)) return(0)
  if (!is.null(f$knots)) {
    return(approx(f$knots, f$scores, value, rule = 2, ties = "ordered")$y * f$factor)
  }
  if (!is.null(f$lower)) value <- min(max(value, f$lower), f$upper)
  (value - f$mean) * f$factor
}

unknown <- function(value) is.null(value) || is.na(value)

as_text <- function(value) trimws(format(value, digits = 15, scientific = FALSE))

covariates <- function(columns, about) { # standardised, at the training mean where unknown
  vapply(columns, function(c) {
    v <- about[[c$name]]
    if (!unknown(v) && !is.null(c$levels)) {
      v <- if (as_text(v) %in% unlist(c$levels)) as.numeric(as_text(v) == c$level) else NULL
    }
    ((if (unknown(v)) c$fill else as.numeric(v)) - c$mean) / c$scale
  }, numeric(1))
}

features <- function(model, person) { # aligned between sites, standardised, less covariates
  about <- person[["samples"]]
  site <- if (is.null(model$sites)) NULL else about[[model$sites$by]]
  at <- if (unknown(site)) NA else match(as_text(site), unlist(model$sites$names))
  keep <- covariates(model$sites$keep, about)
  design <- c(1, covariates(model$covariates, about))
  vapply(model$features, function(f) {
    v <- person[[f$view]][[f$name]]
    if (unknown(v)) return(0)
    s <- f$sites
    if (!is.null(s) && !is.na(at) && (is.null(s$held) || v != s$held)) {
      level <- s$level + sum(keep * as.numeric(unlist(s$coef)))
      v <- level + (v - level - s$shift[at]) * s$factor[at]
    }
    standardised(f, v) - sum(design * f$effect)
  }, numeric(1))
}

quadratic <- function(S, x) sum(x * (S %*% x))

moments <- function(model, person) { # of the linear predictor of each output, without noise
  missing_views <- vapply(model$views, function(v) is.null(person[[v]]), logical(1))
  x <- c(1, features(model, person))
  mean <- as.vector(model$mean %*% x)
  variance <- pmax(vapply(model$cov, quadratic, numeric(1), x), 0)
  variance <- variance + as.vector(as.numeric(missing_views) %*% model$missing_variance)
  q <- model$loadings
  if (is.null(q)) return(list(mean = mean, variance = variance))
  spread <- vapply(q$V_cov, function(S) quadratic(S, mean) + sum(diag(S) * variance), numeric(1))
  list(mean = q$b + as.vector(q$V %*% mean),
       variance = q$b_var + as.vector(q$V^2 %*% variance) + spread)
}

predict_baldur <- function(model, person) { # probabilities, or a row (mean, s.d.) per outcome
  eta <- moments(model, person)
  variance <- eta$variance + model$noise_variance
  if (model$task == "regression") {
    return(cbind(eta$mean * model$outcome_std + model$outcome_mean, sqrt(variance) * model$outcome_std))
  }
  # E[1/(1 + exp(-eta))] = sum_i w_i Phi(mean / sqrt(c_i^2 + variance)); a row per output.
  z <- eta$mean / sqrt(outer(variance, model$probit$scales^2, `+`))
  p <- as.vector(pnorm(z) %*% model$probit$weights)
  if (model$task == "multiclass") p <- pmax(p, 1e-12) / sum(pmax(p, 1e-12))
  if (model$task == "binary") c(1 - p, p) else p
}

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) == 2 && sys.nframe() == 0) {
  model <- dget(arguments[1])
  for (person in dget(arguments[2])) cat(format(t(predict_baldur(model, person)), digits = 17), "\n")
}
