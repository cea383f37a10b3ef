"""Draw the picture of the README: weights with intervals, views, and the submodel path.

    python docs/make_picture.py

Needs matplotlib (the `report` extra), which brings Pillow. Writes docs/images/readme.png.
"""

import io
from pathlib import Path

from PIL import Image

from baldur import BaldurClassifier
from baldur.datasets import make_multiview
from baldur.plots import ForestDisplay, PathDisplay, ViewShareDisplay

sim = make_multiview(
    n=700,
    dims={"clinical": 20, "genes": 2000},
    informative={"clinical": 3, "genes": 5},
    random_state=0,
)
model = BaldurClassifier().fit(sim.data[:300], sim.target[:300])

displays = [
    ForestDisplay.from_estimator(model),
    ViewShareDisplay.from_estimator(model),
    PathDisplay.from_estimator(model),
]
pictures = [Image.open(io.BytesIO(one.plot(width=4.2).png(dpi=100))) for one in displays]
joined = Image.new(
    "RGB", (sum(one.width for one in pictures), max(one.height for one in pictures)), "white"
)
left = 0
for one in pictures:
    joined.paste(one, (left, (joined.height - one.height) // 2))
    left += one.width
target = Path(__file__).parent / "images" / "readme.png"
joined.save(target, optimize=True)
print(f"wrote {target}")
