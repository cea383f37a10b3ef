"""Install every extra alone in a bare environment of its own, and try what it is for.

The extra of Gaussian processes is tried with the release of torch that the tests pin, and with
Python 3.11 only; so is `all`. ``extras.py report onnx`` tries the named extras.
"""

import sys

from environments import TORCH, environment, find_python, say, the_wheel

EXTRAS = ("genetics", "imaging", "mudata", "tables", "dask", "report", "onnx", "torch")
PYTHON = "3.11"


def main() -> None:
    """Try the extras named on the command line, or all of them."""
    wheel = the_wheel()
    python = find_python(PYTHON)
    if python is None:
        sys.exit(f"Python {PYTHON} is not here; the extras are tried with it.")
    for extra in sys.argv[1:] or [*EXTRAS, "all"]:
        say(f"== {extra}")
        with environment(python) as here:
            if extra in ("torch", "all"):
                here.install(TORCH)
            here.install(f"{wheel}[{extra}]")
            here.call(here.python, "-m", "pip", "check")
            here.try_script("try_extra.py", *(EXTRAS if extra == "all" else [extra]))


if __name__ == "__main__":
    main()
