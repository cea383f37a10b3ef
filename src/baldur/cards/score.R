# Score people with a printed BALDUR model; needs R and no package.
#   source("score.R"); model <- dget("card.R"); predict_baldur(model, list(view = list(feature = 1.5)))
# A view that is NULL or left out is absent; a feature that is NA or left out stands at its
# training mean. As a program:  Rscript score.R card.R people.R
cell <- function(f, v) { # the standardised value of one feature, 0 where it is missing
  if (is.null(v) || is.na(v)) return(0)
  if (!is.null(f$knots)) {
    return(approx(f$knots, f$scores, v, rule = 2, ties = "ordered")$y * f$factor)
  }
  if (!is.null(f$lower)) v <- min(max(v, f$lower), f$upper)
  (v - f$mean) * f$factor
}

rate <- function(rules, mean, variance) { # the mean of 1/(1 + exp(-eta)) for a Gaussian eta
  s <- sqrt(variance)
  for (r in rules) if (is.null(r$up_to) || s <= r$up_to) break
  if (!is.null(r$up_to)) return(sum(r$weights * plogis(mean + s * r$nodes)))
  min(max(sum(r$weights * pnorm((mean - r$nodes) / s)), 0), 1)
}

quadratic <- function(S, x) sum(x * (S %*% x))

predict_baldur <- function(model, person) { # probabilities, or a row (mean, s.d.) per outcome
  absent <- as.numeric(sapply(model$views, function(v) is.null(person[[v]])))
  x <- c(1, sapply(model$features, function(f) cell(f, person[[f$view]][[f$name]])))
  if (length(model$features) == 0) x <- 1
  moments <- lapply(model$members, function(member) {
    mean <- as.vector(member$mean %*% x)
    variance <- pmax(sapply(member$cov, quadratic, x), 0) + as.vector(absent %*% member$lacking)
    load <- model$loadings
    if (!is.null(load)) {
      spread <- sapply(load$V_cov, function(S) quadratic(S, mean) + sum(diag(S) * variance))
      variance <- load$b_var + as.vector(load$V^2 %*% variance) + spread
      mean <- load$b + as.vector(load$V %*% mean)
    }
    list(weight = member$weight, mean = mean, variance = pmax(variance + model$noise, 1e-12))
  })
  over <- function(value) Reduce(`+`, lapply(moments, function(q) q$weight * value(q)))
  if (model$task == "regression") {
    middle <- over(function(q) q$mean)
    spread <- over(function(q) q$variance + (q$mean - middle)^2)
    std <- sqrt(spread * model$spread^2 + model$noise_std^2)
    return(cbind(middle * model$spread + model$center, std))
  }
  p <- over(function(q) mapply(rate, mean = q$mean, variance = q$variance,
                               MoreArgs = list(rules = model$rules)))
  if (model$task == "multiclass") p <- pmax(p, 1e-12) / sum(pmax(p, 1e-12))
  if (model$task == "binary") c(1 - p, p) else p
}

arguments <- commandArgs(trailingOnly = TRUE)
if (length(arguments) == 2 && sys.nframe() == 0) {
  model <- dget(arguments[1])
  for (person in dget(arguments[2])) cat(format(t(predict_baldur(model, person)), digits = 17), "\n")
}
