"""Renders the Helm chart by Helm's own library and judges every object by the schema of Kubernetes.

usage: render.py CHART VALUES.json... ; prints the objects of the first values as YAML
"""

import json
import sys

import helm_python
import kubernetes_validate
import yaml

chart_folder, *values_files = sys.argv[1:]
VERSIONS = ["1.29", "1.37"]

INFO = 1


def block(dumper, text):
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


yaml.SafeDumper.add_representer(str, block)

for finding in helm_python.lint(chart_folder, strict=True)["messages"]:
    if finding["severity"] != INFO:
        sys.exit(f"helm lint: {finding['path']}: {finding['error']}")
for number, file in enumerate(values_files):
    with open(file) as text:
        values = json.load(text)
    with helm_python.Chart.load(chart_folder) as chart:
        rendered = chart.render(values, name="precise", namespace="default")
    objects = []
    for template in sorted(rendered):
        objects += [thing for thing in yaml.safe_load_all(rendered[template]) if thing]
    for thing in objects:
        for version in VERSIONS:
            kubernetes_validate.validate(thing, version, strict=True)
    if number == 0:
        print(yaml.safe_dump_all(objects, sort_keys=False, width=100), end="")
