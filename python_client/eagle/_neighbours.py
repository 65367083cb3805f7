"""Another package of the same name in this environment: raptor-eagle installs a folder `eagle` too.

Whichever came later has written over files of the other, so that one of the two is broken, and the one that works has
modules of the other beside its own. pip does not notice; whoever imports the package is told. `eaglectl doctor` looks
for any package with a folder of this name, which takes longer than an import may.
"""

import os
import warnings

CURE = (
    "python -m pip uninstall raptor-eagle, then python -m pip install --force-reinstall eagled; "
    "or give each an environment of its own"
)


def _raptor_eagle(folder: str) -> "str | None":
    """The information folder of raptor-eagle beside our package, if there is one."""
    try:
        names = os.listdir(folder)
    except OSError:  # in an archive, for one
        return None
    for name in names:
        if name.startswith("raptor_eagle-") and name.endswith(".dist-info"):
            return name
    return None


def warn_of_neighbours(folder: str) -> None:
    """Warns where raptor-eagle is installed in `folder`, in which our package lies."""
    found = _raptor_eagle(folder)
    if found is not None:
        version = found[len("raptor_eagle-") : -len(".dist-info")]
        warnings.warn(
            f"import eagle: raptor-eagle {version} is installed in {folder} too, and both have a package `eagle`: "
            f"each has written over files of the other. Cure: {CURE}",
            RuntimeWarning,
            stacklevel=3,
        )


def foreign_core(path: "str | None", why: str) -> ImportError:
    """What to raise where the module `eagle._core` is not this package's."""
    return ImportError(
        f"import eagle: {path or 'eagle._core'} is not the module of this package ({why}): another distribution, as "
        f"raptor-eagle, has written over it. Cure: {CURE}"
    )
