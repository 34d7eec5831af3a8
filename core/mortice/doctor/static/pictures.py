"""Pictures: the order of transforms, and names of files that are not in the order of the dataset."""

from __future__ import annotations

import ast
from typing import Any

from mortice.doctor.static.rule import StaticRule, register, text

# Datasets of small pictures: to crop those and enlarge them afterwards is meant.
# What says that pictures are as large as cameras make them.
PHOTOS = ("ImageFolder", "CelebA", "ImageNet", "LSUN", "Places365", "Flowers102", "Food101", "OxfordIIITPet", "StanfordCars",
          "CocoDetection", "VOCSegmentation", "VOCDetection", "imread", "read_image", "decode_image")  # fmt: skip
SMALL = ("CIFAR", "MNIST", "SVHN", "USPS", "Omniglot", "FakeData", "STL10")


@register
class CropBeforeResize(StaticRule):
    """A crop to the size to which the picture is resized afterwards."""

    id = "D31"
    title = "CenterCrop before Resize"
    why = "Only the middle of a larger picture is kept, and Resize has nothing left to shrink."
    remedy = "Put Resize first."

    def visit_Call(self, node: ast.Call) -> None:
        name = self.program.qualified(node.func)
        if (
            not name.endswith("transforms.Compose")
            and not name.endswith("transforms.v2.Compose")
            and name != "torch.nn.Sequential"
        ):
            return
        given: Any = node.args
        if name != "torch.nn.Sequential" and node.args:
            given = node.args[0]
            if isinstance(given, ast.Name):
                binding = self.program.reaching(given)
                given = binding.value if binding is not None and binding.how == "assign" else None
            given = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
        crop: tuple[str, ast.Call] | None = None
        for each in given:
            if not isinstance(each, ast.Call):
                continue
            head, _, kind = self.program.qualified(each.func).rpartition(".")
            if "transforms" not in head:
                continue
            if kind in ("Resize", "RandomResizedCrop"):
                if crop is not None and kind == "Resize":
                    self._compare(*crop, each)
                return
            if kind in ("CenterCrop", "RandomCrop") and not any(
                k.arg in ("padding", "pad_if_needed") for k in each.keywords
            ):
                crop = (kind, each) if len(each.args) < 2 else None

    def _compare(self, kind: str, crop: ast.Call, resize: ast.Call) -> None:
        first, second = (self.meaning.argument(c, 0, "size") for c in (crop, resize))
        if first is None or second is None:
            return
        a, b = self._side(first), self._side(second)
        if (a is None or b is None or a > b) and ast.dump(first) != ast.dump(second):
            return
        if not self._large(kind, a, b):
            return
        self.report(
            crop, f"{kind}({text(first)}) runs before Resize({text(second)}): only {'the middle' if kind == 'CenterCrop' else 'a piece'} "
            "of a larger picture is kept.",
        )  # fmt: skip

    def _large(self, kind: str, crop: int | None, size: int | None) -> bool:
        """Tell whether the pictures are probably larger than the crop."""
        imported = self.program.imported()
        names = self.program.attributes | set().union(*(n.split(".") for n in imported))
        if any(small in name for name in names for small in SMALL):
            return False
        if any(photo in names for photo in PHOTOS) or "PIL.Image" in imported:
            return True
        datasets = ("torch.utils.data.Dataset", "torchvision.datasets.VisionDataset")
        own = any(
            self.program.qualified(b) in datasets for c in self.program.nodes.get(ast.ClassDef, ()) for b in c.bases
        )
        return not own and (kind == "CenterCrop" or crop == size)

    def _side(self, node: ast.expr) -> int | None:
        size = self.meaning.constant(node)
        sides = size if isinstance(size, tuple) else (size,)
        return min((s for s in sides if isinstance(s, int)), default=None)


@register
class ListdirBesideImageFolder(StaticRule):
    """Names from os.listdir, matched by position with what an ImageFolder gives."""

    id = "D42"
    title = "ImageFolder structure and file order"
    why = "ImageFolder sorts classes and files; os.listdir gives them in any order, so that names go with the wrong pictures."
    remedy = "Use dataset.samples, which has the path and the class of every item in order (dataset.classes for names of classes)."

    def finish(self) -> None:
        roots = {}
        for call in self.program.nodes.get(ast.Call, ()):
            given, made = self.meaning.argument(call, 0, "root"), self.meaning.thing(call)
            if (
                given is not None
                and made is not None
                and made.name in ("ImageFolder", "DatasetFolder")
                and made.node is call
            ):
                roots[self._key(given)] = text(given)
        if not roots:
            return
        for call in self.program.nodes.get(ast.Call, ()):
            if self.program.qualified(call.func) not in ("os.listdir", "os.scandir", "glob.glob") or not call.args:
                continue
            root = self._folder(call.args[0], roots)
            if root is not None:
                self._follow(call, roots[root])

    def _key(self, node: ast.expr) -> str:
        value = self.meaning.constant(node)
        return value.rstrip("/") if isinstance(value, str) else ast.dump(node)

    def _folder(self, node: ast.expr, roots: dict[str, str]) -> str | None:
        """Return the root of an ImageFolder that a path is, or is in."""
        if isinstance(node, ast.Call) and self.program.qualified(node.func) == "os.path.join" and node.args:
            return self._folder(node.args[0], roots)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._folder(node.left, roots)
        key = self._key(node)
        return next((r for r in roots if key == r or key.startswith(r + "/")), None)

    def _follow(self, call: ast.Call, root: str) -> None:
        """See what becomes of the names."""
        around = self.program.parent[call]
        names: ast.AST | None = None
        if isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id == "zip":
            self._say(call, root)
        elif isinstance(around, ast.Subscript) and around.value is call:
            return
        elif isinstance(around, ast.Assign) and len(around.targets) == 1:
            names = around.targets[0]
        elif isinstance(around, ast.comprehension) and isinstance(outer := self.program.parent[around], ast.ListComp):
            assign = self.program.parent[outer]
            names = assign.targets[0] if isinstance(assign, ast.Assign) else None
        elif isinstance(around, ast.For) and isinstance(around.target, ast.Name):
            for inner in ast.walk(around):
                if (
                    isinstance(inner, ast.Call)
                    and isinstance(inner.func, ast.Attribute)
                    and inner.func.attr == "append"
                ):
                    if inner.args and any(
                        isinstance(n, ast.Name) and n.id == around.target.id for n in ast.walk(inner.args[0])
                    ):
                        names = inner.func.value
        if isinstance(names, ast.Name) and self._by_position(names):
            self._say(call, root)

    def _by_position(self, names: ast.Name) -> bool:
        """Tell whether a list is indexed by a variable or zipped, and never sorted."""
        found = False
        for use in self.program.nodes.get(ast.Name, ()):
            if use.id != names.id:
                continue
            around = self.program.parent[use]
            if isinstance(around, ast.Attribute) and around.attr in ("sort", "index"):
                return False
            if isinstance(around, ast.Call) and isinstance(around.func, ast.Name):
                if around.func.id == "sorted":
                    return False
                found |= around.func.id == "zip"
            elif isinstance(around, ast.Subscript) and around.value is use and isinstance(around.ctx, ast.Load):
                found |= not isinstance(around.slice, (ast.Constant, ast.Slice, ast.UnaryOp))
        return found

    def _say(self, call: ast.Call, root: str) -> None:
        self.report(
            call,
            f"{text(call)} gives names in any order, while ImageFolder({root}) sorts them: they do not match by position.",
        )
