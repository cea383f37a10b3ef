"use strict";
// The calculator. `predict`, `moments` and the other functions of the model come from score.js of the
// model card, so the page computes what predict_proba does. Here are added: inputs, their training
// ranges, an interval, and what each input contributes.
(() => {
  const {data, make, bars} = window.baldurPage;
  const model = data.card.model, ranges = data.card.ranges;
  const place = document.getElementById("calc");
  const form = place.querySelector("form"), result = place.querySelector(".result");
  const inputs = [], boxes = new Map();
  const text = (x) => Number(x.toPrecision(4)).toString().replace("-", "−");

  model.views.forEach((view, v) => {
    const listed = model.features.map((f, i) => [f, i]).filter(([f]) => f.view === view);
    if (!listed.length) return;
    const group = make("fieldset", null, form);
    make("legend", view, group);
    const has = make("label", null, group, {class: "has"});
    const box = make("input", null, has, {type: "checkbox", id: `has-${v}`});
    box.checked = true;
    has.append(" was measured");
    boxes.set(view, box);
    for (const [feature, i] of listed) {
      const holder = make("div", null, group, {class: "input"});
      make("label", feature.name, holder, {for: `input-${i}`});
      const input = make("input", null, holder, {
        type: "number", step: "any", id: `input-${i}`, "aria-describedby": `hint-${i}`,
      });
      const hint = make("p", null, holder, {class: "hint", id: `hint-${i}`});
      inputs.push({feature, input, hint, range: ranges[i]});
    }
  });

  function person() {
    const made = {};
    for (const view of model.views) {
      const box = boxes.get(view);
      made[view] = box && !box.checked ? null : {};
    }
    for (const {feature, input} of inputs) {
      const known = made[feature.view];
      if (known) known[feature.name] = input.value === "" ? null : Number(input.value);
    }
    return made;
  }

  const Z95 = 1.959963984540054; // the normal quantile of a 95 % interval

  // Mean weight of every column (the intercept first) for output c, times its value.
  function terms(who, c) {
    const x = [1, ...features(model, who)];
    const q = model.loadings, unit = model.task === "regression" ? model.outcome_std[c] : 1;
    return x.map((value, j) => {
      const weight = q ? dot(q.V[c], model.mean.map((row) => row[j])) : model.mean[c][j];
      return unit * (value * weight + (j === 0 && q ? q.b[c] : 0));
    });
  }

  // The probability at the ends of a 95 % interval of the linear predictor. Noise is a part of
  // every probability, not uncertainty about it.
  function interval(who, c) {
    const [mean, variance] = moments(model, who).map((values) => values[c]);
    return [-Z95, Z95].map((z) =>
      expectedSigmoid(model.probit, mean + z * Math.sqrt(variance), model.noise_variance[c]));
  }

  function outcome(who) {
    const all = predict(model, who);
    if (model.task === "regression") {
      return {all, lines: all.map(([mean, sd], c) => ({
        name: all.length > 1 ? `Outcome ${c + 1}` : "Prediction", value: text(mean), output: c,
        interval: [mean - Z95 * sd, mean + Z95 * sd].map(text),
        about: "95 % prediction interval",
      }))};
    }
    const percent = (p) => `${(100 * p).toFixed(1)} %`;
    const shown = model.task === "binary" ? [1] : all.map((_, c) => c);
    const lines = shown.map((c) => {
      const line = {name: `Probability of ${model.classes[c]}`, value: percent(all[c]), p: all[c],
        output: model.task === "binary" ? 0 : c};
      // Probabilities of several classes are normalised, for which there is no simple interval.
      if (model.task !== "multiclass") {
        line.interval = interval(who, line.output).map(percent);
        line.about = "95 % posterior interval";
      }
      return line;
    });
    if (model.task === "multiclass") lines.sort((a, b) => b.p - a.p);
    return {all, lines};
  }

  function update() {
    for (const {feature, input, hint, range} of inputs) {
      const box = boxes.get(feature.view), value = Number(input.value);
      input.disabled = !box.checked;
      const known = range ? `${text(range[0])} to ${text(range[1])} in training` : "";
      const outside = input.value !== "" && range && (value < range[0] || value > range[1]);
      hint.textContent = (outside ? "Outside the training range: " : "") + known +
        `, mean ${text(feature.mean)}`;
      hint.classList.toggle("outside", Boolean(outside));
    }
    const who = person(), {all, lines} = outcome(who);
    result.replaceChildren();
    result.dataset.value = JSON.stringify(all);
    lines.slice(0, 12).forEach((line, at) => {
      make("p", line.name, result, {class: "quiet"});
      make("p", line.value, result, {class: at === 0 ? "big" : ""});
      if (line.interval) {
        make("p", `${line.interval[0]} to ${line.interval[1]} (${line.about})`, result);
        if (at === 0) result.dataset.interval = JSON.stringify(line.interval);
      }
    });
    const c = lines[0].output, each = terms(who, c);
    result.dataset.terms = JSON.stringify(each);
    const rows = model.features.map((f, i) => [f.name, each[i + 1]]);
    rows.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const unit = model.task === "regression" ? "units of the outcome" : "log odds";
    bars(result, `What each input adds, in ${unit}, compared with the average person`,
      rows.slice(0, 15));
    const flagged = inputs.filter(({hint}) => hint.classList.contains("outside")).length;
    if (flagged) {
      make("p", `${flagged} outside the training range: the model was not trained on such values.`,
        result, {class: "outside"});
    }
  }

  const buttons = make("div", null, form, {class: "buttons"});
  make("button", "Average person", buttons, {type: "button"}).addEventListener("click", () => {
    for (const {feature, input} of inputs) input.value = Number(feature.mean.toPrecision(6));
    update();
  });
  make("button", "Clear", buttons, {type: "button"}).addEventListener("click", () => {
    for (const {input} of inputs) input.value = "";
    for (const box of boxes.values()) box.checked = true;
    update();
  });
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  place.hidden = false;
  update();
})();
