"""transforms.v2: transforms of whole samples, in which images, videos, masks, boxes and points change together.

A sample is any nest of lists, tuples and dicts; `vision.tv_tensors` has the classes that say what a tensor is.
"""

from mortice.vision.transforms.autoaugment import *
from mortice.vision.transforms.functional import InterpolationMode as InterpolationMode
from mortice.vision.transforms.v2._augment import *
from mortice.vision.transforms.v2._auto_augment import *
from mortice.vision.transforms.v2._color import *
from mortice.vision.transforms.v2._container import *
from mortice.vision.transforms.v2._geometry import *
from mortice.vision.transforms.v2._misc import *
from mortice.vision.transforms.v2._transform import *
from mortice.vision.transforms.v2._utils import *

from . import functional
