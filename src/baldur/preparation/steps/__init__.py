"""Steps of a preparation: what is learned about the columns of views before they are scaled.

In: a `MultiView` of training samples. Out: a fitted step that turns any container of these views
into one with other columns.

- `step`: the base classes `Step` and `ColumnFilter`.
- `categories`: encoded levels of categories.
- `variants`: variants that are common and well called; `alleles`: which allele is counted.
- `voxels`: voxels that carry signal.
- `sites`: features aligned between sites, with `site_effects`, `harmonised_source`, `site_report`.

A new step derives from `step.Step` and is given to ``Preparation(steps=[...])``.
May import: `baldur.views`, `baldur.state`, `baldur.exceptions` and modules of
`baldur.preparation` that are not steps.
"""
