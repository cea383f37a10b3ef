"""The report: one HTML page with predictions, their uncertainty and features, for use offline.

========================  ======================================================================
`report_folder`           from a folder of results or of a validation, or from a model folder
`report_study`            from a study that was just evaluated
`report_result`           from a comparison in memory; also ``result.report(path)``
`report_model`            from a fitted model; also ``model.report(path, X, y)``
========================  ======================================================================

Results and fitted models come in, a page goes out; folders are read where a folder is given. May
import evaluation, saving, plots and study. Needs ``pip install 'baldur-multiview[report]'``.
"""

from baldur.report.build import report_folder, report_model, report_result, report_study

__all__ = ["report_folder", "report_model", "report_result", "report_study"]
