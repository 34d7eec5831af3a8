"""transforms.v2: transforms of whole samples, in which images, videos, masks, boxes and points change together.

A sample is any nest of lists, tuples and dicts; `vision.tv_tensors` has the classes that say what a tensor is.
"""

from mortice.vision.transforms.autoaugment import AutoAugmentPolicy
from mortice.vision.transforms.functional import InterpolationMode
from mortice.vision.transforms.v2 import functional
from mortice.vision.transforms.v2._augment import JPEG, CutMix, MixUp, RandomErasing
from mortice.vision.transforms.v2._auto_augment import AugMix, AutoAugment, RandAugment, TrivialAugmentWide
from mortice.vision.transforms.v2._color import (
    RGB,
    ColorJitter,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomChannelPermutation,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from mortice.vision.transforms.v2._container import Compose, RandomApply, RandomChoice, RandomOrder
from mortice.vision.transforms.v2._geometry import (
    CenterCrop,
    ElasticTransform,
    FiveCrop,
    Pad,
    RandomAffine,
    RandomCrop,
    RandomHorizontalFlip,
    RandomIoUCrop,
    RandomPerspective,
    RandomResize,
    RandomResizedCrop,
    RandomRotation,
    RandomShortestSize,
    RandomVerticalFlip,
    RandomZoomOut,
    Resize,
    ScaleJitter,
    TenCrop,
)
from mortice.vision.transforms.v2._misc import (
    ClampBoundingBoxes,
    ClampKeyPoints,
    ConvertBoundingBoxFormat,
    ConvertImageDtype,
    GaussianBlur,
    GaussianNoise,
    Identity,
    Lambda,
    LinearTransformation,
    Normalize,
    PILToTensor,
    SanitizeBoundingBoxes,
    SanitizeKeyPoints,
    SetClampingMode,
    ToDtype,
    ToImage,
    ToPILImage,
    ToPureTensor,
    ToTensor,
    UniformTemporalSubsample,
)
from mortice.vision.transforms.v2._transform import Transform
from mortice.vision.transforms.v2._utils import (
    check_type,
    get_bounding_boxes,
    get_keypoints,
    has_all,
    has_any,
    query_chw,
    query_size,
)
