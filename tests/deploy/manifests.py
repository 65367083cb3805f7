"""The objects of deploy/kubernetes."""

from pathlib import Path
from typing import Any

import yaml


def read(folder: Path) -> list[dict[str, Any]]:
    """The objects that a kustomization names, bases first, as kustomize collects them."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(kustomization) <= {"apiVersion", "kind", "namespace", "resources", "configMapGenerator"}
    found: list[dict[str, Any]] = []
    for name in kustomization["resources"]:
        path = (folder / name).resolve()
        found += read(path) if path.is_dir() else [one for one in yaml.safe_load_all(path.read_text()) if one]
    for made in kustomization.get("configMapGenerator", ()):
        data = {name: (folder / name).read_text() for name in made["files"]}
        found.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": made["name"]}, "data": data})
    return found


def only(objects: list[dict[str, Any]], *kinds: str) -> dict[str, Any]:
    (found,) = (one for one in objects if one["kind"] in kinds)
    return found


def pod_of(objects: list[dict[str, Any]]) -> dict[str, Any]:
    return only(objects, "DaemonSet", "Deployment")["spec"]["template"]["spec"]
