#!/usr/bin/env python3
"""Writes the schemas of this folder again. Arguments: the folders of the two Go modules that README.md names."""

import json
import pathlib
import sys

# Kinds that `plimsoll fleet render --k8s` prints.
WANTED = [
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Service",
    "io.k8s.api.networking.v1.NetworkPolicy",
]
PREFIX = "#/definitions/"


def without_descriptions(node, is_names=False):
    """A copy without descriptions; a property that is named 'description' stays."""
    if isinstance(node, dict):
        return {
            key: without_descriptions(value, key in ("properties", "patternProperties", "$defs"))
            for key, value in node.items()
            if is_names or key != "description"
        }
    if isinstance(node, list):
        return [without_descriptions(value) for value in node]
    return node


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(PREFIX)
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def kubernetes(module):
    swagger = json.loads((module / "api/openapi-spec/swagger.json").read_text())["definitions"]
    found, waiting = {}, list(WANTED)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = without_descriptions(swagger[name])
            waiting.extend(references(found[name]))
    return {"definitions": found}


def compose(module):
    return without_descriptions(json.loads((module / "schema/compose-spec.json").read_text()))


def write(name, schema):
    # A line for each definition, so that a change of version can be read.
    word = "definitions" if "definitions" in schema else "$defs"
    definitions = schema.pop(word)
    lines = ",\n".join(
        f"{json.dumps(one)}: {json.dumps(definitions[one], sort_keys=True)}" for one in sorted(definitions)
    )
    schema = json.dumps(schema, sort_keys=True).removesuffix("}")
    comma = ", " if schema != "{" else ""
    text = f'{schema}{comma}"{word}": {{\n{lines}\n}}}}\n'
    json.loads(text)
    (pathlib.Path(__file__).parent / name).write_text(text)


write("kubernetes.json", kubernetes(pathlib.Path(sys.argv[1])))
write("compose.json", compose(pathlib.Path(sys.argv[2])))
