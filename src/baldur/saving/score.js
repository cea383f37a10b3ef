// Score people with a printed BALDUR model, in a page or by: node score.js card.json people.json
// A person is {view: {feature: number}}. What is null or left out is missing: a feature is replaced
// by its training mean, and a missing view adds to the variance. Where sites are harmonised or
// covariates regressed out, {samples: {site: text, age: number}} holds them beside the views.
"use strict";
const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);
const quadratic = (S, x) => dot(S.map((row) => dot(row, x)), x);
const unknown = (value) => value === null || value === undefined || Number.isNaN(value);
function standardised(f, value) { // the standardised value of one feature, 0 where it is missing
  if (unknown(value)) return 0;
  if (f.knots) {
    const k = f.knots, s = f.scores, j = k.findIndex((knot) => knot > value);
    if (j <= 0) return s[j === 0 ? 0 : s.length - 1] * f.factor;
    return (s[j - 1] + (value - k[j - 1]) / (k[j] - k[j - 1]) * (s[j] - s[j - 1])) * f.factor;
  }
  const clipped = f.lower === null ? value : Math.min(Math.max(value, f.lower), f.upper);
  return (clipped - f.mean) * f.factor;
}
function covariates(columns, about) { // standardised, at the training mean where unknown
  return columns.map((c) => {
    let v = about[c.name];
    if (!unknown(v) && c.levels) {
      const level = String(v).trim();
      v = c.levels.includes(level) ? Number(level === c.level) : null;
    }
    return ((unknown(v) ? c.fill : v) - c.mean) / c.scale;
  });
}
function features(model, person) { // aligned between sites, standardised, less what covariates explain
  const about = person.samples || {}, sites = model.sites || { names: [], keep: [] };
  const site = unknown(about[sites.by]) ? "" : String(about[sites.by]).trim();
  const at = sites.names.indexOf(site), keep = covariates(sites.keep, about);
  const design = [1, ...covariates(model.covariates, about)];
  return model.features.map((f) => {
    const given = (person[f.view] || {})[f.name], s = f.sites;
    if (unknown(given)) return 0;
    let v = given;
    if (s && at >= 0 && v !== s.held) {
      const level = s.level + dot(keep, s.coef);
      v = level + (v - level - s.shift[at]) * s.factor[at];
    }
    return standardised(f, v) - dot(design, f.effect);
  });
}
function normalCdf(z) { // by a series whose terms have one sign, exact to 1e-15
  if (Math.abs(z) > 9) return z > 0 ? 1 : 0;
  let term = z, sum = z;
  for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= z * z / k;
  return 0.5 + sum * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
}
function expectedSigmoid(probit, mean, variance) { // of 1/(1 + exp(-eta)), eta ~ N(mean, variance)
  return dot(probit.weights, probit.scales.map((c) => normalCdf(mean / Math.sqrt(c * c + variance))));
}
function moments(model, person) { // [mean, variance] of the linear predictors, without noise
  const missing = model.views.map((v) => Number(person[v] === null || person[v] === undefined));
  const x = [1, ...features(model, person)];
  const mean = model.mean.map((w) => dot(w, x)), variance = model.cov.map((S, k) =>
    Math.max(quadratic(S, x), 0) + dot(missing, model.missing_variance.map((row) => row[k])));
  const q = model.loadings;
  if (!q) return [mean, variance];
  return [q.V.map((row, c) => q.b[c] + dot(row, mean)), q.V.map((row, c) => q.b_var[c]
    + quadratic(q.V_cov[c], mean) + dot(row.map((v, k) => v * v + q.V_cov[c][k][k]), variance))];
}
function predict(model, person) { // class probabilities, or [mean, s.d.] of each outcome
  const [mean, variance] = moments(model, person);
  const total = variance.map((v, c) => v + model.noise_variance[c]), unit = model.outcome_std;
  if (model.task === "regression") {
    return mean.map((m, c) => [m * unit[c] + model.outcome_mean[c], Math.sqrt(total[c]) * unit[c]]);
  }
  let p = mean.map((m, c) => expectedSigmoid(model.probit, m, total[c]));
  if (model.task === "multiclass") {
    p = p.map((v) => Math.max(v, 1e-12));
    p = p.map((v, _, all) => v / all.reduce((sum, one) => sum + one, 0));
  }
  return model.task === "binary" ? [1 - p[0], p[0]] : p;
}
if (typeof module !== "undefined") module.exports = { predict, moments, features, expectedSigmoid };
if (typeof require !== "undefined" && require.main === module) {
  const [card, people] = process.argv.slice(2).map((f) => JSON.parse(require("fs").readFileSync(f)));
  console.log(JSON.stringify(people.map((person) => predict(card.model, person))));
}
