"""transforms.v2.functional: what can be done to images, videos, masks, boxes and points once its parameters are known.

Each function serves what its input says it is; the functions with the name of a kind at the end are for plain tensors.
"""

from typing import Any

from mortice.notice import warn
from mortice.vision.transforms import functional as _F
from mortice.vision.transforms.functional import InterpolationMode, pil_to_tensor, to_pil_image
from mortice.vision.transforms.v2.functional import _boxes, _points
from mortice.vision.transforms.v2.functional._boxes import (
    affine_bounding_boxes,
    center_crop_bounding_boxes,
    clamp_bounding_boxes,
    convert_bounding_box_format,
    crop_bounding_boxes,
    elastic_bounding_boxes,
    get_size_bounding_boxes,
    horizontal_flip_bounding_boxes,
    pad_bounding_boxes,
    perspective_bounding_boxes,
    resize_bounding_boxes,
    resized_crop_bounding_boxes,
    rotate_bounding_boxes,
    sanitize_bounding_boxes,
    vertical_flip_bounding_boxes,
)
from mortice.vision.transforms.v2.functional._images import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    adjust_sharpness,
    affine,
    affine_mask,
    autocontrast,
    center_crop,
    convert_image_dtype,
    crop,
    elastic,
    elastic_mask,
    equalize,
    erase,
    five_crop,
    gaussian_blur,
    gaussian_noise,
    get_dimensions,
    get_num_channels,
    get_num_frames,
    get_size,
    grayscale_to_rgb,
    horizontal_flip,
    invert,
    jpeg,
    normalize,
    pad,
    pad_mask,
    permute_channels,
    perspective,
    perspective_mask,
    posterize,
    resize,
    resize_mask,
    resized_crop,
    resized_crop_mask,
    rgb_to_grayscale,
    rotate,
    rotate_mask,
    solarize,
    ten_crop,
    to_dtype,
    to_image,
    uniform_temporal_subsample,
    vertical_flip,
)
from mortice.vision.transforms.v2.functional._kernels import is_pure_tensor, register_kernel
from mortice.vision.transforms.v2.functional._points import (
    affine_keypoints,
    center_crop_keypoints,
    clamp_keypoints,
    crop_keypoints,
    elastic_keypoints,
    get_size_keypoints,
    horizontal_flip_keypoints,
    pad_keypoints,
    perspective_keypoints,
    resize_keypoints,
    resized_crop_keypoints,
    rotate_keypoints,
    sanitize_keypoints,
    vertical_flip_keypoints,
)

hflip, vflip, elastic_transform, to_grayscale = horizontal_flip, vertical_flip, elastic, rgb_to_grayscale
get_image_num_channels = get_num_channels

# The kernels of images, which serve videos, and masks where those need nothing of their own.
adjust_brightness_image = adjust_brightness_video = adjust_brightness.image
adjust_contrast_image = adjust_contrast_video = adjust_contrast.image
adjust_gamma_image = adjust_gamma_video = adjust_gamma.image
adjust_hue_image = adjust_hue_video = adjust_hue.image
adjust_saturation_image = adjust_saturation_video = adjust_saturation.image
adjust_sharpness_image = adjust_sharpness_video = adjust_sharpness.image
affine_image = affine_video = affine.image
autocontrast_image = autocontrast_video = autocontrast.image
center_crop_image = center_crop_video = center_crop_mask = center_crop.image
crop_image = crop_video = crop_mask = crop.image
elastic_image = elastic_video = elastic.image
equalize_image = equalize_video = equalize.image
erase_image = erase_video = erase.image
five_crop_image = five_crop_video = five_crop.image
gaussian_blur_image = gaussian_blur_video = gaussian_blur.image
gaussian_noise_image = gaussian_noise_video = gaussian_noise.image
get_dimensions_image = get_dimensions_video = get_dimensions.image
get_num_channels_image = get_num_channels_video = get_num_channels.image
get_num_frames_video = get_num_frames.image
get_size_image = get_size_video = get_size_mask = get_size.image
grayscale_to_rgb_image = grayscale_to_rgb.image
horizontal_flip_image = horizontal_flip_video = horizontal_flip_mask = horizontal_flip.image
invert_image = invert_video = invert.image
jpeg_image = jpeg_video = jpeg.image
normalize_image = normalize_video = normalize.image
pad_image = pad_video = pad.image
permute_channels_image = permute_channels_video = permute_channels.image
perspective_image = perspective_video = perspective.image
posterize_image = posterize_video = posterize.image
resize_image = resize_video = resize.image
resized_crop_image = resized_crop_video = resized_crop.image
rgb_to_grayscale_image = rgb_to_grayscale.image
rotate_image = rotate_video = rotate.image
solarize_image = solarize_video = solarize.image
ten_crop_image = ten_crop_video = ten_crop.image
to_dtype_image = to_dtype_video = to_dtype.image
uniform_temporal_subsample_video = uniform_temporal_subsample.image
vertical_flip_image = vertical_flip_video = vertical_flip_mask = vertical_flip.image


def to_tensor(inpt: Any) -> Any:
    """Make a float tensor (C, H, W) in [0, 1] of a PIL image or array, as v1 does; `to_image` and `to_dtype` do it here."""
    warn(
        "The function `to_tensor(...)` is deprecated and will be removed in a future release. Instead, please use "
        "`to_image(...)` followed by `to_dtype(..., dtype=torch.float32, scale=True)`."
    )
    return _F.to_tensor(inpt)


def get_image_size(inpt: Any) -> list[int]:
    """Return width and height, in Pillow's order, as v1 does; `get_size` gives height and width."""
    warn(
        "The function `get_image_size(...)` is deprecated and will be removed in a future release. Instead, please use "
        "`get_size(...)` which returns `[h, w]` instead of `[w, h]`."
    )
    return _F.get_image_size(inpt)
