"""TITLE as a backend of mortice. Importing this module is cheap; the array library is imported by `load`."""

from mortice.backends import Backend, BackendInfo, hookimpl


def load() -> Backend:
    """Import the array library and return the backend."""
    from mortice_conformance.new.template.backend import TemplateBackend

    return TemplateBackend()


@hookimpl
def mortice_backends() -> list[BackendInfo]:
    """Offer `template`."""
    return [BackendInfo("template", ("template",), load, needs="mortice-template", api=1)]
