"""Rules of third parties: what entry points of the group `mortice.doctor` offer, through pluggy."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

import pluggy

from mortice.doctor.rule import register
from mortice.notice import warn

GROUP = "mortice.doctor"
hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


class Hooks:
    """What a plugin may implement."""

    @hookspec
    def mortice_doctor_rules(self):  # type: ignore[no-untyped-def]
        """Return the plugin's rules: subclasses of `mortice.doctor.Rule`."""


@cache
def discover() -> tuple[str, ...]:
    """Register the rules of every installed plugin; return the plugins' names. One that fails is named in a warning."""
    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
        manager = pluggy.PluginManager(GROUP)
        manager.add_hookspecs(Hooks)
        try:
            manager.register(point.load(), point.name)
            for rules in manager.hook.mortice_doctor_rules():
                for rule in rules:
                    register(rule)
        except Exception as error:
            warn(
                f"mortice.doctor: the rules of {point.name} ({point.value}) cannot be used: {type(error).__name__}: {error}",
                RuntimeWarning,
            )
        else:
            found.append(point.name)
    return tuple(found)
