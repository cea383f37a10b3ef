"""The added value of a view: what is gained by adding it to views that one has anyway.

In: held-out predictions of one model that was fitted on several sets of views, and who has which
view. Out: an `AddedValue` with a table of paired differences, a table of reclassification,
sentences and a figure.

- `comparisons` lists the pairs of view sets that answer a question, and the people of each.
- `differences` has the paired differences of every metric with intervals, `reclassification` who
  moves across a threshold, and `detectable` the increase that a study of this size could detect.
- `study` puts them together: from a `NestedResult`, or from data in one call (`added_value`).
"""
