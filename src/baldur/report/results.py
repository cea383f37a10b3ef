"""The results that a page is about."""

from baldur.evaluation import results
from baldur.evaluation.results import HAS as HAS
from baldur.evaluation.results import read_tables as read_tables

StudyResults = results.Results
