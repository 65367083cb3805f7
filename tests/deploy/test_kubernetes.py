"""The manifests: against Kubernetes' schemas, and what schemas do not know."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from harness import EAGLED, PATIENCE_S, ROOT
from manifests import only, pod_of, read

FOLDER = ROOT / "deploy/kubernetes"
OVERLAYS = ["node", "remote"]
VERSIONS = ["1.25", "1.31", kubernetes_validate.latest_version()]
LONGEST_END_S = 15  # server/keeper/keeper.cpp


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def objects(overlay: str) -> list[dict[str, Any]]:
    return read(FOLDER / overlay)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_of_the_job_passes_its_schema(version: str) -> None:
    for one in read(FOLDER / "job"):
        kubernetes_validate.validate(one, version, strict=True)


def test_the_job_is_what_its_driver_takes() -> None:
    """Each pod has its share of the shards; mistakes end the job, and nothing has more rights than it needs."""
    objects = read(FOLDER / "job")
    spec = only(objects, "Job")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    words = dict(word.removeprefix("--").split("=") for word in container["args"])
    assert int(words["of"]) == spec["completions"]
    assert int(words["chunk"]) % 256 == 0
    assert container["command"] == ["python", "-m", "eagle.cluster.job", "run", "/etc/eagle-job/model.py"]
    assert spec["completionMode"] == "Indexed"
    assert pod["restartPolicy"] == "Never", "or podFailurePolicy is refused"
    failing = [rule["onExitCodes"]["values"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert failing == [[2]]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)
    claim = only(objects, "PersistentVolumeClaim")["metadata"]["name"]
    assert volumes["results"]["persistentVolumeClaim"]["claimName"] == claim
    assert pod["serviceAccountName"] == only(objects, "ServiceAccount")["metadata"]["name"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_passes_its_schema(objects: list[dict[str, Any]], version: str) -> None:
    for one in objects:
        if one["kind"] == "ServiceMonitor":  # of Prometheus' operator: not Kubernetes' own
            assert one["apiVersion"] == "monitoring.coreos.com/v1"
            continue
        kubernetes_validate.validate(one, version, strict=True)


def test_a_wrong_object_does_not_pass(objects: list[dict[str, Any]]) -> None:
    pod_of(objects)["containers"][0]["readOnlyRootFilesystem"] = True  # of its securityContext
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(only(objects, "DaemonSet", "Deployment"), VERSIONS[0], strict=True)


def test_kustomize_collects_the_same(overlay: str, objects: list[dict[str, Any]]) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl, which has kustomize")
    rendered = subprocess.run(
        ["kubectl", "kustomize", FOLDER / overlay], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert rendered.returncode == 0, rendered.stderr
    made = [one for one in yaml.safe_load_all(rendered.stdout) if one]

    def kinds(of: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return sorted((one["kind"], one["metadata"]["name"].partition("-")[0]) for one in of)

    assert kinds(made) == kinds(objects)
    assert all(one["metadata"].get("namespace") == "eagle" for one in made if one["kind"] != "Namespace")


def test_the_monitor_finds_the_metrics(objects: list[dict[str, Any]]) -> None:
    monitor = only(objects, "ServiceMonitor")["spec"]
    services = [one for one in objects if one["kind"] == "Service"]
    wanted = monitor["selector"]["matchLabels"].items()
    (chosen,) = (one for one in services if wanted <= one["metadata"]["labels"].items())
    assert monitor["endpoints"][0]["port"] in [port["name"] for port in chosen["spec"]["ports"]]
    names = [port["name"] for container in pod_of(objects)["containers"] for port in container["ports"]]
    assert chosen["spec"]["ports"][0]["targetPort"] in names


def test_selectors_and_labels_fit(objects: list[dict[str, Any]]) -> None:
    labels = only(objects, "DaemonSet", "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    for one in objects:
        spec = one.get("spec", {})
        if one["kind"] == "Service":
            assert spec["selector"].items() <= labels, one
        elif one["kind"] in ("NetworkPolicy", "PodDisruptionBudget"):
            selector = spec["podSelector" if one["kind"] == "NetworkPolicy" else "selector"]
            assert selector["matchLabels"].items() <= labels, one


def test_grace_is_above_the_drain(overlay: str, objects: list[dict[str, Any]]) -> None:
    settings = (FOLDER / overlay / "eagled.toml").read_text()
    drain = int(next(line for line in settings.splitlines() if line.startswith("drain_timeout")).split("=")[1])
    assert pod_of(objects)["terminationGracePeriodSeconds"] >= drain + LONGEST_END_S


def test_probes_ask_the_health_services(objects: list[dict[str, Any]]) -> None:
    (container,) = pod_of(objects)["containers"]
    asked = {kind: container[kind]["exec"]["command"] for kind in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert asked["readinessProbe"] == asked["startupProbe"] == ["eagled", "health", "eagled.ready"]
    assert asked["livenessProbe"] == ["eagled", "health"], "a daemon that drains is not to be killed"


def test_nothing_runs_with_more_than_it_needs(objects: list[dict[str, Any]]) -> None:
    pod = pod_of(objects)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 7411
    assert not {"hostIPC", "hostPID", "hostNetwork"} & set(pod)
    for container in pod["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_pods_of_a_node_come_with_tokens() -> None:
    settings = (FOLDER / "node/eagled.toml").read_text()
    assert 'identity = "token"' in settings, "pods share uids"
    assert any("hostPath" in volume for volume in pod_of(read(FOLDER / "node"))["volumes"])


def test_the_configuration_holds(overlay: str, tmp_path: Path) -> None:
    """With files where the pods' volumes have them."""
    made = subprocess.run(
        [EAGLED, "--new-token", "pod"], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout
    (tmp_path / "tokens").write_text(made.split("line", 1)[1].split(": ", 1)[1].strip() + "\n")
    (tmp_path / "tokens").chmod(0o600)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=eagled", "-addext", "subjectAltName=DNS:eagled", "-keyout", tmp_path / "tls.key",
         "-out", tmp_path / "tls.crt"],
        check=True, capture_output=True, timeout=PATIENCE_S,
    )  # fmt: skip
    (tmp_path / "tls.key").chmod(0o600)
    (tmp_path / "ca.crt").write_bytes((tmp_path / "tls.crt").read_bytes())
    text = (FOLDER / overlay / "eagled.toml").read_text()
    for place in ("/etc/eagled-tokens", "/etc/eagled-tls"):
        text = text.replace(place, str(tmp_path))
    (tmp_path / "eagled.toml").write_text(text.replace("/var/cache/eagled", str(tmp_path / "cache")))
    checked = subprocess.run(
        [EAGLED, "--config", tmp_path / "eagled.toml", "--check-config"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
