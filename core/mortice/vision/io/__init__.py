"""Images from and to files and bytes; torchvision has the functions here and in `io.image`."""

from mortice.vision.io.image import *  # noqa: F403
from mortice.vision.io.image import __all__ as __all__
