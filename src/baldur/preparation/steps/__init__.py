"""Steps of a preparation: what is learned about the columns of views before they are scaled.

In: a `MultiView` of training samples. Out: a fitted step that turns any container of these views
into one with other columns: encoded categories (`categories`), variants that are common and well
called (`variants`, with the alleles matched by `alleles`), voxels that carry signal (`voxels`), and
features aligned between sites (`sites`, `site_effects`, `site_report`, `harmonised_source`).
A new step derives from `step.Step` and is given to ``Preparation(steps=[...])``.
May import: `baldur.views`, `baldur.state`, `baldur.exceptions` and modules of
`baldur.preparation` that are not steps.
"""
