"""The second stage: what each box holds, and where exactly it is, with masks or keypoints where there are heads for them."""

from __future__ import annotations

from typing import Any

import mortice
from mortice import nn
from mortice.nn import functional as F
from mortice.vision.models.detection import _utils as det_utils
from mortice.vision.ops import boxes as box_ops
from mortice.vision.ops import roi_align

__all__ = ["RoIHeads"]


# ---- boxes ----


def fastrcnn_loss(
    class_logits: Any, box_regression: Any, labels: list[Any], regression_targets: Any
) -> tuple[Any, Any]:
    """Return the losses of classes, and of the boxes of those that are not background."""
    labels, targets = mortice.cat(labels), mortice.cat(list(regression_targets))
    at = mortice.where(labels > 0)[0]
    codes = box_regression.reshape(len(class_logits), box_regression.shape[-1] // 4, 4)[at, labels[at]]
    box_loss = F.smooth_l1_loss(codes, targets[at], beta=1 / 9, reduction="sum") / labels.numel()
    return F.cross_entropy(class_logits, labels), box_loss


# ---- masks ----


def maskrcnn_inference(x: Any, labels: list[Any]) -> Any:
    """Return for each image the masks (N, 1, M, M) of the classes that were found, as probabilities."""
    picked = x.sigmoid()[mortice.arange(len(x), device=x.device), mortice.cat(labels)][:, None]
    return picked.split([len(in_image) for in_image in labels])


def project_masks_on_boxes(gt_masks: Any, boxes: Any, matched_idxs: Any, M: int) -> Any:
    """Return what true masks have in boxes, M by M: of each box the mask which it belongs to."""
    rois = mortice.cat([matched_idxs.to(boxes)[:, None], boxes], dim=1)
    return roi_align(gt_masks[:, None].to(rois), rois, (M, M), 1.0)[:, 0]


def maskrcnn_loss(
    mask_logits: Any, proposals: list[Any], gt_masks: list[Any], gt_labels: list[Any], mask_matched_idxs: list[Any]
) -> Any:
    """Return the loss of the masks of the true classes."""
    size = mask_logits.shape[-1]
    labels = mortice.cat([in_image[at] for in_image, at in zip(gt_labels, mask_matched_idxs)])
    parts = zip(gt_masks, proposals, mask_matched_idxs)
    targets = mortice.cat([project_masks_on_boxes(*of_image, size) for of_image in parts])
    if not targets.numel():  # the mean of nothing is not a number
        return mask_logits.sum() * 0
    picked = mask_logits[mortice.arange(len(labels), device=labels.device), labels]
    return F.binary_cross_entropy_with_logits(picked, targets)


def expand_boxes(boxes: Any, scale: float) -> Any:
    """Return boxes that many times as large, around the same centres."""
    centres, half = (boxes[:, :2] + boxes[:, 2:]) * 0.5, (boxes[:, 2:] - boxes[:, :2]) * 0.5 * scale
    return mortice.cat((centres - half, centres + half), dim=1)


def expand_masks(mask: Any, padding: int) -> tuple[Any, float]:
    """Return masks with a frame of zeros, and how many times as large they are with it."""
    size = mask.shape[-1]
    return F.pad(mask, (padding,) * 4), float(size + 2 * padding) / size


def paste_mask_in_image(mask: Any, box: Any, im_h: int, im_w: int) -> Any:
    """Return an image of zeros with one mask, resized, in a box of whole pixels."""
    x1, y1, x2, y2 = (int(x) for x in box)
    width, height = max(x2 - x1 + 1, 1), max(y2 - y1 + 1, 1)
    mask = F.interpolate(mask[None, None], size=(height, width), mode="bilinear", align_corners=False)[0, 0]
    image = mask.new_zeros((im_h, im_w))
    left, right, top, bottom = max(x1, 0), min(x2 + 1, im_w), max(y1, 0), min(y2 + 1, im_h)
    image[top:bottom, left:right] = mask[top - y1 : bottom - y1, left - x1 : right - x1]
    return image


def paste_masks_in_image(masks: Any, boxes: Any, img_shape: tuple[int, int], padding: int = 1) -> Any:
    """Return images (N, 1, H, W) of zeros with masks (N, 1, M, M) in boxes."""
    masks, scale = expand_masks(masks, padding)  # so that they can end before the edges of their boxes
    boxes = expand_boxes(boxes, scale).to(mortice.int64).tolist()
    if not boxes:
        return masks.new_empty((0, 1, *img_shape))
    pasted = [paste_mask_in_image(mask[0], box, *img_shape) for mask, box in zip(masks, boxes)]
    return mortice.stack(pasted)[:, None]


# ---- keypoints ----


def keypoints_to_heatmap(keypoints: Any, rois: Any, heatmap_size: int) -> tuple[Any, Any]:
    """Return which pixel of the map of its box each keypoint is, 0 where it is none, and 1 where it is one."""
    pixels, inside = [], keypoints[..., 2] > 0
    for axis in (0, 1):
        low, high = rois[:, axis, None], rois[:, axis + 2, None]
        at = ((keypoints[..., axis] - low) * (heatmap_size / (high - low))).floor().long()
        at = at.masked_fill(keypoints[..., axis] == high, heatmap_size - 1)
        inside = inside & (at >= 0) & (at < heatmap_size)
        pixels.append(at)
    valid = inside.long()
    return (pixels[1] * heatmap_size + pixels[0]) * valid, valid


def heatmaps_to_keypoints(maps: Any, rois: Any) -> tuple[Any, Any]:
    """Return where maps (N, K, H, W), as large as their boxes, are largest: (N, K, 3), the third 1, and how large."""
    n, k = len(rois), maps.shape[1]
    sizes = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    found, scores = maps.new_ones((n, k, 3), dtype=mortice.float32), maps.new_zeros((n, k), dtype=mortice.float32)
    for i, (width, height) in enumerate(sizes.ceil().long().tolist()):
        at_size = F.interpolate(maps[i][:, None], size=(height, width), mode="bicubic", align_corners=False)
        values, at = at_size.reshape(k, -1).max(dim=1)
        for axis, (pixel, side) in enumerate(((at % width, width), (at // width, height))):
            found[i, :, axis] = (pixel.float() + 0.5) * (sizes[i, axis] / side) + rois[i, axis]
        scores[i] = values
    return found, scores


def keypointrcnn_loss(
    keypoint_logits: Any, proposals: list[Any], gt_keypoints: list[Any], keypoint_matched_idxs: list[Any]
) -> Any:
    """Return the loss of which pixel each keypoint is, of those that are seen and inside the boxes."""
    n, k, height, width = keypoint_logits.shape
    if height != width:
        raise ValueError(
            "keypoint_logits height and width (last two elements of shape) should be equal. Instead got "
            f"H = {height} and W = {width}"
        )
    parts = zip(gt_keypoints, keypoint_matched_idxs, proposals)
    made = [keypoints_to_heatmap(true[at], boxes, height) for true, at, boxes in parts]
    targets, valid = (mortice.cat([pair[j].reshape(-1) for pair in made]) for j in (0, 1))
    at = mortice.where(valid)[0]
    if not len(at):  # the mean of nothing is not a number
        return keypoint_logits.sum() * 0
    return F.cross_entropy(keypoint_logits.view(n * k, height * width)[at], targets[at])


def keypointrcnn_inference(x: Any, boxes: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return for each image keypoints (N, K, 3), and their scores."""
    made = [heatmaps_to_keypoints(*pair) for pair in zip(x.split([len(b) for b in boxes]), boxes)]
    return [points for points, _ in made], [scores for _, scores in made]


# ---- all of them ----


class RoIHeads(nn.Module):
    """Pools the maps of each proposed box, and predicts from that.

    Args:
        box_roi_pool, box_head, box_predictor: from maps and boxes to one size, to numbers, and to logits of classes and
            codes of boxes; likewise for masks and keypoints, where None leaves them out.
        fg_iou_thresh, bg_iou_thresh: from which overlap with a true box on a proposal is of its class, and below which
            it is background.
        batch_size_per_image, positive_fraction: how many proposals count in a loss, and which part of them, at most, is
            not background.
        bbox_reg_weights: what the codes of boxes are multiplied by.
        score_thresh: how probable a class must be.
        nms_thresh: how much boxes may overlap better ones of the same class.
        detections_per_img: how many boxes are left, at most.
    """

    def __init__(
        self,
        box_roi_pool: Any,
        box_head: Any,
        box_predictor: Any,
        fg_iou_thresh: float,
        bg_iou_thresh: float,
        batch_size_per_image: int,
        positive_fraction: float,
        bbox_reg_weights: Any,
        score_thresh: float,
        nms_thresh: float,
        detections_per_img: int,
        mask_roi_pool: Any = None,
        mask_head: Any = None,
        mask_predictor: Any = None,
        keypoint_roi_pool: Any = None,
        keypoint_head: Any = None,
        keypoint_predictor: Any = None,
    ) -> None:
        super().__init__()
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = det_utils.Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=False)
        self.fg_bg_sampler = det_utils.BalancedPositiveNegativeSampler(batch_size_per_image, positive_fraction)
        self.box_coder = det_utils.BoxCoder(bbox_reg_weights or (10.0, 10.0, 5.0, 5.0))
        self.box_roi_pool, self.box_head, self.box_predictor = box_roi_pool, box_head, box_predictor
        self.score_thresh, self.nms_thresh, self.detections_per_img = score_thresh, nms_thresh, detections_per_img
        self.mask_roi_pool, self.mask_head, self.mask_predictor = mask_roi_pool, mask_head, mask_predictor
        self.keypoint_roi_pool, self.keypoint_head = keypoint_roi_pool, keypoint_head
        self.keypoint_predictor = keypoint_predictor

    def has_mask(self) -> bool:
        """Return whether masks are predicted."""
        return None not in (self.mask_roi_pool, self.mask_head, self.mask_predictor)

    def has_keypoint(self) -> bool:
        """Return whether keypoints are predicted."""
        return None not in (self.keypoint_roi_pool, self.keypoint_head, self.keypoint_predictor)

    def assign_targets_to_proposals(
        self, proposals: list[Any], gt_boxes: list[Any], gt_labels: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return for each image which true box each proposal fits best, and its class: 0 for none, -1 for neither."""
        places, labels = [], []
        for boxes, true, true_labels in zip(proposals, gt_boxes, gt_labels):
            if true.numel():
                matches = self.proposal_matcher(self.box_similarity(true, boxes))
                at = matches.clamp(min=0)
                found = true_labels[at].to(mortice.int64)
                found = found.masked_fill(matches == self.proposal_matcher.BELOW_LOW_THRESHOLD, 0)
                labels.append(found.masked_fill(matches == self.proposal_matcher.BETWEEN_THRESHOLDS, -1))
                places.append(at)
            else:
                places.append(mortice.zeros(len(boxes), dtype=mortice.int64, device=boxes.device))
                labels.append(mortice.zeros_like(places[-1]))
        return places, labels

    def subsample(self, labels: list[Any]) -> list[Any]:
        """Return the places in each image that are drawn for the loss."""
        return [mortice.where(positive | negative)[0] for positive, negative in zip(*self.fg_bg_sampler(labels))]

    def add_gt_proposals(self, proposals: list[Any], gt_boxes: list[Any]) -> list[Any]:
        """Return the proposals with the true boxes after them."""
        return [mortice.cat(pair) for pair in zip(proposals, gt_boxes)]

    def check_targets(self, targets: Any) -> None:
        """Refuse targets that lack something."""
        if targets is None:
            raise ValueError("targets should not be None")
        for key in ("boxes", "labels", "masks") if self.has_mask() else ("boxes", "labels"):
            if not all(key in target for target in targets):
                raise ValueError(f"Every element of targets should have a {key} key")

    def select_training_samples(self, proposals: list[Any], targets: Any) -> tuple[Any, Any, Any, Any]:
        """Return for each image the boxes that count in the loss, the true ones, the classes, and the boxes' codes."""
        self.check_targets(targets)
        true = [target["boxes"].to(proposals[0].dtype) for target in targets]
        proposals = self.add_gt_proposals(proposals, true)
        places, labels = self.assign_targets_to_proposals(proposals, true, [target["labels"] for target in targets])
        drawn = self.subsample(labels)
        proposals, labels, places = (
            [of_image[at] for of_image, at in zip(all, drawn)] for all in (proposals, labels, places)
        )
        matched = [(b if b.numel() else b.new_zeros((1, 4)))[at] for b, at in zip(true, places)]
        return proposals, places, labels, self.box_coder.encode(matched, proposals)

    def postprocess_detections(
        self, class_logits: Any, box_regression: Any, proposals: list[Any], image_shapes: Any
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return boxes, scores and labels for each image, the best first."""
        counts = [len(in_image) for in_image in proposals]
        all_boxes = self.box_coder.decode(box_regression, proposals).split(counts)
        all_scores = F.softmax(class_logits, -1).split(counts)
        found: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
        for boxes, scores, size in zip(all_boxes, all_scores, image_shapes):
            # Each class of a box is a box by itself, background none.
            kinds = scores.shape[-1] - 1
            scores = scores[:, 1:].reshape(-1)
            at = mortice.where(scores > self.score_thresh)[0]
            boxes = box_ops.clip_boxes_to_image(boxes[:, 1:].reshape(-1, 4)[at], size)
            keep = box_ops.remove_small_boxes(boxes, min_size=1e-2)
            boxes, at = boxes[keep], at[keep]
            scores, labels = scores[at], at % kinds + 1
            keep = box_ops.batched_nms(boxes, scores, labels, self.nms_thresh)[: self.detections_per_img]
            for kept, values in zip(found, (boxes, scores, labels)):
                kept.append(values[keep])
        return found

    def forward(
        self, features: dict[str, Any], proposals: list[Any], image_shapes: Any, targets: Any = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Return what is found in each image, and the losses by name in training."""
        for target in targets or ():
            if not target["boxes"].is_floating_point():
                raise TypeError(f"target boxes must of float type, instead got {target['boxes'].dtype}")
            if target["labels"].dtype != mortice.int64:
                raise TypeError(f"target labels must of int64 type, instead got {target['labels'].dtype}")
            if self.has_keypoint() and target["keypoints"].dtype != mortice.float32:
                raise TypeError(f"target keypoints must of float type, instead got {target['keypoints'].dtype}")
        if self.training:
            proposals, places, labels, codes = self.select_training_samples(proposals, targets)
        pooled = self.box_head(self.box_roi_pool(features, proposals, image_shapes))
        class_logits, box_regression = self.box_predictor(pooled)
        result: list[Any] = []
        losses: dict[str, Any] = {}
        if self.training:
            loss_classifier, loss_box_reg = fastrcnn_loss(class_logits, box_regression, labels, codes)
            losses = {"loss_classifier": loss_classifier, "loss_box_reg": loss_box_reg}
            # Masks and keypoints are learnt from the boxes that are not background.
            positive = [mortice.where(in_image > 0)[0] for in_image in labels]
            boxes, places = ([x[at] for x, at in zip(all, positive)] for all in (proposals, places))
        else:
            found = self.postprocess_detections(class_logits, box_regression, proposals, image_shapes)
            result = [{"boxes": b, "labels": kinds, "scores": s} for b, s, kinds in zip(*found)]
            boxes = found[0]
        if self.has_mask():
            logits = self.mask_predictor(self.mask_head(self.mask_roi_pool(features, boxes, image_shapes)))
            if self.training:
                true = ([target[key] for target in targets] for key in ("masks", "labels"))
                losses["loss_mask"] = maskrcnn_loss(logits, boxes, *true, places)
            else:
                for of_image, masks in zip(result, maskrcnn_inference(logits, [r["labels"] for r in result])):
                    of_image["masks"] = masks
        if self.has_keypoint():
            logits = self.keypoint_head(self.keypoint_roi_pool(features, boxes, image_shapes))
            logits = self.keypoint_predictor(logits)
            if self.training:
                points = [target["keypoints"] for target in targets]
                losses["loss_keypoint"] = keypointrcnn_loss(logits, boxes, points, places)
            else:
                for of_image, points, scores in zip(result, *keypointrcnn_inference(logits, boxes)):
                    of_image["keypoints"], of_image["keypoints_scores"] = points, scores
        return result, losses
