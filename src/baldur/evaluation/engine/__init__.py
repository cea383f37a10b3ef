"""The engine: run the jobs of a comparison, on this machine or a cluster, and store each result.

In: a `Comparison` (`baldur.evaluation.design`), and where to run and store its jobs.
Out: `JobResults`, the fit of every model on every outer fold, with failures and notes.

A job scores one setting on the inner folds, or fits one model on an outer fold. `tasks` lists the
models and folds, `run` makes their jobs, `gather` makes `job_results` of what they gave, `runners`
and `dask_runner` say where jobs are run, `job` is what a worker does, `store` holds finished
results, `shared_data` gives every worker the same data, and `progress` counts jobs and estimates
the time left.

It may import the design, the models, metrics and `selection`; never results or tables.
"""
