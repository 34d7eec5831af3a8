"""Optimiser steps to try: the kernel, its kinds of state ('~' any number, '+' positive, '0' near 0, '-' absent), its numbers."""

from __future__ import annotations

from typing import Any

_SGD: dict[str, Any] = {"lr": 0.1, "momentum": 0.9, "dampening": 0.25, "weight_decay": 0.01, "nesterov": False,
                        "maximize": False, "first": False}  # fmt: skip
_ADAM: dict[str, Any] = {
    "lr": 0.01,
    "betas": (0.9, 0.99),
    "eps": 1e-6,
    "weight_decay": 0.01,
    "maximize": False,
    "step": 3.0,
}
_DECOUPLED = {**_ADAM, "decoupled_weight_decay": True}
_MOMENTA = {"mu": 0.9, "next_mu": 0.91, "mu_product": 0.8}

STEPS: list[tuple[str, str, dict[str, Any]]] = [
    ("sgd_step", "~", _SGD),
    ("sgd_step", "-", {**_SGD, "momentum": 0.0, "weight_decay": 0.0}),
    ("sgd_step", "~", {**_SGD, "nesterov": True, "maximize": True, "dampening": 0.0}),
    ("sgd_step", "~", {**_SGD, "first": True}),
    ("asgd_step", "~", {"lambd": 1e-2, "weight_decay": 0.1, "maximize": False, "eta": 0.1, "mu": 0.5}),
    ("asgd_step", "~", {"lambd": 1e-2, "weight_decay": 0.0, "maximize": True, "eta": 0.1, "mu": 1}),
    ("adam_step", "~+-", {**_ADAM, "decoupled_weight_decay": False}),
    ("adam_step", "~+-", _DECOUPLED),
    ("adam_step", "~++", {**_DECOUPLED, "maximize": True}),
    ("adamax_step", "~+", _ADAM),
    ("nadam_step", "~+", {**_DECOUPLED, **_MOMENTA}),
    ("radam_step", "~+", _DECOUPLED),
    ("radam_step", "~+", {**_DECOUPLED, "step": 50.0}),
    ("rmsprop_step", "+~0", {"lr": 0.01, "alpha": 0.9, "eps": 1e-2, "weight_decay": 0.1, "momentum": 0.9, "maximize": False}),
    ("rmsprop_step", "+--", {"lr": 0.01, "alpha": 0.9, "eps": 1e-2, "weight_decay": 0.0, "momentum": 0.0, "maximize": False}),
    ("adagrad_step", "+", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6, "maximize": False, "step": 4.0}),
    ("adadelta_step", "++", {"lr": 0.5, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1, "maximize": False}),
    ("rprop_step", "~+", {"etas": (0.5, 1.2), "step_sizes": (1e-6, 50.0), "maximize": False}),
]  # fmt: skip
