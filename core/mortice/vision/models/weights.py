"""The weights that are published for these models: fetched at the first use, verified, and kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

import mortice as mt
from mortice.utils.fetch import DownloadError, digest, fetch
from mortice.vision.ops import FrozenBatchNorm2d

__all__ = ["get_model_weights", "get_weight"]

BASE = "https://download.pytorch.org/models/"

# model: for IMAGENET1K_V1 and then IMAGENET1K_V2, or as `entry:` says, the file if it has another name than the model,
# and the start of its SHA-256 checksum
PUBLISHED = {
    "alexnet": "alexnet-owt-7be5be79", "convnext_base": "6075fbad", "convnext_large": "ea097f82",
    "convnext_small": "0c510722", "convnext_tiny": "983f1562",
    "deeplabv3_mobilenet_v3_large": "COCO_WITH_VOC_LABELS_V1:fc3c493d",
    "deeplabv3_resnet101": "COCO_WITH_VOC_LABELS_V1:deeplabv3_resnet101_coco-586e9e4e",
    "deeplabv3_resnet50": "COCO_WITH_VOC_LABELS_V1:deeplabv3_resnet50_coco-cd0a2569", "densenet121": "a639ec97",
    "densenet161": "8d451a50", "densenet169": "b2777c0a", "densenet201": "c1103571",
    "efficientnet_b0": "efficientnet_b0_rwightman-7f5810bc",
    "efficientnet_b1": "efficientnet_b1_rwightman-bac287d4 c27df63c",
    "efficientnet_b2": "efficientnet_b2_rwightman-c35c1473", "efficientnet_b3": "efficientnet_b3_rwightman-b3899882",
    "efficientnet_b4": "efficientnet_b4_rwightman-23ab8bcd", "efficientnet_b5": "efficientnet_b5_lukemelas-1a07897c",
    "efficientnet_b6": "efficientnet_b6_lukemelas-24a108a5", "efficientnet_b7": "efficientnet_b7_lukemelas-c5b4e57e",
    "efficientnet_v2_l": "59c71312", "efficientnet_v2_m": "dc08266a", "efficientnet_v2_s": "dd5fe13b",
    "fasterrcnn_mobilenet_v3_large_320_fpn": "COCO_V1:907ea3f9", "fasterrcnn_mobilenet_v3_large_fpn": "COCO_V1:fb6a3cc7",
    "fasterrcnn_resnet50_fpn": "COCO_V1:fasterrcnn_resnet50_fpn_coco-258fb6c6",
    "fasterrcnn_resnet50_fpn_v2": "COCO_V1:fasterrcnn_resnet50_fpn_v2_coco-dd69338a",
    "fcn_resnet101": "COCO_WITH_VOC_LABELS_V1:fcn_resnet101_coco-7ecb50ca",
    "fcn_resnet50": "COCO_WITH_VOC_LABELS_V1:fcn_resnet50_coco-1167a1af",
    "fcos_resnet50_fpn": "COCO_V1:fcos_resnet50_fpn_coco-99b0c9b7", "googlenet": "1378be20",
    "inception_v3": "inception_v3_google-0cc3c7bd",
    "keypointrcnn_resnet50_fpn": "COCO_LEGACY:keypointrcnn_resnet50_fpn_coco-9f466800 "
                                 "COCO_V1:keypointrcnn_resnet50_fpn_coco-fc266e95",
    "lraspp_mobilenet_v3_large": "COCO_WITH_VOC_LABELS_V1:d234d4ea",
    "maskrcnn_resnet50_fpn": "COCO_V1:maskrcnn_resnet50_fpn_coco-bf2d0c1e",
    "maskrcnn_resnet50_fpn_v2": "COCO_V1:maskrcnn_resnet50_fpn_v2_coco-73cbd019",
    "maxvit_t": "bc5ab103", "mc3_18": "KINETICS400_V1:a90a0ba3", "mnasnet0_5": "mnasnet0.5_top1_67.823-3ffadce67e",
    "mnasnet0_75": "7090bc5f", "mnasnet1_0": "mnasnet1.0_top1_73.512-f206786ef8", "mnasnet1_3": "a4c69d6f",
    "mobilenet_v2": "b0353104 7ebf99e0", "mobilenet_v3_large": "8738ca79 5c1a4163", "mobilenet_v3_small": "047dcff4",
    "r2plus1d_18": "KINETICS400_V1:91a641e6", "r3d_18": "KINETICS400_V1:b3b3357e",
    "regnet_x_16gf": "2007eb11 ba3796d7", "regnet_x_1_6gf": "e3633e7f a12f2b72", "regnet_x_32gf": "9d47f8d0 6eb8fdc6",
    "regnet_x_3_2gf": "f342aeae 7071aa85", "regnet_x_400mf": "adf1edd5 62229a5f",
    "regnet_x_800mf": "ad17e45c 94a99ebd", "regnet_x_8gf": "03ceed89 2b70d774", "regnet_y_128gf": "",
    "regnet_y_16gf": "9e6ed7dd 3e4a00f9", "regnet_y_1_6gf": "b11a554e 0d7bc02a", "regnet_y_32gf": "4dee3f7a 8db6d4b5",
    "regnet_y_3_2gf": "b5a9779c 9180c971", "regnet_y_400mf": "c65dace8 e6988f5f",
    "regnet_y_800mf": "1b27b58c 58fc7688", "regnet_y_8gf": "d0d0e4a8 dc2b1b54", "resnet101": "63fe2227 cd907fc2",
    "resnet152": "394f9c45 f82ba261", "resnet18": "f37072fd", "resnet34": "b627a593", "resnet50": "0676ba61 11ad3fa6",
    "resnext101_32x8d": "8ba56ff5 110c445d", "resnext101_64x4d": "173b62eb", "resnext50_32x4d": "7cdf4587 1a0047aa",
    "retinanet_resnet50_fpn": "COCO_V1:retinanet_resnet50_fpn_coco-eeacb38b",
    "retinanet_resnet50_fpn_v2": "COCO_V1:retinanet_resnet50_fpn_v2_coco-5905b1c5",
    "s3d": "KINETICS400_V1:d76dad2f", "shufflenet_v2_x0_5": "shufflenetv2_x0.5-f707e7126e",
    "shufflenet_v2_x1_0": "shufflenetv2_x1-5666bf0f80", "shufflenet_v2_x1_5": "shufflenetv2_x1_5-3c479a10",
    "shufflenet_v2_x2_0": "shufflenetv2_x2_0-8be3c8ee", "squeezenet1_0": "b66bff10", "squeezenet1_1": "b8a52dc0",
    "ssd300_vgg16": "COCO_V1:ssd300_vgg16_coco-b556d3b4",
    "ssdlite320_mobilenet_v3_large": "COCO_V1:ssdlite320_mobilenet_v3_large_coco-a79551df",
    "swin3d_b": "KINETICS400_V1:swin3d_b_1k-24f7c7c6 KINETICS400_IMAGENET22K_V1:swin3d_b_22k-7c6ae6fa",
    "swin3d_s": "KINETICS400_V1:da41c237", "swin3d_t": "KINETICS400_V1:7615ae03", "swin_b": "68c6b09e",
    "swin_s": "5e29d889", "swin_t": "704ceda3", "swin_v2_b": "781e5279", "swin_v2_s": "637d8ceb",
    "swin_v2_t": "b137f0e2", "vgg11": "8a719046", "vgg11_bn": "6002323d", "vgg13": "19584684", "vgg13_bn": "abd245e5",
    "vgg16": "397923af IMAGENET1K_FEATURES:vgg16_features-amdegroot-88682ab5", "vgg16_bn": "6c64b313",
    "vgg19": "dcbb9e9d", "vgg19_bn": "c79401a0", "vit_b_16": "c867db91", "vit_b_32": "d86f8d99", "vit_h_14": "",
    "vit_l_16": "852ce7e3", "vit_l_32": "c7638314", "wide_resnet101_2": "32ee1156 d733dc28",
    "wide_resnet50_2": "95faca4d 9ba9bcbe",
}  # fmt: skip
# The same of IMAGENET1K_SWAG_E2E_V1 and IMAGENET1K_SWAG_LINEAR_V1, whose files are named alike.
_SWAG = {
    "regnet_y_16gf": "43afe44d f3ec0043", "regnet_y_32gf": "04fdfa75 e1583746", "regnet_y_128gf": "c8ce3e52 cbe8ce12",
    "vit_b_16": "9ac1b537 4e70ced5", "vit_h_14": "80465313 c1eb923e", "vit_l_16": "4f3808c9 4d563306",
}  # fmt: skip
_PARAMETERS = {
    "alexnet": 61_100_840, "convnext_base": 88_591_464, "convnext_large": 197_767_336, "convnext_small": 50_223_688,
    "convnext_tiny": 28_589_128, "deeplabv3_mobilenet_v3_large": 11_029_328, "deeplabv3_resnet101": 60_996_202,
    "deeplabv3_resnet50": 42_004_074, "densenet121": 7_978_856, "densenet161": 28_681_000, "densenet169": 14_149_480,
    "densenet201": 20_013_928, "efficientnet_b0": 5_288_548, "efficientnet_b1": 7_794_184,
    "efficientnet_b2": 9_109_994, "efficientnet_b3": 12_233_232, "efficientnet_b4": 19_341_616,
    "efficientnet_b5": 30_389_784, "efficientnet_b6": 43_040_704, "efficientnet_b7": 66_347_960,
    "efficientnet_v2_l": 118_515_272, "efficientnet_v2_m": 54_139_356, "efficientnet_v2_s": 21_458_488,
    "fasterrcnn_mobilenet_v3_large_320_fpn": 19_386_354, "fasterrcnn_mobilenet_v3_large_fpn": 19_386_354,
    "fasterrcnn_resnet50_fpn": 41_755_286, "fasterrcnn_resnet50_fpn_v2": 43_712_278,
    "fcn_resnet101": 54_314_346, "fcn_resnet50": 35_322_218, "fcos_resnet50_fpn": 32_269_600,
    "googlenet": 6_624_904, "inception_v3": 27_161_264, "keypointrcnn_resnet50_fpn": 59_137_258,
    "maskrcnn_resnet50_fpn": 44_401_393, "maskrcnn_resnet50_fpn_v2": 46_359_409, "retinanet_resnet50_fpn": 34_014_999,
    "retinanet_resnet50_fpn_v2": 38_198_935, "ssd300_vgg16": 35_641_826, "ssdlite320_mobilenet_v3_large": 3_440_060,
    "lraspp_mobilenet_v3_large": 3_221_538, "maxvit_t": 30_919_624, "mc3_18": 11_695_440, "mnasnet0_5": 2_218_512,
    "mnasnet0_75": 3_170_208, "mnasnet1_0": 4_383_312, "mnasnet1_3": 6_282_256, "mobilenet_v2": 3_504_872,
    "mobilenet_v3_large": 5_483_032, "mobilenet_v3_small": 2_542_856, "r2plus1d_18": 31_505_325, "r3d_18": 33_371_472,
    "regnet_x_16gf": 54_278_536, "regnet_x_1_6gf": 9_190_136, "regnet_x_32gf": 107_811_560,
    "regnet_x_3_2gf": 15_296_552, "regnet_x_400mf": 5_495_976, "regnet_x_800mf": 7_259_656, "regnet_x_8gf": 39_572_648,
    "regnet_y_128gf": 644_812_894, "regnet_y_16gf": 83_590_140, "regnet_y_1_6gf": 11_202_430,
    "regnet_y_32gf": 145_046_770, "regnet_y_3_2gf": 19_436_338, "regnet_y_400mf": 4_344_144,
    "regnet_y_800mf": 6_432_512, "regnet_y_8gf": 39_381_472, "resnet101": 44_549_160, "resnet152": 60_192_808,
    "resnet18": 11_689_512, "resnet34": 21_797_672, "resnet50": 25_557_032, "resnext101_32x8d": 88_791_336,
    "resnext101_64x4d": 83_455_272, "resnext50_32x4d": 25_028_904, "s3d": 8_320_048, "shufflenet_v2_x0_5": 1_366_792,
    "shufflenet_v2_x1_0": 2_278_604, "shufflenet_v2_x1_5": 3_503_624, "shufflenet_v2_x2_0": 7_393_996,
    "squeezenet1_0": 1_248_424, "squeezenet1_1": 1_235_496, "swin3d_b": 88_048_984, "swin3d_s": 49_816_678,
    "swin3d_t": 28_158_070, "swin_b": 87_768_224, "swin_s": 49_606_258, "swin_t": 28_288_354, "swin_v2_b": 87_930_848,
    "swin_v2_s": 49_737_442, "swin_v2_t": 28_351_570, "vgg11": 132_863_336, "vgg11_bn": 132_868_840,
    "vgg13": 133_047_848, "vgg13_bn": 133_053_736, "vgg16": 138_357_544, "vgg16_bn": 138_365_992, "vgg19": 143_667_240,
    "vgg19_bn": 143_678_248, "vit_b_16": 86_567_656, "vit_b_16.IMAGENET1K_SWAG_E2E_V1": 86_859_496,
    "vit_b_32": 88_224_232, "vit_h_14": 632_045_800, "vit_h_14.IMAGENET1K_SWAG_E2E_V1": 633_470_440,
    "vit_l_16": 304_326_632, "vit_l_16.IMAGENET1K_SWAG_E2E_V1": 305_174_504, "vit_l_32": 306_535_400,
    "wide_resnet101_2": 126_886_696, "wide_resnet50_2": 68_883_240,
}  # fmt: skip
# How images are prepared, for a model or for one entry of it: crop, shorter side to which they are resized before it,
# how, and the mean and deviation of its channels. Without a line here it is 224, and 256 or for the second weights 232.
_PREPARED = {
    "convnext_base": "224 232", "convnext_large": "224 232", "convnext_small": "224 230", "convnext_tiny": "224 236",
    "deeplabv3_mobilenet_v3_large": "None 520", "deeplabv3_resnet101": "None 520", "deeplabv3_resnet50": "None 520",
    "efficientnet_b0": "224 256 bicubic", "efficientnet_b1.IMAGENET1K_V1": "240 256 bicubic",
    "efficientnet_b1.IMAGENET1K_V2": "240 255 bilinear", "efficientnet_b2": "288 288 bicubic",
    "efficientnet_b3": "300 320 bicubic", "efficientnet_b4": "380 384 bicubic", "efficientnet_b5": "456 456 bicubic",
    "efficientnet_b6": "528 528 bicubic", "efficientnet_b7": "600 600 bicubic",
    "efficientnet_v2_l": "480 480 bicubic 0.5", "efficientnet_v2_m": "480 480 bilinear",
    "efficientnet_v2_s": "384 384 bilinear", "fcn_resnet101": "None 520", "fcn_resnet50": "None 520",
    "inception_v3": "299 342", "lraspp_mobilenet_v3_large": "None 520", "maxvit_t": "224 224 bicubic",
    "mc3_18": "(112, 112) (128, 171)", "mnasnet0_75": "224 232", "mnasnet1_3": "224 232",
    "r2plus1d_18": "(112, 112) (128, 171)", "r3d_18": "(112, 112) (128, 171)",
    "regnet_y_128gf.IMAGENET1K_SWAG_E2E_V1": "384 384 bicubic",
    "regnet_y_128gf.IMAGENET1K_SWAG_LINEAR_V1": "224 224 bicubic",
    "regnet_y_16gf.IMAGENET1K_SWAG_E2E_V1": "384 384 bicubic",
    "regnet_y_16gf.IMAGENET1K_SWAG_LINEAR_V1": "224 224 bicubic",
    "regnet_y_32gf.IMAGENET1K_SWAG_E2E_V1": "384 384 bicubic",
    "regnet_y_32gf.IMAGENET1K_SWAG_LINEAR_V1": "224 224 bicubic", "resnext101_64x4d": "224 232",
    "s3d": "(224, 224) (256, 256)", "shufflenet_v2_x1_5": "224 232", "shufflenet_v2_x2_0": "224 232",
    "swin3d_b.KINETICS400_IMAGENET22K_V1": "(224, 224) (256,) (0.485, 0.456, 0.406)",
    "swin3d_b.KINETICS400_V1": "(224, 224) (256,) (0.485, 0.456, 0.406)",
    "swin3d_s": "(224, 224) (256,) (0.485, 0.456, 0.406)", "swin3d_t": "(224, 224) (256,) (0.485, 0.456, 0.406)",
    "swin_b": "224 238 bicubic", "swin_s": "224 246 bicubic", "swin_t": "224 232 bicubic",
    "swin_v2_b": "256 272 bicubic", "swin_v2_s": "256 260 bicubic", "swin_v2_t": "256 260 bicubic",
    "vit_b_16.IMAGENET1K_SWAG_E2E_V1": "384 384 bicubic", "vit_b_16.IMAGENET1K_SWAG_LINEAR_V1": "224 224 bicubic",
    "vit_h_14.IMAGENET1K_SWAG_E2E_V1": "518 518 bicubic", "vit_h_14.IMAGENET1K_SWAG_LINEAR_V1": "224 224 bicubic",
    "vit_l_16.IMAGENET1K_SWAG_E2E_V1": "512 512 bicubic", "vit_l_16.IMAGENET1K_SWAG_LINEAR_V1": "224 224 bicubic",
    "vit_l_16.IMAGENET1K_V1": "224 242",
}  # fmt: skip
# The least size of images where it is not one; 0 for models that take images of one size.
_LEAST = {
    "alexnet": 63, "convnext": 32, "densenet": 29, "efficientnet_v2": 33, "googlenet": 15, "inception": 75,
    "maxvit": 0, "s3d": 224, "squeezenet1_0": 21, "squeezenet1_1": 17, "swin": 0, "vgg": 32, "vit": 0,
}  # fmt: skip
_WORDS = (
    "AlexNet ConvNeXt DenseNet EfficientNet GoogLeNet Inception MaxVit MNASNet MobileNet RegNet ResNet ResNeXt ShuffleNet "
    "SqueezeNet Swin ViT Wide DeepLabV3 R2Plus1D FasterRCNN MaskRCNN KeypointRCNN RetinaNet SSDLite Base Large Small Tiny"
).split()


class Weights(Enum):
    """Base of the enumerations such as `ResNet50_Weights`, whose values are (model, file or its checksum)."""

    @property
    def checksum(self) -> str:
        """The start of the file's SHA-256 checksum."""
        return self.value[1].rpartition("-")[2]

    @property
    def url(self) -> str:
        """Where the file is published."""
        name, file = self.value
        return f"{BASE}{file if '-' in file else f'{name}-{file}'}.pth"

    @property
    def meta(self) -> dict[str, Any]:
        """What is known of them: `categories` names the outputs; `num_params`, and `min_size` of images."""
        from mortice.vision.models.categories import KEYPOINTS, categories

        name = self.value[0]
        known = {"categories": categories(self.name), "num_params": _PARAMETERS.get(f"{name}.{self.name}", _PARAMETERS[name])}
        if _finds_objects(self):
            if name.startswith("keypoint"):
                known |= {"categories": ["no person", "person"], "keypoint_names": KEYPOINTS.split()}
            return known | {"min_size": (1, 1)}
        if self.name.endswith("FEATURES"):
            known["categories"] = None
        least = next((size for start, size in _LEAST.items() if name.startswith(start)), 1)
        least = least or self.transforms.keywords["crop_size"]
        frames = {"min_temporal_size": 14} if name == "s3d" else {}
        return known | {"min_size": (least, least)} | frames

    def get_state_dict(
        self, progress: bool = True, check_hash: bool = True, model_dir: Any = None, map_location: Any = None
    ) -> Any:
        """Return the weights, from the folder where they are kept if they are there; what is fetched is verified."""
        path = os.path.join(model_dir or folder(), os.path.basename(self.url))
        if not os.path.isfile(path):
            try:
                fetch([self.url], path, self._is_in, progress=progress)
            except DownloadError as error:
                raise DownloadError(
                    f"{self}: {error}\n(MORTICE_HOME names another folder). A file of your own is read with "
                    "model.load_state_dict(mortice.load(path))."
                ) from error
        try:
            return mt.load(path, map_location=map_location)
        except Exception as error:
            if self._is_in(path):
                raise
            raise RuntimeError(
                f"{self}: {path} is not the published file: its SHA-256 checksum does not begin with {self.checksum}. "
                "Remove it, and it is fetched anew."
            ) from error

    def _is_in(self, path: str) -> bool:
        return digest(path, "sha256").startswith(self.checksum)

    @property
    def transforms(self) -> Any:
        """The transform of images for which these weights were trained; to be called, if need be with other settings."""
        from mortice.vision.transforms import _presets as presets

        name = self.value[0]
        if _finds_objects(self):
            return presets.ObjectDetection
        if self.name.endswith("FEATURES"):
            return partial(
                presets.ImageClassification, crop_size=224, mean=(0.48235, 0.45882, 0.40784), std=(1.0 / 255.0,) * 3
            )
        if "COCO" in self.name:
            return partial(presets.SemanticSegmentation, resize_size=520)
        if "KINETICS" in self.name:
            sizes = ((224, 224), (256, 256)) if name == "s3d" else ((112, 112), (128, 171))
            return partial(presets.VideoClassification, crop_size=sizes[0], resize_size=sizes[1])
        usual = _PREPARED.get(name, "224 232" if self.name.endswith("_V2") else "224 256")
        crop, resized, *how = _PREPARED.get(f"{name}.{self.name}", usual).split()
        settings: dict[str, Any] = {"crop_size": int(crop), "resize_size": int(resized)}
        if how:
            settings["interpolation"] = presets.InterpolationMode(how[0])
        if how[1:]:
            settings |= dict.fromkeys(("mean", "std"), (float(how[1]),) * 3)
        return partial(presets.ImageClassification, **settings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__


WeightsEnum = Weights  # torchvision's names for the class and for its entries are two; annotations ask for both


def _finds_objects(weights: Weights) -> bool:
    return weights.name in ("COCO_V1", "COCO_LEGACY")


def folder() -> str:
    """Return where weights are kept: `checkpoints` below `hub.get_dir()`."""
    return os.path.join(mt.hub.get_dir(), "checkpoints")


_made: dict[str, Any] = {}


def enumeration(name: str) -> Any:
    """Return the enumeration of a model's weights by its name in small letters or capitals, None if there is none."""
    model = name.lower().removesuffix("_weights")
    if model not in _made:
        if model not in PUBLISHED:
            return None
        entries = {}
        for i, row in enumerate(PUBLISHED[model].split(), 1):
            entry, _, file = row.rpartition(":")
            entries[entry or f"IMAGENET1K_V{i}"] = model, file
        best = [entry for entry in entries if not entry.endswith("FEATURES")][-1:]
        for (kind, mark), checksum in zip((("E2E", ""), ("LINEAR", "_lc")), _SWAG.get(model, "").split()):
            entries[f"IMAGENET1K_SWAG_{kind}_V1"] = model, f"{model}{mark}_swag-{checksum}"
        entries["DEFAULT"] = entries[(best or list(entries))[0]]
        shown = model.upper()
        for word in _WORDS:
            shown = shown.replace(word.upper(), word)
        _made[model] = Weights(f"{shown}_Weights", entries, module="mortice.vision.models")
    return _made[model]


def get_model_weights(name: str | Callable[..., Any]) -> Any:
    """Return the enumeration of the weights that are published for a model, given its name or constructor."""
    found = enumeration(name if isinstance(name, str) else name.__name__)
    if found is None:
        raise ValueError(f"{name}: no weights are published for it.")
    return found


def get_weight(name: str) -> Any:
    """Return weights by their full name, such as "ResNet50_Weights.IMAGENET1K_V1"."""
    kind, _, entry = name.partition(".")
    found = enumeration(kind)
    if not entry:
        raise ValueError(f"Invalid weight name provided: '{name}'.")
    if found is None:
        raise ValueError(f"The weight enum '{kind}' for the specific method couldn't be retrieved.")
    return found[entry]


def pretrained(name: str, make: Callable[..., Any], weights: Any, progress: bool, kwargs: dict[str, Any]) -> Any:
    """Make a model with published weights, which decide its classes."""
    kinds = get_model_weights(name)
    if isinstance(weights, str):
        entry = weights.rpartition(".")[2]
        if entry not in kinds.__members__:
            raise ValueError(f"{name}: expected weights among {', '.join(kinds.__members__)}; got {weights!r}.")
        weights = kinds[entry]
    if not isinstance(weights, kinds):
        raise TypeError(
            f"Invalid Weight class provided; expected {kinds.__name__} but received {type(weights).__name__}."
        )
    required = {"num_classes": len(weights.meta["categories"])} if weights.meta["categories"] else {}
    if _finds_objects(weights):
        kwargs["_trained"] = True
        if "keypoint_names" in weights.meta:
            required["num_keypoints"] = len(weights.meta["keypoint_names"])
    elif "COCO" in weights.name and "lraspp" not in name:  # whose files have the auxiliary classifier
        required["aux_loss"] = True
    for key, value in required.items():
        if kwargs.get(key) is None:
            kwargs[key] = value
        elif kwargs[key] != value:
            raise ValueError(
                f"The parameter '{key}' expected value {value} but got {kwargs[key]} instead. Replace the last layer after the "
                "weights are loaded."
            )
    if "weights_backbone" in kwargs:
        kwargs["weights_backbone"] = None
    if name.startswith("vit"):
        kwargs = {"image_size": weights.meta["min_size"][0], **kwargs}
    # The files have the auxiliary classifiers, and were trained on differently scaled images.
    aux = {"googlenet": ("aux1", "aux2"), "inception_v3": ("AuxLogits",)}.get(name, ())
    listens = kwargs.pop("aux_logits", name == "inception_v3")
    if aux:
        kwargs = {"transform_input": True, **kwargs, "aux_logits": True, "init_weights": False}
    model = make(**kwargs)
    model.load_state_dict(weights.get_state_dict(progress))
    if weights.name == "COCO_V1" and name.endswith("_resnet50_fpn") and not name.startswith("fcos"):
        overwrite_eps(model, 0.0)  # as they were trained
    if aux and not listens:
        model.aux_logits = False
        for classifier in aux:
            setattr(model, classifier, None)
    return model


def overwrite_eps(model: Any, eps: float) -> None:
    """Set the eps of all frozen norms of a model, as weights that were trained without one need it."""
    for module in model.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.eps = eps
