# SPDX-License-Identifier: Apache-2.0
"""The CustomResourceDefinition around the schema: names, printer columns, subresources."""

from typing import Any

from gearshift.api import names
from gearshift.api.crdgen.schema import structural
from gearshift.api.v1alpha1 import InferenceServiceSpec, InferenceServiceStatus

PRINTER_COLUMNS = (
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Layout", "type": "string", "jsonPath": ".status.layout", "description": "Layouts in use"},
    {"name": "P/D", "type": "string", "jsonPath": ".status.split", "description": "Ready prefill and decode pods"},
    {"name": "Replicas", "type": "integer", "jsonPath": ".status.readyReplicas", "description": "Ready pods"},
    {"name": "Model", "type": "string", "jsonPath": ".spec.model.uri"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Reason", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].reason', "priority": 1},
)


def _root_schema() -> dict[str, Any]:
    # A Service name is a DNS label of at most 63 characters; the longest suffix of a child is "-router".
    name_rule = {
        "rule": "size(self.metadata.name) <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "messageExpression": "'metadata.name: ' + self.metadata.name"
        " + ' is not a DNS label of at most 50 characters that begins with a letter'",
    }
    return {
        "type": "object",
        "description": "An LLM served on pods whose layout, role and number change while they serve.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(InferenceServiceSpec),
            "status": structural(InferenceServiceStatus),
        },
        "x-kubernetes-validations": [name_rule],
    }


def crd() -> dict[str, Any]:
    """The CRD of ``InferenceService`` as a manifest."""
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root_schema()},
        "additionalPrinterColumns": [dict(column) for column in PRINTER_COLUMNS],
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names.PLURAL}.{names.GROUP}"},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.KIND,
                "listKind": f"{names.KIND}List",
                "plural": names.PLURAL,
                "singular": names.KIND.lower(),
                "shortNames": ["gsvc"],
                "categories": ["gearshift"],
            },
            "versions": [version],
        },
    }
