// Score people with a printed BALDUR model, in a page or by: node score.js card.json people.json
// A person is {view: {feature: number}}; what is left out is absent (a view) or at its mean.
"use strict";
const dot = (a, b) => a.reduce((sum, v, i) => sum + v * b[i], 0);
const quadratic = (S, x) => dot(S.map((row) => dot(row, x)), x);
function cell(f, v) { // the standardised value of one feature, 0 where it is missing
  if (v === null || v === undefined || Number.isNaN(v)) return 0;
  if (f.knots) {
    const k = f.knots, s = f.scores, j = k.findIndex((knot) => knot > v);
    if (j <= 0) return s[j === 0 ? 0 : s.length - 1] * f.factor;
    return (s[j - 1] + (v - k[j - 1]) / (k[j] - k[j - 1]) * (s[j] - s[j - 1])) * f.factor;
  }
  return ((f.lower === null ? v : Math.min(Math.max(v, f.lower), f.upper)) - f.mean) * f.factor;
}
function phi(z) { // the normal distribution function, by a series whose terms have one sign
  if (Math.abs(z) > 9) return z > 0 ? 1 : 0;
  let term = z, sum = z;
  for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= z * z / k;
  return 0.5 + sum * Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
}
function rate(rules, mean, variance) { // the mean of 1/(1 + exp(-eta)) for a Gaussian eta
  const s = Math.sqrt(variance), r = rules.find((one) => one.up_to === null || s <= one.up_to);
  if (r.up_to !== null) return dot(r.weights, r.nodes.map((x) => 1 / (1 + Math.exp(-mean - s * x))));
  return Math.min(Math.max(dot(r.weights, r.nodes.map((x) => phi((mean - x) / s))), 0), 1);
}
function moments(model, person) { // of every output: [weight, mean, variance] of every member
  const absent = model.views.map((v) => Number(person[v] === null || person[v] === undefined));
  const L = model.loadings, x = [1, ...model.features.map((f) => cell(f, (person[f.view] || {})[f.name]))];
  return model.members.map((q) => {
    let mean = q.mean.map((w) => dot(w, x));
    let variance = q.cov.map((S, k) =>
      Math.max(quadratic(S, x), 0) + dot(absent, q.lacking.map((row) => row[k])));
    if (L) {
      variance = L.V.map((row, c) => L.b_var[c] + dot(row.map((v) => v * v), variance)
        + quadratic(L.V_cov[c], mean) + dot(L.V_cov[c].map((r, k) => r[k]), variance));
      mean = L.V.map((row, c) => L.b[c] + dot(row, mean));
    }
    return [q.weight, mean, variance.map((v, c) => Math.max(v + model.noise[c], 1e-12))];
  });
}
function predict(model, person) { // class probabilities, or [mean, s.d.] of each outcome
  const members = moments(model, person);
  const over = (f) => members[0][1].map((_, c) =>
    members.reduce((sum, [w, m, v]) => sum + w[c] * f(m[c], v[c], c), 0));
  if (model.task === "regression") {
    const m = over((mean) => mean), s2 = over((mean, v, c) => v + (mean - m[c]) ** 2);
    return m.map((mean, c) => [mean * model.spread[c] + model.center[c],
      Math.hypot(Math.sqrt(s2[c]) * model.spread[c], model.noise_std[c])]);
  }
  let p = over((mean, v) => rate(model.rules, mean, v));
  if (model.task === "multiclass") p = p.map((v, _, all) => Math.max(v, 1e-12)
    / all.reduce((sum, one) => sum + Math.max(one, 1e-12), 0));
  return model.task === "binary" ? [1 - p[0], p[0]] : p;
}
if (typeof module !== "undefined") module.exports = { predict };
if (typeof require !== "undefined" && require.main === module) {
  const [card, people] = process.argv.slice(2).map((f) => JSON.parse(require("fs").readFileSync(f)));
  console.log(JSON.stringify(people.map((person) => predict(card.model, person))));
}
