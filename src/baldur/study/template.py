"""The commented study file that ``baldur init`` writes."""

TEMPLATE = """\
# A study: which samples, what to predict, from which views, with which models.
# Run it with:   baldur evaluate study.toml
# Paths are relative to this file. Lines that begin with # are options at their default.

title = "My study"
seed = 0                      # one seed gives one result, whatever --jobs
output = "results"            # folder for table, predictions, selection and log
# align = "intersection"      # samples in every view; "union": in at least one

[samples]
file = "samples.csv"          # one row per sample: id, outcome, covariates, groups
# separator = ";"             # also decimal = ",", encoding = "cp1252", sheet, missing = ["-9"]
id = "sample"                 # column with the ids that the views use too
# group = "family"            # rows of a group are never split between training and test
# site = "site"               # for scheme = "leave-one-site-out"
# split = "split"             # "train" or "test", for scheme = "fixed"

[outcome]
column = "diagnosis"
# task = "classification"     # or "regression"
# positive = "patient"        # positive class; default the last in sorted order

# [covariates]
# regress_out = ["age"]       # taken out of every view, learned on training rows
# include = ["sex"]           # become a view called "covariates"
# categorical = []            # those that are categories although written as numbers

# [preparation]
# scale = "clipped"           # or "standard", "rank": how every model scales columns

# [harmonise]                 # align location and scale between sites, learned on training rows
# by = "site"                 # column of sites or scanners; default samples.site
# keep = ["age", "sex"]       # columns whose effect is preserved; never the outcome
# views = ["genes"]           # default all but genotypes and included covariates
# estimates = "shrunk"        # or "plain": nothing of the site is left in training means
# new_sites = "pooled"        # unseen sites as they are; "own": by their own predictors

# One section per view. kind: "table" (.csv .tsv .parquet .xlsx .npz), "plink" (.bed), "nifti",
# "mudata" (.h5mu); without it the ending of the file decides. Other keys are options of the
# reader, for example id_column = "sample" or columns = ["a", "b"] for a table.
[views.clinical]
file = "clinical.csv"

[views.genes]
file = "genes.csv"

[folds]
# scheme = "stratified"       # "grouped", "leave-one-site-out", "fixed"; default by the columns
outer = 5
inner = 5
# repeats = 1
# select_by = "auc"           # what the inner folds choose settings by

[report]
# metrics = ["accuracy", "balanced_accuracy", "precision", "recall", "f1", "auc", "log_loss",
#            "brier", "calibration"]
# permutations = 0            # runs with permuted labels, for a permutation test
# subgroups = ["sex", "site"] # columns of the samples table to report by
# thresholds = [0.1, 0.5]     # probabilities from which a person tests positive; default 0.5
#                             # and the prevalence
# sensitivities = [0.9]       # choose a threshold for these; specificities = [0.9] likewise
# learning_curve = [0.4, 0.6, 0.8]  # train on these shares as well
# baseline_views = ["clinical"] # views that one has anyway: what does each other one add?
# prevalence = 0.05           # of cases where the test will be used; default that of the samples

# Models to compare. A name is enough; grid lists the settings to try, settings fixes some.
[[models]]
name = "BALDUR"

[[models]]
name = "LSVM-l1"
grid = { c_ratio = [3.0, 10.0, 30.0] }

[[models]]
name = "RF"
settings = { n_estimators = 300 }
grid = { max_features = ["sqrt", 0.1] }

# Any scikit-learn estimator, on the views side by side ("none" stands for None):
# [[models]]
# name = "LDA"
# estimator = "sklearn.discriminant_analysis.LinearDiscriminantAnalysis"
"""
