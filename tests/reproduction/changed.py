"""Evidence whose result differs from that of a run."""

from dataclasses import replace


def changed_result(evidence, **attributes):
    """Return the evidence with other attributes of its result."""

    class Changed:
        def __getattr__(self, name):
            return getattr(evidence.result, name)

    result = Changed()
    vars(result).update(attributes)
    return replace(evidence, result=result)
