"""One page that answers who, how sure and which measurements, without a network.

========================  ======================================================================
`report_folder`           from a folder of results, or a model folder
`report_result`           from a comparison in memory; also ``result.report(path)``
`report_model`            from a fitted model; also ``model.report(path, X, y)``
========================  ======================================================================

Facts are gathered as plain values (`baldur.report.facts`), the template adds nothing to them. Needs
jinja2 and matplotlib, which are installed with ``pip install 'baldur-multiview[report]'``.
"""

from baldur.report.build import report_folder, report_model, report_result

__all__ = ["report_folder", "report_model", "report_result"]
