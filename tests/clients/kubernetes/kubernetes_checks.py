"""Checks the manifests of deploy/kubernetes with the schemas of Kubernetes."""

import os
from pathlib import Path

import kubernetes_validate
import yaml

number = 0
for path in sorted(Path(os.environ["MANIFESTS"]).glob("*.yml")):
    for manifest in yaml.safe_load_all(path.read_text()):
        number += 1
        name = f"{path.name}: {manifest['kind']} {manifest['metadata']['name']}"
        try:
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
            print(f"ok {number} - {name}")
        except kubernetes_validate.ValidationError as error:
            print(f"not ok {number} - {name}\n  # {error.message}")
print(f"1..{number}")
